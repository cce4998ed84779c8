"""Converts elastic quotas to Kueue's objects.

Leaves become ClusterQueues, and quotas above them become cohorts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.base.grouping import grouped
from harness.cluster.draft import Warnings
from harness.cluster.kinds.elastic import CORE_RESOURCES, ElasticQuota
from harness.cluster.manifests import (
    cluster_queue_manifest,
    cohort_manifest,
    flavor_manifest,
    local_queue_manifest,
)
from harness.cluster.model import UNLIMITED, Cluster, ResourceQuota

_FLAVOR = "default"
_COHORT = "elastic-quotas"
_PREEMPTION = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
"""The preemption rules that correspond to every elastic quota.

A quota can preempt any job to reclaim its `min`. Within a quota, priorities decide.
"""


def kueue_queues(cluster: Cluster, notes: Warnings) -> list[dict[str, Any]]:
    """Returns a ResourceFlavor for all nodes, a Cohort for each quota above other quotas, and ClusterQueues.

    Quotas without a parent share one cohort. With Koordinator's trees, there is one such cohort per tree.
    Namespaces become LocalQueues with the name of the quota.

    Args:
        cluster: a cluster with elastic quotas.
        notes: receives notes about settings that queues can't express.
    """
    quotas = cluster.elastic_quotas
    below = grouped((quota.parent, quota) for quota in quotas.values())
    resources = list(
        dict.fromkeys(
            each for quota in quotas.values() for bound in (quota.min, quota.max) for each in bound or ()
        )
    )
    _tell(cluster, below, notes)
    made = [flavor_manifest(_FLAVOR)]
    for quota in quotas.values():
        above = quota.parent or _shared_cohort(quota, below)
        if quota.name in below or quota.is_parent:
            spare = {each: _spare(quota, below.get(quota.name, []), each) for each in resources}
            own = _quotas(quota, spare, borrows=bool(above), cohort=True)
            made.append(cohort_manifest(quota.name, above, _FLAVOR, own))
            continue
        nominal = {each: quota.min_of(each) for each in resources}
        own = _quotas(quota, nominal, borrows=bool(above), cohort=False)
        made.append(
            cluster_queue_manifest(quota.name, _FLAVOR, own, cohort=above, preemption=_preemption(above))
        )
        made += [local_queue_manifest(namespace, quota.name) for namespace in quota.namespaces]
    return made


def _preemption(cohort: str) -> Mapping[str, str]:
    return {key: rule for key, rule in _PREEMPTION.items() if cohort or key != "reclaimWithinCohort"}


def _shared_cohort(quota: ElasticQuota, below: Mapping[str, list[ElasticQuota]]) -> str:
    """Returns the cohort for a quota that has no parent, or "" for a single quota, which needs no cohort.

    Each tree has one such cohort.
    """
    mates = [each for each in below[""] if each.tree == quota.tree]
    if len(mates) == 1:
        return ""
    return f"{_COHORT}-{quota.tree}" if quota.tree else _COHORT


def _spare(quota: ElasticQuota, children: list[ElasticQuota], resource: str) -> int:
    """Returns how much a quota's guarantee exceeds the guarantees of the quotas below it."""
    if quota.min_of(resource) >= UNLIMITED:
        return UNLIMITED
    return quota.min_of(resource) - sum(child.min_of(resource) for child in children)


def _quotas(
    quota: ElasticQuota, nominal: Mapping[str, int], *, borrows: bool, cohort: bool
) -> dict[str, ResourceQuota]:
    """Returns the quota of each resource.

    Resources that a leaf must not use are omitted, as are resources that don't limit a cohort.
    """
    found = {}
    for resource, amount in nominal.items():
        most = quota.max_of(resource)
        limited = borrows and most < UNLIMITED
        if not amount and (not limited if cohort else most == 0):
            continue
        found[resource] = ResourceQuota(
            amount,
            most - quota.min_of(resource) if limited else None,
            0 if borrows and not quota.lends else None,
        )
    return found


def _tell(cluster: Cluster, below: Mapping[str, list[ElasticQuota]], notes: Warnings) -> None:
    for quota in cluster.elastic_quotas.values():
        named = dict.fromkeys((*(quota.min or ()), *(quota.max or ())))
        alone = not quota.parent and not _shared_cohort(quota, below)
        if alone and any(quota.min_of(each) != quota.max_of(each) for each in named):
            what = "its max is above its min, but a quota without a parent cannot borrow"
            notes.add("elastic quota", quota.name, what)
        if quota.weight is not None:
            what = "shared-weight: idle quota goes to the first job that requests it"
            notes.add("elastic quota", quota.name, what)
        if quota.max is None or any(quota.max_of(each) >= UNLIMITED for each in CORE_RESOURCES):
            notes.add("elastic quota", quota.name, "resources that no quota names are not admitted")
