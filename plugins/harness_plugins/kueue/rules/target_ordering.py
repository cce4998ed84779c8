"""The order in which fair sharing takes workloads from queues, which prefers the largest share.

Upstream: `TargetClusterQueueOrdering` in pkg/scheduler/preemption/fairsharing/ordering.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import islice, pairwise
from typing import TypeAlias, final

from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

Queues: TypeAlias = Callable[[int], Iterable[ClusterQueueState]]
"""Returns the queues right below a cohort that can have candidates, in descending order of share.

The queue of the incoming workload may come first. The result is read only as far as it is needed.
"""

Head: TypeAlias = Callable[[ClusterQueueState], Workload | None]
"""Returns the next candidate of a queue, or None if there are no more."""

_Rank: TypeAlias = tuple[bool, bool, int, int, str] | tuple[()]
"""The rank of a queue's next candidate among those of other queues. It is empty until it is needed."""

_Turn: TypeAlias = tuple[bool, float, _Rank, int, ClusterQueueState]
"""What orders a queue: its share (largest first), its next candidate, its tree node; and the queue."""

_Left: TypeAlias = tuple[list[_Turn], Iterator[_Turn], dict[int, tuple[Share, str]]]
"""What is left right below a cohort: a heap of queues, the queues not read yet, and shares of cohorts."""


@final
class TargetClusterQueueOrdering:
    """Finds the next queue in a tree by descending from the root towards the largest share.

    Queues and cohorts without candidates are dropped. Those that do not borrow are dropped, too, except the
    queue of the incoming workload and the cohorts above it. If shares are equal, cohorts come before queues.
    Queues with equal shares are ordered by their next candidates. Of cohorts with equal shares, the one whose
    name sorts last comes first.

    Args:
        own: the queue of the incoming workload.
        head: called only for queues that could be next.
        leaves_out: returns True if no workload below a cohort can be taken. The search then skips all queues
            of the cohort. It calls the function only for cohorts whose parent is above `own`, when they are
            next.
    """

    def __init__(
        self,
        cache: Cache,
        shares: Shares,
        own: ClusterQueueState,
        queues: Queues,
        head: Head,
        leaves_out: Callable[[int], bool],
    ) -> None:
        self._cohorts = cache.cohorts
        self._names = cache.tree.names
        self._shares = shares
        self._own = own
        self._queues = queues
        self._head = head
        self._leaves_out = leaves_out
        self._left: dict[int, _Left] = {}  # for each cohort that was reached
        self._last: ClusterQueueState | None = None

    def next(self) -> ClusterQueueState | None:
        """Returns the next queue to take a workload from, or None if no queue is left.

        Between two calls, the caller may take workloads only from the queue that was returned. The next
        candidates of the other queues must stay the same.
        """
        last = self._last
        if last is not None:  # only this queue and the shares of the cohorts above it may have changed
            queues = self._left[last.above][0]
            heappop(queues)
            if self._head(last) is not None:
                for turn in self._turns([last]):
                    heappush(queues, turn)
            for cohort, above in pairwise(last.path):
                self._look_at_cohorts([cohort], self._left[above][2])
        self._last = self._first_below(self._own.root)
        return self._last

    def _first_below(self, cohort: int) -> ClusterQueueState | None:
        """Returns the next queue below a cohort, or None if no queue is left there."""
        left = self._left.get(cohort)
        if left is None:
            further = self._turns(self._queues(cohort))
            left = self._left[cohort] = list(islice(further, 1)), further, {}
            self._look_at_cohorts(self._cohorts[cohort], left[2])
        queues, further, cohorts = left
        while True:
            first = self._first_of(queues, further)
            if not cohorts:
                return first
            below = max(cohorts, key=cohorts.__getitem__)
            infinite, ratio = cohorts[below][0]
            if first is not None and queues[0][:2] < (not infinite, -ratio):
                return first
            found = None if self._is_left_out(cohort, below) else self._first_below(below)
            if found is not None:
                return found
            del cohorts[below]

    def _first_of(self, queues: list[_Turn], further: Iterator[_Turn]) -> ClusterQueueState | None:
        """Returns the queue with the largest share. Queues without candidates are dropped when found.

        The queue that was read last is never ranked before one more is read. No unread queue has a larger
        share than it, so that no unread queue can come first.
        """
        while queues:
            finite, share, rank, node, queue = queues[0]
            if rank:
                return queue
            heappop(queues)
            for turn in islice(further, 1):
                heappush(queues, turn)
            head = self._head(queue)
            if head is not None:
                not_evicted, priority, reserved, uid = head.rank
                rank = not_evicted, queue is self._own, priority, reserved, uid
                heappush(queues, (finite, share, rank, node, queue))
        return None

    def _is_left_out(self, cohort: int, below: int) -> bool:
        own = self._own.below
        other_side = cohort in own and own[cohort] != below
        return other_side and below not in self._left and self._leaves_out(below)

    def _turns(self, queues: Iterable[ClusterQueueState]) -> Iterator[_Turn]:
        """Yields what orders each queue, without the queues that are dropped."""
        of, own = self._shares.of, self._own
        for queue in queues:
            borrowing, (infinite, ratio) = of(queue.node)
            if borrowing or queue is own:
                yield not infinite, -ratio, (), queue.node, queue

    def _look_at_cohorts(self, cohorts: Iterable[int], left: dict[int, tuple[Share, str]]) -> None:
        of, names, path = self._shares.of, self._names, self._own.path
        for cohort in cohorts:
            borrowing, share = of(cohort)
            if borrowing or cohort in path:
                left[cohort] = share, names[cohort]
            else:
                left.pop(cohort, None)
