"""The causes of evictions, and what each cause costs.

If a job loses several pods to the same preemptor, or for the same other cause, at the same time, these losses
form a single eviction. The number of evictions caused by preemption therefore equals the number of
preemptions. If several evictions hit the same pods at the same time, the lost work counts toward the first of
these evictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import polars as pl

from harness.models.kube.drains import EVICTED_BY_API
from harness.models.kube.taint_evictions import DELETED_BY_TAINT
from harness.plugins.measurement import Measurement, Window, resource_hours
from harness.plugins.scopes import REASON, Scope
from harness.policy import LOST_WITH_NODE
from harness.runs.run import Run

PREEMPTION, FAILURE, DRAIN, QUOTA_STOP, TIME_OUT, OTHER = CAUSES = (
    "preemption", "failure", "drain", "quota-stop", "time-out", "other",
)  # fmt: skip
"""The causes of evictions.

They are, in this order: preemption, a failed node, a taint that drains the node, a stopped queue, an exceeded
time limit, and any other reason.
"""

_OF_REASONS = {
    LOST_WITH_NODE: FAILURE,
    "NodeFail": FAILURE,
    DELETED_BY_TAINT: DRAIN,
    EVICTED_BY_API: DRAIN,
    "ClusterQueueStopped": QUOTA_STOP,
    "LocalQueueStopped": QUOTA_STOP,
    "PodsReadyTimeout": TIME_OUT,
    "DeactivatedDueToRequeuingLimitExceeded": TIME_OUT,
    "DeactivatedDueToMaximumExecutionTimeExceeded": TIME_OUT,
}
"""Maps the reasons that components record for evictions without a preemptor to causes."""

_FAILED = r"node\.kubernetes\.io/(not-ready|unreachable)="
"""Matches the taints that the node controller adds to a node that has stopped responding."""


def evictions(run: Run, window: Window) -> pl.DataFrame:
    """Returns the decisions that took resources from jobs, earliest first.

    The columns are `seq`, `time`, `job`, `by`, `pod` and `cause`.
    """
    reason = pl.col("reason").replace_strict(_OF_REASONS, default=OTHER, return_dtype=pl.String)
    failed = (reason == DRAIN) & pl.col("detail").str.contains(_FAILED)
    cause = pl.when(failed).then(pl.lit(FAILURE)).otherwise(reason)
    preempted = pl.col("action") == "preempt"
    return (
        run.micros("decisions")
        .filter(pl.col("action").is_in(["preempt", "evict"]) & (pl.col("time") <= window.end))
        .select(
            "seq",
            "time",
            "job",
            by="by_job",
            pod="pod_number",
            cause=pl.when(preempted).then(pl.lit(PREEMPTION)).otherwise(cause),
        )
        .collect()
    )


def with_causes(lost: pl.DataFrame, pods: pl.DataFrame) -> pl.DataFrame:
    """Adds the column `cause` to the rows of `lost`, which are the stints that lost progress.

    A stint is a period in which pods made progress, with the columns `job`, `pod_number` and `end`. Its cause
    is the cause of the eviction that ended it, or of the first of several evictions. A stint without a pod
    number covers all pods that progressed together. `pods` is the result of `evictions`.
    """
    if lost.is_empty():
        return lost.with_columns(cause=pl.lit(OTHER))
    stints = lost.with_row_index("stint")
    hit = pl.col("pod").is_null() | pl.col("pod_number").is_null() | (pl.col("pod") == pl.col("pod_number"))
    causes = (
        stints.select("stint", "job", "pod_number", time="end")
        .join(pods, on=["job", "time"])
        .filter(hit)
        .group_by("stint")
        .agg(pl.col("cause").sort_by("seq").first())
    )
    found = stints.join(causes, on="stint", how="left", maintain_order="left").drop("stint")
    return found.with_columns(pl.col("cause").fill_null(OTHER))


def measure_causes(
    run: Run, window: Window, pods: pl.DataFrame, lost: pl.DataFrame, arrived: int
) -> Iterator[Measurement]:
    """Measures the evictions, the evicted jobs and the lost work, in total and for each cause.

    `pods` is the result of `evictions`, and `lost` is the result of `with_causes`. `arrived` is the number of
    jobs that arrived.
    """
    each, jobs = (
        Counter(pods.unique(keys)["cause"].to_list())
        for keys in (["job", "by", "cause", "time"], ["job", "cause"])
    )
    for metric, counts, total in (
        ("evictions", each, each.total()),
        ("evicted_jobs", jobs, pods["job"].n_unique()),
    ):
        yield _count(metric, total)
        for cause in CAUSES:
            if cause in counts:
                yield _count(metric, counts[cause], Scope(REASON, cause).text)
    per_jobs = 1000 * each[FAILURE] / arrived if arrived else None
    yield Measurement("disruption.failures_per_1000_jobs", per_jobs, "per 1000 jobs", "lower")
    amounts = pl.col([f"request.{resource}" for resource in run.resources])
    sums = {cause: of_cause for cause, *of_cause in lost.group_by("cause").agg(amounts.sum()).iter_rows()}
    for cause in CAUSES:
        for resource, amount in zip(run.resources, sums.get(cause, ()), strict=False):
            yield resource_hours("disruption.lost", int(amount), resource, Scope(REASON, cause).text)


def _count(name: str, value: int, scope: str = "all") -> Measurement:
    return Measurement(f"disruption.{name}", value, "count", "lower", scope)
