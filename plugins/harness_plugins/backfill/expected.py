"""The expected run times of jobs, and their correction when a job runs longer."""

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
"""The additions to the expected run time of a job: one each time the job runs longer than its estimate.

Source: Tsafrir et al. 2007, section 4. The last step is repeated.
"""

FROM_FIRST = tuple(step - before for before, step in pairwise([0, *STEPS]))
"""The additions if each step counts from the first prediction, as predictsim corrects."""


class Expected:
    """Expected run times, learned from jobs that ended if `estimate` is `last-two`."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._estimate = options["estimate"]
        unstated = options["unstated"]
        self._unstated = ENDLESS if unstated is None else unstated
        self._to_request = options["correction"] == "requested"
        self._additions = FROM_FIRST if options["correction"] == "from-first" else STEPS
        self._last: dict[str, tuple[int, ...]] = {}

    def requested(self, job: Job) -> int:
        """Returns the run time that the job's user requested, microseconds; `ENDLESS` if it is unknown."""
        return self._unstated if job.requested is None else job.requested

    def of(self, job: Job) -> int:
        """Returns the expected run time of a job that arrives, microseconds.

        With `last-two`, it is the mean of the last two run times of its user's jobs that have ended, in whole
        seconds. It is at most the requested time. With fewer than two ended jobs, it is the requested time
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
        """Returns the new expected run time of a job that ran longer than expected, and its next step.

        A prediction is raised to at most the requested time, step by step or in one go. After the requested
        time it has no bound, because nothing ends a job that runs longer.

        Args:
            job: the job, which runs.
            expected: the total run time that was expected, microseconds.
            ran: the time that the job has run.
            step: the number of times that the job was prolonged.
        """
        requested = self.requested(job)
        while expected <= ran:
            longer = expected + self._additions[min(step, len(self._additions) - 1)]
            capped = expected < requested and (self._to_request or requested < longer)
            expected = requested if capped else longer
            step += 1
        return expected, step
