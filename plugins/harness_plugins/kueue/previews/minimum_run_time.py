"""Preview: a minimum run time before a workload may be preempted.

KEP 9876 (https://github.com/kubernetes-sigs/kueue/pull/12791) proposes it against other ClusterQueues, and
pull request 9874 within one ClusterQueue. Here it applies against all workloads:

- The time begins at the admission, when all admission checks are ready. It begins again at each admission.
- Until it is over, the workload is not a preemption candidate, unless it is already leaving.
- When it is over, all workloads that wait in its tree of cohorts are tried again.
- Until then no queue is sure to reclaim its quota, even with `reclaimWithinCohort: Any`. So a head without
  targets reserves, for the rest of its cycle, the quota that other queues could otherwise borrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from harness_plugins.kueue.state.workload import Workload


@final
@dataclass(frozen=True, slots=True)
class Guarantees:
    """Guaranteed run times in microseconds; the longest that applies to a workload counts.

    Attributes:
        everybody: the time for all workloads.
        queues: ClusterQueue -> the time for workloads that hold its quota.
        priorities: priority -> the time for workloads with at least this priority.
    """

    everybody: int
    queues: Mapping[str, int]
    priorities: Mapping[int, int]

    @property
    def is_on(self) -> bool:
        """True if any workload has a guarantee."""
        return any((self.everybody, *self.queues.values(), *self.priorities.values()))

    def of(self, workload: Workload) -> int:
        """Returns the guaranteed run time of a workload."""
        by_priority = [time for least, time in self.priorities.items() if workload.priority >= least]
        return max(self.everybody, self.queues.get(workload.cluster_queue.name, 0), *by_priority, 0)


@final
class MinimumRunTime:
    """The workloads whose guaranteed run time is not over, and the ends of their guarantees.

    Args:
        guarantees: the guaranteed run times.
    """

    def __init__(self, guarantees: Guarantees) -> None:
        self._guarantees = guarantees
        self._due: list[tuple[int, int, bool, int, Workload]] = []
        self._serial = 0

    def admitted(self, workload: Workload, at: int) -> None:
        """Notes that a workload is, or will be, admitted at `at`, when its admission checks are ready."""
        time = self._guarantees.of(workload)
        if time:
            for when, spared in ((at, True), (at + time, False)):
                self._serial += 1
                heappush(self._due, (when, self._serial, spared, workload.admissions, workload))

    def due(self, now: int) -> Iterator[tuple[Workload, bool]]:
        """Yields the workloads whose guarantee begins or ends by now, and whether it begins."""
        while self._next() is not None and self._due[0][0] <= now:
            _, _, spared, _, workload = heappop(self._due)
            yield workload, spared

    def next_wake(self) -> int | None:
        """Returns when the next guarantee begins or ends, or None."""
        return self._next()

    def _next(self) -> int | None:
        """Returns the time of the next change of a guarantee; drops entries of leaving or gone workloads."""
        while self._due:
            when, _, _, admissions, workload = self._due[0]
            if workload.has_quota and not workload.evicted and workload.admissions == admissions:
                return when
            heappop(self._due)
        return None
