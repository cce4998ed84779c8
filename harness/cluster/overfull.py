"""Finds the resources with more held than available quota."""

from __future__ import annotations

from collections import Counter

from harness.cluster.model import Cluster


def overfull(cluster: Cluster) -> set[str]:
    """Returns the resources for which Workloads hold more quota than their trees of cohorts have.

    The quota of each flavor counts separately. In Kueue, this happens if quota is reduced, or if a flavor is
    removed, while Workloads hold it. Workloads that are being evicted don't count.
    """
    left = Counter[tuple[str, str, str]]()
    for each in cluster.workloads:
        stays = each.holds_quota and each.active and not each.is_true("Evicted")
        if stays and each.admission is not None:
            queue = cluster.cluster_queues.get(each.admission.cluster_queue)
            if queue is None:
                continue
            for flavor, name, amount in each.used():
                left[_root(cluster, queue.cohort, queue.name), flavor, name] -= amount
    if not left:
        return set()
    queues, cohorts = cluster.cluster_queues.values(), cluster.cohorts.values()
    trees = [(_root(cluster, each.cohort, each.name), each.resource_groups) for each in queues]
    trees += [(_root(cluster, each.name), each.resource_groups) for each in cohorts]
    for root, groups in trees:
        for quotas in (quotas for group in groups for quotas in group.flavors):
            for name, quota in quotas.resources.items():
                left[root, quotas.flavor, name] += quota.nominal
    return {name for (_, _, name), amount in left.items() if amount < 0}


def _root(cluster: Cluster, cohort: str, queue: str = "") -> str:
    """Returns a name for the tree of a cohort or, if it is "", of a queue without a cohort."""
    while cohort in cluster.cohorts and cluster.cohorts[cohort].parent:
        cohort = cluster.cohorts[cohort].parent
    return cohort or f"queue {queue}"
