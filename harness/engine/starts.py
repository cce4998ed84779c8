"""Jobs that hold quota and do not run yet, in a cluster without nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from harness.engine.life import Life
from harness.engine.sources import FAR


@final
class Starts:
    """Jobs that were admitted and wait for what they were promised, in the order in which they may start.

    A source that is due whenever something was given back that they may have been waiting for.

    Args:
        start: starts a job if all that it asks for is free; answers whether it was.

    Attributes:
        waiting: the jobs, by index.
    """

    def __init__(self, start: Callable[[Life], bool]) -> None:
        self.due = FAR
        self._start = start
        self.waiting: dict[int, Life] = {}

    def join(self, life: Life) -> None:
        """A job waits behind those who wait already."""
        self.waiting[life.job.index] = life

    def leave(self, life: Life) -> None:
        """A job does not wait any more, if it did."""
        self.waiting.pop(life.job.index, None)

    def freed(self, now: int) -> None:
        """Something was given back, or somebody has joined: those who wait are looked at in this instant."""
        if self.waiting:
            self.due = now

    def deliver(self, now: int) -> None:
        """Start jobs in their order, until what the next one asks for is not free."""
        self.due = FAR
        waiting = self.waiting
        while waiting:
            life = next(iter(waiting.values()))
            if not self._start(life):
                return
            del waiting[life.job.index]
