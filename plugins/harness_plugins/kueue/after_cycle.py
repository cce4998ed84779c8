"""Delays events that occur during a cycle until the cycle has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVarTuple, final

_Ts = TypeVarTuple("_Ts")


@final
class AfterCycle:
    """Events that the scheduler has not processed yet."""

    def __init__(self) -> None:
        self.cycling = False
        self._afterwards: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._admissions = 0  # the position of the next admission among the events at this time

    def then(self, follow: Callable[[*_Ts], None], *about: *_Ts) -> None:
        """Calls `follow(*about)` immediately. If a cycle is running, calls it when the cycle ends."""
        if self.cycling:
            self._afterwards.append((follow, about))
        else:
            follow(*about)

    def admitted(self, follow: Callable[[*_Ts], None], *about: *_Ts) -> None:
        """Calls `follow(*about)` for an admission, before all other events at this time.

        Evictions complete after the cycle. During this call, workloads that are evicted at the same time
        therefore still hold their quota.
        """
        if self.cycling:
            self._afterwards.insert(self._admissions, (follow, about))
            self._admissions += 1
        else:
            follow(*about)

    def later(self) -> None:
        """Records that time has passed within a cycle. Later admissions come after all earlier events."""
        self._admissions = len(self._afterwards)

    def end(self) -> None:
        """Ends the cycle, and processes the delayed events."""
        self.cycling = False
        self._admissions = 0
        for follow, about in self._afterwards:
            follow(*about)
        self._afterwards.clear()
