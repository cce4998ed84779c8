"""Models the expected usage of quotas from now on, as time spans with constant usage."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable

from harness import Job
from harness.models.job_quotas import Assignment, Quotas, Request


class Profile:
    """The usage over time. The last span has no end.

    Args:
        quotas: the quotas, which check whether requests fit. The usage of a span temporarily replaces their
            own usage.
    """

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._times: list[int] = [0]
        self._usages: list[list[int]] = [[0] * len(quotas.usage)]

    def forget(self, now: int) -> None:
        """Drops past spans, so that the first span starts at `now`."""
        over = bisect_right(self._times, now) - 1
        del self._times[:over], self._usages[:over]
        self._times[0] = now

    def charge(self, assignment: Assignment, start: int, end: int) -> None:
        """Adds an assignment from `start` until just before `end`."""
        self._apply(self._quotas.charge, assignment, start, end)

    def refund(self, assignment: Assignment, start: int, end: int) -> None:
        """Removes an assignment from `start` until just before `end`."""
        self._apply(self._quotas.refund, assignment, start, end)

    def earliest(self, request: Request, job: Job, length: int, now: int) -> tuple[int, Assignment]:
        """Returns the first time from `now` on when a job could get quota for `length`, and its assignment.

        The last span contains only running jobs that never end. If these jobs leave too little quota, a job
        starts in an earlier span that has enough. A job that can start in an empty cluster therefore always
        finds a time.
        """
        first = roomy = 0
        while first < len(self._times):
            start = max(now, self._times[first])
            last = bisect_left(self._times, start + length, first + 1)
            full = self._first_full(request, max(first, roomy), last)
            if full is not None:
                first = full + 1
                continue
            roomy = last
            assignment = self._quotas.assign_throughout(request, job, self._usages[first:last])
            if assignment is not None:
                return start, assignment
            first += 1  # each span has quota in some flavor, but no flavor has quota in all of them
        raise AssertionError(f"there is never quota for job {job.id}")

    def may_begin_before(self, time: int, request: Request) -> bool:
        """Returns True if a request could perhaps get quota before `time`, or another flavor at `time`.

        Args:
            time: the time of the job's current reservation.
            request: the request. If it can use several flavors, the result is always True. Otherwise, the
                result is True only if some span before `time` has quota for it.
        """
        if any(len(flavors) > 1 for flavors in request.groups):
            return True
        before = bisect_left(self._times, time)
        return any(self._first_full(request, place, place + 1) is None for place in range(before))

    def _first_full(self, request: Request, first: int, last: int) -> int | None:
        """Returns the first of several spans that has no quota for a request, or None if all have some."""
        quotas = self._quotas
        held = quotas.usage
        found = None
        for place in range(first, last):
            quotas.usage = self._usages[place]
            if not quotas.has_room(request):
                found = place
                break
        quotas.usage = held
        return found

    def _apply(
        self, change: Callable[[Assignment], None], assignment: Assignment, start: int, end: int
    ) -> None:
        start = max(start, self._times[0])
        if end <= start:
            return
        first, last = self._split(start), self._split(end)
        held = self._quotas.usage
        for usage in self._usages[first:last]:
            self._quotas.usage = usage
            change(assignment)
        self._quotas.usage = held

    def _split(self, time: int) -> int:
        at = bisect_left(self._times, time)
        if at == len(self._times) or self._times[at] != time:
            self._times.insert(at, time)
            self._usages.insert(at, list(self._usages[at - 1]))
        return at
