"""Whose turn it is to give up a workload under fair sharing: from the root down, always the largest share.

Upstream: `TargetClusterQueueOrdering` in pkg/scheduler/preemption/fairsharing/ordering.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

from harness_plugins.kueue.rules.dominant_resource_share import NOTHING, Share, Shares
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

_Rank: TypeAlias = tuple[bool] | tuple[bool, bool, bool, int, int, str]


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

    __slots__ = (
        "_cohorts",
        "_head",
        "_names",
        "_own",
        "_queues",
        "_ranks",
        "_root",
        "_shares",
        "_taken",
        "_turns",
    )

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
        # Cohort -> the shares of the queues right below it that may have a turn, and of the cohorts.
        self._turns: dict[int, tuple[dict[ClusterQueueState, Share], dict[int, Share]]] = {}
        self._ranks: dict[ClusterQueueState, _Rank] = {}
        self._taken: ClusterQueueState | None = None
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
        """The queue to take from, None when there is none left.

        Since the turn before, nothing but that queue may have been taken from, and only its next candidate
        may be another one.
        """
        if self._taken is not None:
            self._look_again(self._taken)
        root = cohort = self._root
        way: list[int] = []
        while True:
            queues, cohorts = self._turns_below(cohort)
            queue, queue_share = self._best_queue(queues)
            below, below_share = self._best_cohort(cohorts)
            if below is not None and (queue is None or below_share >= queue_share):
                way.append(cohort)
                cohort = below
            elif queue is not None:
                self._taken = queue
                return queue
            elif cohort == root:
                return None
            else:
                del self._turns[way[-1]][1][cohort]
                cohort = root
                way.clear()

    def _turns_below(self, cohort: int) -> tuple[dict[ClusterQueueState, Share], dict[int, Share]]:
        """The shares of the queues and of the cohorts right below a cohort that may have a turn."""
        found = self._turns.get(cohort)
        if found is None:
            found = self._turns[cohort] = {}, {}
            for queue in self._queues.get(cohort, ()):
                borrowing, share = self._shares.of(queue.node)
                if borrowing or queue is self._own:
                    found[0][queue] = share
            for below in self._cohorts.get(cohort, ()):
                borrowing, share = self._shares.of(below)
                if borrowing or below in self._own.path:
                    found[1][below] = share
        return found

    def _look_again(self, taken: ClusterQueueState) -> None:
        """A queue was taken from: it and the cohorts above it have other shares, and nobody else has."""
        self._ranks.pop(taken, None)
        below = taken.node
        for cohort in taken.path or (taken.root,):
            queues, cohorts = self._turns[cohort]
            borrowing, share = self._shares.of(below)
            if below == taken.node:
                if taken in queues and (borrowing or taken is self._own):
                    queues[taken] = share
                else:
                    queues.pop(taken, None)
            elif below in cohorts and (borrowing or below in self._own.path):
                cohorts[below] = share
            else:
                cohorts.pop(below, None)
            below = cohort

    def _best_queue(self, present: dict[ClusterQueueState, Share]) -> tuple[ClusterQueueState | None, Share]:
        while present:
            most = max(present.values())
            equal = [queue for queue, share in present.items() if share == most]
            best = equal[0] if len(equal) == 1 else min(equal, key=self._rank)
            if self._head(best) is not None:
                return best, most
            del present[best]
        return None, NOTHING

    def _best_cohort(self, present: dict[int, Share]) -> tuple[int | None, Share]:
        if not present:
            return None, NOTHING
        most = max(present.values())
        equal = [below for below, share in present.items() if share == most]
        return (equal[0] if len(equal) == 1 else max(equal, key=self._names.__getitem__)), most

    def _rank(self, queue: ClusterQueueState) -> _Rank:
        """How the next candidate of a queue ranks: where there is none, after all others."""
        rank = self._ranks.get(queue)
        if rank is None:
            head = self._head(queue)
            if head is None:
                rank = (True,)
            else:
                evicted_last, priority, reserved, uid = head.rank
                rank = False, evicted_last, queue is self._own, priority, reserved, uid
            self._ranks[queue] = rank
        return rank
