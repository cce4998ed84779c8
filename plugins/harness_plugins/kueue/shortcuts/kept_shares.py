"""Caches shares, because the usage of a ClusterQueue or Cohort often returns to earlier values.

If there are many resources, only the resources whose usage has changed are computed again. The order of the
children of a cohort is kept, too, so that only children whose usage has changed move.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import compress
from operator import ne
from typing import final

from harness.base.memo import Memo
from harness.models.quota import QuotaTree
from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares

_FEW = 8
"""Up to this number of resources, computing shares is as fast as comparing usages."""


@final
class KeptShares(Shares):
    """Caches the shares of ClusterQueues and Cohorts, which are the nodes of a quota tree.

    The cache key consists of the node and its usage.
    """

    def __init__(self, tree: QuotaTree, weights: Sequence[float], *, counts_unlendable: bool = True) -> None:
        super().__init__(tree, weights, counts_unlendable=counts_unlendable)
        self._width = tree.width
        self._usage = tree.usage
        self._known: list[Memo[object, tuple[bool, Share]]] = [Memo() for _ in tree.parent]
        self._many: dict[int, _Parts] = {
            node: _Parts(self, node, tree.width)
            for node in range(len(tree.parent))
            if len(self.resources(node)) > _FEW
        }
        self._rankings: dict[int, _Ranking] = {}

    def of(self, node: int) -> tuple[bool, Share]:
        """Returns True if a tree node exceeds its own quota of any resource, and its weighted share."""
        width, usages = self._width, self._usage
        usage = usages[node] if width == 1 else tuple(usages[node * width : (node + 1) * width])
        known = self._known[node]
        found = known.get(usage)
        if found is None:
            many = self._many.get(node)
            if many is None or isinstance(usage, int):
                found = known[usage] = super().of(node)
            else:
                found = known[usage] = self.weighted(node, many.given(usage))
        return found

    def ranking(self, cohort: int) -> list[tuple[Share, int]]:
        """Returns the share and number of each child of a cohort, in ascending order. See `Shares`."""
        known, width = self._rankings.get(cohort), self._width
        if known is None:
            known = self._rankings[cohort] = _Ranking(super().ranking(cohort), self._usage, width)
        else:
            used = list(map(self._usage.__getitem__, known.cells))
            for cell in compress(known.cells, map(ne, used, known.used)):
                known.move(cell // width, self.of(cell // width)[1])
            known.used = used
        return known.order


@final
class _Ranking:
    """The children of a cohort in ascending order of share, and the usage for which the order is valid."""

    __slots__ = ("_of", "cells", "order", "used")

    def __init__(self, order: list[tuple[Share, int]], usage: Sequence[int], width: int) -> None:
        self.order = order
        self._of = {node: share for share, node in order}
        self.cells = [cell for node in self._of for cell in range(node * width, (node + 1) * width)]
        self.used = [usage[cell] for cell in self.cells]

    def move(self, node: int, share: Share) -> None:
        del self.order[bisect_left(self.order, (self._of[node], node))]
        self._of[node] = share
        insort(self.order, (share, node))


@final
class _Parts:
    """How far a node with many resources exceeds its own quota of each resource."""

    __slots__ = ("_node", "_parts", "_places", "_shares", "_usage")

    def __init__(self, shares: Shares, node: int, width: int) -> None:
        self._shares = shares
        self._node = node
        self._places = [-1] * width
        for place, cells in enumerate(shares.resources(node)):
            for cell in cells:
                self._places[cell] = place
        self._usage: tuple[int, ...] | None = None
        self._parts: list[float] = []

    def given(self, usage: tuple[int, ...]) -> Sequence[float]:
        if self._usage is None:
            self._parts = self._shares.parts(self._node)
        else:
            for place in compress(self._places, map(ne, usage, self._usage)):
                if place >= 0:
                    self._parts[place] = self._shares.part(self._node, place)
        self._usage = usage
        return self._parts
