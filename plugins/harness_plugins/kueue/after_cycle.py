"""Delays news for the scheduler: it learns of events during its cycle when the cycle is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVarTuple, final

_Ts = TypeVarTuple("_Ts")


@final
class AfterCycle:
    """The news that the scheduler has yet to learn.

    Attributes:
        cycling: whether a cycle runs.
    """

    def __init__(self) -> None:
        self.cycling = False
        self._afterwards: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._admissions = 0  # where the next admission of this instant goes

    def then(self, follow: Callable[[*_Ts], None], *about: *_Ts) -> None:
        """Let the scheduler know of something: at once, or when its cycle is over."""
        if self.cycling:
            self._afterwards.append((follow, about))
        else:
            follow(*about)

    def admitted(self, follow: Callable[[*_Ts], None], *about: *_Ts) -> None:
        """Tells the scheduler of an admission.

        Workloads that were told to leave at this instant still hold their quota then: evictions complete
        after the cycle.
        """
        if self.cycling:
            self._afterwards.insert(self._admissions, (follow, about))
            self._admissions += 1
        else:
            follow(*about)

    def later(self) -> None:
        """Notes that time has passed since the cycle began: earlier events come before all admissions."""
        self._admissions = len(self._afterwards)

    def end(self) -> None:
        """The cycle is over."""
        self.cycling = False
        self._admissions = 0
        for follow, about in self._afterwards:
            follow(*about)
        self._afterwards.clear()
