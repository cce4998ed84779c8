"""Starvation: jobs that went without progress for very long, and for many times as long as they run."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.metrics.arrivals import rejected
from harness.metrics.measurement import Measurement, Window
from harness.metrics.scopes import ALL, QUEUE, Scope
from harness.metrics.waiting import job_times
from harness.runs.run import Run
from harness.units import DAY

_TIMES = 10
"""How many times its own length a job has to wait, beside a day."""


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """How many jobs starved, in all and of each queue; those that are not over have waited until the end."""
    jobs = job_times(run, window, "job", "queue", "without_progress", "length")
    without = pl.col("without_progress")
    jobs = jobs.filter(~pl.col("job").is_in(rejected(run, window).implode())).select(
        "queue", starved=(without > DAY) & (without > pl.col("length") * _TIMES)
    )
    of_queues = jobs.group_by("queue").agg(pl.col("starved").sum()).sort("queue")
    yield _count(int(jobs["starved"].sum()), ALL)
    for queue, count in of_queues.iter_rows():
        yield _count(count, Scope(QUEUE, queue).text)


def _count(value: int, scope: str) -> Measurement:
    return Measurement("starvation", value, "count", "lower", scope)
