"""Answers recorded cases of `kueue/tas`: where the pods of a workload are placed in a topology, alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.cluster.fields import Fields
from harness.cluster.load import cluster_from
from harness.cluster.pods import Pod
from harness.cluster.topology import read_topology, read_topology_request
from harness.cluster.workloads import read_pod_set
from harness.errors import Fault
from harness_plugins.kueue.conformance.cases import Question
from harness_plugins.kueue.topology.placement import PodSetRequest, TopologyAssignment, place
from harness_plugins.kueue.topology.tree import Room, TopologyTree, take


def answer_placement(case: Mapping[str, Any]) -> Mapping[str, Any]:
    """The domains of each pod set, as Kueue's topology assignment lists them."""
    question = Question(case)
    config = Fields(case.get("config") or {}, case["id"], question.faults, "config")
    mixed = config.child("featureGates").boolean("TASProfileMixed", True)
    given = question.fields
    tree, pods = _tree(case["id"], case["objects"], question.faults)
    room = tree.room()
    for pod in pods:
        leaf = tree.leaf_of(pod.node)
        if leaf is not None:
            take(room, leaf, pod.spec.requests, 1)
    _use(tree, room, given)
    asked = []
    workload = given.child("workload")
    workload.ignore("apiVersion", "kind", "metadata")
    spec = workload.child("spec")
    spec.ignore("queueName")
    for item in spec.items("podSets"):
        request = read_topology_request(item.child("topologyRequest"))
        pod_set = read_pod_set(item)
        asked.append(PodSetRequest(pod_set, pod_set.count, request))
    question.finish(config)
    placed = place(tree, room, asked, mixed=mixed)
    return {"placements": {name: _as_answer(tree, found) for name, found in placed.items()}}


def _tree(name: str, objects: list[Mapping[str, Any]], faults: list[Fault]) -> tuple[TopologyTree, list[Pod]]:
    """The topology of a case over those of its nodes that are ready, and the pods that run on them."""
    (topology,) = (
        read_topology(Fields(each, name, faults)) for each in objects if each["kind"] == "Topology"
    )
    others: list[Mapping[str, Any]] = []
    for each in objects:
        if each["kind"] == "ResourceFlavor":
            spec = {key: value for key, value in each["spec"].items() if key != "topologyName"}
            others.append({**each, "spec": spec})
        elif each["kind"] == "Pod" or (each["kind"] == "Node" and _is_ready(each)):
            others.append(each)
    cluster = cluster_from(others, name, webhooks=False)
    (flavor,) = cluster.flavors.values()
    return TopologyTree(topology, flavor, cluster.nodes.values()), list(cluster.pods)


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _use(tree: TopologyTree, room: Room, given: Fields) -> None:
    """Take from the room what admitted workloads hold, unless the case asks as if none held anything."""
    empty = given.boolean("simulateEmpty")
    for item in given.items("usage"):
        leaf, requests, count = (
            tree.leaf(item.texts("values")),
            item.amounts("requests"),
            item.integer("count"),
        )
        if leaf is not None and not empty:
            take(room, leaf, requests, count)


def _as_answer(tree: TopologyTree, placement: TopologyAssignment | None) -> Mapping[str, Any]:
    if placement is None:
        return {"fails": True}
    first = tree.leaves.start
    levels = tree.levels[-1:] if tree.by_host else tree.levels
    return {
        "levels": list(levels),
        "domains": [
            {"values": list(tree.values[first + leaf][-len(levels) :]), "count": pods}
            for leaf, pods in placement
        ],
    }
