"""The topology request of a workload with assigned flavors, and the places of its pods.

The pod sets are placed one by one. Pods that were placed earlier keep their capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from harness.models.cluster import TopologyRequest
from harness.models.constraints import Constraints
from harness.policy import PodSet
from harness_plugins.kueue.rules.flavor_offers import PodSetOffer
from harness_plugins.kueue.rules.topology.capacity import Capacities, PodsToPlace, capacity_of
from harness_plugins.kueue.rules.topology.request import wanted_of
from harness_plugins.kueue.rules.topology.search import Search
from harness_plugins.kueue.state.topology.flavors import Placed, TopologyFlavor, TopologyFlavors
from harness_plugins.kueue.state.topology.tree import DomainAssignment, Room, TopologyAssignment, TopologyTree
from harness_plugins.kueue.state.workload import Chosen

IMPLIED = TopologyRequest()
"""The topology request of pods that are placed although they have no request."""


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
            pods = PodsToPlace(tree, room, wanted, workers.pod_set.requests, requests, may_run)
            figures = capacities(pods)
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
                    for leaf, number_of_pods in placement:
                        room.take(leaf, each.pod_set.requests, number_of_pods)
    return placed


def groups_of(asked: Sequence[PodSetRequest]) -> list[list[PodSetRequest]]:
    """Returns the pod sets by group, in the order in which the groups first appear."""
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


# --- workloads --------------------------------------------------------------------------------------------


@final
class WorkloadTopology:
    """The pod sets of a workload that need places, each in its assigned flavor.

    Args:
        parts: the pod sets of each flavor, sorted by the name of the flavor.
        cells: the flavor-resources that the pod sets take.
        finder: how the leaves and capacities for the pods are found.
    """

    def __init__(
        self,
        parts: Sequence[tuple[TopologyFlavor, Sequence[PodSetRequest]]],
        cells: frozenset[int],
        finder: WorkloadTopologies,
    ) -> None:
        self.parts = parts
        self.finder = finder
        self.cells = cells

    @property
    def alone(self) -> bool:
        """True if the workload has a single pod set and no leader.

        If such a pod set has no place, it also has none when less capacity is free.
        """
        return len(self.parts) == 1 and len(self.parts[0][1]) == 1

    def place(self, *, empty: bool = False) -> tuple[Placed, ...] | None:
        """Returns the places of the pods, or None if some pod set has no place.

        If `empty` is True, the search assumes that no other workload is present.
        """
        found: list[Placed] = []
        finder = self.finder
        for flavor, asked in self.parts:
            room = flavor.free if empty else flavor.room
            if len(asked) > 1 or found:
                room = Room(room)
            finder.flavors.take(found, flavor, room)
            placed = place(
                flavor.tree,
                room,
                asked,
                mixed=finder.mixed,
                suitable=finder.suitable,
                capacities=finder.capacities,
            )
            for each in asked:
                leaves = placed.get(each.pod_set.name)
                if leaves is None:
                    return None
                found.append(Placed(each.pod_set, flavor, leaves))
        return tuple(found)


@final
@dataclass(frozen=True, slots=True, eq=False)
class WorkloadTopologies:
    """Finds the topology requests of workloads."""

    flavors: TopologyFlavors
    mixed: bool
    suitable: SuitableLeaves = suitable_leaves
    capacities: Capacities = capacity_of

    def __call__(
        self, offers: tuple[PodSetOffer, ...], chosen: Chosen, counts: tuple[int, ...]
    ) -> WorkloadTopology | None:
        """Returns the topology request of a workload.

        Returns None if a pod set was not assigned exactly one flavor with a topology.
        """
        parts: dict[str, list[PodSetRequest]] = {}
        cells: set[int] = set()
        for offer, numbers, count in zip(offers, chosen, counts, strict=True):
            if not (offer.placed and count):
                continue
            names = {group.flavors[number] for group, number in zip(offer.groups, numbers, strict=True)}
            names &= self.flavors.by_name.keys()
            if len(names) != 1:
                return None
            request = PodSetRequest(offer.pod_set, count, offer.pod_set.topology or IMPLIED)
            parts.setdefault(names.pop(), []).append(request)
            for group, number in zip(offer.groups, numbers, strict=True):
                cells.update(group.cells[number] or ())
        by_name = [(self.flavors.by_name[name], asked) for name, asked in sorted(parts.items())]
        return WorkloadTopology(by_name, frozenset(cells), self)


Topologies: TypeAlias = (
    "Callable[[tuple[PodSetOffer, ...], Chosen, tuple[int, ...]], WorkloadTopology | None]"
)
"""See `WorkloadTopologies`."""
