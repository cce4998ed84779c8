"""The scheduler hears of what happens during its cycle when that is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import final


@final
class AfterCycle:
    """What the scheduler is yet to hear of.

    Attributes:
        cycling: whether a cycle runs.
    """

    def __init__(self) -> None:
        self.cycling = False
        self._afterwards: list[Callable[[], None]] = []

    def then(self, follow: Callable[[], None]) -> None:
        """Let the scheduler know of something: at once, or when its cycle is over."""
        if self.cycling:
            self._afterwards.append(follow)
        else:
            follow()

    def end(self) -> None:
        """The cycle is over."""
        self.cycling = False
        for follow in self._afterwards:
            follow()
        self._afterwards.clear()
