"""Finds the nodes that run no new pods until they return from a cordon or a failure."""

from __future__ import annotations

from dataclasses import replace

from harness.cluster.model import Cluster, Node, frozen

_OF_CONDITIONS = "node.kubernetes.io/"
"""The prefix of the taints that Kubernetes adds because of a cordon or of a node's conditions."""


def nodes_away(cluster: Cluster) -> list[str]:
    """Returns the names of the nodes that are cordoned, not ready, or tainted because of a condition."""
    return [name for name, node in cluster.nodes.items() if _returned(node) != node]


def with_all_nodes(cluster: Cluster) -> Cluster:
    """Returns the cluster as it is when all nodes that are away have returned."""
    return replace(cluster, nodes=frozen({name: _returned(node) for name, node in cluster.nodes.items()}))


def _returned(node: Node) -> Node:
    taints = tuple(each for each in node.taints if not each.key.startswith(_OF_CONDITIONS))
    return replace(node, taints=taints, unschedulable=False, ready=True)
