"""Kueue's `maximumExecutionTimeSeconds`: the time for which a workload may be admitted in total.

A workload is admitted until its quota is free, so the time while its pods terminate after an eviction counts.
Earlier admissions count too. This module measures the time; the policy evicts and deactivates.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from sys import maxsize
from typing import final

from harness.base.units import SECOND
from harness_plugins.kueue.state.workload import Workload

EXCEEDED = "DeactivatedDueToMaximumExecutionTimeExceeded"


@final
class ExecutionTimes:
    """The workloads with limited time: the remaining time, and the start of the admission.

    Attributes:
        first: the earliest instant at which a workload's time may be over.
        woken: the last requested instant.
    """

    def __init__(self) -> None:
        self._left: dict[Workload, int] = {}
        self._since: dict[Workload, int] = {}
        self._going: set[Workload] = set()
        self._over: set[Workload] = set()
        self._due: list[tuple[int, str, int, Workload]] = []
        self._serial = 0
        self.first = maxsize
        self.woken = -1

    def limit(self, workload: Workload, left: int) -> None:
        """Limits how long a workload may be admitted, in microseconds."""
        self._left[workload] = left

    def admitted(self, workload: Workload, at: int) -> None:
        """Notes that a workload is, or will be, admitted at `at`, when its admission checks are ready."""
        if workload in self._left:
            self._since[workload] = at
            self._over.discard(workload)
            self._serial += 1
            heappush(self._due, (self._end(workload), workload.name, self._serial, workload))
            self.first = self._due[0][0]

    def told_to_go(self, workload: Workload, now: int) -> None:
        """Notes an eviction; the workload stays admitted, unless it still waited for admission checks."""
        since = self._since.get(workload)
        if since is None:
            return
        if since > now:
            del self._since[workload]
        else:
            self._going.add(workload)

    def gone(self, workload: Workload, now: int) -> None:
        """Ends an admission when the quota is free; the admitted time counts in whole seconds.

        If no time remains, the workload was deactivated meanwhile (upstream's SyncAdmittedCondition).
        """
        self._going.discard(workload)
        since = self._since.pop(workload, None)
        if since is not None:
            passed = (now - since // SECOND * SECOND) // SECOND * SECOND
            left = self._left[workload] = max(0, self._left[workload] - passed)
            if not left:
                self._over.add(workload)

    def due(self, now: int) -> Iterator[Workload]:
        """Yields the workloads whose time is over now, each only once."""
        while self._due and self._due[0][0] <= now:
            workload = heappop(self._due)[3]
            if workload in self._since and workload not in self._going and self._end(workload) <= now:
                del self._since[workload]
                self._left[workload] = 0
                self._over.add(workload)
                yield workload
        self.first = self._due[0][0] if self._due else maxsize

    def is_over(self, workload: Workload) -> bool:
        """Returns True if a workload's time was over when it was last admitted."""
        return workload in self._over

    def forget(self, workload: Workload) -> None:
        """Forgets a workload that is over."""
        self._left.pop(workload, None)
        self._since.pop(workload, None)
        self._going.discard(workload)
        self._over.discard(workload)

    def next_wake(self, now: int) -> int | None:
        """Returns the next instant to request; None if it is already requested or no time is limited."""
        term = self._due[0][0] if self._due else None
        if term is None or now < self.woken <= term:
            return None
        self.woken = max(now + 1, term)
        return self.woken

    def _end(self, workload: Workload) -> int:
        """Returns the end of an admitted workload's time; its admission counts in whole seconds."""
        since = self._since[workload]
        return max(since, since // SECOND * SECOND + self._left[workload])
