"""Caches shares, because the usage of a ClusterQueue or Cohort often returns to earlier values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.base.memo import Memo
from harness.models.quota import QuotaTree
from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares
from harness_plugins.kueue.state.amounts import Amounts


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

    def of(self, node: int) -> tuple[bool, Share]:
        """Returns True if a tree node exceeds its own quota of any resource, and its weighted share."""
        width, usages = self._width, self._usage
        usage = usages[node] if width == 1 else tuple(usages[node * width : (node + 1) * width])
        known = self._known[node]
        found = known.get(usage)
        if found is None:
            found = known[usage] = super().of(node)
        return found

    def changed(self, node: int, amounts: Amounts, sign: int) -> Share:
        """Returns the share that a tree node would have if it used more or less."""
        width, usages = self._width, self._usage
        first, end = node * width, (node + 1) * width
        usage = usages[first:end]
        for cell, amount in amounts:
            usage[cell] += sign * amount
        found = self._known[node].get(usage[0] if width == 1 else tuple(usage))
        if found is None:
            before, usages[first:end] = usages[first:end], usage
            found = self.of(node)
            usages[first:end] = before
        return found[1]
