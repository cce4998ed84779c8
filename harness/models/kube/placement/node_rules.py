"""The results of a pod's rules about nodes on each node, regardless of its requests and of other pods.

Pods with different requests share a few sets of rules, so each set is evaluated once for all of them.
"""

from __future__ import annotations

from typing import final

from harness.models.kube.cache import Cache
from harness.models.kube.moves import moved
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
        self._found: list[tuple[Status | None, int, int] | None] = [None] * len(cache.nodes)
        self._moves = -1
        self.follow()

    def follow(self) -> None:
        """Evaluates the nodes that were added or changed, after a change of nodes or of their order."""
        moves, nodes = self._cache.moves, self._cache.nodes
        if self._moves == moves.count:
            return
        missed = moves.since(self._moves) if self._moves >= 0 else None
        self._moves = moves.count
        if missed is None:
            self._found = [None] * len(nodes)
        for move in missed or ():
            moved(self._found, move, None)
        shape, names = self._shape, self._shape.spec.node_names
        every = [found or _found(shape, node) for found, node in zip(self._found, nodes, strict=True)]
        self._found = list(every)
        self.fixed = [found[0] for found in every]
        self.taints = [found[1] for found in every]
        self.preferred = [found[2] for found in every]
        self.closed = bytes([status is not None for status in self.fixed])
        self.open = [position for position, closed in enumerate(self.closed) if not closed]
        self.ruled_out_by = frozenset([status.plugin for status in self.fixed if status is not None])
        self.varied = any(
            len({raw[position] for position in self.open}) > 1 for raw in (self.taints, self.preferred)
        )
        self.named = None if names is None else sum(node.name in names for node in nodes)


def _found(shape: Shape, node: NodeInfo) -> tuple[Status | None, int, int]:
    """Returns why a node is ruled out, and its two raw scores; see `NodeRules`."""
    return ruled_out_by(shape, node), intolerable_taints(shape, node), preferred_nodes(shape, node)


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
