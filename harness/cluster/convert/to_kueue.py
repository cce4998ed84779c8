"""Elastic quotas as ClusterQueues and cohorts: leaves become queues, the quotas above them cohorts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
"""What every elastic quota does: its `min` is taken back from anybody, and within it priority counts."""


def kueue_queues(cluster: Cluster, notes: Warnings) -> list[dict[str, Any]]:
    """A ResourceFlavor of all nodes, a Cohort for each quota that has others below it, and ClusterQueues.

    Quotas without one above them share a cohort, one for each of Koordinator's trees. Namespaces become
    LocalQueues that are called like the quota.

    Args:
        cluster: has elastic quotas.
        notes: what queues cannot say is added here.
    """
    quotas = cluster.elastic_quotas
    below: dict[str, list[ElasticQuota]] = {}
    for quota in quotas.values():
        below.setdefault(quota.parent, []).append(quota)
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
    """The cohort of a quota that has none above it: those of one tree share; a single one needs none."""
    mates = [each for each in below[""] if each.tree == quota.tree]
    if len(mates) == 1:
        return ""
    return f"{_COHORT}-{quota.tree}" if quota.tree else _COHORT


def _spare(quota: ElasticQuota, children: list[ElasticQuota], resource: str) -> int:
    """What is guaranteed to a quota beyond what is guaranteed to those below it."""
    if quota.min_of(resource) >= UNLIMITED:
        return UNLIMITED
    return quota.min_of(resource) - sum(child.min_of(resource) for child in children)


def _quotas(
    quota: ElasticQuota, nominal: Mapping[str, int], *, borrows: bool, cohort: bool
) -> dict[str, ResourceQuota]:
    """Resource -> quota; what a leaf may have nothing of is not covered, nor what bounds no cohort."""
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
            what = "its max is above its min: what has nothing above it cannot borrow"
            notes.add("elastic quota", quota.name, what)
        if quota.weight is not None:
            what = "shared-weight: idle quota goes to whoever asks first"
            notes.add("elastic quota", quota.name, what)
        if quota.max is None or any(quota.max_of(each) >= UNLIMITED for each in CORE_RESOURCES):
            notes.add("elastic quota", quota.name, "resources that no quota names are not admitted")
