"""Whose turn it is to give up a workload under fair sharing: from the root down, always the largest share.

Upstream: `TargetClusterQueueOrdering` in pkg/scheduler/preemption/fairsharing/ordering.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from harness_plugins.kueue.rules.dominant_resource_share import NOTHING, Share, Shares
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload


@final
class TargetClusterQueueOrdering:
    """Finds the queue to take from next: from the root down, always towards the largest share.

    Queues without candidates and nodes that do not borrow leave for good, unless they are the incoming's
    own queue or above it. Ties: a cohort before a queue; of queues the one whose next candidate ranks
    first; of cohorts the larger name.

    Args:
        cache: the queues.
        shares: the shares of all nodes.
        own: the incoming's queue.
        queues: those that may have candidates.
        head: the next candidate of a queue, None when there is none left; it is not asked of queues whose
            turn does not come.
    """

    __slots__ = ("_cohorts", "_head", "_names", "_own", "_queues", "_root", "_shares")

    def __init__(
        self,
        cache: Cache,
        shares: Shares,
        own: ClusterQueueState,
        queues: list[ClusterQueueState],
        head: Callable[[ClusterQueueState], Workload | None],
    ) -> None:
        self._shares = shares
        self._names = cache.tree.names
        self._own = own
        self._root = own.root
        self._head = head
        self._queues: dict[int, list[ClusterQueueState]] = {}
        self._cohorts: dict[int, list[int]] = {}
        parent = cache.tree.parent
        for queue in queues:
            above = queue.path[0] if queue.path else queue.root
            if above in self._queues:
                self._queues[above].append(queue)
                continue
            self._queues[above] = [queue]
            below = above
            while (above := parent[below]) >= 0 and below not in self._cohorts.setdefault(above, []):
                self._cohorts[above].append(below)
                below = above

    def next(self) -> ClusterQueueState | None:
        """The queue to take from, None when there is none left."""
        root = cohort = self._root
        way: list[int] = []
        while True:
            queue, queue_share = self._best_queue(cohort)
            below, below_share = self._best_cohort(cohort)
            if below is not None and (queue is None or below_share >= queue_share):
                way.append(cohort)
                cohort = below
            elif queue is not None:
                return queue
            elif cohort == root:
                return None
            else:
                self._cohorts[way[-1]].remove(cohort)
                cohort = root
                way.clear()

    def _best_queue(self, cohort: int) -> tuple[ClusterQueueState | None, Share]:
        present = self._queues.get(cohort)
        while present:
            best: ClusterQueueState | None = None
            most = NOTHING
            for queue in present:
                borrowing, share = self._shares.of(queue.node)
                if (borrowing or queue is self._own) and (
                    best is None or share > most or (share == most and self._ranks_before(queue, best))
                ):
                    best, most = queue, share
            if best is None:
                break
            if self._head(best) is not None:
                return best, most
            present.remove(best)
        return None, NOTHING

    def _best_cohort(self, cohort: int) -> tuple[int | None, Share]:
        present = self._cohorts.get(cohort)
        best: int | None = None
        most = NOTHING
        for below in present or ():
            borrowing, share = self._shares.of(below)
            if (borrowing or below in self._own.path) and (
                best is None or share > most or (share == most and self._names[below] > self._names[best])
            ):
                best, most = below, share
        return best, most

    def _ranks_before(self, queue: ClusterQueueState, other: ClusterQueueState) -> bool:
        """Whether the next candidate of a queue ranks before that of another."""
        head, others = self._head(queue), self._head(other)
        if head is None or others is None:
            return head is not None
        return self._rank(queue, head) < self._rank(other, others)

    def _rank(self, queue: ClusterQueueState, head: Workload) -> tuple[bool, bool, int, int, str]:
        evicted_last, priority, reserved, uid = head.rank
        return evicted_last, queue is self._own, priority, reserved, uid
