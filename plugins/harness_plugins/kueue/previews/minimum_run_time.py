"""Preview: a minimum run time before a workload may be preempted.

KEP 9876 (https://github.com/kubernetes-sigs/kueue/pull/12791) proposes it against other ClusterQueues, and
pull request 9874 within one. Here it holds against all workloads:

- The time counts from the admission, when all admission checks are ready. Each admission begins it anew.
- Until it is over, the workload is no candidate for preemption, unless it is already leaving.
- When it is over, everything that waits in its tree of cohorts is tried again.
- Meanwhile no queue is sure to reclaim its quota, even with `reclaimWithinCohort: Any`. So a head without
  targets keeps, for the rest of its cycle, the quota that others could otherwise borrow.
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
    """Guaranteed run times in microseconds; a workload has the longest of those that apply to it.

    Attributes:
        everybody: for all workloads.
        queues: for those that hold quota of a ClusterQueue.
        priorities: for those with at least this priority.
    """

    everybody: int
    queues: Mapping[str, int]
    priorities: Mapping[int, int]

    @property
    def is_on(self) -> bool:
        """Returns True if there is any guarantee."""
        return any((self.everybody, *self.queues.values(), *self.priorities.values()))

    def of(self, workload: Workload) -> int:
        """The run time that a workload is guaranteed."""
        by_priority = [time for least, time in self.priorities.items() if workload.priority >= least]
        return max(self.everybody, self.queues.get(workload.cluster_queue.name, 0), *by_priority, 0)


@final
class MinimumRunTime:
    """The workloads that have not run for as long as guaranteed, and the ends of their guarantees.

    Args:
        guarantees: the guaranteed run times.
    """

    def __init__(self, guarantees: Guarantees) -> None:
        self._guarantees = guarantees
        self._due: list[tuple[int, int, bool, int, Workload]] = []
        self._serial = 0

    def admitted(self, workload: Workload, at: int) -> None:
        """A workload is admitted since a time, or will be then, when its admission checks are ready."""
        time = self._guarantees.of(workload)
        if time:
            for when, spared in ((at, True), (at + time, False)):
                self._serial += 1
                heappush(self._due, (when, self._serial, spared, workload.admissions, workload))

    def due(self, now: int) -> Iterator[tuple[Workload, bool]]:
        """The workloads whose guarantee begins or ends by now, and whether it begins."""
        while self._next() is not None and self._due[0][0] <= now:
            _, _, spared, _, workload = heappop(self._due)
            yield workload, spared

    def next_wake(self) -> int | None:
        """When the next guarantee begins or ends; None if none does."""
        return self._next()

    def _next(self) -> int | None:
        """The time of the next change of a guarantee; entries of leaving or gone workloads are dropped."""
        while self._due:
            when, _, _, admissions, workload = self._due[0]
            if workload.has_quota and not workload.evicted and workload.admissions == admissions:
                return when
            heappop(self._due)
        return None
