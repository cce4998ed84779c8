"""`harness cluster events` makes a table of the changes of a cluster, from a recording or from Prometheus."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import InputError, OptionError
from harness.base.text import counted, printable
from harness.base.units import SECOND, parse_duration
from harness.cli.event_file import check_name, text_of, write
from harness.cli.output import spare
from harness.cli.screen import put, tell
from harness.cli.trace_fetch import headers_option, seconds_of

if TYPE_CHECKING:
    from datetime import tzinfo

    from harness.readers.events.watched import Watched

_SERVERS = ("http://", "https://")
_MOST_POINTS = 11_000
"""The maximum number of samples per series in one answer of Prometheus."""


@click.command(
    epilog="""\b
Examples:
  harness cluster events march -o march.events.csv
  harness cluster events quotas.json.gz -o october.events.parquet
  harness cluster events http://prometheus:9090 --from 2026-10-01 --to 2026-11-01"""
)
@click.argument("source")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
    help="A .csv or .parquet file. [default: CSV to stdout]",
)  # fmt: skip
@click.option(
    "--from", "begin", metavar="TIME", help="With a server: the start as a date or a time, in UTC by default."
)
@click.option("--to", "end", metavar="TIME", help="End, in the same form as --from.")
@click.option(
    "--step", default="1m", show_default=True, metavar="SPAN",
    help="With a server: interval between samples. A change appears at the next sample.",
)  # fmt: skip
@click.option("--window", default="1d", show_default=True, metavar="SPAN", help="Time span of one query.")
@click.option(
    "--selector", default="", metavar="MATCHERS", help="With a server: label matchers for Kueue's series."
)
@click.option(
    "--timezone", default="UTC", show_default=True, metavar="ZONE",
    help="Time zone of Slurm's times, such as Europe/Berlin; Slurm does not print it.",
)  # fmt: skip
@headers_option
def events(
    source: str,
    output: Path | None,
    begin: str | None,
    end: str | None,
    step: str,
    window: str,
    selector: str,
    timezone: str,
    header_file: Path | None,
) -> None:
    """Make a table of the changes in a cluster, for `harness replay --events`.

    SOURCE is a folder of `harness trace record`, which has quotas and nodes, or the address of a Prometheus
    server with metrics of Kueue or kube-state-metrics. It can also be a file with answers of such a server.
    For nodes, SOURCE can be a file with the output of `sacctmgr -P show event`. The changes that SOURCE does
    not record are listed on stderr.
    """
    if output is not None:
        check_name(output)
    if source.startswith(_SERVERS):
        watched = _asked(source, begin, end, step, window, selector, header_file)
    elif begin or end or header_file or selector:
        raise OptionError(
            f"{source} is not an address, but --from, --to, --selector and --header-file need an address"
        )
    else:
        watched = _read(Path(source), output, timezone)
    rows = watched.rows()
    for note in watched.notes:
        tell(f"note: {note}")
    if not rows:
        tell("note: nothing changed, so the table has no rows")
    if output is None:
        put(text_of(rows))
        return
    write(output, rows)
    click.echo(printable(f"{counted(len(rows), 'event')} of {counted(watched.objects, 'object')}: {output}"))


def _read(path: Path, output: Path | None, timezone: str) -> Watched:
    from harness.readers.recordings import is_recording

    if is_recording(path):
        from harness.readers.events.recording import of_recording

        return of_recording(path)
    if path.is_dir():
        raise InputError(f"{path} is not a recording", hint="make one with harness trace record")
    from harness.readers.events import slurm
    from harness.readers.events.prometheus import of_answers, series_of

    if output is not None:
        spare(path, output)
    if slurm.is_table(path):
        return slurm.of_table(path, _zone(timezone))
    return of_answers([series_of(path)], str(path))


def _zone(name: str) -> tzinfo:
    from datetime import UTC
    from zoneinfo import ZoneInfo

    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise OptionError(
            f"--timezone {name!r} is not a known time zone", hint="write a name such as Europe/Berlin, or UTC"
        ) from error


def _asked(
    url: str,
    begin: str | None,
    end: str | None,
    step: str,
    window: str,
    selector: str,
    header_file: Path | None,
) -> Watched:
    from harness.readers.events.prometheus import METRICS, of_answers
    from harness.readers.live.prometheus import connect, fetch

    if begin is None or end is None:
        raise OptionError("a server needs a time span", hint="give --from and --to")
    first, last = seconds_of("--from", begin), seconds_of("--to", end)
    each, span = parse_duration(step) // SECOND, parse_duration(window) // SECOND
    if last <= first:
        raise OptionError(f"--to {end} is not after --from {begin}")
    if each < 1 or span < each:
        raise OptionError(f"--step {step} must be at least 1 s, and --window {window} at least --step")
    if span // each >= _MOST_POINTS:
        raise OptionError(
            f"--window {window} has more than {_MOST_POINTS:,} steps of {step}, which is the limit of "
            "Prometheus",
            hint="give a shorter --window or a longer --step",
        )
    with closing(connect(url, header_file)) as http:
        pages = fetch(http, first, last, window=span, selector=selector, metrics=METRICS, step=each)
        return of_answers((page.answer["data"]["result"] for page in pages), "the server")
