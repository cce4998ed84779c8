"""Caches how much quota workloads below each cohort use, without duplicates, for one version of the tree."""

from __future__ import annotations

from collections.abc import Collection
from typing import final

from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache


@final
class UsagesBelow:
    """The quota that workloads below each cohort use, without duplicates."""

    __slots__ = ("_cache", "_known")

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._known: dict[int, tuple[int, dict[int, dict[Amounts, None]]]] = {}  # by root, with its version

    def below(self, cohort: int) -> Collection[Amounts]:
        """Returns the quota that workloads in the queues below a cohort use. Equal usages appear once."""
        root = self._cache.tree.root[cohort]
        version, found = self._known.get(root, (-1, {}))
        if version != self._cache.unmarked_version[root]:
            found = {}
            for queue in self._cache.holding_below(root):
                usages = dict.fromkeys(self._cache.holders[queue.node].usages)
                for above in queue.path:
                    found.setdefault(above, {}).update(usages)
            self._known[root] = self._cache.unmarked_version[root], found
        return found.get(cohort, ())
