"""Preview: a minimum run time before a workload may be preempted.

KEP 9876 (https://github.com/kubernetes-sigs/kueue/pull/12791) proposes it against other ClusterQueues, and
pull request 9874 within one. Here it holds against everybody:

- The time counts from the admission, when all admission checks are ready. Each admission begins it anew.
- Until it is over the workload is no candidate for preemption; who is going already is one.
- When it is over, whatever waits in its tree of cohorts is tried again.
- Meanwhile nobody can be sure to reclaim its quota, also with `reclaimWithinCohort: Any`. So a head that
  finds nobody to preempt keeps for the rest of its cycle what others could otherwise borrow.
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
    """Who is guaranteed how long, microseconds; a workload has the longest of those that apply to it.

    Attributes:
        everybody: of all workloads.
        queues: of those that hold quota of a ClusterQueue.
        priorities: of those with at least this priority.
    """

    everybody: int
    queues: Mapping[str, int]
    priorities: Mapping[int, int]

    @property
    def is_on(self) -> bool:
        """Whether anybody is guaranteed anything."""
        return any((self.everybody, *self.queues.values(), *self.priorities.values()))

    def of(self, workload: Workload) -> int:
        """How long a workload is guaranteed to run."""
        by_priority = [time for least, time in self.priorities.items() if workload.priority >= least]
        return max(self.everybody, self.queues.get(workload.cluster_queue.name, 0), *by_priority, 0)


@final
class MinimumRunTime:
    """Who has not run for as long as it is guaranteed, and until when.

    Args:
        guarantees: how long everybody is guaranteed.
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
        """Whose guarantee begins or ends by now, and whether it begins."""
        while self._next() is not None and self._due[0][0] <= now:
            _, _, spared, _, workload = heappop(self._due)
            yield workload, spared

    def next_wake(self) -> int | None:
        """When the next guarantee begins or ends; None where none does."""
        return self._next()

    def _next(self) -> int | None:
        """The same; what was noted of those who are going or gone is dropped."""
        while self._due:
            when, _, _, admissions, workload = self._due[0]
            if workload.has_quota and not workload.evicted and workload.admissions == admissions:
                return when
            heappop(self._due)
        return None
