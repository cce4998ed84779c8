"""Keeps the shares of each cohort's children sorted, for one version of the cohort."""

from __future__ import annotations

from typing import final

from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares
from harness_plugins.kueue.state.cache import Cache


@final
class ShareRanking:
    """Sorts each cohort's children by share."""

    __slots__ = ("_cache", "_known", "_shares")

    def __init__(self, cache: Cache, shares: Shares) -> None:
        self._cache = cache
        self._shares = shares
        self._known: dict[int, tuple[int, list[tuple[Share, int]]]] = {}

    def of(self, cohort: int) -> list[tuple[Share, int]]:
        """Returns the share and number of each child of a cohort, in ascending order."""
        version, known = self._cache.version[cohort], self._known.get(cohort)
        if known is None or known[0] != version:
            ranked = [(self._shares.of(node)[1], node) for node in self._cache.tree.children[cohort]]
            known = self._known[cohort] = version, sorted(ranked)
        return known[1]
