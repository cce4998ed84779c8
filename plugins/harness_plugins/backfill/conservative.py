"""Implements conservative backfilling. Every waiting job has a reservation, and no other job delays it.

An arriving job gets a reservation at the earliest time at which it fits beside running jobs and other
reservations. The reservation lasts for the expected run time of the job. When a job ends, the reservations of
waiting jobs are moved, one after another. Each reservation moves to the earliest possible time, which is
never later than before.

Reservations fail only if a job runs longer than expected. In this case, all reservations are made again in
order.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from typing import Generic, final

from harness import Decision, Job, Refuse
from harness.policy import ENDLESS
from harness_plugins.backfill.capacity import A, Capacity, R, V
from harness_plugins.backfill.expected import Expected
from harness_plugins.backfill.jobs import RESERVED, Running, Waiting

_RESERVED = {"message": "the job fits now, but it would delay jobs with reservations"}


@final
class Reserved(Generic[R, A]):
    """A waiting job with its reservation, which consists of a start time and an assignment."""

    __slots__ = ("assignment", "at", "waiting")

    def __init__(self, waiting: Waiting[R], at: int, assignment: A) -> None:
        self.waiting = waiting
        self.at = at
        self.assignment = assignment

    @property
    def until(self) -> int:
        """The expected end of the job."""
        return min(self.at + self.waiting.expected, ENDLESS)

    def __lt__(self, other: Reserved[R, A]) -> bool:
        return self.waiting.key < other.waiting.key


class Conservative(Generic[R, A, V]):
    """Conservative backfilling for the jobs of one quota tree, or of all nodes."""

    def __init__(self, capacity: Capacity[R, A, V], expected: Expected) -> None:
        self._capacity = capacity
        self._expected = expected
        self._plan = capacity.plan()
        self._new: list[Waiting[R]] = []
        self._waiting: list[Reserved[R, A]] = []
        self._running: dict[int, Running[A]] = {}
        self._moves = False  # whether a job ended, so that reservations could become earlier

    def add(self, waiting: Waiting[R]) -> None:
        """Adds a waiting job."""
        insort(self._new, waiting)

    @property
    def waiting(self) -> list[Waiting[R]]:
        """The waiting jobs, in order."""
        return sorted([*(each.waiting for each in self._waiting), *self._new])

    def resume(self, running: Running[A], now: int) -> None:
        """Adds a job that is already running and uses its assignment."""
        self._running[running.job.index] = running
        self._plan.charge(running.assignment, now, running.end)

    def end(self, running: Running[A], now: int) -> None:
        """Ends a job and releases its assignment."""
        self._capacity.refund(running.assignment)
        del self._running[running.job.index]
        self._plan.refund(running.assignment, now, running.end)
        self._moves = True

    def take_over(
        self, job: Job, assignment: A, expected: int, now: int
    ) -> Iterator[tuple[Decision, Running[A]]]:
        """Starts a job with its assignment now, and yields each decision with the job."""
        until = min(now + expected, ENDLESS)
        self._plan.charge(assignment, now, until)
        yield from self._begin(job, assignment, until, now)

    def _begin(self, job: Job, assignment: A, until: int, now: int) -> Iterator[tuple[Decision, Running[A]]]:
        self._capacity.charge(assignment)
        running = self._running[job.index] = Running(job, assignment, now, until)
        for decision in self._capacity.decisions(job, assignment):
            yield decision, running

    def decide(self, now: int) -> Iterator[tuple[Decision, Running[A] | None]]:
        """Starts the jobs whose reserved time has come, and yields each decision with its job."""
        self._capacity.advance(now)
        self._plan.forget(now)
        if self._prolong(now) or any(each.at < now for each in self._waiting):
            self._renew(now)
        elif self._moves or self._capacity.others_matter:
            for each in self._waiting:
                if self._plan.may_begin_before(each.at, each.waiting.request):
                    self._plan.refund(each.assignment, each.at, each.until)
                    self._place(each, now)
        self._moves = False
        new, self._new = self._new, []
        for waiting in new:
            at, assignment = self._plan.earliest(waiting.request, waiting.job, waiting.expected, now)
            reserved = Reserved(waiting, at, assignment)
            self._plan.charge(assignment, at, reserved.until)
            insort(self._waiting, reserved)
        left = []
        for each in self._waiting:
            if each.at == now and self._capacity.fits(each.assignment):
                yield from self._begin(each.waiting.job, each.assignment, each.until, now)
            else:
                left.append(each)
        self._waiting = left
        for waiting in new:
            if waiting.job.index not in self._running:
                refusal = self._capacity.refusal(waiting.request, waiting.job, waiting.expected)
                yield refusal or Refuse(waiting.job, RESERVED, _RESERVED), None

    def _place(self, each: Reserved[R, A], now: int) -> None:
        waiting = each.waiting
        each.at, each.assignment = self._plan.earliest(waiting.request, waiting.job, waiting.expected, now)
        self._plan.charge(each.assignment, each.at, each.until)

    def _renew(self, now: int) -> None:
        for each in self._waiting:
            self._plan.refund(each.assignment, each.at, each.until)
        for each in self._waiting:
            self._place(each, now)

    def _prolong(self, now: int) -> bool:
        """Extends jobs that are still running after their expected end, and returns whether any were."""
        late = [
            each for each in self._running.values() if each.end < now or (each.end == now and not each.ending)
        ]
        for each in late:
            each.prolong(self._expected, now)
            self._plan.charge(each.assignment, now, each.end)
        return bool(late)
