"""Kueue's `maximumExecutionTimeSeconds`: workloads that have been admitted for long enough are deactivated.

What a workload was admitted for before an eviction counts too. It keeps time for the policy, which evicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import final

from harness.units import SECOND
from harness_plugins.kueue.state.workload import Workload

EXCEEDED = "DeactivatedDueToMaximumExecutionTimeExceeded"


@final
class ExecutionTimes:
    """The workloads whose time is limited: how much is left of it, and since when it runs."""

    def __init__(self) -> None:
        self._left: dict[Workload, int] = {}
        self._since: dict[Workload, int] = {}
        self._due: list[tuple[int, str, int, Workload]] = []
        self._serial = 0
        self._woken = -1

    def limit(self, workload: Workload, left: int) -> None:
        """A workload may be admitted for so long, microseconds."""
        self._left[workload] = left

    def admitted(self, workload: Workload, at: int) -> None:
        """A workload is admitted since a time, of which whole seconds count, as conditions have them."""
        if workload in self._left:
            since = self._since[workload] = at // SECOND * SECOND
            self._serial += 1
            heappush(self._due, (since + self._left[workload], workload.name, self._serial, workload))

    def told_to_go(self, workload: Workload, now: int) -> None:
        """A workload was evicted: what it ran for is gone."""
        if workload in self._since:
            self._left[workload] -= max(0, now - self._since.pop(workload))

    def is_due(self, now: int) -> bool:
        """Whether the time of some workload may be over now."""
        return bool(self._due) and self._due[0][0] <= now

    def due(self, now: int) -> Iterator[Workload]:
        """Whose time is over now; nothing is left of it."""
        while self._due and self._due[0][0] <= now:
            workload = heappop(self._due)[3]
            since = self._since.get(workload)
            if since is not None and since + self._left[workload] <= now:
                del self._since[workload]
                self._left[workload] = 0
                yield workload

    def is_over(self, workload: Workload) -> bool:
        """Whether nothing is left of a workload's time."""
        return self._left.get(workload, 1) <= 0

    def forget(self, workload: Workload) -> None:
        """A workload is over."""
        self._left.pop(workload, None)
        self._since.pop(workload, None)

    def next_wake(self, now: int) -> int | None:
        """The instant to ask for now so that no end is missed; None where one was asked for."""
        term = self._due[0][0] if self._due else None
        if term is None or now < self._woken <= term:
            return None
        self._woken = max(now + 1, term)
        return self._woken
