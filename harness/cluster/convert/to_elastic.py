"""Converts ClusterQueues and cohorts to an ElasticQuotaTree.

Queues become leaves, and cohorts become inner quotas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.cluster.draft import Warnings
from harness.cluster.kinds.selectors import LabelSelector
from harness.cluster.manifests import elastic_quota_tree_manifest, quota_node
from harness.cluster.model import UNLIMITED, Cluster, ClusterQueue, Cohort, ResourceGroup

_ROOT = "root"


@dataclass(slots=True)
class _Node:
    """A queue or cohort that is being converted.

    Attributes:
        name: the name in the tree.
        groups: the node's own quotas.
        children: the nodes below it.
        namespaces: the namespaces whose pods count against the node.
        least: maps a resource to the guarantee of the node, which includes the guarantees of the nodes below
            it.
    """

    name: str
    groups: tuple[ResourceGroup, ...] = ()
    children: list[_Node] = field(default_factory=list)
    namespaces: tuple[str, ...] = ()
    least: dict[str, int] = field(default_factory=dict)


def elastic_quota_tree(cluster: Cluster, notes: Warnings) -> list[dict[str, Any]]:
    """Returns one ElasticQuotaTree for the queues and cohorts of a cluster.

    The quotas of several flavors are added up. The `max` of a queue that may borrow without limit is the
    quota of the whole cohort. The `max` of a queue without a cohort is its own quota.

    Args:
        cluster: a cluster with queues or cohorts.
        notes: receives notes about settings that a tree can't express.
    """
    _tell_queues(cluster, notes)
    _tell_flavors(cluster, notes)
    tops = _forest(cluster, notes)
    resources = list(dict.fromkeys(each for top in tops for each in _guarantee(top)))
    apart = len(tops) > 1 or not tops[0].children
    root = _Node(_ROOT, children=tops) if apart else tops[0]
    _guarantee(root)
    # Cohorts don't lend to each other, and a queue without a cohort doesn't lend at all.
    most = {top.name: {each: top.least.get(each, 0) for each in resources} for top in tops}
    written = [_written(top, most[top.name]) for top in tops]
    if apart:
        bound = {each: root.least.get(each, 0) for each in resources}
        written = [quota_node(root.name, root.least, bound, written)]
    return [elastic_quota_tree_manifest(written[0])]


def _forest(cluster: Cluster, notes: Warnings) -> list[_Node]:
    """Places queues and cohorts below their parents, and returns the nodes that have no parent."""
    namespaces = _namespaces(cluster, notes)
    taken = {*cluster.cluster_queues, _ROOT}
    cohorts: dict[str, _Node] = {}
    for name, cohort in cluster.cohorts.items():
        only = len(cluster.cohorts) == 1
        called = name
        while called in taken and not (only and called == _ROOT and name not in cluster.cluster_queues):
            called += "-cohort"
        taken.add(called)
        if called != name:
            notes.add("Cohort", name, f"has the new name {called}, because names in a tree are unique")
        cohorts[name] = _Node(called, cohort.resource_groups)
    tops: list[_Node] = []
    for name, cohort in cluster.cohorts.items():
        (cohorts[cohort.parent].children if cohort.parent else tops).append(cohorts[name])
    for name, queue in cluster.cluster_queues.items():
        node = _Node(name, queue.resource_groups, namespaces=tuple(namespaces.get(name, ())))
        (cohorts[queue.cohort].children if queue.cohort else tops).append(node)
    return tops


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
            what = "its LocalQueues belong to several ClusterQueues, and a namespace has one quota: "
            what += "keep the LocalQueues, or label the pods"
            notes.add("Namespace", namespace, what)
    return found


def _guarantee(node: _Node) -> dict[str, int]:
    """Computes the guarantee of a node, which is the sum of its own quotas and of all quotas below it."""
    node.least = {resource: nominal for resource, (nominal, _) in _own(node.groups).items()}
    for child in node.children:
        for resource, amount in _guarantee(child).items():
            node.least[resource] = min(node.least.get(resource, 0) + amount, UNLIMITED)
    return node.least


def _own(groups: Iterable[ResourceGroup]) -> dict[str, tuple[int, int | None]]:
    """Returns the nominal quota and the borrowing limit of each resource, summed over flavors.

    A borrowing limit of None means that there is no limit.
    """
    found: dict[str, tuple[int, int | None]] = {}
    for group in groups:
        for quotas in group.flavors:
            for resource, quota in quotas.resources.items():
                nominal, limit = found.get(resource, (0, 0))
                endless = limit is None or quota.borrowing_limit is None
                found[resource] = (
                    min(nominal + quota.nominal, UNLIMITED),
                    None if endless else min((limit or 0) + (quota.borrowing_limit or 0), UNLIMITED),
                )
    return found


def _written(node: _Node, most: Mapping[str, int]) -> dict[str, Any]:
    """Returns a node and all nodes below it, as they appear in the manifest of a tree.

    No node has a `max` above the `max` of its parent. Each node names every resource in the tree, because the
    pods of a queue must not use resources for which the queue has no quota.
    """
    below = [_written(child, _bounds(child, most)) for child in node.children]
    own = _own(node.groups)
    least = {resource: amount for resource, amount in node.least.items() if amount or resource in own}
    return quota_node(node.name, least, most, below, node.namespaces)


def _bounds(node: _Node, above: Mapping[str, int]) -> dict[str, int]:
    """Returns the `max` of a node, which is the `max` of its parent unless a borrowing limit is lower."""
    own, bounds = _own(node.groups), {}
    for resource, most in above.items():
        nominal, limit = own.get(resource, (0, None))
        if resource not in own and not node.children:
            bounds[resource] = 0
        elif limit is None:
            bounds[resource] = most
        else:
            bounds[resource] = min(node.least.get(resource, nominal) + limit, most)
    return bounds


# --- what a tree cannot say -------------------------------------------------------------------------------


def _tell_queues(cluster: Cluster, notes: Warnings) -> None:
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
        if owner.weight != 1:
            notes.add(kind, owner.name, "fairSharing.weight: elastic quotas have no shares")
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
        what = f"withinClusterQueue {chosen.within_cluster_queue}: in a quota, lower priorities are preempted"
        notes.add("ClusterQueue", name, what)
    if chosen.borrow_within_cohort != "Never":
        what = "borrowWithinCohort: a borrower does not preempt pods outside its quota"
        notes.add("ClusterQueue", name, what)


def _tell_flavors(cluster: Cluster, notes: Warnings) -> None:
    for flavor in cluster.flavors.values():
        if flavor.node_labels or flavor.taints or flavor.tolerations:
            notes.add("ResourceFlavor", flavor.name, "a quota may use any node")
    if cluster.kueue is not None:
        notes.add("Configuration", "of Kueue", "says nothing about elastic quotas")
