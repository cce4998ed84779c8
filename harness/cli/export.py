"""`harness export` writes a finished run in the formats of other tools."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import OptionError
from harness.base.text import printable
from harness.base.units import parse_duration
from harness.cli.given_runs import given_runs
from harness.cli.output import ANOTHER, STDOUT, writing
from harness.cli.screen import binary_stdout, tell

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from harness.plugins.measurement import Window
    from harness.runs.run import Run

_TRACE = Path("run.pftrace.gz")
_STEP = "4m"


@click.command(
    epilog="""\b
Examples:
  harness export results/philly/none-* --format perfetto -o philly.pftrace.gz
  harness export results/philly/none-* --format perfetto --from 1d --to 2d -o day.pftrace.gz
  harness export results/philly/none-* --format openmetrics --step 1h -o philly.om"""
)
@click.argument("words", nargs=-1, required=True, metavar="RUN")
@click.option(
    "--format", "form", type=click.Choice(["perfetto", "openmetrics"]), required=True,
    help="'perfetto' is a trace for ui.perfetto.dev; 'openmetrics' is series for Prometheus and Grafana.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
    help="Write to this file, gzipped if its name ends with .gz; - is stdout. [default: run.pftrace.gz, or "
    "stdout for openmetrics]",
)  # fmt: skip
@click.option(
    "--from", "since", metavar="TIME",
    help="Export only from this time on, a time as the run shows it, or a duration since the origin such as "
    "30d12h.",
)  # fmt: skip
@click.option("--to", "until", metavar="TIME", help="Export only up to this time.")
@click.option(
    "--step", metavar="DURATION",
    help=f"Interval between samples of openmetrics. [default: {_STEP}]",
)  # fmt: skip
def export(
    words: tuple[str, ...],
    form: str,
    output: Path | None,
    since: str | None,
    until: str | None,
    step: str | None,
) -> None:
    """Write a finished run for another tool.

    In the perfetto format, queues and nodes are tracks, jobs and pods are slices, and preemptions are flows.
    Allocated and pending resources are counters. The openmetrics format samples the run's timeline at regular
    intervals.
    """
    from harness.analysis.export.window import part_of
    from harness.runs.run import Run

    if step is not None and form != "openmetrics":
        raise OptionError("only openmetrics is sampled", hint="leave out --step")
    (run,), _ = given_runs("export", words, 1)
    finished = Run.open(run)
    window = part_of(finished, since, until)
    every = parse_duration(step or _STEP)
    if every <= 0:
        raise OptionError("--step is 0", hint="give a duration such as 30s or 4m")
    place = output or (_TRACE if form == "perfetto" else STDOUT)
    if place == STDOUT:
        if form == "perfetto" and sys.stdout.isatty():
            raise OptionError("a terminal cannot show a trace", hint="give -o FILE")
        _write(finished, form, window, every, binary_stdout())
        sys.stdout.flush()
        return
    _to_file(finished, form, window, every, place)
    click.echo(printable(str(place)))


def _to_file(run: Run, form: str, window: Window, step: int, place: Path) -> None:
    with writing(place, ANOTHER) as path, path.open("wb") as raw:
        if place.suffix == ".gz":
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                _write(run, form, window, step, packed)
        else:
            _write(run, form, window, step, raw)


def _write(run: Run, form: str, window: Window, step: int, file: SupportsWrite[bytes]) -> None:
    if form == "perfetto":
        from harness.analysis.export.perfetto import write_perfetto

        write_perfetto(run, window, file)
        return
    from harness.analysis.export.openmetrics import write_openmetrics

    if run.info["trace"].get("times") != "timestamp":
        tell("note: the trace has no timestamps; its origin is written as 1970-01-01 00:00:00 UTC")
    write_openmetrics(run, window, step, file)
