"""Files that commands write beside their runs, such as manifests and pages; they never overwrite an input."""

from __future__ import annotations

from pathlib import Path

import click

from harness.base.errors import InputError, OptionError
from harness.base.files.whole import whole_file
from harness.base.text import printable
from harness.cli.screen import put

STDOUT = Path("-")
"""Where what is written goes to stdout."""

_MARKDOWN = (".md", ".markdown")


def spare(source: Path, output: Path, what: str = "file") -> None:
    """Make sure that a command does not write over what it reads.

    Args:
        source: what is read.
        output: what is to be written.
        what: how messages call the source.

    Raises:
        InputError: both are one file.
    """
    if output.exists() and source.exists() and output.samefile(source):
        raise InputError(f"{output} is the {what} itself", hint="give what is written another name")


def parquet_target(positional: Path | None, option: Path | None) -> Path:
    """Where a trace is written: given as an argument or with -o.

    Raises:
        OptionError: it is given twice or not at all, or its name has another suffix than `.parquet`, by which
            readers know the format.
    """
    if positional is not None and option is not None:
        raise OptionError(f"where to write is given twice: {positional} and -o {option}", hint="give one")
    target = positional or option
    if target is None:
        raise OptionError("there is nothing to write to", hint="give OUT.parquet, or -o OUT.parquet")
    if target.suffix != ".parquet":
        raise OptionError(
            f"{target} does not end with .parquet, but the command writes Parquet",
            hint=f"call it {target.with_suffix('.parquet')}",
        )
    return target


def write_output(output: Path, text: str) -> None:
    """Write a text file, whole or not at all, with the same line ends everywhere.

    Raises:
        InputError: it cannot be written; whatever was there before is untouched.
    """
    try:
        with whole_file(output) as file:
            file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(
            f"{output} cannot be written: {error.strerror or error}", hint="choose another file with -o"
        ) from error


def remove_output(output: Path) -> None:
    """Remove what a command wrote before, if it did.

    Raises:
        InputError: it cannot be removed.
    """
    try:
        output.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{output} cannot be removed: {error.strerror or error}") from error


def is_page(form: str | None, output: Path | None) -> bool:
    """Whether a report is a page, and not Markdown: what is asked for, else what its file is called."""
    if form is None:
        return output is None or output.suffix.lower() not in _MARKDOWN
    return form == "html"


def deliver(text: str, place: Path) -> None:
    """Write a text file and say where it is, or the text itself to stdout.

    Raises:
        InputError: it cannot be written; whatever was there before is untouched.
    """
    if place == STDOUT:
        put(text)
        return
    write_output(place, text)
    click.echo(printable(str(place)))
