"""How many pods of one shape nodes have room for, kept up to date by looking only at nodes that changed."""

from __future__ import annotations

from typing import final

from harness.memo import Memo
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.pod import Shape

_MOST_SHAPES = 2048
"""So many are kept; more would need too much memory on large clusters."""


@final
class Places:
    """The room for pods of each shape.

    Args:
        scheduling: has the nodes.
    """

    def __init__(self, scheduling: Scheduling) -> None:
        self._scheduling = scheduling
        self._of_shapes: Memo[Shape, PlacesOfShape] = Memo(_MOST_SHAPES)

    def of(self, shape: Shape) -> PlacesOfShape:
        """The room for pods of a shape."""
        places = self._of_shapes.get(shape)
        if places is None:
            places = self._of_shapes[shape] = PlacesOfShape(shape, self._scheduling)
        return places


@final
class PlacesOfShape:
    """The room for pods of one shape, host ports and other pods aside.

    Equal pods that are placed one after the other get as many places as there are, whatever the order; with
    room that is kept for others they get fewer.

    Args:
        shape: the shape.
        scheduling: has the nodes.
    """

    __slots__ = ("_cache", "_on", "_ruled_out", "_seen", "_shape", "_total")

    def __init__(self, shape: Shape, scheduling: Scheduling) -> None:
        self._shape = shape
        self._cache = cache = scheduling.cache
        nodes = scheduling.shape_nodes(shape)
        self._ruled_out = [nodes.ruled_out(node.position) is not None for node in cache.nodes]
        self._on = [self._count(node) for node in cache.nodes]
        self._total = sum(self._on)
        self._seen = cache.version

    def now(self) -> int:
        """For how many of them there is room."""
        cache = self._cache
        if self._seen != cache.version:
            for position in cache.changed_since(self._seen):
                count = self._count(cache.nodes[position])
                self._total += count - self._on[position]
                self._on[position] = count
            self._seen = cache.version
        return self._total

    def _count(self, node: NodeInfo) -> int:
        shape, least = self._shape, node.slots
        if self._ruled_out[node.position] or shape.missing:
            return 0
        for resource, amount in shape.requests:
            fit = node.free[resource] // amount
            if fit < least:
                least = fit
        return max(0, least)
