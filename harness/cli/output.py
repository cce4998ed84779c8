"""Writes files that are not part of runs, such as manifests and pages, without overwriting any input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from harness.base.errors import InputError, OptionError, why
from harness.base.files.whole import whole_file
from harness.base.text import counted, printable
from harness.cli.screen import put

STDOUT = Path("-")
"""The path that stands for stdout."""

trace_output = click.option(
    "-o", "--output", metavar="OUT.parquet", type=click.Path(path_type=Path),
    help="The trace to write, instead of the last argument.",
)  # fmt: skip

output_file = click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
    help="Write to this file. [default: stdout]",
)  # fmt: skip

table_format = click.option(
    "--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True,
    help="Format of the table: 'text' for a terminal, 'markdown' for a page, or 'json' for a program.",
)  # fmt: skip

page_format = click.option(
    "--format", "form", type=click.Choice(["html", "markdown"]),
    help="'html' is a self-contained page, and 'markdown' is text for a pull request. [default: by FILE's "
    "suffix, else html]",
)  # fmt: skip

layout_option = click.option(
    "--format", "layout", type=click.Choice(["table", "markdown", "json", "csv"]), default="table",
    show_default=True, help="Output format; 'csv' has one line per value, with its interval.",
)  # fmt: skip

json_layout = click.option("--json", "layout", flag_value="json", help="The same as --format json.")

ANOTHER = "choose another file with -o"
"""The hint if the file of an option `-o` cannot be written."""

_RUN, _TABLE = "run.json", ".parquet"
_MARKDOWN = (".md", ".markdown")


def spare(source: Path, output: Path, what: str = "file") -> None:
    """Check that a command does not overwrite its input.

    `what` is the name of the input in messages.

    Raises:
        InputError: both paths are the same file.
    """
    if output.exists() and source.exists() and output.samefile(source):
        raise InputError(f"{output} is the {what} itself", hint="give the output another name")


def spare_runs(output: Path) -> None:
    """Check that a command does not overwrite a file of a stored run, which can't be made again.

    Raises:
        InputError: the path is the description or a table of a run.
    """
    described = output.parent / _RUN
    if output.is_file() and described.is_file() and (output.name == _RUN or output.suffix == _TABLE):
        raise InputError(f"{output} is part of the run {output.parent}", hint=ANOTHER)


def parquet_target(positional: Path | None, option: Path | None) -> Path:
    """Returns the path of the trace to write, which is given as an argument or with -o.

    Raises:
        OptionError: the path is given twice or not at all, or it does not have the suffix `.parquet`, by
            which readers recognize the format.
        InputError: the file is part of a run.
    """
    if positional is not None and option is not None:
        raise OptionError(f"the output is given twice: {positional} and -o {option}", hint="give one")
    target = positional or option
    if target is None:
        raise OptionError("no output file is given", hint="give OUT.parquet, or -o OUT.parquet")
    if target.suffix != ".parquet":
        raise OptionError(
            f"{target} does not end with .parquet, but the command writes Parquet",
            hint=f"call it {target / 'OUT.parquet' if target.is_dir() else target.with_suffix('.parquet')}",
        )
    spare_runs(target)
    return target


@contextmanager
def writing(output: Path, hint: str | None = None) -> Iterator[Path]:
    """Provide a path for a file, which is written completely or not at all.

    Raises:
        InputError: the file cannot be written, or is part of a run. An existing file stays unchanged.
    """
    spare_runs(output)
    try:
        with whole_file(output) as file:
            yield file
    except OSError as error:
        raise InputError(f"{output} cannot be written: {why(error)}", hint=hint) from error


def write_output(output: Path, text: str) -> None:
    """Write a text file as `writing` does, with the same line endings on every system."""
    with writing(output, ANOTHER) as file:
        file.write_text(text, encoding="utf-8", newline="\n")


def remove_output(output: Path) -> None:
    """Remove the file that an earlier command wrote, if it exists.

    Raises:
        InputError: the file can't be removed.
    """
    try:
        output.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{output} cannot be removed: {why(error)}") from error


def is_page(form: str | None, output: Path | None) -> bool:
    """Returns True if the output is an HTML page and not Markdown.

    The option decides or, if it is not given, the suffix of the file.
    """
    if form is None:
        return output is None or output.suffix.lower() not in _MARKDOWN
    return form == "html"


def deliver(text: str, place: Path) -> None:
    """Write a text file and print its path, or print the text itself to stdout.

    Raises:
        InputError: the file cannot be written. An existing file stays unchanged.
    """
    if place == STDOUT:
        put(text)
        return
    write_output(place, text)
    click.echo(printable(str(place)))


def deliver_manifests(manifests: Sequence[Mapping[str, Any]], output: Path | None) -> None:
    """Write manifests and print their number, or print the manifests themselves to stdout.

    Raises:
        InputError: the file cannot be written. An existing file stays unchanged.
    """
    from harness.cluster.manifests import dump_yaml

    text = dump_yaml(manifests)
    if output is None:
        put(text)
        return
    write_output(output, text)
    click.echo(printable(f"{counted(len(manifests), 'manifest')} written to {output}"))
