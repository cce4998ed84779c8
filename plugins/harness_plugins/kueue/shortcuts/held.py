"""The total usage of the candidates for preemption within a ClusterQueue."""

from __future__ import annotations

from typing import final

from harness_plugins.kueue.rules.candidates import all_candidates
from harness_plugins.kueue.rules.preemption_policy import Allowed, allowed_by
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload


@final
class Held:
    """The total usage of the workloads that a workload of the same queue can preempt.

    Results are valid for one generation of the ClusterQueue. The cache key is the priority of the preemptor.

    Args:
        cache: the workloads that hold quota.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._known: dict[int, tuple[int, int, dict[int, int] | None]] = {}  # by the number of the queue

    def by(self, queue: ClusterQueueState, first: Workload, cell: int) -> int | None:
        """Returns how much of a flavor-resource a workload's candidates hold; None without candidates."""
        allowed = allowed_by(queue.spec.preemption.within_cluster_queue, first)
        if allowed is None:
            return None
        known = self._known.get(queue.number)
        if known is None or known[:2] != (queue.generation, allowed.below):
            held: dict[int, int] = {}
            nobody = True
            for each in all_candidates(self._cache.holders[queue.node], -1, Allowed(allowed.below)):
                nobody = False
                for taken, amount in each.usage:
                    held[taken] = held.get(taken, 0) + amount
            known = self._known[queue.number] = queue.generation, allowed.below, None if nobody else held
        return None if known[2] is None else known[2].get(cell, 0)
