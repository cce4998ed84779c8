"""Implements EASY backfilling, where jobs can overtake waiting jobs if they do not delay the first of them.

The first waiting job has a reservation for the time at which it fits if running jobs end as expected. Another
job can start earlier if it is expected to end by that time, or if both jobs fit at that time. Resources of
jobs that end at exactly that time count as free.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Generic

from harness import Decision, Job, Refuse
from harness.policy import ENDLESS
from harness_plugins.backfill.capacity import A, Capacity, R, V
from harness_plugins.backfill.expected import Expected
from harness_plugins.backfill.jobs import BEHIND, Entry, Running, Waiting


class Easy(Generic[R, A, V]):
    """EASY backfilling for the jobs of one quota tree, or of all nodes.

    While no job ends and no expected end moves, free resources can only decrease. Jobs that could not start
    still cannot start, so only new jobs are examined (`_fresh`).
    """

    def __init__(self, capacity: Capacity[R, A, V], expected: Expected) -> None:
        self._capacity = capacity
        self._expected = expected
        self._waiting: list[Waiting[R]] = []
        self._shapes: dict[R, int] = {}  # the number of waiting jobs with each request
        self._running: list[Entry[A]] = []  # by expected end
        self._fresh: list[Waiting[R]] = []
        self._settled = False  # whether no job ended and no end moved since all jobs were examined
        self._reservation: V | None = None  # the most recent reservation
        self._holds = False  # whether no job ended and no end moved since that reservation
        self._first: Waiting[R] | None = None  # the last first job whose refusal was recorded

    def add(self, waiting: Waiting[R]) -> None:
        """Adds a waiting job."""
        insort(self._waiting, waiting)
        self._shapes[waiting.request] = self._shapes.get(waiting.request, 0) + 1
        self._fresh.append(waiting)

    @property
    def waiting(self) -> list[Waiting[R]]:
        """The waiting jobs, in order."""
        return list(self._waiting)

    def resume(self, running: Running[A], now: int) -> None:
        """Adds a job that is already running and uses its assignment."""
        insort(self._running, (running.place, running))

    def end(self, running: Running[A], now: int) -> None:
        """Ends a job and releases its assignment."""
        self._capacity.refund(running.assignment)
        del self._running[bisect_left(self._running, (running.place, running))]
        self._settled = False

    def take_over(
        self, job: Job, assignment: A, expected: int, now: int
    ) -> Iterator[tuple[Decision, Running[A]]]:
        """Starts a job with its assignment now, and yields each decision with the job."""
        self._capacity.charge(assignment)
        running = Running(job, assignment, now, _end(now, expected))
        insort(self._running, (running.place, running))
        for decision in self._capacity.decisions(job, assignment):
            yield decision, running

    def decide(self, now: int) -> Iterator[tuple[Decision, Running[A] | None]]:
        """Starts the jobs that can start now, and yields each decision with the job that it starts."""
        self._capacity.advance(now)
        self._prolong(now)
        capacity, waiting, fresh = self._capacity, self._waiting, self._fresh
        self._fresh = []
        while waiting and (assignment := self._for_first(waiting[0])) is not None:
            self._settled = False
            yield from self._start(waiting[0], assignment, now)
        if not waiting:
            return
        head = waiting[0]
        behind = list(fresh)
        if head is not self._first:
            if self._first is not None:
                behind.append(self._first)
            self._first = head
            refusal = capacity.refusal(head.request, head.job, head.expected)
            if refusal is not None:
                yield refusal, None
        if self._settled and head not in fresh and not capacity.others_matter:
            candidates = sorted(fresh)
            roomy = {each.request for each in candidates}
        else:
            self._settled, self._holds = True, False
            candidates = waiting[1:]
            roomy = capacity.roomy(self._shapes)
        yield from self._backfill(head, candidates, roomy, now)
        first = {"waitsFor": {head.job.id: ""}}
        for each in behind:
            at = bisect_left(waiting, each)
            if each is not head and at < len(waiting) and waiting[at] is each:
                yield Refuse(each.job, BEHIND, first), None

    def _for_first(self, head: Waiting[R]) -> A | None:
        assignment = self._capacity.assign(head.request, head.job, head.expected)
        known = self._reservation
        if assignment is None and known is not None and known.job is head.job:
            return self._capacity.reserved(known)
        return assignment

    def _backfill(
        self, head: Waiting[R], candidates: list[Waiting[R]], roomy: set[R], now: int
    ) -> Iterator[tuple[Decision, Running[A] | None]]:
        """Starts the candidates that do not delay the first job. Only requests in `roomy` can fit."""
        capacity = self._capacity
        for each in candidates:
            if not roomy:
                return
            if each.request not in roomy:
                continue
            has_room = capacity.has_room(each.request)
            assignment = capacity.assign(each.request, each.job, each.expected) if has_room else None
            if assignment is None:
                if not (has_room and capacity.foresees):
                    roomy.discard(each.request)
                continue
            reservation = self._reserved_for(head)
            if _end(now, each.expected) > reservation.at:
                assignment = capacity.beside(reservation, each.request, each.job, each.expected, assignment)
            if assignment is not None:
                yield from self._start(each, assignment, now)
                roomy = capacity.roomy(roomy)

    def _reserved_for(self, head: Waiting[R]) -> V:
        known = self._reservation
        if known is None or not self._holds:
            before = known if known is not None and known.job is head.job else None
            known = self._capacity.reserve(head.request, head.job, head.expected, self._running, before)
            self._reservation, self._holds = known, True
        return known

    def _start(self, waiting: Waiting[R], assignment: A, now: int) -> Iterator[tuple[Decision, Running[A]]]:
        del self._waiting[bisect_left(self._waiting, waiting)]
        self._shapes[waiting.request] -= 1
        if not self._shapes[waiting.request]:
            del self._shapes[waiting.request]
        yield from self.take_over(waiting.job, assignment, waiting.expected, now)

    def _prolong(self, now: int) -> None:
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
