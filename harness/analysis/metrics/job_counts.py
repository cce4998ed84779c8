"""Counts finished and unfinished jobs, and measures makespan and throughput."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.analysis.metrics.arrivals import rejected
from harness.analysis.metrics.shown import Shown
from harness.analysis.metrics.waiting import job_times
from harness.base.arrays import numbers
from harness.base.tables.schemas import RAN_BEFORE
from harness.base.units import HOUR, SECOND
from harness.plugins.measurement import Measurement, Window
from harness.runs.run import Run

SHOWN = (
    Shown("jobs.unfinished", "how much of the unfinished jobs' work is done", alarm=True),
    Shown("jobs.rejected", "why the jobs were rejected", alarm=True),
    Shown("jobs.at_start", "how much of their work these jobs had done before"),
)


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """Yields the throughput and the numbers of jobs that did and did not finish."""
    times = job_times(run, window, "job", "submit", "completion", "finished")
    job, submit, completion = numbers(times, "job", "submit", "completion")
    ended = times["finished"].to_numpy()
    finished = int(np.count_nonzero(ended))
    # Refused pods from manifests are not among the counted jobs.
    refused = int(np.count_nonzero(np.isin(job, rejected(run, window).to_numpy())))
    makespan = None
    if finished and finished + refused == len(job):
        makespan = int((submit + completion)[ended].max() - submit.min()) / SECOND
    hours = (window.end - window.start) / HOUR
    yield Measurement("makespan", makespan, "s", "lower")
    yield Measurement("jobs.finished", finished, "count", "higher")
    yield Measurement("jobs.unfinished", len(job) - finished - refused, "count", "lower")
    yield Measurement("jobs.rejected", refused, "count", "lower")
    if RAN_BEFORE in run.micros("jobs").collect_schema():
        there = run.columns("jobs", RAN_BEFORE)[RAN_BEFORE]
        yield Measurement("jobs.at_start", len(there) - there.null_count(), "count", "")
    yield Measurement("throughput", finished / hours if hours else None, "jobs/h", "higher")
