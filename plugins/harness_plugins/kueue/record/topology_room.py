"""Describes the free capacity of a topology when pods have no place in it."""

from __future__ import annotations

from collections.abc import Iterator

from harness_plugins.kueue.rules.topology.capacity import Capacity
from harness_plugins.kueue.rules.topology.placement import PodSetRequest
from harness_plugins.kueue.rules.topology.workload import WorkloadTopology
from harness_plugins.kueue.state.topology.flavors import TopologyFlavor


def room_in_words(asked: WorkloadTopology) -> str:
    """Returns each pod set's request and the domain with the most capacity at each level.

    If all pod sets have a place, the result is "".

    Args:
        asked: the topology request of a workload.
    """
    return "; ".join(
        f"{_asks_for(request, flavor)}; most room: {', '.join(_most(flavor, figures))}"
        for flavor, request, figures in asked.figures()
    )


def _asks_for(request: PodSetRequest, flavor: TopologyFlavor) -> str:
    said = request.request
    text = f"pod set {request.pod_set.name} requests {request.count:,} pods"
    if said.required:
        text += f" in one {said.required}"
    elif said.preferred:
        text += f", preferably in one {said.preferred},"
    for layer in said.slices:
        text += f" in slices of {layer.size:,} a {layer.level}"
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
