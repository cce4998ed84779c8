"""Finds cohorts below which a strategy allows the preemption of no workload, without a check of each queue.

For all workloads below a cohort, the strategy compares the same two shares. They are the share of the cohort,
and the share of the sibling that contains the preemptor. The share of the cohort without a workload depends
only on the usage of the workload. An exception is a queue whose usage a negative reservation reduces.
"""

from __future__ import annotations

from typing import final

from harness.models.cluster import Strategy
from harness.models.quota import QuotaTree
from harness_plugins.kueue.rules.dominant_resource_share import Shares
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache


@final
class RefusedSides:
    """Finds cohorts below which a strategy refuses every workload."""

    __slots__ = ("_cache", "_keeps", "_limited", "_shares")

    def __init__(self, cache: Cache, shares: Shares) -> None:
        self._cache = cache
        self._shares = shares
        self._keeps = keeping(cache.tree)
        limits, width = cache.tree.borrowing_limit, cache.tree.width
        # The queues with a borrowing limit. Only these can have negative reservations.
        self._limited = {
            node
            for node in cache.holders
            if any(limit is not None for limit in limits[node * width : (node + 1) * width])
        }

    def refuses(self, strategy: Strategy, mine: int, theirs: int) -> bool:
        """Returns True if a strategy refuses every workload below the cohort `theirs`."""
        new, old = self._shares.of(mine)[1], self._shares.of(theirs)[1]
        if old < new:
            return True  # see `Strategy`
        if self._keeps[theirs]:
            return False
        tree, shares = self._cache.tree, self._shares
        refused: set[Amounts] = set()
        for queue in self._cache.members_below(theirs):
            limited = queue.node in self._limited
            for usage in self._cache.holders[queue.node].usages:
                if limited and not _uses(tree, queue.node, usage):
                    return False
                if usage not in refused:
                    if strategy.allows(new, old, shares.changed(theirs, usage, -1)):
                        return False
                    refused.add(usage)
        return True


def _uses(tree: QuotaTree, node: int, amounts: Amounts) -> bool:
    """Returns True if a node uses at least these amounts, so that its cohorts can lose all of them."""
    first = node * tree.width
    return all(tree.usage[first + cell] >= amount for cell, amount in amounts)


def keeping(tree: QuotaTree) -> list[bool]:
    """Returns True for each ClusterQueue and Cohort that has a child or descendant with local quota.

    Local quota is the quota that is not lent. Its usage does not appear in the usage of the cohorts above.
    """
    found = [False] * len(tree.names)
    for node in range(len(tree.names) - 1, -1, -1):
        parent, first = tree.parent[node], node * tree.width
        if parent >= 0 and (found[node] or any(tree.local_quota[first : first + tree.width])):
            found[parent] = True
    return found
