"""Kueue's `maximumExecutionTimeSeconds`, which limits the total time for which a workload is admitted.

A workload stays admitted until its quota is released. The time in which its pods terminate after an eviction
therefore counts, as do earlier admissions. This module only measures the time. The policy evicts and
deactivates the workloads.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from sys import maxsize
from typing import final

from harness_plugins.kueue.rules.wait_for_pods_ready import whole_seconds
from harness_plugins.kueue.state.workload import Workload

EXCEEDED = "DeactivatedDueToMaximumExecutionTimeExceeded"


@final
class ExecutionTimes:
    """The workloads with a time limit, with their remaining time and the start of their admission.

    Attributes:
        first: the earliest time at which a workload could reach its limit.
        going: the workloads that were evicted and whose quota was not released yet.
        over: the workloads that reached their limit during their last admission.
        woken: the last wake-up time that was requested.
    """

    def __init__(self) -> None:
        self._left: dict[Workload, int] = {}
        self._since: dict[Workload, int] = {}
        self.going: set[Workload] = set()
        self.over: set[Workload] = set()
        self._due: list[tuple[int, str, int, Workload]] = []
        self._serial = 0
        self.first = maxsize
        self.woken = -1

    def limit(self, workload: Workload, left: int) -> None:
        """Limits how long a workload can stay admitted, in microseconds."""
        self._left[workload] = left

    def admitted(self, workload: Workload, at: int) -> None:
        """Records that a workload is admitted at `at`, which can be later because of admission checks."""
        if workload in self._left:
            self._since[workload] = at
            self.over.discard(workload)
            self._serial += 1
            heappush(self._due, (self._end(workload), workload.name, self._serial, workload))
            self.first = self._due[0][0]

    def told_to_go(self, workload: Workload, now: int) -> None:
        """Records an eviction. The workload stays admitted unless it was waiting for admission checks."""
        since = self._since.get(workload)
        if since is None:
            return
        if since > now:
            del self._since[workload]
        else:
            self.going.add(workload)

    def gone(self, workload: Workload, now: int) -> None:
        """Ends an admission when the quota is released. The time since its start counts in whole seconds.

        If no time remains, the workload counts as deactivated (upstream's SyncAdmittedCondition).
        """
        self.going.discard(workload)
        since = self._since.pop(workload, None)
        if since is not None:
            passed = whole_seconds(now - whole_seconds(since))
            left = self._left[workload] = max(0, self._left[workload] - passed)
            if not left:
                self.over.add(workload)

    def due(self, now: int) -> Iterator[Workload]:
        """Yields the workloads that have reached their limit by now, each of them once.

        This includes evicted workloads that still hold quota, because they stay admitted.
        """
        while self._due and self._due[0][0] <= now:
            workload = heappop(self._due)[3]
            if workload in self._since and self._end(workload) <= now:
                del self._since[workload]
                self._left[workload] = 0
                self.over.add(workload)
                yield workload
        self.first = self._due[0][0] if self._due else maxsize

    def forget(self, workload: Workload) -> None:
        """Removes a workload that is finished."""
        if self._left.pop(workload, None) is not None:
            self._since.pop(workload, None)
            self.going.discard(workload)
            self.over.discard(workload)

    def next_wake(self, now: int) -> int | None:
        """Returns the next wake-up time to request, or None if there is none or it was already requested."""
        term = self._due[0][0] if self._due else None
        if term is None or now < self.woken <= term:
            return None
        self.woken = max(now + 1, term)
        return self.woken

    def _end(self, workload: Workload) -> int:
        """Returns when a workload reaches its limit. Its admission time counts in whole seconds."""
        since = self._since[workload]
        return max(since, whole_seconds(since) + self._left[workload])
