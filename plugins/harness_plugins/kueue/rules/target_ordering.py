"""The order in which fair sharing takes workloads from queues, which prefers the largest share.

Upstream: `TargetClusterQueueOrdering` in pkg/scheduler/preemption/fairsharing/ordering.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Protocol, TypeAlias, final

from harness_plugins.kueue.rules.dominant_resource_share import NOTHING, Share, Shares
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

_Head: TypeAlias = Callable[[ClusterQueueState], Workload | None]
_Rank: TypeAlias = tuple[bool] | tuple[bool, bool, bool, int, int, str]
_NOBODY = -1


class Ordering(Protocol):
    """Finds the queue from which to take the next workload."""

    def next(self) -> ClusterQueueState | None:
        """Returns the next queue to take a workload from, or None if no queue is left.

        Since the previous call, workloads may have been taken only from the queue that was returned. Only the
        next candidate of this queue may have changed.
        """


def ordering_of(
    cache: Cache, shares: Shares, own: ClusterQueueState, queues: list[ClusterQueueState], head: _Head
) -> Ordering:
    """Returns the order in which a search takes workloads from queues.

    Args:
        cache: the queues.
        shares: the shares of all nodes.
        own: the queue of the incoming workload.
        queues: the queues that can have candidates.
        head: returns the next candidate of a queue, or None if there are no more. It is called for a queue
            only when that queue's turn has come.
    """
    for queue in queues:
        if len(queue.path) > 1:
            return TargetClusterQueueOrdering(cache, shares, own, queues, head)
    return QueueOrdering(shares, own, queues, head)


@final
class QueueOrdering:
    """Finds the queue with the largest share among the queues right below one cohort.

    Queues without candidates are dropped, and so are queues that do not borrow, except the queue of the
    incoming workload. If queues have equal shares, the queue whose next candidate ranks first comes first. To
    save work, the next candidates of queues are looked up only when the turn of these queues has come.

    Attributes:
        share: the largest share at the time of the last call of `first`.
    """

    __slots__ = ("_head", "_own", "_queues", "_ranked", "_rest", "_shares", "_taken", "_turn", "share")

    def __init__(
        self, shares: Shares, own: ClusterQueueState, queues: Sequence[ClusterQueueState], head: _Head
    ) -> None:
        self._shares = shares
        self._own = own
        self._queues = queues
        self._head = head
        self.share = NOTHING
        self._rest: dict[int, Share] = {}  # indexed by the position in `queues`
        of = shares.of
        for place, queue in enumerate(queues):
            borrowing, share = of(queue.node)
            if borrowing or queue is own:
                self._rest[place] = share
        self._ranked: list[tuple[_Rank, int]] = []  # a heap of ranks and positions; all of them have `share`
        self._turn = _NOBODY
        self._taken = False

    def next(self) -> ClusterQueueState | None:
        """Returns the next queue to take from, or None if no queue is left. See `Ordering`."""
        if self._taken:
            self.look_again()
        queue = self.first()
        self._taken = queue is not None
        return queue

    def first(self) -> ClusterQueueState | None:
        """Returns the queue with the largest share among queues with candidates. Ties are decided by rank."""
        while True:
            if self._turn < 0:
                if self._ranked:
                    self._turn = heappop(self._ranked)[1]
                elif self._rest:
                    self._turn = self._largest()
                else:
                    return None
            queue = self._queues[self._turn]
            if self._head(queue) is not None:
                return queue
            self._turn = _NOBODY

    def look_again(self) -> None:
        """Updates the first queue after it lost a workload. Its share falls, or the queue is dropped."""
        place, self._turn = self._turn, _NOBODY
        queue = self._queues[place]
        borrowing, share = self._shares.of(queue.node)
        if not borrowing and queue is not self._own:
            return
        if self._ranked and share == self.share:
            heappush(self._ranked, (self._rank(queue), place))
        else:
            self._rest[place] = share

    def _largest(self) -> int:
        """Removes all queues with the largest share from `_rest`, and returns the first of them.

        The method does not sort all queues, because most searches end after one or two turns.
        """
        rest = self._rest
        self.share = share = max(rest.values())
        places = [place for place, theirs in rest.items() if theirs == share]
        for place in places:
            del rest[place]
        if len(places) == 1:
            return places[0]
        # If ranks are equal, which requires equal UIDs, the order of `queues` decides.
        self._ranked = [(self._rank(self._queues[place]), place) for place in places]
        heapify(self._ranked)
        return heappop(self._ranked)[1]

    def _rank(self, queue: ClusterQueueState) -> _Rank:
        """Returns the rank of a queue's next candidate. Queues without candidates come last."""
        head = self._head(queue)
        if head is None:
            return (True,)
        evicted_last, priority, reserved, uid = head.rank
        return False, evicted_last, queue is self._own, priority, reserved, uid


@final
class TargetClusterQueueOrdering:
    """Finds the next queue in a tree by descending from the root towards the largest share.

    Nodes without candidates are dropped, and so are nodes that do not borrow, except the queue of the
    incoming workload and the cohorts above this queue. If shares are equal, cohorts come before queues. Among
    queues, the rank of the next candidate decides. Among cohorts, the one whose name sorts last comes first.
    """

    __slots__ = ("_cohorts", "_head", "_names", "_own", "_queues", "_root", "_shares", "_taken", "_turns")

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
        # Maps each cohort to the queues right below it and the shares of the cohorts right below it, without
        # those that were dropped.
        self._turns: dict[int, tuple[QueueOrdering, dict[int, Share]]] = {}
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
        """Returns the next queue to take from, or None if no queue is left. See `Ordering`."""
        self._look_again()
        root = cohort = self._root
        way: list[int] = []
        while True:
            queues, cohorts = self._turns_below(cohort)
            queue = queues.first()
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

    def _turns_below(self, cohort: int) -> tuple[QueueOrdering, dict[int, Share]]:
        """Returns the queues right below a cohort, and the shares of the cohorts right below it."""
        found = self._turns.get(cohort)
        if found is None:
            queues = QueueOrdering(self._shares, self._own, self._queues.get(cohort, ()), self._head)
            cohorts: dict[int, Share] = {}
            for below in self._cohorts.get(cohort, ()):
                borrowing, share = self._shares.of(below)
                if borrowing or below in self._own.path:
                    cohorts[below] = share
            found = self._turns[cohort] = queues, cohorts
        return found

    def _look_again(self) -> None:
        """Updates the shares of the last queue and the cohorts above it. No other share has changed."""
        taken, self._taken = self._taken, None
        if taken is None:
            return
        below = taken.node
        for cohort in taken.path or (taken.root,):
            queues, cohorts = self._turns[cohort]
            if below == taken.node:
                queues.look_again()
            elif below in cohorts:
                borrowing, share = self._shares.of(below)
                if borrowing or below in self._own.path:
                    cohorts[below] = share
                else:
                    del cohorts[below]
            below = cohort

    def _best_cohort(self, present: dict[int, Share]) -> tuple[int | None, Share]:
        if not present:
            return None, NOTHING
        most = max(present.values())
        equal = [below for below, share in present.items() if share == most]
        return (equal[0] if len(equal) == 1 else max(equal, key=self._names.__getitem__)), most
