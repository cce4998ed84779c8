"""Reuses assignments that fit, without trying the flavors again.

Whether a workload fits depends on its request, on the manifest of its queue, and on the quota of the
flavor-resources that were considered. The assignment stays the same until this quota changes.

The cache key consists of the queue, the request and the number of pods. Every lookup checks that the quota is
unchanged.
"""

from __future__ import annotations

from typing import TypeAlias, final

from harness.base.memo import Memo
from harness_plugins.kueue.rules.flavor_assigner import FIT, Assignment
from harness_plugins.kueue.rules.preemption_oracle import quota_of
from harness_plugins.kueue.shortcuts.recorded_oracle import Check, RecordedOracle
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.workload import Workload

_Question: TypeAlias = tuple[int, int, tuple[int, ...]]
"""The `number` of a queue, the `number` of a request, and how many pods each pod set has."""


@final
class CachedFits:
    """The last assignment that fitted, for each request and queue."""

    __slots__ = ("_cache", "_known")

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._known: Memo[_Question, tuple[Assignment, list[Check]]] = Memo()

    def of(self, workload: Workload) -> Assignment | None:
        """Returns the cached assignment for a workload's request, or None if it no longer fits.

        The flavors of this assignment were tried from the first flavor on.
        """
        cache, queue = self._cache, workload.cluster_queue
        known = self._known.get((queue.number, workload.asks.number, workload.counts))
        if known is None:
            return None
        for cell, amount, quota in known[1]:
            if quota_of(cache, queue, cell, amount) != quota:
                return None
        return known[0]

    def note(self, workload: Workload, assignment: Assignment, oracle: RecordedOracle) -> None:
        """Caches an assignment that fits without places in a topology and without a search for targets.

        The assignment must be for all pods of the workload, and its scan must have started with the first
        flavor.
        """
        if assignment.mode != FIT or assignment.placed or oracle.failed or oracle.found_targets:
            return
        question = workload.cluster_queue.number, workload.asks.number, workload.counts
        self._known[question] = assignment, oracle.checks
