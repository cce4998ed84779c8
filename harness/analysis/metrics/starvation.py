"""Starvation: jobs that were delayed for long, and many times as long as they run, or began very late."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.analysis.metrics.arrivals import counted
from harness.analysis.metrics.levels import queue_names
from harness.analysis.metrics.waiting import job_times
from harness.base.arrays import Groups, codes, numbers
from harness.base.units import DAY
from harness.plugins.measurement import Measurement, Window
from harness.plugins.scopes import ALL, QUEUE, Scope
from harness.runs.run import Run

_TIMES = 10
"""How many times its own length a job has to be delayed, beside a day."""

_LATEST = 7 * DAY
"""A job that first starts later than this after its submission starves, however long it runs."""


def measure(run: Run, window: Window, only: pl.Series | None = None) -> Iterator[Measurement]:
    """How many jobs starved, in all and of each queue; those that go on count with what has accrued.

    Args:
        run: the run.
        window: what is measured.
        only: whether each job of the run counts; all of them by default.
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
