"""The order in which fair sharing takes workloads from queues, which prefers the largest share.

Upstream: `TargetClusterQueueOrdering` in pkg/scheduler/preemption/fairsharing/ordering.go.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol, TypeAlias, final

from harness_plugins.kueue.rules.dominant_resource_share import NOTHING, Share, Shares
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

_Turn: TypeAlias = tuple[Share, str, int]
_Rank: TypeAlias = tuple[bool] | tuple[bool, bool, bool, int, int, str]
_NOBODY = -1


class Below(Protocol):
    """The queues from which a search takes workloads."""

    def queues(self, cohort: int) -> list[ClusterQueueState]:
        """Returns the queues right below a cohort that can have candidates."""

    def head(self, queue: ClusterQueueState) -> Workload | None:
        """Returns the next candidate of a queue, or None if there are no more.

        The search calls this only for queues that could be next.
        """


@final
class _QueueOrdering:
    """Finds the queue with the largest share among the queues right below one cohort.

    Queues without candidates are dropped. Queues that do not borrow are dropped, too, except the queue of the
    incoming workload. If queues have equal shares, their next candidates decide the order. To save work,
    candidates are looked up only for queues that could be next.

    Attributes:
        share: the largest share at the time of the last call of `first`.
    """

    def __init__(
        self, shares: Shares, own: ClusterQueueState, cohort: int, below: Below, outranked: set[int]
    ) -> None:
        self._outranked = outranked
        self._shares = shares
        self._own = own
        self._queues = queues = below.queues(cohort)
        self._below = below
        self.share = NOTHING
        self._rest: dict[int, Share] = {}  # indexed by the position in `queues`
        of = shares.of
        for place, queue in enumerate(queues):
            borrowing, share = of(queue.node)
            if borrowing or queue is own:
                self._rest[place] = share
        self._ranked: list[tuple[_Rank, int]] = []  # a heap of ranks and positions; all of them have `share`
        self._turn = _NOBODY

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
            if self._below.head(queue) is not None:
                return queue
            self._turn = _NOBODY

    def look_again(self) -> None:
        """Updates the first queue after one of its workloads was taken, because this lowers its share.

        The queue is dropped if it no longer borrows.
        """
        place, self._turn = self._turn, _NOBODY
        queue = self._queues[place]
        borrowing, share = self._shares.of(queue.node)
        if not borrowing and queue is not self._own:
            return
        if self._ranked and share == self.share:
            heappush(self._ranked, (self._rank(queue), place))
            self._outranked.add(queue.node)
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
        first = heappop(self._ranked)[1]
        self._outranked.update([self._queues[place].node for _, place in self._ranked])
        return first

    def _rank(self, queue: ClusterQueueState) -> _Rank:
        """Returns the rank of a queue's next candidate. Queues without candidates come last."""
        head = self._below.head(queue)
        if head is None:
            return (True,)
        evicted_last, priority, reserved, uid = head.rank
        return False, evicted_last, queue is self._own, priority, reserved, uid


class _Cohort(NamedTuple):
    """The queues right below a cohort, and the cohorts right below it in ascending order of their shares.

    Cohorts and queues that were dropped are left out.
    """

    node: int
    queues: _QueueOrdering
    cohorts: list[_Turn]


@final
class TargetClusterQueueOrdering:
    """Finds the next queue in a tree by descending from the root towards the largest share.

    Queues and cohorts without candidates are dropped. Those that do not borrow are dropped, too, except the
    queue of the incoming workload and the cohorts above it. If shares are equal, cohorts come before queues.
    Queues with equal shares are ordered by their next candidates. Of cohorts with equal shares, the one whose
    name sorts last comes first.

    Args:
        own: the queue of the incoming workload.
        leaves_out: returns True if no workload below a cohort can be taken. The search then skips all queues
            of the cohort. It calls the function only for cohorts whose parent is above `own`, when they are
            next.
        outranked: a set to which the search adds the tree nodes of queues. It adds a queue if another queue
            had an equal share, but a next candidate that ranks before this queue's. It also adds queues for
            which this is unclear.
    """

    def __init__(
        self,
        cache: Cache,
        shares: Shares,
        own: ClusterQueueState,
        below: Below,
        leaves_out: Callable[[int], bool],
        outranked: set[int],
    ) -> None:
        self._outranked = outranked
        self._cohorts = cache.cohorts
        self._names = cache.tree.names
        self._shares = shares
        self._own = own
        self._below = below
        self._leaves_out = leaves_out
        self._known: dict[int, _Cohort] = {}
        self._way = [self._cohort(own.root)]  # the cohorts from the root to the queue whose turn it is
        self._taken = False

    def next(self) -> ClusterQueueState | None:
        """Returns the next queue to take a workload from, or None if no queue is left.

        Between two calls, the caller may take workloads only from the queue that was returned. The next
        candidates of the other queues must stay the same.
        """
        way = self._way
        if self._taken:
            way[-1].queues.look_again()
            if len(way) > 1:
                self._look_again()
        while True:
            cohort, queues, cohorts = way[-1]
            queue = queues.first()
            if cohorts and (queue is None or cohorts[-1][0] >= queues.share):
                below = cohorts[-1][2]
                if below not in self._known and self._is_left_out(cohort, below):
                    cohorts.pop()
                else:
                    way.append(self._cohort(below))
            elif queue is not None:
                self._taken = True
                return queue
            elif len(way) == 1:
                self._taken = False
                return None
            else:  # nothing is left below this cohort, which still comes last in the one above it
                way.pop()
                way[-1].cohorts.pop()

    def _is_left_out(self, cohort: int, below: int) -> bool:
        own = self._own.below
        return cohort in own and own[cohort] != below and self._leaves_out(below)

    def _cohort(self, node: int) -> _Cohort:
        found = self._known.get(node)
        if found is None:
            queues = _QueueOrdering(self._shares, self._own, node, self._below, self._outranked)
            found = self._known[node] = _Cohort(node, queues, sorted(self._turns_of(self._cohorts[node])))
        return found

    def _turns_of(self, cohorts: Iterable[int]) -> list[_Turn]:
        """Returns the sort keys of cohorts, without those that are dropped."""
        turns, of, path = [], self._shares.of, self._own.path
        for cohort in cohorts:
            borrowing, share = of(cohort)
            if borrowing or cohort in path:
                turns.append((share, self._names[cohort], cohort))
        return turns

    def _look_again(self) -> None:
        """Updates the shares of the cohorts above the last queue. No other cohort's share has changed."""
        way = self._way
        for at in range(len(way) - 1, 0, -1):
            cohorts = way[at - 1].cohorts
            turns = self._turns_of([way[at].node])
            if turns != cohorts[-1:]:
                cohorts.pop()
                for turn in turns:
                    insort(cohorts, turn)
                del way[at:]
