"""Conservative backfilling: every waiting job has a reservation, and nobody delays it.

A job that arrives gets the first moment from which on it has quota for as long as it is expected to run,
beside what runs and what is reserved. When a job ends, the waiting ones are moved in order, each to the first
moment that is possible then, which is never later. Only where a job runs longer than expected reservations
cannot hold: then all are made anew, in order.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from typing import final

from harness import Admit, Decision, Refuse
from harness.models.job_quotas import NO_QUOTA, Assignment, Quotas
from harness.policy import ENDLESS
from harness_plugins.backfill.expected import Expected
from harness_plugins.backfill.jobs import Running, Waiting
from harness_plugins.backfill.profile import Profile


@final
class Reserved:
    """A waiting job with its reservation: from when on it has which quota."""

    __slots__ = ("assignment", "at", "waiting")

    def __init__(self, waiting: Waiting, at: int, assignment: Assignment) -> None:
        self.waiting = waiting
        self.at = at
        self.assignment = assignment

    @property
    def until(self) -> int:
        """When the job is expected to end."""
        return min(self.at + self.waiting.expected, ENDLESS)

    def __lt__(self, other: Reserved) -> bool:
        return self.waiting.key < other.waiting.key


class Conservative:
    """The jobs of one quota tree."""

    def __init__(self, quotas: Quotas, expected: Expected) -> None:
        self._quotas = quotas
        self._expected = expected
        self._profile = Profile(quotas)
        self._new: list[Waiting] = []
        self._waiting: list[Reserved] = []
        self._running: dict[int, Running] = {}
        self._moves = False  # whether something ended, so that reservations may come earlier

    def add(self, waiting: Waiting) -> None:
        """A job waits."""
        insort(self._new, waiting)

    def end(self, running: Running, now: int) -> None:
        """A job has ended, and gives back its quota."""
        self._quotas.refund(running.assignment)
        del self._running[running.job.index]
        self._profile.refund(running.assignment, now, running.end)
        self._moves = True

    def decide(self, now: int) -> Iterator[tuple[Decision, Running | None]]:
        """Start the jobs whose reservation has come: decisions, with the job that each starts."""
        self._profile.forget(now)
        if self._prolong(now) or any(each.at < now for each in self._waiting):
            self._renew(now)
        elif self._moves:
            for each in self._waiting:
                if self._profile.may_begin_before(each.at, each.waiting.request):
                    self._profile.refund(each.assignment, each.at, each.until)
                    self._place(each, now)
        self._moves = False
        new, self._new = self._new, []
        for waiting in new:
            at, assignment = self._profile.earliest(waiting.request, waiting.job, waiting.expected, now)
            reserved = Reserved(waiting, at, assignment)
            self._profile.charge(assignment, at, reserved.until)
            insort(self._waiting, reserved)
        left = []
        for each in self._waiting:
            if each.at == now and self._quotas.fits(each.assignment):
                self._quotas.charge(each.assignment)
                job = each.waiting.job
                running = self._running[job.index] = Running(job, each.assignment, now, each.until)
                yield Admit(job, each.assignment.flavors), running
            else:
                left.append(each)
        self._waiting = left
        for waiting in new:
            if waiting.job.index not in self._running and not self._quotas.has_room(waiting.request):
                yield Refuse(waiting.job, NO_QUOTA, self._quotas.shortage(waiting.request)), None

    def _place(self, each: Reserved, now: int) -> None:
        """Give a job the first moment that is possible."""
        waiting = each.waiting
        each.at, each.assignment = self._profile.earliest(waiting.request, waiting.job, waiting.expected, now)
        self._profile.charge(each.assignment, each.at, each.until)

    def _renew(self, now: int) -> None:
        """Make all reservations anew, in order."""
        for each in self._waiting:
            self._profile.refund(each.assignment, each.at, each.until)
        for each in self._waiting:
            self._place(each, now)

    def _prolong(self, now: int) -> bool:
        """Move the expected ends of jobs that have outlived them; answers whether there are any."""
        late = [
            each for each in self._running.values() if each.end < now or (each.end == now and not each.ending)
        ]
        for each in late:
            each.prolong(self._expected, now)
            self._profile.charge(each.assignment, now, each.end)
        return bool(late)
