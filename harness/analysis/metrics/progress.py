"""Computes how long each job made progress.

The module reads the run in pieces, so it needs only a few bytes of memory for each job.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from harness.base.arrays import as_series, numbers
from harness.plugins.measurement import Window
from harness.runs.known import once
from harness.runs.run import Run


@once
def progress(run: Run, window: Window) -> pl.Series:
    """Returns how long each job made progress, in microseconds and in the jobs' order of arrival.

    If several pods make progress at the same time, the time counts only once. Progress after the end of the
    window is ignored.
    """
    jobs = run.columns("jobs", "submit_time").height
    total, times = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    for spans in _spans(run, window):
        job, start, end = numbers(spans, "job", "start", "end")
        times += np.bincount(job, minlength=jobs)
        total[job] = end - start
    if (times > 1).any():
        again = as_series((times > 1).view(np.int8)) == 1
        several = pl.concat(spans.filter(again.gather(spans["job"])) for spans in _spans(run, window))
        job, spent = numbers(_side_by_side(several), "job", "progress")
        total[job] = spent
    return as_series(total)


def _spans(run: Run, window: Window) -> Iterator[pl.DataFrame]:
    for batch in run.batches("stints", ("job", "start", "end", "state")):
        yield batch.filter((pl.col("state") == "progress") & (pl.col("start") < window.end)).select(
            "job", "start", end=pl.min_horizontal("end", pl.lit(window.end))
        )


def _side_by_side(spans: pl.DataFrame) -> pl.DataFrame:
    """Returns, for each job, how much time its spans cover. Overlaps count only once."""
    before = pl.col("end").cum_max().shift(1).over("job")
    return (
        spans.sort("job", "start")
        .with_columns(start=pl.max_horizontal("start", before))
        .group_by("job")
        .agg(progress=(pl.col("end") - pl.col("start")).clip(0).sum())
    )
