"""Previews a minimum run time. Until it has passed, a workload cannot be preempted.

KEP 9876 (https://github.com/kubernetes-sigs/kueue/pull/12791) proposes such a time for preemption from other
ClusterQueues. Pull request 9874 proposes it for preemption within a ClusterQueue. Here, it applies to all
preemptions:

- The time starts when the workload is admitted, after all admission checks. It starts again at each
  admission.
- During this time, the workload is not a preemption candidate, unless it is already evicted.
- Afterwards, all pending workloads in its tree of cohorts are tried again.
- With this preview, no queue is certain to reclaim its quota, even with `reclaimWithinCohort: Any`. A head
  without targets therefore reserves the quota that other queues could otherwise borrow in the same cycle.
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
    """Guaranteed run times in microseconds. If several apply to a workload, the longest one counts.

    Attributes:
        everybody: the run time for all workloads.
        queues: the run time for workloads that hold quota of a ClusterQueue, by the name of the ClusterQueue.
        priorities: by priority, the run time for workloads with at least this priority.
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
    """The workloads that are still within their guaranteed run time, and the ends of their guarantees."""

    def __init__(self, guarantees: Guarantees) -> None:
        self._guarantees = guarantees
        self._due: list[tuple[int, int, bool, int, Workload]] = []
        self._serial = 0

    def admitted(self, workload: Workload, at: int) -> None:
        """Records that a workload is admitted at `at`, which can be later because of admission checks."""
        time = self._guarantees.of(workload)
        if time:
            for when, spared in ((at, True), (at + time, False)):
                self._serial += 1
                heappush(self._due, (when, self._serial, spared, workload.admissions, workload))

    def due(self, now: int) -> Iterator[tuple[Workload, bool]]:
        """Yields each workload whose guarantee starts or ends by now, and True if it starts."""
        while self._next() is not None and self._due[0][0] <= now:
            _, _, spared, _, workload = heappop(self._due)
            yield workload, spared

    def next_wake(self) -> int | None:
        """Returns the time when the next guarantee starts or ends, or None if no guarantee does."""
        return self._next()

    def _next(self) -> int | None:
        """Returns when the next guarantee changes, after dropping workloads that are evicted or gone."""
        while self._due:
            when, _, _, admissions, workload = self._due[0]
            if workload.has_quota and not workload.evicted and workload.admissions == admissions:
                return when
            heappop(self._due)
        return None
