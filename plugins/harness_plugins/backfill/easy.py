"""EASY backfilling: a job may pass those before it if it does not delay the first of them.

The first waiting job has a reservation: the moment at which, as jobs are expected to end, it has quota.
Another one starts before it if it is expected to be over by then, or if the first one has quota then with it,
too.
What is free after a job ended at that very moment counts as free then.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import NamedTuple

from harness import Admit, Decision, Refuse
from harness.models.job_quotas import NO_QUOTA, Assignment, Cells, Quotas, Request
from harness.policy import ENDLESS
from harness_plugins.backfill.expected import Expected
from harness_plugins.backfill.jobs import Running, Waiting


class Reservation(NamedTuple):
    """When the first waiting job is expected to have quota, and what is used then without it."""

    at: int
    usage: list[int]


class Easy:
    """The jobs of one quota tree.

    Shortcut: while nothing ends and no expected end moves, jobs that could not start cannot start later
    either, because what is free only shrinks. Until then only new jobs are looked at (`_fresh`).
    """

    def __init__(self, quotas: Quotas, expected: Expected) -> None:
        self._quotas = quotas
        self._expected = expected
        self._waiting: list[Waiting] = []
        self._shapes: dict[Request, int] = {}  # what waiting jobs ask for -> how many of them
        self._running: list[tuple[tuple[int, int], Running]] = []  # by expected end
        self._fresh: list[Waiting] = []
        self._settled = False  # whether nothing has ended or moved since all were looked at
        self._reservation: Reservation | None = None
        self._told = -1  # index of the last job that was said to lack quota

    def add(self, waiting: Waiting) -> None:
        """A job waits."""
        insort(self._waiting, waiting)
        self._shapes[waiting.request] = self._shapes.get(waiting.request, 0) + 1
        self._fresh.append(waiting)

    def end(self, running: Running, now: int) -> None:
        """A job has ended, and gives back its quota."""
        self._quotas.refund(running.assignment)
        del self._running[bisect_left(self._running, (running.place, running))]
        self._settled = False

    def decide(self, now: int) -> Iterator[tuple[Decision, Running | None]]:
        """Start the jobs that may start now: decisions, with the job that each starts."""
        self._prolong(now)
        waiting, fresh = self._waiting, self._fresh
        self._fresh = []
        while waiting and (assignment := self._quotas.assign(waiting[0].request, waiting[0].job)) is not None:
            self._settled = False
            yield Admit(waiting[0].job, assignment.flavors), self._start(waiting[0], assignment, now)
        if not waiting:
            return
        head = waiting[0]
        if head.job.index != self._told:
            self._told = head.job.index
            yield Refuse(head.job, NO_QUOTA, self._quotas.shortage(head.request)), None
        if self._settled and head not in fresh:
            candidates = sorted(fresh)
            roomy = {each.request for each in candidates}
        else:
            self._settled, self._reservation = True, None
            candidates = waiting[1:]
            roomy = {request for request in self._shapes if self._quotas.has_room(request)}
        yield from self._backfill(head, candidates, roomy, now)

    def _backfill(
        self, head: Waiting, candidates: list[Waiting], roomy: set[Request], now: int
    ) -> Iterator[tuple[Decision, Running | None]]:
        """Start those candidates that do not delay the first job; only what `roomy` holds may have quota."""
        quotas = self._quotas
        delaying: set[tuple[int, Cells]] = set()  # what delays the first job where it is held then
        for each in candidates:
            if not roomy:
                return
            if each.request not in roomy:
                continue
            assignment = quotas.assign(each.request, each.job)
            if assignment is None:
                roomy.discard(each.request)
                continue
            if self._reservation is None:
                self._reservation = self._reserve(head, now)
            taken = assignment.node, assignment.cells
            if _end(now, each.expected) > self._reservation.at and (
                taken in delaying or self._delays(assignment, self._reservation.usage, head)
            ):
                delaying.add(taken)
                continue
            yield Admit(each.job, assignment.flavors), self._start(each, assignment, now)

    def _reserve(self, head: Waiting, now: int) -> Reservation:
        """The first moment at which a job has quota, when jobs end as expected."""
        quotas = self._quotas
        held = quotas.usage
        quotas.usage = list(held)
        at = None
        for (end, _), running in self._running:
            if at is not None and end > at:
                break
            quotas.refund(running.assignment)
            if at is None and quotas.has_room(head.request):
                at = end
        then, quotas.usage = quotas.usage, held
        return Reservation(ENDLESS if at is None else at, then)

    def _delays(self, assignment: Assignment, then: list[int], head: Waiting) -> bool:
        """Whether quota that is held at the reservation leaves the first job without; else it is held."""
        quotas = self._quotas
        held, quotas.usage = quotas.usage, then
        quotas.charge(assignment)
        delays = not quotas.has_room(head.request)
        if delays:
            quotas.refund(assignment)
        quotas.usage = held
        return delays

    def _start(self, waiting: Waiting, assignment: Assignment, now: int) -> Running:
        del self._waiting[bisect_left(self._waiting, waiting)]
        self._shapes[waiting.request] -= 1
        if not self._shapes[waiting.request]:
            del self._shapes[waiting.request]
        self._quotas.charge(assignment)
        running = Running(waiting.job, assignment, now, _end(now, waiting.expected))
        insort(self._running, (running.place, running))
        return running

    def _prolong(self, now: int) -> None:
        """Move the expected ends of jobs that have outlived them."""
        late = []
        for place, running in self._running:
            if place[0] > now:
                break
            if place[0] < now or not running.ending:
                late.append((place, running))
        for entry in late:
            self._running.remove(entry)
            entry[1].prolong(self._expected, now)
            insort(self._running, (entry[1].place, entry[1]))
            self._settled = False


def _end(now: int, expected: int) -> int:
    return min(now + expected, ENDLESS)
