"""Finds the metrics that are derived from values of jobs, and provides these values for resampling."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import polars as pl

from harness.analysis.metrics.arrivals import counted
from harness.analysis.metrics.disruption import lost_by_jobs
from harness.analysis.metrics.levels import names_of_jobs
from harness.analysis.metrics.shared_window import Shared
from harness.analysis.metrics.waiting import job_times, measure
from harness.base.errors import OptionError, RunError
from harness.base.options import there_is
from harness.base.units import HOUR, SECOND
from harness.plugins.measurement import Measurement
from harness.plugins.scopes import ALL, PRIORITY, QUEUE, QUOTA, Scope, hint_at, parse_scope
from harness.runs.run import Run

_TIMES = {
    "wait.first_start": "first_start",
    "wait.total": "total",
    "wait.admission_to_start": "admission",
    "jct": "completion",
    "delay": "delay",
    "slowdown.bounded": "slowdown",
}
"""Maps each metric to the column of `job_times` from which the metric is computed."""

LOST = "disruption.lost"
_OF_JOBS = (ALL, QUEUE, QUOTA, PRIORITY)


class Statistic(NamedTuple):
    """The values of jobs that a metric summarizes, and the statistic that it uses.

    Attributes:
        column: the column of `Samples` that contains the values.
        name: `mean`, `total` or a percentile such as `p95`.
    """

    column: str
    name: str


def is_of_jobs(measured: Measurement) -> bool:
    """Returns True if a metric is derived from values of jobs, for all jobs or for the jobs in a scope."""
    if measured.scope.partition("=")[0] not in _OF_JOBS:
        return False
    return measured.metric == LOST or measured.metric.rpartition(".")[0] in _TIMES


def statistic_of(measured: Measurement) -> Statistic | None:
    """Returns the statistic behind a metric, or None if the metric isn't derived from values of jobs.

    The maximum is not included, because resampling cannot produce values above the largest one.
    """
    if not is_of_jobs(measured):
        return None
    if measured.metric == LOST:
        return Statistic(f"lost.{measured.resource}", "total")
    family, _, name = measured.metric.rpartition(".")
    return Statistic(_TIMES[family], name) if name != "max" else None


class Samples:
    """One run's values for the jobs that all compared runs have, in the units of the metrics.

    `rows` contains the rows of these jobs in `jobs.parquet`, in order of arrival. `shared` is the window and
    the jobs that all runs share.
    """

    def __init__(self, run: Run, rows: pl.Series, shared: Shared) -> None:
        self._run = run
        self._rows = rows
        self._window = run.window._replace(end=shared.jobs)
        self._refused = list(shared.refused)

    def measure(self) -> Iterator[Measurement]:
        """Yields the metrics that are derived from values of jobs, computed only from the shared jobs."""
        only = pl.repeat(False, self._height, eager=True).scatter(self._rows, True)
        yield from measure(self._run, self._window, only.clone().scatter(self._refused, False))
        yield from lost_by_jobs(self._run, self._window, only)

    def members(self, scope: str) -> pl.Series | None:
        """Returns, for each job, whether it is in a scope such as `queue=prod`; None if every job is.

        Raises:
            OptionError: there is no such kind of scope, or scopes of this kind do not consist of jobs.
            RunError: no job of the run is in the scope.
        """
        kind, name = parse_scope(scope)
        if kind == ALL:
            return None
        if kind not in _OF_JOBS or not name:
            raise OptionError(f"scope {scope!r} does not select jobs", hint=there_is(_OF_JOBS))
        values = self._names[kind]
        found = values == name
        if not found.any():
            known = (f"{kind}={value}" for value in values.unique().to_list())
            raise RunError(
                f"{self._run.path} has no job of {scope!r}", hint=hint_at(Scope(kind, name), known)
            )
        return found[self._rows]

    def of(self, column: str) -> pl.Series:
        """Returns one value for each of the jobs, or null if a job has no value."""
        values = self._lost[column] if column.startswith("lost.") else self._times[column]
        return values[self._rows]

    @cached_property
    def _height(self) -> int:
        return int(self._run.scan("jobs").select(pl.len()).collect().item())

    @cached_property
    def _times(self) -> pl.DataFrame:
        names = ("first_start", "total", "completion", "admission", "delay")
        every = pl.repeat(True, self._height, eager=True).scatter(self._refused, False)
        only = counted(self._run, every)
        times = job_times(self._run, self._window, "job", *names, "slowdown", only=only)
        seconds = [pl.col(name) / SECOND for name in names]
        found = times.select("job", *seconds, "slowdown")
        if found.height == self._height:
            return found
        jobs = pl.DataFrame({"job": pl.int_range(self._height, dtype=pl.Int32, eager=True)})
        return jobs.join(found, on="job", how="left", maintain_order="left")

    @cached_property
    def _names(self) -> pl.DataFrame:
        """The queue, quota and priority of each job as text, which is comparable between runs."""
        names = names_of_jobs(self._run).select(QUEUE, QUOTA).cast(pl.Categorical)
        priority = pl.col("priority").cast(pl.String).cast(pl.Categorical)
        return names.with_columns(self._run.scan("jobs").select(priority).collect())

    @cached_property
    def _lost(self) -> pl.DataFrame:
        found = {}
        stints = (
            self._run.micros("stints")
            .filter((pl.col("lost") > 0) & (pl.col("end") <= self._window.end))
            .select("job", "lost", *(f"request.{each}" for each in self._run.resources))
            .collect()
        )
        for resource in self._run.resources:
            amount = pl.col(f"request.{resource}").cast(pl.Float64) * pl.col("lost")
            lost = stints.group_by("job", maintain_order=True).agg(amount.sum().alias("lost"))
            nothing = pl.zeros(self._height, pl.Float64, eager=True)
            hours = lost["lost"] / (HOUR * (1000 if resource == "cpu" else 1))
            found[f"lost.{resource}"] = nothing.scatter(lost["job"], hours)
        return pl.DataFrame(found)
