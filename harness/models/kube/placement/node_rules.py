"""Keeps the results of a pod's rules about nodes, regardless of its requests and of other pods.

Pods with different requests share a few sets of rules, so each set is evaluated once for all of them.
"""

from __future__ import annotations

from itertools import compress, repeat
from operator import is_, not_
from typing import final

from harness.models.kube.cache import Cache
from harness.models.kube.moves import follow
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.filters import unchanging
from harness.models.kube.placement.scores import intolerable_taints, preferred_nodes
from harness.models.kube.placement.status import NOT_SELECTED, Status
from harness.models.kube.pod import Shape

_UNKNOWN = -1  # the raw score of a node that has not been evaluated yet

_NOTHING: frozenset[str] = frozenset()


@final
class NodeRules:
    """The results of one set of rules on all nodes, by position. Shapes with the same rules share them.

    Attributes:
        fixed: for each node, the rejection that excludes it, or None if it is not excluded.
        closed: for each node, whether it is excluded.
        open: the positions of the nodes that are not excluded.
        ruled_out_by: the plugins that exclude nodes.
        excluded: the plugins in `ruled_out_by`, and whether they exclude all nodes.
        taints: the raw score of TaintToleration for each node.
        preferred: the raw score of NodeAffinity for each node.
        varied: whether one of these scores differs between nodes that are not excluded.
        named: the number of nodes that node affinity selects by name. Only these nodes are examined (see
            `PreFilterResult` in kube-scheduler). It is None if node affinity names no nodes.
    """

    def __init__(self, shape: Shape, cache: Cache) -> None:
        self._shape = shape
        self._cache = cache
        self.fixed: list[Status | None] = []
        self.taints: list[int] = []
        self.preferred: list[int] = []
        self._moves = -1
        self.follow()

    def follow(self) -> None:
        """Evaluates the nodes that are new or changed, after nodes or their order have changed."""
        moves, nodes = self._cache.moves, self._cache.nodes
        if self._moves == moves.count:
            return
        missed = moves.since(self._moves) if self._moves >= 0 else None
        self._moves = moves.count
        if missed is None:
            missed = [(0, len(self.fixed), (-1,) * len(nodes))]
        follow(missed, (self.fixed, None), (self.taints, _UNKNOWN), (self.preferred, 0))
        shape, names = self._shape, self._shape.spec.node_names
        position = 0
        for _ in range(self.taints.count(_UNKNOWN)):
            position = self.taints.index(_UNKNOWN, position)
            node = nodes[position]
            self.fixed[position] = ruled_out_by(shape, node)
            self.taints[position] = intolerable_taints(shape, node)
            self.preferred[position] = preferred_nodes(shape, node)
        if self.fixed.count(None) == len(nodes):  # the case for most rules
            self.closed, self.open, self.ruled_out_by = bytes(len(nodes)), list(range(len(nodes))), _NOTHING
            taints, preferred = set(self.taints), set(self.preferred)
        else:
            is_open = bytes(map(is_, self.fixed, repeat(None)))
            self.closed = bytes(map(not_, is_open))
            self.open = list(compress(range(len(nodes)), is_open))
            excluding = [status.plugin for status in self.fixed if status is not None]
            self.ruled_out_by = frozenset(excluding)
            taints, preferred = set(compress(self.taints, is_open)), set(compress(self.preferred, is_open))
        self.excluded = self.ruled_out_by, not self.open
        self.varied = len(taints) > 1 or len(preferred) > 1
        self.named = None if names is None else sum(node.name in names for node in nodes)


def ruled_out_by(shape: Shape, node: NodeInfo) -> Status | None:
    """Returns the rejection if a node can never run a shape, whatever the shape requests. Otherwise None."""
    names = shape.spec.node_names
    return unchanging(shape, node) if names is None or node.name in names else NOT_SELECTED
