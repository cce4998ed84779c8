"""Keeps the shares of each cohort's children sorted, for one version of the cohort.

A new version computes only the shares of the children that have changed.
"""

from __future__ import annotations

from typing import final

from harness_plugins.kueue.rules.dominant_resource_share import NOTHING, Share, Shares
from harness_plugins.kueue.state.cache import Cache

_NEVER = (-1, NOTHING)


@final
class ShareRanking:
    """Sorts each cohort's children by share."""

    __slots__ = ("_cache", "_each", "_known", "_shares")

    def __init__(self, cache: Cache, shares: Shares) -> None:
        self._cache = cache
        self._shares = shares
        self._known: dict[int, tuple[int, list[tuple[Share, int]]]] = {}
        # The share of each ClusterQueue and Cohort, and the version for which it holds.
        self._each: dict[int, tuple[int, Share]] = {}

    def of(self, cohort: int) -> list[tuple[Share, int]]:
        """Returns the share and number of each child of a cohort, in ascending order."""
        version, known, each = self._cache.version, self._known.get(cohort), self._each
        if known is None or known[0] != version[cohort]:
            ranked = []
            for node in self._cache.tree.children[cohort]:
                at, share = each.get(node, _NEVER)
                if at != version[node]:
                    share = self._shares.of(node)[1]
                    each[node] = version[node], share
                ranked.append((share, node))
            known = self._known[cohort] = version[cohort], sorted(ranked)
        return known[1]
