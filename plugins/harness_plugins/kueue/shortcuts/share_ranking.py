"""Keeps the shares of each cohort's children sorted.

An entry is valid for one generation of a ClusterQueue. The cache lists the queues that changed, and only
these are checked again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import final

from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares
from harness_plugins.kueue.state.cache import Cache


@final
class ShareRanking:
    """Sorts each cohort's children by share. Trial removals and reservations of a cycle don't count."""

    __slots__ = ("_changed", "_known", "_order", "_shares")

    def __init__(self, cache: Cache, shares: Shares) -> None:
        self._shares = shares
        self._changed = cache.watch()
        self._known: dict[int, Share] = {}
        self._order: dict[int, list[tuple[Share, int]]] = {}

    def of(self, cohort: int) -> list[tuple[Share, int]]:
        """Returns the share and number of each child of a cohort that has queues, in ascending order."""
        if self._changed:
            self.follow()
        return self._order.get(cohort, [])

    def follow(self) -> None:
        """Updates the shares of the queues that have changed, and of the cohorts above them."""
        for queue in self._changed.values():
            for above, below in queue.below.items():
                self._look_at(above, below)
        self._changed.clear()

    def _look_at(self, cohort: int, node: int) -> None:
        share = self._shares.of(node)[1]
        known = self._known.get(node)
        if share == known:
            return
        order = self._order.setdefault(cohort, [])
        if known is not None:
            del order[bisect_left(order, (known, node))]
        insort(order, (share, node))
        self._known[node] = share
