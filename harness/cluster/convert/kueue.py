"""Reads ClusterQueues and cohorts as quotas, and writes quotas as ClusterQueues and cohorts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harness.base.grouping import grouped
from harness.base.units import format_amount
from harness.cluster.draft import Warnings
from harness.cluster.kinds.quotas import Quota
from harness.cluster.kinds.selectors import LabelSelector
from harness.cluster.manifests import (
    cluster_queue_manifest,
    cohort_manifest,
    flavor_manifest,
    local_queue_manifest,
)
from harness.cluster.model import UNLIMITED, Cluster, ClusterQueue, Cohort, ResourceGroup, ResourceQuota

if TYPE_CHECKING:
    from harness.cluster.convert import Family

ROOT = "root"
"""The name of the quota above all others in a tree."""

_FLAVOR = "default"
_PREEMPTION = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
"""The preemption rules that correspond to quotas of other families.

A quota can preempt any job to reclaim its guarantee. Within a quota, priorities decide.
"""


def read_kueue(cluster: Cluster, notes: Warnings, to: Family) -> dict[str, Quota]:
    """Returns the quotas of ClusterQueues and cohorts as `Quota` objects, each summed over its flavors."""
    _tell_queues(cluster, notes, to)
    _tell_flavors(cluster, notes, to)
    namespaces, called = _namespaces(cluster, notes), _names(cluster, notes)
    parents = {called[name]: called.get(cohort.parent, "") for name, cohort in cluster.cohorts.items()}
    parents |= {name: called.get(queue.cohort, "") for name, queue in cluster.cluster_queues.items()}
    below = grouped((parent, name) for name, parent in parents.items())
    own = {called[name]: _own(cohort.resource_groups) for name, cohort in cluster.cohorts.items()}
    own |= {name: _own(queue.resource_groups) for name, queue in cluster.cluster_queues.items()}
    guarantees: dict[str, dict[str, int]] = {}
    for top in below.get("", []):
        _guarantee(top, own, below, guarantees)
    resources = dict.fromkeys(each for top in below.get("", []) for each in guarantees[top])
    weights = {called[name]: cohort.weight for name, cohort in cluster.cohorts.items()}
    weights |= {name: queue.weight for name, queue in cluster.cluster_queues.items()}
    quotas = {}
    for name, parent in parents.items():
        least, limit = guarantees[name], dict[str, int]()
        for resource in resources:
            borrows = own[name].get(resource, (0, None if name in below else 0))[1]
            if not parent:
                borrows = 0  # cohorts don't lend to each other, and a queue without a cohort doesn't lend
            if borrows is not None:
                limit[resource] = least.get(resource, 0) + borrows
        served = tuple(namespaces.get(name, ())) if name in cluster.cluster_queues else ()
        group = name not in cluster.cluster_queues
        nominal = {each: amount for each, amount in least.items() if amount or each in own[name]}
        quotas[name] = Quota(nominal, weights[name], parent or None, limit, served, group=group)
    return quotas


def write_kueue(quotas: Mapping[str, Quota]) -> list[dict[str, Any]]:
    """Returns a ResourceFlavor for all nodes, a Cohort for each group of quotas, and ClusterQueues.

    Namespaces become LocalQueues with the name of the quota.
    """
    below = grouped((quota.parent, quota) for quota in quotas.values() if quota.parent)
    made = [flavor_manifest(_FLAVOR)]
    for name, quota in quotas.items():
        above = quota.parent or ""
        if quota.group:
            spare = {each: _spare(quota, below.get(name, []), each) for each in quota.nominal}
            made.append(cohort_manifest(name, above, _FLAVOR, _quotas(quota, spare)))
            continue
        rules = {key: rule for key, rule in _PREEMPTION.items() if above or key != "reclaimWithinCohort"}
        own = _quotas(quota, quota.nominal)
        queue = cluster_queue_manifest(name, _FLAVOR, own, cohort=above, preemption=rules)
        if quota.weight != 1:
            queue["spec"]["fairSharing"] = {"weight": format_amount("cpu", round(quota.weight * 1000))}
        made += [queue, *(local_queue_manifest(namespace, name) for namespace in quota.namespaces)]
    return made


def _spare(quota: Quota, children: list[Quota], resource: str) -> int:
    """Returns how much a quota's guarantee exceeds the guarantees of the quotas below it."""
    if quota.nominal[resource] >= UNLIMITED:
        return UNLIMITED
    return quota.nominal[resource] - sum(child.nominal.get(resource, 0) for child in children)


def _quotas(quota: Quota, nominal: Mapping[str, int]) -> dict[str, ResourceQuota]:
    """Returns the quota of each resource.

    Resources that a queue must not use are omitted, as are resources that don't limit a cohort.
    """
    found = {}
    for resource, amount in nominal.items():
        most = (quota.limit or {}).get(resource, UNLIMITED)
        limited = quota.parent is not None and most < UNLIMITED
        if not amount and (not limited if quota.group else most == 0):
            continue
        found[resource] = ResourceQuota(
            amount,
            most - quota.nominal[resource] if limited else None,
            0 if quota.parent is not None and not quota.lends else None,
        )
    return found


def _names(cluster: Cluster, notes: Warnings) -> dict[str, str]:
    """Returns the new name of each cohort, which differs from all queues and from the root of a tree."""
    taken = {*cluster.cluster_queues, ROOT}
    names = {}
    for name in cluster.cohorts:
        only = len(cluster.cohorts) == 1
        called = name
        while called in taken and not (only and called == ROOT and name not in cluster.cluster_queues):
            called += "-cohort"
        taken.add(called)
        if called != name:
            notes.add("Cohort", name, f"has the new name {called}, because names in a tree must be unique")
        names[name] = called
    return names


def _namespaces(cluster: Cluster, notes: Warnings) -> dict[str, list[str]]:
    """Returns the namespaces of each queue.

    A namespace is left out if its LocalQueues belong to several queues.
    """
    queues: dict[str, dict[str, None]] = {}
    for local in cluster.local_queues.values():
        if local.cluster_queue in cluster.cluster_queues:
            queues.setdefault(local.namespace, {})[local.cluster_queue] = None
    found: dict[str, list[str]] = {}
    for namespace, names in queues.items():
        if len(names) == 1:
            found.setdefault(next(iter(names)), []).append(namespace)
        else:
            what = "its LocalQueues belong to several ClusterQueues, but a namespace has one quota: "
            what += "keep the LocalQueues, or label the pods"
            notes.add("Namespace", namespace, what)
    return found


def _guarantee(
    name: str,
    own: Mapping[str, Mapping[str, tuple[int, int | None]]],
    below: Mapping[str, list[str]],
    found: dict[str, dict[str, int]],
) -> dict[str, int]:
    """Adds up the guarantee of a node, which is the sum of its own quotas and of all quotas below it."""
    least = found[name] = {resource: nominal for resource, (nominal, _) in own[name].items()}
    for child in below.get(name, []):
        for resource, amount in _guarantee(child, own, below, found).items():
            least[resource] = min(least.get(resource, 0) + amount, UNLIMITED)
    return least


def _own(groups: Iterable[ResourceGroup]) -> dict[str, tuple[int, int | None]]:
    """Returns the nominal quota and borrowing limit (or None) of each resource, summed over flavors."""
    found: dict[str, tuple[int, int | None]] = {}
    for _, resource, quota in (each for group in groups for each in group.quotas()):
        nominal, limit = found.get(resource, (0, 0))
        endless = limit is None or quota.borrowing_limit is None
        found[resource] = (
            min(nominal + quota.nominal, UNLIMITED),
            None if endless else min((limit or 0) + (quota.borrowing_limit or 0), UNLIMITED),
        )
    return found


# --- what a quota cannot say -------------------------------------------------------------------------------


def _tell_queues(cluster: Cluster, notes: Warnings, to: Family) -> None:
    for queue in cluster.cluster_queues.values():
        _tell_preemption(queue, notes)
        if queue.queueing_strategy != "BestEffortFIFO":
            notes.add(
                "ClusterQueue", queue.name, f"{queue.queueing_strategy}: pods may overtake waiting pods"
            )
        if queue.by_usage:
            notes.add("ClusterQueue", queue.name, "admissionScope: pods are not ordered by past usage")
        if queue.stop_policy != "None":
            notes.add(
                "ClusterQueue", queue.name, f"stopPolicy {queue.stop_policy}: the quota still admits pods"
            )
        if queue.namespace_selector != LabelSelector():
            what = "namespaceSelector: any namespace may use the quota"
            notes.add("ClusterQueue", queue.name, what)
        if cluster.missing_flavors(queue):
            what = "a flavor has no ResourceFlavor: Kueue admits nothing, but the quota admits pods"
            notes.add("ClusterQueue", queue.name, what)
    owners: list[tuple[str, ClusterQueue | Cohort]] = [
        *(("ClusterQueue", queue) for queue in cluster.cluster_queues.values()),
        *(("Cohort", cohort) for cohort in cluster.cohorts.values()),
    ]
    for kind, owner in owners:
        quotas = [quotas for group in owner.resource_groups for quotas in group.flavors]
        if owner.weight != 1 and not to.shares:
            notes.add(kind, owner.name, f"fairSharing.weight: {to.called} do not share capacity by weight")
        if any(quota.lending_limit is not None for each in quotas for quota in each.resources.values()):
            notes.add(kind, owner.name, "lendingLimit: other quotas may borrow all idle quota")
        if len({each.flavor for each in quotas}) > 1:
            notes.add(kind, owner.name, "several flavors: their quotas are added up")


def _tell_preemption(queue: ClusterQueue, notes: Warnings) -> None:
    chosen, name = queue.preemption, queue.name
    if queue.cohort and chosen.reclaim_within_cohort != "Any":
        what = (
            f"reclaimWithinCohort {chosen.reclaim_within_cohort}: a guarantee is reclaimed from any borrower"
        )
        notes.add("ClusterQueue", name, what)
    if chosen.within_cluster_queue != "LowerPriority":
        what = (
            f"withinClusterQueue {chosen.within_cluster_queue}: pods preempt pods of lower "
            "priority in their quota"
        )
        notes.add("ClusterQueue", name, what)
    if chosen.borrow_within_cohort != "Never":
        what = "borrowWithinCohort: a borrower does not preempt pods outside its quota"
        notes.add("ClusterQueue", name, what)


def _tell_flavors(cluster: Cluster, notes: Warnings, to: Family) -> None:
    for flavor in cluster.flavors.values():
        if flavor.node_labels or flavor.taints or flavor.tolerations:
            notes.add("ResourceFlavor", flavor.name, "pods of any quota may run on any node")
    if cluster.kueue is not None:
        notes.add("Configuration", "of Kueue", f"has no settings for {to.called}")
