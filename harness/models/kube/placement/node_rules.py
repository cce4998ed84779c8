"""The results of a pod's rules about nodes on each node, regardless of its requests and of other pods.

Pods with different requests share a few sets of rules, so each set is evaluated once for all of them.
"""

from __future__ import annotations

from typing import final

from harness.cluster.model import Node
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.filters import unchanging
from harness.models.kube.placement.scores import intolerable_taints, preferred_nodes
from harness.models.kube.placement.status import NOT_SELECTED, Status
from harness.models.kube.pod import Shape


@final
class NodeRules:
    """The results of one set of rules on all nodes, by position; shapes with the same rules share it.

    Attributes:
        fixed: why each node is ruled out, or None.
        closed: whether each node is ruled out.
        open: the positions of the nodes that are not ruled out.
        ruled_out_by: the plugins that rule nodes out.
        taints: raw score of TaintToleration for each node.
        preferred: raw score of NodeAffinity for each node.
        varied: whether one of these scores differs between nodes that are not ruled out.
        named: how many nodes are looked at if node affinity names them, see `PreFilterResult` in
            kube-scheduler; None for all nodes.
    """

    def __init__(self, shape: Shape, cache: Cache) -> None:
        self._shape = shape
        self._cache = cache
        self._found: dict[NodeInfo, tuple[Node, Status | None, int, int]] = {}  # of the former node
        self._arranged = -1
        self.follow()

    def follow(self) -> None:
        """Evaluates the nodes that were added or changed, after a change of nodes or of their order."""
        if self._arranged == self._cache.arranged:
            return
        self._arranged = self._cache.arranged
        shape, known, nodes = self._shape, self._found, self._cache.nodes
        names = shape.spec.node_names
        self._found = {}
        for node in nodes:
            found = known.get(node)
            if found is None or found[0] is not node.manifest:
                fixed = ruled_out_by(shape, node)
                taints, preferred = intolerable_taints(shape, node), preferred_nodes(shape, node)
                found = node.manifest, fixed, taints, preferred
            self._found[node] = found
        every = self._found.values()
        self.fixed = [found[1] for found in every]
        self.taints = [found[2] for found in every]
        self.preferred = [found[3] for found in every]
        self.closed = bytes([status is not None for status in self.fixed])
        self.open = [position for position, closed in enumerate(self.closed) if not closed]
        self.ruled_out_by = frozenset([status.plugin for status in self.fixed if status is not None])
        self.varied = any(
            len({raw[position] for position in self.open}) > 1 for raw in (self.taints, self.preferred)
        )
        self.named = None if names is None else sum(node.name in names for node in nodes)


def rules_key(shape: Shape) -> object:
    """Returns a key that is equal for shapes with the same rules."""
    spec = shape.spec
    return (
        spec.node_name,
        tuple(sorted(spec.node_selector.items())),
        spec.tolerations,
        spec.required_nodes,
        spec.preferred_nodes,
    )


def ruled_out_by(shape: Shape, node: NodeInfo) -> Status | None:
    """Returns why a node can never run a shape, regardless of its requests; None if it can."""
    names = shape.spec.node_names
    return unchanging(shape, node) if names is None or node.name in names else NOT_SELECTED
