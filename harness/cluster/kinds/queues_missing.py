"""Handles dumps that contain Workloads but no ClusterQueue.

Kueue can't start any Workload in such a cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from harness.cluster.draft import Draft
from harness.cluster.kinds.workloads import Workload

REMEDY = "add what kubectl get -A -o yaml resourceflavors,clusterqueues,cohorts,localqueues prints"


def without_queues(workloads: Iterable[Workload], cluster_queues: Collection[str]) -> list[Workload]:
    """Returns the Workloads that have not ended, if the manifests have no ClusterQueue."""
    return [] if cluster_queues else [each for each in workloads if each.active and not each.finished]


def check_queues(draft: Draft) -> None:
    """Warn about Workloads if the manifests have no ClusterQueue."""
    for each in without_queues(draft.workloads.values(), draft.cluster_queues):
        what = f"is left out, because the manifests have no ClusterQueue; {REMEDY}"
        draft.warnings.add("Workload", f"{each.namespace}/{each.name}", what)
