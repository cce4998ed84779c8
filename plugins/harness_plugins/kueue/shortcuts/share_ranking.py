"""Keeps the shares of each cohort's children sorted, for one version of the cohort.

A new version computes only the shares of the children that have changed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import compress
from operator import ne
from typing import TypeAlias, final

from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares
from harness_plugins.kueue.state.cache import Cache

_Ranking: TypeAlias = list[tuple[Share, int]]


@final
class ShareRanking:
    """Sorts each cohort's children by share."""

    __slots__ = ("_cache", "_known", "_of", "_shares")

    def __init__(self, cache: Cache, shares: Shares) -> None:
        self._cache = cache
        self._shares = shares
        # For each cohort, its version, the versions of its children, and the ranking for which they hold.
        self._known: dict[int, tuple[int, list[int], _Ranking]] = {}
        self._of: dict[int, Share] = {}  # the share of each child in the ranking

    def of(self, cohort: int) -> _Ranking:
        """Returns the share and number of each child of a cohort, in ascending order.

        The list changes with the next version of the cohort.
        """
        version, known, of = self._cache.version, self._known.get(cohort), self._of
        if known is not None and known[0] == version[cohort]:
            return known[2]
        children = self._cache.tree.children[cohort]
        versions = [version[node] for node in children]
        if known is None:
            of.update((node, self._shares.of(node)[1]) for node in children)
            ranking = sorted((of[node], node) for node in children)
        else:
            ranking = known[2]
            for node in compress(children, map(ne, versions, known[1])):
                del ranking[bisect_left(ranking, (of[node], node))]
                of[node] = self._shares.of(node)[1]
                insort(ranking, (of[node], node))
        self._known[cohort] = version[cohort], versions, ranking
        return ranking
