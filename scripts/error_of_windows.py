"""Measures the error of replaying a trace in windows, for the table of docs/scale.md.

    python scripts/error_of_windows.py TRACE CLUSTER --length 7d [--plugin fairsharing]
                                       [--before 0d --before 1d ...] [--after 0d] [-o FOLDER]
                                       [--set OPTION=VALUE ...]

The trace is replayed as a whole, and then once for every window and every lead. The replay of a window begins
on an empty cluster, at the time `--before` ahead of the window, and continues for `--after` behind the
window. Only jobs that were submitted within the window count. All these jobs together are compared with the
whole replay. The folder keeps the replays, so they are not made again.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click
import polars as pl

import harness
from harness.base.units import HOUR, parse_duration
from harness.runs.run import Run
from harness.trace.calibration import Calibration

_SUBMITTED = pl.col("submit_time")


class Figures(NamedTuple):
    """The figures of the jobs of a window, or of all jobs."""

    mean: float  # the hours until the first start
    p95: float
    preemptions: float  # the number per job
    lost: float  # GPU-hours of pods per job


@click.command()
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("cluster", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--plugin", default="fairsharing", help="what decides")
@click.option("--length", default="7d", help="of a window")
@click.option(
    "--before", multiple=True, default=("0d", "1d", "3d"), help="the part of a replay before the window"
)
@click.option("--after", default="0d", help="the part of a replay after the window")
@click.option("--set", "chosen", multiple=True, metavar="OPTION=VALUE", help="an option of the plugin")
@click.option("--output", "-o", type=click.Path(file_okay=False, path_type=Path), default=Path("windows"))
def main(
    trace: Path,
    cluster: Path,
    plugin: str,
    length: str,
    before: tuple[str, ...],
    after: str,
    chosen: tuple[str, ...],
    output: Path,
) -> None:
    """Print a Markdown table of the differences between windows and the whole replay."""
    options = dict(each.split("=", 1) for each in chosen)
    whole = _jobs(harness.replay(trace, cluster=cluster, plugin=plugin, options=options, output=output))
    last: int = whole.select(_SUBMITTED.max()).item()
    span = parse_duration(length)
    ends = range(span, last + span, span)
    truth = _figures(whole)
    click.echo(f"the whole: {whole.height:,} jobs; waits {truth.mean:.3f} h, p95 {truth.p95:.2f} h", nl=False)
    click.echo(f"; a job: {truth.preemptions:.3f} preemptions, {truth.lost:.4f} h lost")
    click.echo("| before | after | jobs replayed | same wait | mean wait | p95 | preemptions | lost |")
    click.echo("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for lead in before:
        pieces, replayed = [], 0
        for end in ends:
            counted = whole.filter(_SUBMITTED.is_between(end - span, end, closed="left"))
            if counted.is_empty():
                continue
            first = max(0, end - span - parse_duration(lead))
            window = f"{first}us..{end + parse_duration(after)}us"
            run = harness.replay(
                trace,
                cluster=cluster,
                plugin=plugin,
                options=options,
                output=output / f"{lead}-{after}",
                calibration=Calibration.parse(window=window),
            )
            jobs = _jobs(run)
            replayed += jobs.height
            pieces.append(jobs.join(counted.select("job_id", truly="wait"), on="job_id"))
        parts = pl.concat(pieces)
        same = parts.select((pl.col("wait") == pl.col("truly")).mean()).item()
        off = (
            f"{found / true - 1:+.1%}" if true else "-"
            for found, true in zip(_figures(parts), truth, strict=True)
        )
        cells = (lead, after, f"{replayed / whole.height:.2f} x", f"{same:.1%}", *off)
        click.echo(f"| {' | '.join(cells)} |")


def _jobs(run: Run) -> pl.DataFrame:
    return (
        run.micros("jobs")
        .select(
            "job_id", "submit_time", "preemptions", "progress_lost", wait=pl.col("start_time") - _SUBMITTED
        )
        .collect()
    )


def _figures(jobs: pl.DataFrame) -> Figures:
    wait, lost = pl.col("wait") / HOUR, pl.col("progress_lost") / HOUR
    found = jobs.select(
        mean=wait.mean(),
        p95=wait.quantile(0.95, "linear"),
        preemptions=pl.col("preemptions").mean(),
        lost=lost.mean(),
    )
    return Figures(**found.row(0, named=True))


if __name__ == "__main__":
    main()
