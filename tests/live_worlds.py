"""Small live clusters and histories for forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from harness import Cluster
from harness.cluster.load import cluster_from
from harness.plugins import load
from harness.trace.trace import Trace, open_trace

Manifest = dict[str, Any]
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
"""Midnight at the beginning of the day on which clusters are dumped."""

NOON = MONDAY + timedelta(hours=12)


def time_of(moment: datetime) -> str:
    """A time as manifests write it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def queue(name: str, cpu: int, **spec: Any) -> list[Manifest]:
    """A ClusterQueue with cores of flavor `f`, and the LocalQueue `default/NAME-jobs` that leads to it."""
    group = {
        "coveredResources": ["cpu"],
        "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}],
    }
    api = "kueue.x-k8s.io/v1beta2"
    return [
        {
            "apiVersion": api,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, "resourceGroups": [group], **spec},
        },
        {
            "apiVersion": api,
            "kind": "LocalQueue",
            "metadata": {"name": f"{name}-jobs", "namespace": "default"},
            "spec": {"clusterQueue": name},
        },
    ]


def workload(
    name: str,
    cpu: int,
    *,
    queue: str = "q",
    hours: float = 0,
    since: float | None = None,
    priority: int = 0,
    limit: int | None = None,
) -> Manifest:
    """A Workload, created so many hours before `NOON`; with `since` it has held quota since so many."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    status: Manifest = {}
    if since is not None:
        at = time_of(NOON - timedelta(hours=since))
        usage = {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": cpu}}
        status["admission"] = {"clusterQueue": queue, "podSetAssignments": [usage]}
        status["conditions"] = [
            {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": at}
            for kind in ("QuotaReserved", "Admitted")
        ]
    created = time_of(NOON - timedelta(hours=hours if since is None else max(hours, since)))
    longest = {} if limit is None else {"maximumExecutionTimeSeconds": limit}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": created},
        "spec": {
            "queueName": f"{queue}-jobs",
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": template}],
            **longest,
        },
        "status": status,
    }


def manifests(*parts: Manifest | Sequence[Manifest]) -> list[Manifest]:
    """Manifests of a cluster with the flavor `f`."""
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "f"}}
    found: list[Manifest] = [flavor]
    for part in parts:
        found += [part] if isinstance(part, dict) else part
    return found


def cluster(*parts: Manifest | Sequence[Manifest]) -> Cluster:
    """The cluster that they describe."""
    return cluster_from(manifests(*parts), "live")


def history(folder: Path, jobs: Sequence[tuple[str, datetime, float, int]], queue: str = "q-jobs") -> Trace:
    """A trace of jobs: name, when it was submitted, how many hours it ran, and its cores."""
    frame = pl.DataFrame(
        {
            "job_id": [name for name, *_ in jobs],
            "submit_time": [submit for _, submit, *_ in jobs],
            "duration": [timedelta(hours=hours) for *_, hours, _ in jobs],
            "queue": queue,
            "request.cpu": [1000 * cpu for *_, cpu in jobs],
        }
    ).sort("submit_time")
    path = folder / "history.parquet"
    frame.write_parquet(path)
    return open_trace(path, load())
