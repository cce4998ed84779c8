"""Starvation: jobs that went without progress for very long, and for many times as long as they run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.arrays import Groups, codes, numbers
from harness.metrics.arrivals import rejected
from harness.metrics.levels import queue_names
from harness.metrics.measurement import Measurement, Window
from harness.metrics.scopes import ALL, QUEUE, Scope
from harness.metrics.waiting import job_times
from harness.runs.run import Run
from harness.units import DAY

_TIMES = 10
"""How many times its own length a job has to wait, beside a day."""


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """How many jobs starved, in all and of each queue; those that are not over have waited until the end."""
    times = job_times(run, window, "job", "queue", "without_progress", "length")
    job, without, length = numbers(times, "job", "without_progress", "length")
    starved = (without > DAY) & (without > length * _TIMES)
    counts = ~np.isin(job, rejected(run, window).to_numpy())
    yield _count(int(starved[counts].sum()), ALL)
    queues = queue_names(run).categories
    groups = Groups(codes(times["queue"])[counts])
    starved = starved[counts][groups.order]
    for queue, rows in groups:
        yield _count(int(starved[rows].sum()), Scope(QUEUE, queues[queue]).text)


def _count(value: int, scope: str) -> Measurement:
    return Measurement("starvation", value, "count", "lower", scope)
