"""Describes the places of pods in topologies, and the free capacity for pods that have no place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harness_plugins.kueue.rules.topology.capacity import Capacity, PodsToPlace
from harness_plugins.kueue.rules.topology.placement import PodSetRequest, WorkloadTopology
from harness_plugins.kueue.rules.topology.request import wanted_of
from harness_plugins.kueue.rules.topology.search import Search
from harness_plugins.kueue.state.topology.flavors import Placed, TopologyFlavor


def as_manifest(placed: Placed) -> dict[str, Any]:
    """Returns the topology assignment of a pod set in Kueue's format.

    If leaves are nodes, the assignment contains only host names.
    """
    tree = placed.flavor.tree
    levels = tree.levels[-1:] if tree.by_host else tree.levels
    return {
        "levels": list(levels),
        "domains": [{"values": list(values), "count": pods} for values, pods in placed.domains],
    }


def as_manifests(placed: Iterable[Placed]) -> dict[str, Any]:
    """Returns the topology assignment of each pod set."""
    return {each.pod_set.name: as_manifest(each) for each in placed}


def spans(placed: Iterable[Placed]) -> dict[str, int]:
    """Returns the number of domains with pods at each level, from the coarsest to the finest."""
    domains: dict[str, set[tuple[str, ...]]] = {}
    for each in placed:
        tree = each.flavor.tree
        for leaf, _ in each.leaves:
            values = tree.values[tree.leaves.start + leaf]
            for depth, level in enumerate(tree.levels, start=1):
                domains.setdefault(level, set()).add(values[:depth])
    return {level: len(found) for level, found in domains.items()}


def room_in_words(asked: WorkloadTopology) -> str:
    """Returns each pod set's request and the domain with the most capacity at each level.

    If all pod sets have a place, the result is "".
    """
    return "; ".join(
        f"{_asks_for(request, flavor)}; most free: {', '.join(_most(flavor, figures))}"
        for flavor, request, figures in _capacities(asked)
    )


def _capacities(asked: WorkloadTopology) -> list[tuple[TopologyFlavor, PodSetRequest, Capacity | None]]:
    """Returns the capacities of the domains for each pod set, or [] if all pod sets have a place.

    Each pod set is considered alone. Its capacities are None if it requests levels that do not exist.
    """
    if not asked.alone and asked.place() is not None:
        return []
    found: list[tuple[TopologyFlavor, PodSetRequest, Capacity | None]] = []
    finder = asked.finder
    for flavor, requests in asked.parts:
        for each in requests:
            figures = None
            wanted = wanted_of(each.request, flavor.tree.levels, mixed=finder.mixed)
            if wanted is not None:
                worker, suitable = each.pod_set.requests, finder.suitable(flavor.tree, each.pod_set)
                pods = PodsToPlace(flavor.tree, flavor.room, wanted, worker, None, suitable)
                figures = finder.capacities(pods)
                # An unsuccessful search does not change the figures.
                if asked.alone and Search(flavor.tree, figures, wanted, 0).place(each.count) is not None:
                    return []
            found.append((flavor, each, figures))
    return found


def _asks_for(request: PodSetRequest, flavor: TopologyFlavor) -> str:
    said = request.request
    text = f"pod set {request.pod_set.name} requests {request.count:,} pod{'s' * (request.count != 1)}"
    if said.required:
        text += f" in one {said.required}"
    elif said.preferred:
        text += f", preferably in one {said.preferred},"
    for layer in said.slices:
        text += f" in slices of {layer.size:,} per {layer.level}"
    return f"{text} of flavor {flavor.name}"


def _most(flavor: TopologyFlavor, figures: Capacity | None) -> Iterator[str]:
    tree = flavor.tree
    if figures is None or not tree.leaves:
        yield "none"
        return
    for level, domains in zip(tree.levels, tree.domains, strict=True):
        pods = max(figures.pods[domains.start : domains.stop])
        best = figures.pods.index(pods, domains.start)
        yield f"{pods:,} in {level} {'/'.join(tree.values[best])}" if pods else f"0 in any {level}"
