"""Previews a rate limit for preemptions in each ClusterQueue.

The rate counts the workloads that hold quota of the ClusterQueue and are preempted within a time window. KEP
13396 (https://github.com/kubernetes-sigs/kueue/pull/14554) proposes the limit as `PreemptionLimit`:

- If the targets of a head would exceed the limit of any of their queues, the head preempts none of them. It
  stays first in its queue, and is tried again as soon as the limit allows all of its targets.
- In the same cycle, the head reserves the quota that other queues could otherwise borrow, even with
  `reclaimWithinCohort: Any`.
- Targets that are already evicted do not count again. Evictions without a preemptor, for example because of a
  timeout, do not count either.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, final

if TYPE_CHECKING:
    from harness_plugins.kueue.rules.preemption import Target
    from harness_plugins.kueue.state.workload import Workload


class Limit(NamedTuple):
    """A limit of `most` workloads in any window of `window` microseconds. The end of a window is excluded."""

    most: int
    window: int


@final
class PreemptionRate:
    """The recent preemptions, and the preemptors that must wait because of a limit.

    Args:
        everybody: the limit for ClusterQueues that are not in `queues`, or None if they have no limit.
        queues: the limits of individual ClusterQueues.
    """

    def __init__(self, everybody: Limit | None, queues: Mapping[str, Limit]) -> None:
        self._everybody = everybody
        self._queues = queues
        self._past: dict[str, deque[int]] = {}
        self._waiting: dict[Workload, int] = {}
        self.now = 0

    def allows(self, preemptor: Workload, targets: Sequence[Target]) -> bool:
        """Returns True if the limits allow all targets to be evicted now.

        Otherwise, `due` yields the preemptor as soon as the limits allow all of its targets.
        """
        self._waiting.pop(preemptor, None)
        until: list[int | None] = []
        for queue, count in Counter(each.workload.cluster_queue.name for each in targets).items():
            limit = self._limit_of(queue)
            if limit is None:
                continue
            past = self._past.setdefault(queue, deque())
            while past and past[0] + limit.window <= self.now:
                past.popleft()
            beyond = len(past) + count - limit.most
            if beyond > 0:
                until.append(past[beyond - 1] + limit.window if count <= limit.most else None)
        known = [each for each in until if each is not None]
        if known and len(known) == len(until):
            self._waiting[preemptor] = max(known)
        return not until

    def preempted(self, targets: Sequence[Target]) -> None:
        """Counts targets that are evicted now."""
        for queue in (each.workload.cluster_queue.name for each in targets):
            if self._limit_of(queue) is not None:
                self._past.setdefault(queue, deque()).append(self.now)

    def _limit_of(self, queue: str) -> Limit | None:
        return self._queues.get(queue, self._everybody)

    def due(self) -> Iterator[Workload]:
        """Yields the preemptors whose targets may be within the limit now."""
        for preemptor in [each for each, at in self._waiting.items() if at <= self.now]:
            del self._waiting[preemptor]
            if not preemptor.has_quota:
                yield preemptor

    def next_wake(self) -> int | None:
        """Returns the next time when limits may allow a preemptor's targets, or None if none is waiting."""
        return min(self._waiting.values(), default=None)
