"""Compares the nominal quotas of flavors with the capacity of the nodes in these flavors.

A node belongs to a flavor if it has the labels of the flavor and the flavor's pods tolerate its taints. The
pods tolerate the flavor's `nodeTaints`, because Kueue requires this. They also tolerate every taint that the
flavor's `tolerations` cover, because Kueue adds these tolerations to pods. Kubernetes itself adds taints to
cordoned or unhealthy nodes. Those taints don't matter here: such nodes are included, and a note says how many
there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.cluster.model import UNLIMITED, Cluster, Node, ResourceFlavor

_OF_KUBERNETES = "node.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Room:
    """The quota and the capacity for one resource, in a flavor or in several flavors that share nodes.

    Attributes:
        flavors: one flavor, or several flavors that share nodes, in the order of the manifests.
        nominal: the sum of the nominal quotas in ClusterQueues and Cohorts, or `UNLIMITED` if one of them is
            unlimited.
        allocatable: the allocatable quantity on the nodes of the flavors. Each node counts once.
        nodes: the number of these nodes.
        idle: how many of these nodes accept no pods, because they are cordoned or not ready.
    """

    flavors: tuple[str, ...]
    resource: str
    nominal: int
    allocatable: int
    nodes: int
    idle: int

    @property
    def over(self) -> int:
        """The amount by which the quotas exceed the capacity of the nodes, or 0 if they don't exceed it."""
        return max(0, self.nominal - self.allocatable)

    def to_json(self) -> dict[str, Any]:
        """Returns the values as plain JSON values."""
        return {**asdict(self), "flavors": list(self.flavors), "over": self.over}


def rooms(cluster: Cluster) -> list[Room]:
    """Returns a row for each resource and flavor with quota, followed by rows for flavors that share nodes.

    If there are no nodes, the result is empty. A flavor without a ResourceFlavor object has no row, because
    Kueue keeps its queues inactive.
    """
    if not cluster.nodes:
        return []
    quotas = _quotas(cluster)
    own = {
        name: [node for node in cluster.nodes.values() if _is_of(node, cluster.flavors[name])]
        for name in cluster.flavors
        if name in quotas
    }
    alone = [((name,), nodes) for name, nodes in own.items()]
    return [room for flavors, nodes in (*alone, *_shared(own)) for room in _rooms(flavors, nodes, quotas)]


def _quotas(cluster: Cluster) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for flavor, resource, quota in (each for group in cluster.resource_groups for each in group.quotas()):
        sums = found.setdefault(flavor, {})
        sums[resource] = min(UNLIMITED, sums.get(resource, 0) + quota.nominal)
    return found


def _is_of(node: Node, flavor: ResourceFlavor) -> bool:
    return flavor.node_labels.items() <= node.labels.items() and all(
        taint.effect == "PreferNoSchedule"
        or taint.key.startswith(_OF_KUBERNETES)
        or taint in flavor.taints
        or any(each.tolerates(taint) for each in flavor.tolerations)
        for taint in node.taints
    )


def _shared(own: Mapping[str, Sequence[Node]]) -> Iterator[tuple[tuple[str, ...], list[Node]]]:
    """Yields groups of flavors that share nodes, directly or through other flavors, with all their nodes."""
    groups: list[tuple[set[str], dict[str, Node]]] = []
    for name, nodes in own.items():
        flavors, together = {name}, {node.name: node for node in nodes}
        apart = []
        for group in groups:
            if together.keys() & group[1].keys():
                flavors |= group[0]
                together |= group[1]
            else:
                apart.append(group)
        groups = [*apart, (flavors, together)]
    for flavors, together in groups:
        if len(flavors) > 1:
            yield tuple(name for name in own if name in flavors), list(together.values())


def _rooms(
    flavors: tuple[str, ...], nodes: Sequence[Node], quotas: Mapping[str, Mapping[str, int]]
) -> Iterator[Room]:
    idle = sum(
        node.unschedulable
        or not node.ready
        or any(taint.key.startswith(_OF_KUBERNETES) for taint in node.taints)
        for node in nodes
    )
    for resource in dict.fromkeys(resource for name in flavors for resource in quotas[name]):
        nominal = sum(quotas[name].get(resource, 0) for name in flavors)
        allocatable = sum(node.allocatable.get(resource, 0) for node in nodes)
        yield Room(flavors, resource, min(UNLIMITED, nominal), allocatable, len(nodes), idle)
