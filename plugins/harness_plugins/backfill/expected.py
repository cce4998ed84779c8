"""Computes the expected run times of jobs, and corrects them when a job runs longer."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from harness import Job
from harness.base.units import HOUR, MINUTE, SECOND
from harness.policy import ENDLESS

STEPS = tuple(MINUTE * each for each in (1, 5, 15, 30)) + tuple(
    HOUR * each for each in (1, 2, 5, 10, 20, 50, 100)
)
"""The additions to the expected run time of a job, one for each time that the job runs longer.

The last amount is repeated. Source: Tsafrir et al. 2007, section 4.
"""

FROM_FIRST = tuple(step - before for before, step in pairwise([0, *STEPS]))
"""The amounts if each step counts from the first prediction, as in predictsim."""


class Expected:
    """Determines expected run times. If `estimate` is `last-two`, they are based on finished jobs."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._estimate = options["estimate"]
        unstated = options["unstated"]
        self._unstated = ENDLESS if unstated is None else unstated
        self._to_request = options["correction"] == "requested"
        self._additions = FROM_FIRST if options["correction"] == "from-first" else STEPS
        self._last: dict[str, tuple[int, ...]] = {}

    def requested(self, job: Job) -> int:
        """Returns the run time that the user requested, in microseconds, or `ENDLESS` if it is unknown."""
        return self._unstated if job.requested is None else job.requested

    def of(self, job: Job) -> int:
        """Returns the expected run time of a job that arrives, in microseconds.

        With `last-two`, it is the mean run time of the user's last two jobs that have ended. It is in whole
        seconds, and at most the requested time. If fewer than two jobs have ended, it is the requested time
        (Tsafrir et al. 2007, section 3).
        """
        if self._estimate == "actual":
            return ENDLESS if job.duration is None else job.duration
        requested = self.requested(job)
        if self._estimate == "last-two":
            last = self._last.get(job.user, ())
            if len(last) == 2:
                return min(requested, sum(last) // (2 * SECOND) * SECOND)
        return requested

    def ended(self, job: Job, ran: int) -> None:
        """Records the run time of a job that ended, for its user."""
        if self._estimate == "last-two" and job.user:
            self._last[job.user] = (*self._last.get(job.user, ())[-1:], ran)

    def prolonged(self, job: Job, expected: int, ran: int, step: int) -> tuple[int, int]:
        """Returns a longer expected run time for a job that ran longer than expected, and the next `step`.

        A prediction below the requested time grows to at most the requested time, in steps or at once. After
        that, it grows without a limit, because nothing ends a job that exceeds its requested time.

        Args:
            job: the running job.
            expected: the total run time that was expected, in microseconds.
            ran: how long the job has been running.
            step: how often the expected run time was already increased.
        """
        requested = self.requested(job)
        while expected <= ran:
            longer = expected + self._additions[min(step, len(self._additions) - 1)]
            capped = expected < requested and (self._to_request or requested < longer)
            expected = requested if capped else longer
            step += 1
        return expected, step
