"""Counts starved jobs, which are delayed by many times their run time or start very late."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.analysis.metrics.arrivals import counted
from harness.analysis.metrics.levels import queue_names
from harness.analysis.metrics.shown import WAITED, Shown
from harness.analysis.metrics.waiting import job_times
from harness.base.arrays import Groups, codes, numbers
from harness.base.units import DAY
from harness.plugins.measurement import Measurement, Window
from harness.plugins.scopes import ALL, QUEUE, Scope
from harness.runs.run import Run

_TIMES = 10
"""A job starves if it is delayed by more than this many times its own length and by more than a day."""

_LATEST = 7 * DAY
"""A job also starves if it first starts more than this long after its submission, however long it runs."""

SHOWN = (Shown("starvation", "how late the starved jobs are", WAITED),)


def measure(run: Run, window: Window, only: pl.Series | None = None) -> Iterator[Measurement]:
    """Yields the number of jobs that starved, in total and by queue.

    For an unfinished job, the delay is what has accrued so far. `only` says for each job whether it counts.
    """
    times = job_times(run, window, "queue", "delay", "first_start", "length", only=counted(run, only))
    delay, waited, length = numbers(times, "delay", "first_start", "length")
    starved = ((delay > DAY) & (delay > length * _TIMES)) | (waited > _LATEST)
    yield _count(int(starved.sum()), ALL)
    queues = queue_names(run).categories
    groups = Groups(codes(times["queue"]))
    starved = starved[groups.order]
    for queue, rows in groups:
        yield _count(int(starved[rows].sum()), Scope(QUEUE, queues[queue]).text)


def _count(value: int, scope: str) -> Measurement:
    return Measurement("starvation", value, "count", "lower", scope)
