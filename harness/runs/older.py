"""Converts the tables of older runs to the current form.

Schema 2 stores some numbers only within texts, so the module parses these texts.

The metrics of older runs differ from those of current runs. Metrics of fairness, quota and disruption have
the scope `queue` or `beneficiary` instead of `quota`. A larger allocation counts as better. The column
`at_least` is missing, and the units are different.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from harness.base.errors import RunError
from harness.base.units import unit_of
from harness.plugins.measurement import MEAN, SHARE
from harness.plugins.scopes import BENEFICIARY, QUEUE, QUOTA, Scope

_OF_JOBS = ("disruption.preemptions", "disruption.lost", "disruption.ping_pong")
_NO_BETTER = ("utilization.allocated", "utilization.allocated.hours")
_SHARES = r"^(utilization|goodput|fragmentation|fairness|disruption|wait|topology)\b"
_MEANS = (
    *("disruption.victims_per_preemptor.mean", "disruption.cascade_depth.mean"),
    "topology.domains_per_job",
)
_PER_1000 = {
    "disruption.preemptions_per_1000_jobs": "per 1000 jobs",
    "disruption.preemptions_per_1000_hours": "per 1000 h",
}
_NAME, _HOURS = 0, 1
_OF_QUOTAS = ("fairness.guarantee_deficit", "quota.over", *_OF_JOBS)


def with_numbers(decisions: pl.LazyFrame, jobs: pl.LazyFrame) -> pl.LazyFrame:
    """Returns decisions of schema 2 with the columns `pod_number`, `successor` and `by_job` of schema 3.

    In `decisions`, the name of a pod begins with the name of its job. The pod's number follows if the job has
    several pods, and `-r<k>` follows for its k-th successor.
    """
    rest = pl.col("pod").str.slice(pl.col("job_id").str.len_chars())
    number, successor = (
        pl.when(pl.col("pod").is_not_null()).then(rest.str.extract(pattern).cast(pl.Int32).fill_null(0))
        for pattern in (r"^-(\d+)", r"-r(\d+)$")
    )
    rows = jobs.select(by="job_id").with_row_index("by_job").with_columns(pl.col("by_job").cast(pl.Int32))
    return decisions.with_columns(pod_number=number, successor=successor).join(
        rows, on="by", how="left", maintain_order="left"
    )


def require_holding(info: Mapping[str, Any]) -> None:
    """Checks that a run, given its `run.json`, records when jobs hold resources. Runs of schema 2 don't.

    Raises:
        RunError: the run has schema 2.
    """
    if info["schema"] == "2":
        raise RunError(
            f"run {info['run']} does not record when jobs hold resources: it has schema 2",
            hint="replay it again",
        )


def as_now(metrics: pl.DataFrame, cluster: Mapping[str, Any]) -> pl.DataFrame:
    """Returns the metrics of any run with the current columns, scopes and directions."""
    better = pl.when(pl.col("metric").is_in(_NO_BETTER)).then(pl.lit("")).otherwise("better")
    if "at_least" not in metrics.columns:
        metrics = _with_units(metrics).with_columns(at_least=pl.lit(None, pl.Boolean))
    return _with_scopes_of_quotas(metrics.with_columns(better=better), cluster)


def _with_units(metrics: pl.DataFrame) -> pl.DataFrame:
    """Returns metrics in the current units.

    Before schema 4, sizes were in bytes, and everything else except times was a count.
    """
    name, unit, resource = pl.col("metric"), pl.col("unit"), pl.col("resource")
    resources = metrics["resource"].unique().to_list()
    of_resources = {each: unit_of(each) for each in resources}
    hours, amounts = (
        resource.replace_strict(resources, [of_resources[each][at] for each in resources])
        for at in (_HOURS, _NAME)
    )
    size = resource.replace_strict(resources, [of_resources[each].size for each in resources])
    is_hours, is_amount = unit == "resource-hours", (name == "backlog") & (unit == "resources")
    return metrics.with_columns(
        value=pl.when(is_hours | is_amount).then(pl.col("value") / size).otherwise("value"),
        unit=pl.when(is_hours | (unit == "core-hours"))
        .then(hours)
        .when(is_amount)
        .then(amounts)
        .when((unit == "ratio") & ~name.str.contains("jain|gini") & name.str.contains(_SHARES))
        .then(pl.lit(SHARE))
        .when(name.is_in(_MEANS))
        .then(pl.lit(MEAN))
        .otherwise(name.replace_strict(_PER_1000, default=unit)),
    )


def _with_scopes_of_quotas(metrics: pl.DataFrame, cluster: Mapping[str, Any]) -> pl.DataFrame:
    """Returns metrics with the current scopes.

    If several queues count against one quota, the values for the quota's jobs are not known by queue.
    """
    quotas = cluster["queues"]
    if not quotas or metrics["scope"].str.starts_with(f"{QUOTA}=").any():
        return metrics
    queues: dict[str, list[str]] = {name: [] for name in quotas}
    for queue, quota in cluster["quota_of"].items():
        if quota is not None:
            queues[quota].append(queue)
    # A name with a slash can consist of a namespace and a queue, to distinguish queues with the same name.
    alone = {quota: names[0] for quota, names in queues.items() if len(names) == 1 and "/" not in names[0]}
    of_jobs = pl.col("metric").is_in(_OF_JOBS)
    by_queue = metrics.filter(of_jobs & pl.col("scope").is_in([Scope(QUEUE, quota).text for quota in alone]))
    return pl.concat(
        [
            _with(metrics, _OF_QUOTAS, {Scope(QUEUE, name): Scope(QUOTA, name) for name in quotas}),
            _with(
                by_queue, _OF_JOBS, {Scope(QUEUE, quota): Scope(QUEUE, name) for quota, name in alone.items()}
            ),
        ]
    ).pipe(
        _with,
        _OF_JOBS,
        {Scope(BENEFICIARY, quota): Scope(BENEFICIARY, name) for quota, name in alone.items()},
    )


def _with(metrics: pl.DataFrame, of: tuple[str, ...], scopes: Mapping[Scope, Scope]) -> pl.DataFrame:
    names = {old.text: new.text for old, new in scopes.items()}
    other = pl.when(pl.col("metric").is_in(of)).then(pl.col("scope").replace(names)).otherwise("scope")
    return metrics.with_columns(scope=other)
