"""Disruption: how often jobs were preempted, whom it hit, and how much work it threw away.

One preemption is one (job, preemptor, instant), however many pods it took, so that schedulers that preempt
jobs and schedulers that preempt pods compare.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.metrics.measurement import Measurement, Window
from harness.metrics.utilization import resource_time
from harness.run import Run
from harness.units import HOUR


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """The disruption metrics over all jobs; counts of preemptions also by reason and by victim queue."""
    rows = (
        run.micros("decisions")
        .filter((pl.col("action") == "preempt") & (pl.col("time") <= window.end))
        .select("job", "by", "time", "reason", "queue", "pods")
        .collect()
    )
    preemptions = rows.unique(["job", "by", "time"], keep="first", maintain_order=True)
    times = preemptions.group_by("job").len()["len"].sort(descending=True)
    yield _count("preemptions", preemptions.height)
    for column in ("reason", "queue"):
        for value, count in preemptions.group_by(column).len().sort(column).iter_rows():
            yield _count("preemptions", count, f"{column}={value}")
    yield _count("preempted_jobs", len(times))
    yield _count("preempted_pods", int(rows["pods"].sum()))
    yield _count("repeat_victims", int((times >= 2).sum()))
    yield _count("max_preemptions_of_a_job", int(times[0]) if len(times) else 0)
    starts = (
        run.micros("stints")
        .filter((pl.col("state") == "progress") & (pl.col("start") < window.end))
        .select(pl.struct("job", "start").n_unique())
        .collect()
        .item()
    )
    rate = 1000 * preemptions.height / starts if starts else None
    yield Measurement("disruption.preemptions_per_1000_starts", rate, "count", "lower")
    for resource in run.resources:
        parts = resource_time(run, window, resource)
        hours = parts.lost / (HOUR * (1000 if resource == "cpu" else 1))
        unit = "core-hours" if resource == "cpu" else "resource-hours"
        yield Measurement("disruption.lost", hours, unit, "lower", resource=resource)
        share = parts.lost / parts.allocated if parts.allocated else None
        yield Measurement("disruption.lost_of_allocated", share, "ratio", "lower", resource=resource)


def _count(name: str, value: int, scope: str = "all") -> Measurement:
    return Measurement(f"disruption.{name}", value, "count", "lower", scope)
