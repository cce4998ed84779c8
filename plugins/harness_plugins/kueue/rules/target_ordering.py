"""Whose turn it is to give up a workload under fair sharing: from the root down, always the largest share.

Upstream: `TargetClusterQueueOrdering` in pkg/scheduler/preemption/fairsharing/ordering.go.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TypeAlias, final

from harness_plugins.kueue.rules.dominant_resource_share import NOTHING, Share, Shares
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

_Head: TypeAlias = Callable[[ClusterQueueState], Workload | None]
_Rank: TypeAlias = tuple[bool] | tuple[bool, bool, bool, int, int, str]


@final
class _Turns:
    """The queues right below a cohort that may have a turn.

    They stand in groups of equal shares. A group is ordered only when its turn comes, and one by itself not
    at all: that needs the next candidate of everybody in it.

    Args:
        shares: queue -> its share.
        own: the incoming's queue.
        head: the next candidate of a queue, None when there is none left.

    Attributes:
        share: the largest share, when `first` was asked last.
    """

    __slots__ = ("_groups", "_head", "_levels", "_own", "_ranked", "_turn", "share")

    def __init__(self, shares: dict[ClusterQueueState, Share], own: ClusterQueueState, head: _Head) -> None:
        # Equal ranks, of equal UIDs, fall by the order in which the queues are given.
        self._groups: dict[Share, list[tuple[int, ClusterQueueState]]] = {}
        for place, (queue, share) in enumerate(shares.items()):
            group = self._groups.get(share)
            if group is None:
                self._groups[share] = [(place, queue)]
            else:
                group.append((place, queue))
        self._levels = sorted(self._groups)
        self._own = own
        self._head = head
        self.share = NOTHING
        self._ranked: list[tuple[_Rank, int, ClusterQueueState]] = []  # a heap; all have `share`
        self._turn: tuple[int, ClusterQueueState] | None = None  # who is next

    def first(self) -> ClusterQueueState | None:
        """Who has the largest share, and of several the next candidate that ranks first."""
        if self._turn is None:
            if not self._ranked:
                if not self._levels:
                    return None
                self.share = self._levels.pop()
                group = self._groups.pop(self.share)
                if len(group) == 1:
                    self._turn = group[0]
                    return self._turn[1]
                self._ranked = [(self._rank(queue), place, queue) for place, queue in group]
                heapify(self._ranked)
            self._turn = heappop(self._ranked)[1:]
        return self._turn[1]

    def largest(self) -> Share:
        """The largest share, `NOTHING` where nobody is left."""
        if self._turn is not None or self._ranked:
            return self.share
        return self._levels[-1] if self._levels else NOTHING

    def move_first(self, share: Share | None) -> None:
        """Let the first have a share that is not larger than it was, or let it leave."""
        assert self._turn is not None
        place, queue = self._turn
        self._turn = None
        if share is None:
            return
        if self._ranked and share == self.share:
            heappush(self._ranked, (self._rank(queue), place, queue))
        elif share in self._groups:
            self._groups[share].append((place, queue))
        else:
            self._groups[share] = [(place, queue)]
            insort(self._levels, share)

    def _rank(self, queue: ClusterQueueState) -> _Rank:
        """How the next candidate of a queue ranks: where there is none, after all others."""
        head = self._head(queue)
        if head is None:
            return (True,)
        evicted_last, priority, reserved, uid = head.rank
        return False, evicted_last, queue is self._own, priority, reserved, uid


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
        head: _Head,
    ) -> None:
        self._shares = shares
        self._names = cache.tree.names
        self._own = own
        self._root = own.root
        self._head = head
        self._queues: dict[int, list[ClusterQueueState]] = {}
        self._cohorts: dict[int, list[int]] = {}
        # Cohort -> the queues right below it that may have a turn, and the shares of such cohorts.
        self._turns: dict[int, tuple[_Turns, dict[int, Share]]] = {}
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
        self._look_again()
        root = cohort = self._root
        way: list[int] = []
        while True:
            queues, cohorts = self._turns_below(cohort)
            while (queue := queues.first()) is not None and self._head(queue) is None:
                queues.move_first(None)
            below, below_share = self._best_cohort(cohorts)
            if below is not None and (queue is None or below_share >= queues.share):
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

    def largest_share(self) -> Share:
        """The largest share right below the root of whatever may have a turn."""
        self._look_again()
        queues, cohorts = self._turns_below(self._root)
        return max(queues.largest(), *cohorts.values()) if cohorts else queues.largest()

    def _turns_below(self, cohort: int) -> tuple[_Turns, dict[int, Share]]:
        """The queues right below a cohort that may have a turn, and the shares of such cohorts."""
        found = self._turns.get(cohort)
        if found is None:
            of = self._shares.of
            present: dict[ClusterQueueState, Share] = {}
            for queue in self._queues.get(cohort, ()):
                borrowing, share = of(queue.node)
                if borrowing or queue is self._own:
                    present[queue] = share
            cohorts: dict[int, Share] = {}
            for below in self._cohorts.get(cohort, ()):
                borrowing, share = of(below)
                if borrowing or below in self._own.path:
                    cohorts[below] = share
            found = self._turns[cohort] = _Turns(present, self._own, self._head), cohorts
        return found

    def _look_again(self) -> None:
        """Where a queue was taken from, it and the cohorts above it have other shares, nobody else has."""
        taken, self._taken = self._taken, None
        if taken is None:
            return
        below = taken.node
        for cohort in taken.path or (taken.root,):
            queues, cohorts = self._turns[cohort]
            borrowing, share = self._shares.of(below)
            if below == taken.node:
                stays = (borrowing or taken is self._own) and self._head(taken) is not None
                queues.move_first(share if stays else None)
            elif below in cohorts and (borrowing or below in self._own.path):
                cohorts[below] = share
            else:
                cohorts.pop(below, None)
            below = cohort

    def _best_cohort(self, present: dict[int, Share]) -> tuple[int | None, Share]:
        if not present:
            return None, NOTHING
        most = max(present.values())
        equal = [below for below, share in present.items() if share == most]
        return (equal[0] if len(equal) == 1 else max(equal, key=self._names.__getitem__)), most
