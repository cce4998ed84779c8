"""Heads that come to the same: they ask for the same, in queues that only their names tell apart.

What a head is assigned follows from what it asks for, from its queue's manifest, place and usage, and from
who holds the quota of others. Where nobody holds that of its own queue, the others are the same for all
queues of a kind. Its priority counts only where the policies of its queue compare it with that of others.

Valid by content.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import final

from harness_plugins.kueue.rules.borrow_within_cohort import reclaimed_while_borrowing
from harness_plugins.kueue.rules.preemption_policy import allowed_by
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

Likeness = tuple[Hashable, ...]
"""Equal for heads that come to the same, as long as all else is equal."""


@final
class EqualHeads:
    """Tells which heads come to the same.

    Args:
        cache: who holds which quota.
        weights: node -> fair-sharing weight.
        placed: whether some flavor has a topology; no heads are alike then.
    """

    __slots__ = ("_holders", "_kinds", "_tree")

    def __init__(self, cache: Cache, weights: Sequence[float], *, placed: bool) -> None:
        self._holders = cache.holders
        self._tree = cache.tree
        kinds: dict[Hashable, list[int]] = {}
        for queue in cache.queues.values():
            kind = repr(replace(queue.spec, name="")), queue.path, queue.usable, weights[queue.node]
            kinds.setdefault(kind, []).append(queue.number)
        # Number of a queue -> that of the first one of its kind; None where there is no other one.
        self._kinds: list[int | None] = [None] * len(cache.queues)
        for numbers in kinds.values():
            if len(numbers) > 1 and not placed:
                for number in numbers:
                    self._kinds[number] = numbers[0]

    def of(self, workload: Workload) -> Likeness | None:
        """What a head shares with all that come to the same; None where it is like no other."""
        queue, asks = workload.cluster_queue, workload.asks
        kind = self._kinds[queue.number]
        if kind is None or asks.reducible:
            return None
        holders = self._holders[queue.node]
        if holders.workloads or holders.spared:
            return None
        return (
            kind,
            self._usage(queue),
            asks.number,
            workload.counts,
            allowed_by(queue.spec.preemption.reclaim_within_cohort, workload),
            reclaimed_while_borrowing(queue.spec, workload),
        )

    def stands_for(self, queue: ClusterQueueState, likeness: Likeness) -> bool:
        """Whether heads of a queue that once had a likeness may still have it."""
        holders = self._holders[queue.node]
        return not (holders.workloads or holders.spared) and self._usage(queue) == likeness[1]

    def _usage(self, queue: ClusterQueueState) -> tuple[int, ...]:
        first = queue.node * self._tree.width
        return tuple(self._tree.usage[first : first + self._tree.width])
