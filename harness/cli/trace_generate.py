"""`harness trace generate` makes synthetic traces from a specification or a recorded trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import InputError, OptionError, SpecError
from harness.base.text import counted, printable
from harness.base.units import parse_duration
from harness.cli.calibration import calibrated
from harness.cli.context import loaded_plugins
from harness.cli.output import parquet_target, spare, write_output
from harness.cli.screen import results_only

if TYPE_CHECKING:
    import polars as pl

    from harness.trace.calibration import Calibration

_LEVEL = 3  # A higher level of compression would take as long as the generation.


@click.command(
    epilog="""\b
Examples:
  harness trace generate traces/mix.yaml -o mix.parquet --seed 7
  harness trace generate --fit traces/philly.parquet -o like-philly.parquet --seed 7 --block 12h"""
)
@click.argument("spec", required=False, type=click.Path(path_type=Path))
@click.option(
    "--fit", type=click.Path(path_type=Path), metavar="TRACE",
    help="Resample a recorded trace, instead of using SPEC.",
)  # fmt: skip
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), metavar="OUT.parquet",
    help="The trace to write.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Equal seeds give equal traces.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Largest number of jobs. [default: the number in SPEC]"
)
@click.option(
    "--span", metavar="TIME", help="Time span of the submissions. [default: the span of SPEC or TRACE]"
)
@click.option(
    "--block", default="7d", show_default=True, metavar="TIME", help="With --fit: length of the drawn blocks."
)
@calibrated(cluster=False)
@click.pass_context
def generate(
    ctx: click.Context,
    spec: Path | None,
    fit: Path | None,
    output: Path,
    seed: int,
    jobs: int | None,
    span: str | None,
    block: str,
    calibration: Calibration,
) -> None:
    """Write a synthetic trace: from a specification in YAML, or drawn from a recorded trace.

    SPEC describes the jobs of each tenant and their arrival rates. It may also be a file of Kueue's
    performance generator (generator.yaml); then the command writes the queues next to the trace. --fit
    resamples the weeks of every tenant with replacement. The same seed gives the same jobs. Options that
    select or change jobs apply to the recorded trace.
    """
    if (spec is None) == (fit is None):
        raise OptionError("give either a specification or --fit TRACE", hint="harness trace generate --help")
    given = None if span is None else _time("--span", span)
    _check_number(jobs)
    for source, what in ((spec, "specification"), (fit, "trace")):
        if source is not None:
            spare(source, output, what)
    output = parquet_target(None, output)
    beside = output.with_name(f"{output.stem}.cluster.yaml")
    manifests: Sequence[Mapping[str, Any]] = ()
    if spec is not None:
        pieces, metadata, manifests = _specified(spec, seed, jobs, given)
        if manifests:
            spare(spec, beside, "specification")
    else:
        assert fit is not None
        pieces, metadata = _fitted(ctx, fit, calibration, _time("--block", block), seed, jobs, given)
    rows = _write(pieces, metadata, output, manifests, beside)
    if manifests:
        click.echo(printable(f"its queues are in {beside}"))
    click.echo(printable(f"{counted(rows, 'row')} written to {output}"))


def _check_number(jobs: int | None) -> None:
    from harness.trace.generate.spec import MOST_JOBS

    if jobs is not None and jobs > MOST_JOBS:
        raise OptionError(f"--jobs {jobs:,}: a trace can have at most {MOST_JOBS:,} jobs", hint="give fewer")


def _specified(
    path: Path, seed: int, jobs: int | None, span: int | None
) -> tuple[Iterator[pl.DataFrame], Mapping[str, str], Sequence[Mapping[str, Any]]]:
    from dataclasses import replace

    from harness.trace.generate.spec_file import load_spec
    from harness.trace.generate.streams import jobs_of
    from harness.trace.schema import SOURCE_KEY

    spec = load_spec(path)
    spec = replace(spec, jobs=jobs or spec.jobs, span=span if span is not None else spec.span)
    return jobs_of(spec, seed), {SOURCE_KEY: f"{spec.source}, seed {seed}"}, spec.manifests


def _fitted(
    ctx: click.Context,
    path: Path,
    calibration: Calibration,
    block: int,
    seed: int,
    jobs: int | None,
    span: int | None,
) -> tuple[Iterator[pl.DataFrame], Mapping[str, str]]:
    import json

    from harness.trace.generate.bootstrap import Bootstrap
    from harness.trace.schema import CONVENTIONS_KEY
    from harness.trace.trace import open_trace

    with results_only():
        opened = calibration.of_trace(open_trace(path, loaded_plugins(ctx)))
    drawn = Bootstrap(opened, block)
    notes = [*drawn.notes, f"seed {seed}"]
    metadata = {**drawn.metadata, CONVENTIONS_KEY: json.dumps(notes, ensure_ascii=False)}
    return drawn.pieces(drawn.span if span is None else span, seed, jobs), metadata


def _write(
    pieces: Iterator[pl.DataFrame],
    metadata: Mapping[str, str],
    output: Path,
    manifests: Sequence[Mapping[str, Any]],
    beside: Path,
) -> int:
    """Write the trace, and write its manifests just before the trace gets its final name."""
    from harness.cluster.manifests import dump_yaml
    from harness.trace.sums import Sums
    from harness.trace.write import TraceWriter

    rows, sums = 0, Sums()
    with TraceWriter(output, metadata, level=_LEVEL) as writer:
        for piece in pieces:
            if faults := sums.add(piece):
                raise SpecError("what is made", faults)
            writer.write(piece)
            rows += piece.height
        if not rows:
            raise InputError("no job is submitted in that time", hint="give a longer --span")
        if manifests:
            write_output(beside, dump_yaml(manifests))
    return rows


def _time(option: str, text: str) -> int:
    try:
        time = parse_duration(text)
    except InputError as error:
        raise OptionError(f"{option}: {error}") from error
    if time <= 0:
        raise OptionError(f"{option}: {text} is not a time span longer than 0")
    return time
