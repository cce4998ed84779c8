"""Places the pod sets of a workload one by one. Pods that were placed earlier keep their capacity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from harness.models.cluster import TopologyRequest
from harness.models.constraints import Constraints
from harness.policy import PodSet
from harness_plugins.kueue.rules.topology.capacity import Capacities, capacity_of
from harness_plugins.kueue.rules.topology.request import wanted_of
from harness_plugins.kueue.rules.topology.search import Search
from harness_plugins.kueue.state.topology.tree import DomainAssignment, Room, TopologyAssignment, TopologyTree


@dataclass(frozen=True, slots=True)
class PodSetRequest:
    """A pod set to place, with its number of pods and its topology request."""

    pod_set: PodSet
    count: int
    request: TopologyRequest


def suitable_leaves(tree: TopologyTree, pod_set: PodSet) -> Sequence[bool] | None:
    """Returns for each leaf whether it suits the pods of a pod set. Leaves are the finest domains.

    Returns None if all leaves suit the pods, or if the finest level of the topology is not the node.
    """
    if not tree.by_host:
        return None
    constraints = Constraints(pod_set)
    suitable = tuple(constraints.suit(node, tree.flavor) for node in tree.nodes)
    return None if all(suitable) else suitable


SuitableLeaves: TypeAlias = Callable[[TopologyTree, PodSet], Sequence[bool] | None]
"""See `suitable_leaves`."""


def place(
    tree: TopologyTree,
    room: Room,
    asked: Sequence[PodSetRequest],
    *,
    mixed: bool,
    suitable: SuitableLeaves = suitable_leaves,
    capacities: Capacities = capacity_of,
) -> dict[str, TopologyAssignment | None]:
    """Returns the places of a workload's pods by pod set, or None for a pod set that has no place.

    The search ends after the first pod set without a place, so later pod sets are missing from the result.

    Args:
        tree: the topology domains.
        room: the free capacity of the leaves. The capacity of each placed pod set is subtracted before the
            next pod set is placed.
        asked: the pod sets, in the order of the workload.
        mixed: whether the `TASProfileMixed` gate is on.
        suitable: finds the leaves on which the pods of a pod set can run.
        capacities: counts how many pods the domains could take.
    """
    placed: dict[str, TopologyAssignment | None] = {}
    groups = groups_of(asked)
    for number, members in enumerate(groups, start=1):
        workers, leader = _roles(members)
        wanted = wanted_of(workers.request, tree.levels, mixed=mixed)
        found = None
        if wanted is not None:
            requests = None if leader is None else leader.pod_set.requests
            may_run = suitable(tree, workers.pod_set)
            figures = capacities(tree, room, wanted, workers.pod_set.requests, requests, may_run)
            leaves = Search(tree, figures, wanted, 0 if leader is None else 1).place(workers.count)
            if leaves is not None:
                found = [_assignment(tree, leaves, each) for each in (figures.pods, figures.leaders)]
        if found is None:
            placed |= {each.pod_set.name: None for each in members}
            break
        for each, placement in zip((workers, leader), found, strict=True):
            if each is not None:
                placed[each.pod_set.name] = placement
                if number < len(groups):
                    for leaf, pods in placement:
                        room.take(leaf, each.pod_set.requests, pods)
    return placed


def groups_of(asked: Sequence[PodSetRequest]) -> list[list[PodSetRequest]]:
    """Returns the pod sets by group, in the order in which the groups first appear."""
    if len(asked) == 1:
        return [list(asked)]
    groups: dict[tuple[str, str], list[PodSetRequest]] = {}
    for each in asked:
        group = each.request.group
        groups.setdefault(("group", group) if group else ("pod set", each.pod_set.name), []).append(each)
    return list(groups.values())


def _roles(members: list[PodSetRequest]) -> tuple[PodSetRequest, PodSetRequest | None]:
    """Returns a group's workers and leader. The larger pod set (the first of equal ones) has the workers."""
    if len(members) == 1:
        return members[0], None
    first, second = members[:2]
    return (second, first) if second.count > first.count else (first, second)


def _assignment(tree: TopologyTree, leaves: Sequence[int], pods: Sequence[int]) -> TopologyAssignment:
    first = tree.leaves.start
    return tuple(
        [DomainAssignment(leaf - first, pods[leaf]) for leaf in sorted(set(leaves)) if pods[leaf] > 0]
    )
