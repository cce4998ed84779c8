"""Computes the results of `kueue/tas` cases, which cover only the placement of pods in a topology."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.models.cluster import TopologyRequest
from harness.models.manifests import Fields
from harness_plugins.kueue.conformance.cases import Question, setting_of
from harness_plugins.kueue.record.places import as_manifest
from harness_plugins.kueue.rules.topology.placement import PodSetRequest, place
from harness_plugins.kueue.state.topology.flavors import Placed, TopologyFlavor


def answer_placement(case: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the domains of each pod set in the format of Kueue's topology assignment."""
    cluster, _, _, gates = setting_of(case)
    question = Question(case)
    (flavor,) = (
        TopologyFlavor(each, cluster.topologies[each.topology], cluster) for each in cluster.flavors.values()
    )
    _use(flavor, question.fields)
    pod_sets = question.workload(question.fields).pod_sets
    question.finish()
    asked = [PodSetRequest(each, each.count, each.topology or TopologyRequest()) for each in pod_sets]
    placed = place(flavor.tree, flavor.room, asked, mixed=gates.tas_profile_mixed)
    by_name = {each.name: each for each in pod_sets}
    return {
        "placements": {
            name: {"fails": True} if leaves is None else as_manifest(Placed(by_name[name], flavor, leaves))
            for name, leaves in placed.items()
        }
    }


def _use(flavor: TopologyFlavor, given: Fields) -> None:
    """Subtracts admitted workloads from the free capacity, unless the case assumes an empty topology."""
    empty = given.boolean("simulateEmpty")
    for item in given.items("usage"):
        leaf = flavor.tree.leaf(item.texts("values"))
        requests, count = item.amounts("requests"), item.integer("count")
        if leaf is not None and not empty:
            flavor.room.take(leaf, requests, count)
