"""The scheduler hears of what happens during its cycle when that is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVarTuple, final

_Ts = TypeVarTuple("_Ts")


@final
class AfterCycle:
    """What the scheduler is yet to hear of.

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
        """Let the scheduler know of an admission.

        Who was told to go at this instant still holds its quota then: evictions complete after the cycle.
        """
        if self.cycling:
            self._afterwards.insert(self._admissions, (follow, about))
            self._admissions += 1
        else:
            follow(*about)

    def later(self) -> None:
        """It is later than when the cycle began: what has followed so far comes before all admissions."""
        self._admissions = len(self._afterwards)

    def end(self) -> None:
        """The cycle is over."""
        self.cycling = False
        self._admissions = 0
        for follow, about in self._afterwards:
            follow(*about)
        self._afterwards.clear()
