"""Jobs that hold quota and have not started yet, in a cluster without nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from harness.engine.life import Life
from harness.engine.sources import FAR


@final
class Starts:
    """Admitted jobs that wait for their promised resources, in the order in which they may start.

    They form a source that is due whenever resources were freed, because jobs may wait for these.

    Args:
        start: starts a job if its whole request is free; returns whether it started.

    Attributes:
        waiting: the jobs, by index.
    """

    def __init__(self, start: Callable[[Life], bool]) -> None:
        self.due = FAR
        self._start = start
        self.waiting: dict[int, Life] = {}

    def join(self, life: Life) -> None:
        """Add a job behind those that already wait."""
        self.waiting[life.job.index] = life

    def leave(self, life: Life) -> None:
        """Remove a job, if it waits."""
        self.waiting.pop(life.job.index, None)

    def freed(self, now: int) -> None:
        """Check the waiting jobs at this instant, because resources were freed or a job joined."""
        if self.waiting:
            self.due = now

    def deliver(self, now: int) -> None:
        """Start jobs in their order, until the request of the next job is not free."""
        self.due = FAR
        waiting = self.waiting
        while waiting:
            life = next(iter(waiting.values()))
            if not self._start(life):
                return
            del waiting[life.job.index]
