"""When jobs progressed, found piece by piece, so that memory holds a few bytes a job and not every stint."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.plugins.measurement import Window
from harness.runs.known import once
from harness.runs.run import Run

_NEVER, _ONCE, _AGAIN = range(3)


@once
def progress(run: Run, window: Window) -> pl.Series:
    """For each job, in order of arrival, how long it progressed, microseconds.

    Pods that do so side by side count once; stints that reach beyond the window are cut.
    """
    jobs = run.columns("jobs", "submit_time").height
    total = pl.Series([0], dtype=pl.Int64).new_from_index(0, jobs)
    times = pl.Series([_NEVER], dtype=pl.UInt8).new_from_index(0, jobs)
    for spans in _spans(run, window):
        job = spans["job"]
        before = times.gather(job)
        again = job.filter((before != _NEVER) | ~job.is_first_distinct())
        times.scatter(job, _ONCE).scatter(again, _AGAIN)
        total.scatter(job, spans["end"] - spans["start"])
    if (times == _AGAIN).any():
        several = pl.concat(
            spans.filter(times.gather(spans["job"]) == _AGAIN) for spans in _spans(run, window)
        )
        of_several = _side_by_side(several)
        total.scatter(of_several["job"], of_several["progress"])
    return total


def _spans(run: Run, window: Window) -> Iterator[pl.DataFrame]:
    """`job, start, end` of stints with progress."""
    for batch in run.batches("stints", ("job", "start", "end", "state")):
        yield batch.filter((pl.col("state") == "progress") & (pl.col("start") < window.end)).select(
            "job", "start", end=pl.min_horizontal("end", pl.lit(window.end))
        )


def _side_by_side(spans: pl.DataFrame) -> pl.DataFrame:
    """For each job how long any of its spans lasted."""
    before = pl.col("end").cum_max().shift(1).over("job")
    return (
        spans.sort("job", "start")
        .with_columns(start=pl.max_horizontal("start", before))
        .group_by("job")
        .agg(progress=(pl.col("end") - pl.col("start")).clip(0).sum())
    )
