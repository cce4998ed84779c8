"""The topology request of a workload with assigned flavors, and the search for its places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, final

from harness.models.cluster import TopologyRequest
from harness_plugins.kueue.rules.topology.capacity import Capacities, Capacity, capacity_of
from harness_plugins.kueue.rules.topology.placement import (
    PodSetRequest,
    SuitableLeaves,
    place,
    suitable_leaves,
)
from harness_plugins.kueue.rules.topology.request import wanted_of
from harness_plugins.kueue.rules.topology.search import Search
from harness_plugins.kueue.state.topology.flavors import Placed, TopologyFlavor, TopologyFlavors, in_flavor
from harness_plugins.kueue.state.topology.tree import Room

if TYPE_CHECKING:
    from harness_plugins.kueue.rules.flavor_offers import PodSetOffer

_IMPLIED = TopologyRequest()


@final
class WorkloadTopology:
    """The pod sets of a workload that need places, each in its assigned flavor.

    Args:
        parts: the pod sets of each flavor, sorted by the name of the flavor.
        cells: the flavor-resources that the pod sets take.
    """

    def __init__(
        self,
        parts: Sequence[tuple[TopologyFlavor, Sequence[PodSetRequest]]],
        cells: frozenset[int],
        finder: WorkloadTopologies,
    ) -> None:
        self.parts = parts
        self._finder = finder
        self._empty: list[tuple[Placed, ...] | None] = []
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
        if not empty:
            return self._place(empty=False)
        if not self._empty:  # the result does not depend on other workloads
            self._empty.append(self._place(empty=True))
        return self._empty[0]

    def _place(self, *, empty: bool) -> tuple[Placed, ...] | None:
        found: list[Placed] = []
        finder = self._finder
        for flavor, asked in self.parts:
            room = flavor.free if empty else flavor.room
            if len(asked) > 1 or found:
                room = Room(room)
            for earlier in found:
                if flavor in finder.flavors.beside(earlier.flavor):
                    for leaf, pods in in_flavor(earlier, flavor):
                        room.take(leaf, earlier.pod_set.requests, pods)
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

    def figures(self) -> list[tuple[TopologyFlavor, PodSetRequest, Capacity | None]]:
        """Returns the capacities of the domains for each pod set, or [] if all pod sets have a place.

        Each pod set is considered alone. Its capacities are None if it requests levels that do not exist.
        """
        if not self.alone and self.place() is not None:
            return []
        found: list[tuple[TopologyFlavor, PodSetRequest, Capacity | None]] = []
        for flavor, asked in self.parts:
            tree = flavor.tree
            for each in asked:
                figures = None
                wanted = wanted_of(each.request, tree.levels, mixed=self._finder.mixed)
                if wanted is not None:
                    suitable, requests = self._finder.suitable(tree, each.pod_set), each.pod_set.requests
                    figures = self._finder.capacities(tree, flavor.room, wanted, requests, None, suitable)
                    # An unsuccessful search does not change the figures.
                    if self.alone and Search(tree, figures, wanted, 0).place(each.count) is not None:
                        return []
                found.append((flavor, each, figures))
        return found


class Topologies(Protocol):
    """Finds the topology requests of workloads."""

    def asked(
        self, offers: tuple[PodSetOffer, ...], chosen: tuple[tuple[int, ...], ...], counts: tuple[int, ...]
    ) -> WorkloadTopology | None:
        """Returns the topology request of a workload.

        Returns None if a pod set was not assigned exactly one flavor with a topology.
        """


@final
class WorkloadTopologies:
    """Finds the topology requests of workloads."""

    def __init__(
        self,
        flavors: TopologyFlavors,
        *,
        mixed: bool,
        suitable: SuitableLeaves = suitable_leaves,
        capacities: Capacities = capacity_of,
    ) -> None:
        self.flavors = flavors
        self.mixed = mixed
        self.suitable = suitable
        self.capacities = capacities

    def asked(
        self, offers: tuple[PodSetOffer, ...], chosen: tuple[tuple[int, ...], ...], counts: tuple[int, ...]
    ) -> WorkloadTopology | None:
        """Returns the topology request of a workload, or None under the conditions of `Topologies.asked`."""
        parts: dict[str, list[PodSetRequest]] = {}
        cells: set[int] = set()
        for offer, numbers, count in zip(offers, chosen, counts, strict=True):
            if not (offer.placed and count):
                continue
            names = {group.flavors[number] for group, number in zip(offer.groups, numbers, strict=True)}
            names &= self.flavors.by_name.keys()
            if len(names) != 1:
                return None
            request = PodSetRequest(offer.pod_set, count, offer.pod_set.topology or _IMPLIED)
            parts.setdefault(names.pop(), []).append(request)
            for group, number in zip(offer.groups, numbers, strict=True):
                cells.update(group.cells[number] or ())
        by_name = [(self.flavors.by_name[name], asked) for name, asked in sorted(parts.items())]
        return WorkloadTopology(by_name, frozenset(cells), self)
