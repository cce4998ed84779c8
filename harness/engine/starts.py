"""Handles jobs that hold quota but have not started yet, in a cluster without nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from harness.engine.life import Life
from harness.engine.sources import FAR


@final
class Starts:
    """Admitted jobs that wait for their promised resources, in the order in which they may start.

    This is a source that is due whenever resources have been freed, because jobs may be waiting for them.

    Args:
        start: starts a job if its whole request is free, and returns whether the job started.
    """

    def __init__(self, start: Callable[[Life], bool]) -> None:
        self.due = FAR
        self._start = start
        self.waiting: dict[int, Life] = {}

    def join(self, life: Life) -> None:
        """Add a job after those that are already waiting."""
        self.waiting[life.job.index] = life

    def leave(self, life: Life) -> None:
        """Remove a job if it is waiting."""
        self.waiting.pop(life.job.index, None)

    def freed(self, now: int) -> None:
        """Check the waiting jobs now, because resources were freed or a job joined."""
        if self.waiting:
            self.due = now

    def deliver(self, now: int) -> None:
        """Start waiting jobs in order. Stop at the first job whose request is not free."""
        self.due = FAR
        waiting = self.waiting
        while waiting:
            life = next(iter(waiting.values()))
            if not self._start(life):
                return
            del waiting[life.job.index]
