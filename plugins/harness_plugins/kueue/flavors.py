"""Which flavors of a queue a job could use: worked out once for all jobs that ask for the same.

Taints, node selectors and required node affinity decide whether a flavor suits a pod set at all; quota has
no part in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from harness.cluster.model import Cluster, ClusterQueue, ResourceGroup
from harness.job import PodSet
from harness.quota import QuotaTree
from harness_plugins.kueue.asks import Asks
from harness_plugins.kueue.constraints import Constraints

PODS = "pods"


@final
@dataclass(frozen=True, slots=True, eq=False)
class GroupOffer:
    """What a resource group of a queue can offer to a pod set.

    Attributes:
        resources: the resources that the pod set takes from this group.
        amounts: how much one pod takes of each.
        flavors: the names of the group's flavors, in order.
        cells: per flavor the flavor-resource of each resource; None for a flavor that does not suit.
    """

    resources: tuple[str, ...]
    amounts: tuple[int, ...]
    flavors: tuple[str, ...]
    cells: tuple[tuple[int, ...] | None, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class PodSetOffer:
    """What a queue can offer to a pod set; `covered` is False when no group has a resource that it needs."""

    pod_set: PodSet
    covered: bool
    groups: tuple[GroupOffer, ...]


def offer(asks: Asks, queue: ClusterQueue, cluster: Cluster, tree: QuotaTree) -> tuple[PodSetOffer, ...]:
    """What a queue can offer to a job, pod set by pod set."""
    return tuple(_pod_set_offer(pod_set, queue, cluster, tree) for pod_set in asks.pod_sets)


def _pod_set_offer(pod_set: PodSet, queue: ClusterQueue, cluster: Cluster, tree: QuotaTree) -> PodSetOffer:
    requests = dict(pod_set.requests)
    if any(PODS in group.covered_resources for group in queue.resource_groups):
        requests[PODS] = 1
    constraints = Constraints(pod_set)
    groups = []
    left = dict(requests)
    for group in queue.resource_groups:
        resources = tuple(resource for resource in left if resource in group.covered_resources)
        if resources:
            groups.append(_group_offer(resources, requests, group, constraints, cluster, tree))
            for resource in resources:
                del left[resource]
    covered = not any(left.values())
    return PodSetOffer(pod_set, covered, tuple(groups))


def _group_offer(
    resources: tuple[str, ...],
    requests: Mapping[str, int],
    group: ResourceGroup,
    constraints: Constraints,
    cluster: Cluster,
    tree: QuotaTree,
) -> GroupOffer:
    cells: list[tuple[int, ...] | None] = []
    for quotas in group.flavors:
        flavor = cluster.flavors.get(quotas.flavor)
        numbers = [tree.cell(quotas.flavor, resource) for resource in resources]
        present = tuple(number for number in numbers if number is not None)
        suits = flavor is not None and len(present) == len(numbers) and constraints.allow(flavor)
        cells.append(present if suits else None)
    return GroupOffer(
        resources,
        tuple(requests[resource] for resource in resources),
        tuple(quotas.flavor for quotas in group.flavors),
        tuple(cells),
    )
