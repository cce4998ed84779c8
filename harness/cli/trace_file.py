"""Reads trace files for commands, and adds the options for reading them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from harness.base.errors import OptionError
from harness.base.text import counted, printable
from harness.cli.context import loaded_plugins
from harness.cli.screen import results_only

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.trace.trace import Trace

_F = TypeVar("_F", bound=Callable[..., Any])

_KEEPS = "parquet"
"""The reader of the files that `trace convert` writes."""


def from_file(command: _F) -> _F:
    """Adds `--reader` and `--set`, which a command receives as `reader` and `settings`."""
    command = click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE",
        help="Set an option of the reader; may be repeated.",
    )(command)  # fmt: skip
    return click.option(
        "--reader", metavar="NAME", help="Format of the file. [default: by its suffix or first bytes]"
    )(command)


def account(trace: Trace, target: Path) -> str:
    """Returns a text about the written rows, the skipped rows and the assumptions."""
    from harness.trace.misnamed import sentences

    read, written = counted(trace.rows_read, "record"), counted(trace.frame.height, "row")
    lines = [f"{read} read, {written} written to {target}"]
    lines += [f"  left out: {count:,} {reason}" for reason, count in trace.left_out.items()]
    lines += [f"  {note}" for note in (*trace.notes, *sentences(trace.frame.schema))]
    return "\n".join(printable(line) for line in lines)


@results_only()
def open_file(
    ctx: click.Context,
    file: Path,
    reader: str | None,
    settings: Iterable[str],
    cluster: Cluster | None = None,
    *,
    hashed: bool = True,
) -> Trace:
    """Returns the trace in a file, read with these options.

    `hashed` works as in `open_trace`.

    Raises:
        OptionError: a setting has no value, or the reader does not have this option.
        TraceError: the file can't be read, or breaks the schema.
    """
    from harness.trace.trace import open_trace

    options: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise OptionError(f"--set {setting}: the sign '=' is missing", hint="write --set KEY=VALUE")
        options[key.strip()] = value
    return open_trace(
        file, loaded_plugins(ctx), reader=reader, options=options, cluster=cluster, hashed=hashed
    )


def conventions(trace: Trace) -> Iterator[str]:
    """Yields lines about the skipped rows, followed by lines about the conventions that the reader applied.

    If the file stores the conventions, one line names the command that shows them.
    """
    for reason, count in trace.left_out.items():
        yield f"left out: {counted(count, 'row')}: {reason}"
    if trace.reader == _KEEPS and trace.notes:
        kept = counted(len(trace.notes), "convention")
        yield f"note: the reader applied {kept}; see harness trace info {trace.path}"
    else:
        yield from (f"note: {note}" for note in trace.notes)
