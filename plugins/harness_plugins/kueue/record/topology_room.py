"""Says where a topology has how much room for pods that it has no place for."""

from __future__ import annotations

from collections.abc import Iterator

from harness_plugins.kueue.rules.topology.capacity import capacity_of
from harness_plugins.kueue.rules.topology.placement import PodSetRequest, suitable_leaves
from harness_plugins.kueue.rules.topology.request import wanted_of
from harness_plugins.kueue.rules.topology.workload import WorkloadTopology
from harness_plugins.kueue.state.topology.flavors import TopologyFlavor


def room_in_words(asked: WorkloadTopology, *, mixed: bool) -> str:
    """For each pod set what it asks for, and the domain with the most room at each level; "" if all fit.

    Args:
        asked: what a workload asks for.
        mixed: the gate `TASProfileMixed`.
    """
    if asked.place() is not None:
        return ""
    return "; ".join(
        f"{_asks_for(request, flavor)}; most room: {', '.join(_most(flavor, request, mixed=mixed))}"
        for flavor, requests in asked.parts
        for request in requests
    )


def _asks_for(request: PodSetRequest, flavor: TopologyFlavor) -> str:
    """What a pod set asks of its flavor's topology."""
    said = request.request
    text = f"pod set {request.pod_set.name} asks for {request.count:,} pods"
    if said.required:
        text += f" in one {said.required}"
    elif said.preferred:
        text += f", rather in one {said.preferred},"
    for layer in said.slices:
        text += f" in slices of {layer.size:,} a {layer.level}"
    return f"{text} of flavor {flavor.name}"


def _most(flavor: TopologyFlavor, request: PodSetRequest, *, mixed: bool) -> Iterator[str]:
    tree = flavor.tree
    wanted = wanted_of(request.request, tree.levels, mixed=mixed)
    if wanted is None or not tree.leaves:
        yield "none"
        return
    suitable = suitable_leaves(tree, request.pod_set)
    figures = capacity_of(tree, flavor.room, wanted, request.pod_set.requests, None, suitable)
    for level, domains in zip(tree.levels, tree.domains, strict=True):
        best = max(domains, key=lambda domain: (figures.pods[domain], -domain))
        pods = figures.pods[best]
        yield f"{pods:,} in {level} {'/'.join(tree.values[best])}" if pods else f"0 in any {level}"
