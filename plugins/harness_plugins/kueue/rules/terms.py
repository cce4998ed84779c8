"""Tracks the times at which something becomes due for workloads, such as the end of a backoff."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from sys import maxsize
from typing import final

from harness_plugins.kueue.state.workload import Workload


@final
class Terms:
    """Workloads with the time at which each of them becomes due.

    Attributes:
        first: the earliest time at which a workload could become due.
        woken: the last wake-up time that was requested.
    """

    def __init__(self) -> None:
        self._at: dict[Workload, int] = {}
        self._due: list[tuple[int, str, int, Workload]] = []
        self._serial = 0
        self.first = maxsize
        self.woken = -1

    def __contains__(self, workload: object) -> bool:
        """Returns True if a workload will become due."""
        return workload in self._at

    def set(self, workload: Workload, at: int) -> None:
        """Sets the time at which a workload becomes due. It replaces the time that was set before."""
        self._serial += 1
        self._at[workload] = at
        heappush(self._due, (at, workload.name, self._serial, workload))
        self.first = self._due[0][0]

    def drop(self, workload: Workload) -> None:
        """Removes a workload and its time, if it has one."""
        self._at.pop(workload, None)

    def due(self, now: int) -> Iterator[Workload]:
        """Yields and removes the workloads that are due by now, sorted by time and then by name."""
        while self._due and self._due[0][0] <= now:
            at, _, _, workload = heappop(self._due)
            if self._at.get(workload) == at:
                del self._at[workload]
                yield workload
        self._settle()

    def next(self) -> int | None:
        """Returns the next time at which a workload becomes due, or None if there is none."""
        while self._due and self._at.get(self._due[0][3]) != self._due[0][0]:
            heappop(self._due)
        self._settle()
        return self._due[0][0] if self._due else None

    def next_wake(self, now: int) -> int | None:
        """Returns the next wake-up time to request, or None if there is none or it was already requested."""
        at = self.next()
        if at is None or now < self.woken <= at:
            return None
        self.woken = at
        return at

    def _settle(self) -> None:
        self.first = self._due[0][0] if self._due else maxsize
