"""What a trace and a cluster say that does not reach each other: no fault, but worth knowing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import polars as pl

from harness.cluster.model import Cluster
from harness.trace.job_rows import job_rows
from harness.trace.schema import DEFAULT_NAMESPACE, entries
from harness.trace.trace import Trace


def unreached(trace: Trace, cluster: Cluster) -> Iterator[str]:
    """One sentence for each disruption budget that no pod of the trace or the manifests counts against."""
    if not cluster.disruption_budgets:
        return
    pods = [*_pods_of(trace), *((pod.namespace, pod.labels) for pod in cluster.pods)]
    for budget in cluster.disruption_budgets:
        if budget.selector and not any(budget.matches(namespace, labels) for namespace, labels in pods):
            name = f"{budget.namespace}/{budget.name}"
            yield f"PodDisruptionBudget {name}: spec.selector matches no pod of the trace or the manifests"


def _pods_of(trace: Trace) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Namespace and labels of the trace's pods, each combination once."""
    frame = trace.frame
    names = [name for name in ("namespace", "labels", "pod_template") if name in frame.columns]
    if not {"labels", "pod_template"} & set(names):
        yield from ((namespace, {}) for namespace in job_rows(frame)["namespace"].unique().sort())
        return
    for row in frame.select(pl.col(names)).unique(maintain_order=True).iter_rows(named=True):
        labels = {key: value or "" for key, value in entries(row["labels"])} if row.get("labels") else {}
        if row.get("pod_template"):
            metadata = json.loads(row["pod_template"]).get("metadata") or {}
            labels = {**(metadata.get("labels") or {}), **labels}
        yield row.get("namespace") or DEFAULT_NAMESPACE, labels
