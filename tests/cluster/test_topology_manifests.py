"""Topologies of manifests: what is wrong with them is named, with its place."""

from __future__ import annotations

from typing import Any

import pytest

from harness.base.errors import ClusterError
from harness.cluster.content import content
from harness.cluster.load import cluster_from

Manifest = dict[str, Any]


def manifest(kind: str, name: str, spec: Manifest, version: str = "kueue.x-k8s.io/v1beta2") -> Manifest:
    """An object."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def topology(*levels: str) -> Manifest:
    """A Topology t."""
    return manifest("Topology", "t", {"levels": [{"nodeLabel": level} for level in levels]})


def node(name: str, **labels: str) -> Manifest:
    """A Node of one core."""
    found = manifest("Node", name, {}, "v1")
    found["metadata"]["labels"] = labels
    return {**found, "status": {"allocatable": {"cpu": 1}}}


FLAVOR = manifest("ResourceFlavor", "f", {"topologyName": "t"})


@pytest.mark.parametrize(
    ("manifests", "message"),
    [
        ([topology("rack", "rack")], r"Topology t: spec.levels\[1\].nodeLabel: rack is already a level"),
        ([topology()], "Topology t: spec.levels: must name at least one level"),
    ],
)
def test_a_faulty_topology_is_named(manifests: list[Manifest], message: str) -> None:
    """A level that is given twice, and none at all."""
    with pytest.raises(ClusterError, match=message):
        cluster_from(manifests, "test")


def test_nodes_that_the_levels_cannot_group_are_named() -> None:
    """A label that is missing, levels that do not nest, and a flavor without any node."""
    levels = topology("block", "rack")
    lost = node("c", block="b0")
    nested = [node("a", block="b0", rack="r0"), node("b", block="b1", rack="r1")]
    assert cluster_from([levels, FLAVOR, *nested, lost], "test").warnings == (
        "Node c: lacks the label rack of a level of Topology t, so it gets no jobs",
    )
    assert cluster_from([levels, FLAVOR, *nested, node("d", block="b1", rack="r0")], "test").warnings == (
        (
            "Topology t: rack r0 is in block b0 and b1: levels do not nest, so r0 counts as a separate "
            "domain in each block"
        ),
    )
    assert cluster_from([levels, FLAVOR, lost], "test").warnings[1:] == (
        ("ResourceFlavor f: no node has all labels of the flavor and of Topology t, so it gets no jobs"),
    )
    assert cluster_from([levels, FLAVOR, *nested], "test").warnings == ()


def test_what_topologies_change_is_part_of_a_clusters_identity() -> None:
    """Levels, the flavor's name of one, and whether nodes are ready; a node that says nothing is ready."""
    world = [topology("rack"), FLAVOR, node("a", rack="r0")]
    ready = node("a", rack="r0")
    ready["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    broken = node("a", rack="r0")
    broken["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    plain = cluster_from(world, "test")
    assert cluster_from([*world[:2], ready], "test").digest == plain.digest
    other = [topology("block", "rack"), *world[1:]]
    unnamed = [world[0], manifest("ResourceFlavor", "f", {}), world[2]]
    digests = {cluster_from(each, "test").digest for each in (world, [*world[:2], broken], other, unnamed)}
    assert len(digests) == 4
    told = content(cluster_from([*world[:2], broken], "test"))
    assert told["nodes"][0]["ready"] is False
    assert told["objects"]["Topology"]["t"] == {"levels": "rack"}
    assert told["objects"]["ResourceFlavor"]["f"] == {"topologyName": "t"}
