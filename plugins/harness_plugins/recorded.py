"""The plugin `recorded`, which runs every job as recorded in the trace.

The plugin makes no decisions of its own. A job starts as a whole when its first recorded run started. When
that run ended, the job is evicted, and it starts again with its next run. The job ends after its last run. If
the trace records a preemption, an unknown preemptor preempts the job.

Traces do not record nodes and flavors, so jobs have none. Nothing limits how many jobs run at the same time.
The results can therefore include usage that exceeds the cluster's capacity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from typing import Any

from harness import Admit, Cluster, Decision, Job, PolicySpec, Preempt, Register, View, Wake, Why, hookimpl

RUN_ENDED = "recorded"
"""The reason for an eviction if the trace does not show how the run ended."""


@hookimpl
def harness_register_policies(register: Register[PolicySpec]) -> None:
    """Register `recorded`."""
    register(
        PolicySpec(
            "recorded",
            Recorded,
            help="no scheduler: jobs run as recorded in the trace (recorded_start, recorded_end, "
            "recorded_runs)",
            record=True,
        )
    )


class Recorded:
    """Runs every job as recorded in the trace. The top of this module describes the rules."""

    def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
        self._runs: dict[int, int] = {}  # how many runs each job has started
        self._starts: list[tuple[int, int, Job]] = []
        self._evictions: list[tuple[int, int, Job]] = []

    def submit(self, job: Job, pods: range, now: int) -> None:
        """Schedules the next recorded run of a job. If there is no other run, the job keeps waiting."""
        begun = self._runs.get(job.index, 0)
        if begun < len(job.recorded):
            heappush(self._starts, (job.recorded[begun].start, job.index, job))

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Removes a job that has ended. An evicted job is submitted again."""
        if why is Why.ENDED:
            del self._runs[job.index]

    def cycle(self, now: int) -> Iterator[Decision]:
        """Evicts and starts the jobs that are due. Repeats this, because a run can end when it starts."""
        while _due(self._evictions, now) or _due(self._starts, now):
            while _due(self._evictions, now):
                _, index, job = heappop(self._evictions)
                if index not in self._runs:
                    continue  # a last run without a duration ended together with the run before it
                run = job.recorded[self._runs[index] - 1]
                yield Preempt(job, by=None, reason=run.why or RUN_ENDED, unnamed=run.preempted)
            while _due(self._starts, now):
                _, index, job = heappop(self._starts)
                begun = self._runs.get(index, 0)
                self._runs[index] = begun + 1
                if begun + 1 < len(job.recorded):
                    heappush(self._evictions, (job.recorded[begun].end, index, job))
                yield Admit(job)
        later = [heap[0][0] for heap in (self._evictions, self._starts) if heap]
        if later:
            yield Wake(min(later))


def _due(heap: list[tuple[int, int, Job]], now: int) -> bool:
    return bool(heap) and heap[0][0] <= now
