"""Delays events for the scheduler: events during its cycle reach it when the cycle is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVarTuple, final

_Ts = TypeVarTuple("_Ts")


@final
class AfterCycle:
    """The events that the scheduler does not know yet.

    Attributes:
        cycling: whether a cycle runs.
    """

    def __init__(self) -> None:
        self.cycling = False
        self._afterwards: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._admissions = 0  # the position of the next admission of this instant

    def then(self, follow: Callable[[*_Ts], None], *about: *_Ts) -> None:
        """Calls `follow(*about)` immediately, or at the end of the running cycle."""
        if self.cycling:
            self._afterwards.append((follow, about))
        else:
            follow(*about)

    def admitted(self, follow: Callable[[*_Ts], None], *about: *_Ts) -> None:
        """Calls `follow(*about)` for an admission, before all other events of this instant.

        So workloads that were evicted at this instant still hold their quota at the admission: evictions
        complete after the cycle.
        """
        if self.cycling:
            self._afterwards.insert(self._admissions, (follow, about))
            self._admissions += 1
        else:
            follow(*about)

    def later(self) -> None:
        """Marks a new instant within a cycle: events so far come before all later admissions."""
        self._admissions = len(self._afterwards)

    def end(self) -> None:
        """Ends the cycle, and delivers the events that were delayed."""
        self.cycling = False
        self._admissions = 0
        for follow, about in self._afterwards:
            follow(*about)
        self._afterwards.clear()
