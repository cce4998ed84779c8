"""Caches shares, because the usage of a ClusterQueue or Cohort often returns to earlier values.

If there are many resources, only the resources whose usage has changed are computed again.
"""

from __future__ import annotations

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
