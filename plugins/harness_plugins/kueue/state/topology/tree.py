"""Models the domains of a topology for the nodes of a flavor, and their free capacity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, final

from harness.models.cluster import HOSTNAME, Node, ResourceFlavor, Topology
from harness.models.kube.node import UNLIMITED_PODS

PODS: Final = "pods"


@final
class Room(dict[str, list[int]]):
    """Maps each resource to its free amount in each leaf. Amounts can be negative.

    Args:
        lasts: whether to record changed leaves for readers that cache results.

    Attributes:
        version: how often any leaf has changed.
    """

    __slots__ = ("_changed", "lasts", "version")

    def __init__(self, amounts: Mapping[str, Sequence[int]], *, lasts: bool = False) -> None:
        super().__init__((resource, list(each)) for resource, each in amounts.items())
        self.lasts = lasts
        self.version = 0
        self._changed: list[int] = []

    def take(self, leaf: int, requests: Mapping[str, int], pods: int) -> None:
        """Subtracts the requests of pods, and one slot for each pod, from a leaf."""
        if self.lasts:
            if len(self._changed) >= len(self[PODS]):
                self._changed.clear()
            self._changed.append(leaf)
            self.version += 1
        self[PODS][leaf] -= pods
        for resource, amount in requests.items():
            if resource not in self:
                self[resource] = [0] * len(self[PODS])
            self[resource][leaf] -= pods * amount

    def changed_since(self, version: int) -> list[int] | None:
        """Returns the leaves that changed since a version, or None if there were too many changes."""
        changes = self.version - version
        if changes > len(self._changed):
            return None
        return list(dict.fromkeys(self._changed[len(self._changed) - changes :]))


class DomainAssignment(NamedTuple):
    """The number of pods in a leaf, which is identified by its index."""

    leaf: int
    pods: int


class NamedDomain(NamedTuple):
    """The number of pods in a leaf.

    The leaf is identified by a name that survives node changes. See `name_of`.
    """

    values: tuple[str, ...]
    pods: int


TopologyAssignment = tuple[DomainAssignment, ...]


@final
class TopologyTree:
    """The domains of a topology as numbers, from the coarsest level to the finest, and sorted by values.

    A domain is identified by the values of the node labels for its level and all coarser levels. A leaf is a
    domain of the finest level. A node is in no domain if it lacks one of the labels, does not belong to the
    flavor, or is unschedulable. As in a replay with nodes, a node accepts any number of pods if its manifest
    sets no limit.

    Args:
        nodes: the nodes that are ready.

    Attributes:
        by_host: whether the finest level is the host name. Each leaf is then a node.
        values: for each domain, the label values of its level and all coarser levels.
        parent: the parent of each domain below the coarsest level.
        nodes: the node of each leaf, if leaves are nodes.
        leaf_of_node: the index of the leaf that contains each node, by the name of the node.
    """

    def __init__(self, topology: Topology, flavor: ResourceFlavor, nodes: Iterable[Node]) -> None:
        self.levels = topology.levels
        self.flavor = flavor
        self.by_host = topology.levels[-1] == HOSTNAME
        of_leaf: dict[tuple[str, ...], list[Node]] = {}
        for node in nodes:
            labels = node.labels
            if not node.unschedulable and self.is_of(node):
                of_leaf.setdefault(tuple(labels[level] for level in self.levels), []).append(node)
        self.values: list[tuple[str, ...]] = []
        self.domains: list[range] = []
        for depth in range(1, len(self.levels) + 1):
            first = len(self.values)
            self.values += sorted({values[:depth] for values in of_leaf})
            self.domains.append(range(first, len(self.values)))
        self.children = self._children()
        self.parent = {child: domain for domain, each in enumerate(self.children) for child in each}
        leaves = [of_leaf[self.values[leaf]] for leaf in self.leaves]
        self.nodes: Sequence[Node] = [each[0] for each in leaves] if self.by_host else ()
        names = {PODS, *(name for each in leaves for node in each for name in node.allocatable)}
        self.allocatable: Mapping[str, Sequence[int]] = {
            resource: [
                sum(
                    node.allocatable.get(resource, UNLIMITED_PODS if resource == PODS else 0) for node in each
                )
                for each in leaves
            ]
            for resource in sorted(names)
        }
        self._leaf = {self.name_of(leaf): leaf for leaf in range(len(self.leaves))}
        self.leaf_of_node = {node.name: at for at, each in enumerate(leaves) for node in each}

    def is_of(self, node: Node) -> bool:
        """Returns True if a node has the labels of the flavor, and a label for each level.

        As in Kueue's `NodeMatchesFlavor`, a node without a label counts as having the label with an empty
        value.
        """
        labels = node.labels
        return all(labels.get(key, "") == value for key, value in self.flavor.node_labels.items()) and all(
            level in labels for level in self.levels
        )

    @property
    def leaves(self) -> range:
        """The domains of the finest level."""
        return self.domains[-1]

    def _children(self) -> list[range]:
        """Returns the children of each domain. They are adjacent because the domains are sorted."""
        children = [range(0)] * len(self.values)
        for depth, level in enumerate(self.domains[1:], start=1):
            number = {self.values[domain]: domain for domain in self.domains[depth - 1]}
            for domain in level:
                parent = number[self.values[domain][:depth]]
                before = children[parent]
                children[parent] = range(before.start if before else domain, domain + 1)
        return children

    def leaf(self, values: Sequence[str]) -> int | None:
        """Returns the index of the leaf with these label values, or None if there is none.

        `values` has one value for each level, or the host name if leaves are nodes.
        """
        return self._leaf.get(tuple(values))

    def name_of(self, leaf: int) -> tuple[str, ...]:
        """Returns the name of a leaf: the host name if leaves are nodes, or else one value per level."""
        values = self.values[self.leaves.start + leaf]
        return values[-1:] if self.by_host else values
