"""Which metrics come from values of jobs, and these values: what can be drawn anew for an interval."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import polars as pl

from harness.metrics.levels import queue_of_jobs
from harness.metrics.measurement import Measurement
from harness.metrics.waiting import job_times
from harness.runs.run import Run
from harness.units import HOUR, SECOND

_TIMES = {
    "wait.first_start": "first_start",
    "wait.total": "total",
    "wait.admission_to_start": "admission",
    "jct": "completion",
    "slowdown.bounded": "slowdown",
}
"""Metric -> the column of `job_times` that its statistics are of."""

_LOST = "disruption.lost"


class Statistic(NamedTuple):
    """What a metric is of values of jobs.

    Attributes:
        column: which values, of `Samples`.
        name: `mean`, `total` or a percentile such as `p95`.
    """

    column: str
    name: str


def statistic_of(measured: Measurement) -> Statistic | None:
    """What a metric is of values of jobs; None if it does not come from them.

    The largest of some values is left out: drawing them anew says nothing of a still larger one.
    """
    if measured.metric == _LOST and not measured.scope.startswith("beneficiary="):
        return Statistic(f"lost.{measured.resource}", "total")
    family, _, name = measured.metric.rpartition(".")
    return Statistic(_TIMES[family], name) if family in _TIMES and name != "max" else None


class Samples:
    """A run's values of jobs in the units of metrics.

    Args:
        run: the run.
        longest: the run of the same trace in which the most jobs arrived; all of them have a value here, null
            where they did not arrive in `run`.
    """

    def __init__(self, run: Run, longest: Run) -> None:
        self._run = run
        self._longest = longest
        self._jobs = longest.scan("jobs").select("queue", "priority").with_row_index("job").collect()

    def of(self, column: str, scope: str) -> pl.Series:
        """One value for each job of a scope such as `queue=prod`, in order of arrival."""
        kind, _, name = scope.partition("=")
        values = self._lost[column] if column.startswith("lost.") else self._times[column]
        if kind == "priority":
            return values.filter(self._jobs["priority"] == int(name))
        if kind == "queue":
            # Losses are counted for what has a quota, waits for the trace's queues.
            queues = self._quotas if column.startswith("lost.") else self._jobs["queue"]
            return values.filter(queues == name)
        return values

    @cached_property
    def _times(self) -> pl.DataFrame:
        names = ("first_start", "total", "completion", "admission")
        times = job_times(self._run, self._run.window, "job", *names, "slowdown")
        seconds = [pl.col(name) / SECOND for name in names]
        found = times.select(pl.col("job").cast(pl.UInt32), *seconds, "slowdown")
        return self._jobs.join(found, on="job", how="left", maintain_order="left")

    @cached_property
    def _quotas(self) -> pl.Series:
        return queue_of_jobs(self._longest)

    @cached_property
    def _lost(self) -> pl.DataFrame:
        found = {}
        stints = (
            self._run.micros("stints")
            .filter((pl.col("lost") > 0) & (pl.col("end") <= self._run.window.end))
            .collect()
        )
        for resource in self._run.resources:
            amount = pl.col(f"request.{resource}").cast(pl.Float64) * pl.col("lost")
            lost = stints.group_by("job", maintain_order=True).agg(amount.sum().alias("lost"))
            nothing = pl.Series([0.0]).new_from_index(0, self._jobs.height)
            hours = lost["lost"] / (HOUR * (1000 if resource == "cpu" else 1))
            found[f"lost.{resource}"] = nothing.scatter(lost["job"], hours)
        return pl.DataFrame(found)
