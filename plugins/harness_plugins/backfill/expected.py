"""How long jobs are expected to run, and what is thought of those that run longer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness import Job
from harness.base.units import HOUR, MINUTE
from harness.policy import ENDLESS

STEPS = tuple(MINUTE * each for each in (1, 5, 15, 30)) + tuple(
    HOUR * each for each in (1, 2, 5, 10, 20, 50, 100)
)
"""By how much longer a job is expected to run each time it outlives what was expected (Tsafrir et al. 2007,
section 4); the last step is repeated."""


class Expected:
    """Expected run times, learned from jobs that ended where `estimate` is `last-two`."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._estimate = options["estimate"]
        unstated = options["unstated"]
        self._unstated = ENDLESS if unstated is None else unstated
        self._last: dict[str, tuple[int, ...]] = {}

    def requested(self, job: Job) -> int:
        """What the job's user asked for, microseconds; `ENDLESS` where nothing is known."""
        return self._unstated if job.requested is None else job.requested

    def of(self, job: Job) -> int:
        """How long a job that arrives is expected to run, microseconds.

        With `last-two` that is the mean of the last two run times of its user's jobs that have ended, at most
        what is requested. With fewer than two of them, it is what is requested (Tsafrir et al. 2007, section
        3).
        """
        if self._estimate == "actual":
            return ENDLESS if job.duration is None else job.duration
        requested = self.requested(job)
        if self._estimate == "last-two":
            last = self._last.get(job.user, ())
            if len(last) == 2:
                return min(requested, sum(last) // 2)
        return requested

    def ended(self, job: Job, ran: int) -> None:
        """A job of a user has ended after so long."""
        if self._estimate == "last-two" and job.user:
            self._last[job.user] = (*self._last.get(job.user, ())[-1:], ran)

    def prolonged(self, job: Job, expected: int, ran: int, step: int) -> tuple[int, int]:
        """How long a job is expected to run that has outlived what was expected, and its next step.

        A prediction is raised step by step to at most what was requested, and beyond that without a bound,
        since nothing ends a job that runs longer.

        Args:
            job: the job, which runs.
            expected: its total run time as it was expected, microseconds.
            ran: how long it has run.
            step: how often it was prolonged.
        """
        requested = self.requested(job)
        while expected <= ran:
            longer = expected + STEPS[min(step, len(STEPS) - 1)]
            expected = requested if expected < requested < longer else longer
            step += 1
        return expected, step
