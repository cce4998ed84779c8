"""Shares that were worked out before: the usage of a node returns to the same values again and again."""

from __future__ import annotations

from typing import final

from harness.memo import Memo
from harness.models.quota import QuotaTree
from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares


@final
class KeptShares:
    """The shares of the nodes of a quota tree.

    Valid by content: the node, and what it uses.

    Args:
        tree: the quota tree.
        shares: works them out.
    """

    __slots__ = ("_known", "_shares", "_usage", "_width")

    def __init__(self, tree: QuotaTree, shares: Shares) -> None:
        self._width = tree.width
        self._usage = tree.usage
        self._shares = shares
        self._known: list[Memo[object, tuple[bool, Share]]] = [Memo() for _ in tree.parent]

    def of(self, node: int) -> tuple[bool, Share]:
        """Whether a node takes more than it has of anything, and its weighted share."""
        width, usages = self._width, self._usage
        usage = usages[node] if width == 1 else tuple(usages[node * width : (node + 1) * width])
        known = self._known[node]
        found = known.get(usage)
        if found is None:
            found = known[usage] = self._shares.of(node)
        return found

    def ratio(self, node: int) -> float:
        """A node's share before its weight counts."""
        return self._shares.ratio(node)
