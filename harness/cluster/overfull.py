"""Computes how much more quota Workloads hold than there is."""

from __future__ import annotations

from collections import Counter

from harness.base.grouping import summed
from harness.cluster.model import Cluster, ClusterQueue, Cohort

_Key = tuple[str, str, str]
"""A tree of cohorts, a flavor and a resource."""


def overfull(cluster: Cluster) -> dict[str, int]:
    """Returns how much more quota for each resource Workloads hold than their trees of cohorts have.

    The quota of each flavor counts separately. In Kueue, this happens if quota is reduced, or if a flavor is
    removed, while Workloads hold it. Workloads that are being evicted count only on their own.
    """
    held = Counter[_Key]()
    most = Counter[_Key]()
    for each in cluster.workloads:
        if each.admission is None or not each.holds_quota:
            continue
        queue = cluster.cluster_queues.get(each.admission.cluster_queue)
        if queue is None:
            continue
        root = cluster.tree_of(queue)
        own = Counter[_Key]()
        for flavor, name, amount in each.used():
            own[root, flavor, name] += amount
        most |= own
        if each.active and not each.is_true("Evicted"):
            held += own
    if not most:
        return {}
    quotas = Counter[_Key]()
    owners: list[ClusterQueue | Cohort] = [*cluster.cluster_queues.values(), *cluster.cohorts.values()]
    for owner in owners:
        root = cluster.tree_of(owner)
        for offer in (offer for group in owner.resource_groups for offer in group.flavors):
            for name, quota in offer.resources.items():
                quotas[root, offer.flavor, name] += quota.nominal
    return summed((key[2], amount) for key, amount in ((held | most) - quotas).items())
