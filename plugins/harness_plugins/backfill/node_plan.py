"""Plans the jobs on each node from now on, based on their expected run times.

A reservation is for a certain start time, not for certain nodes. The plan assumes that all running jobs end
as expected. At the start time, the job gets the nodes in the plan if they are still free, or else other
nodes.

A job can reserve a time if it finds nodes at that time, and if every later job still finds nodes at its own
reserved time. As a result, no job is delayed, and no job waits for specific nodes if other nodes are
sufficient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

from harness import Job
from harness.policy import ENDLESS
from harness_plugins.backfill.outlook import Outlook
from harness_plugins.backfill.snapshot import Places, Snapshot


@final
class Span:
    """The time during which a job is on its nodes."""

    __slots__ = ("end", "places", "start")

    def __init__(self, places: Places, start: int, end: int) -> None:
        self.places = places
        self.start = start
        self.end = end


class Event(NamedTuple):
    """The start or the end of a job. At equal times, ends come before starts."""

    time: int
    starts: bool
    number: int
    span: Span


@final
class NodePlan:
    """The plan of all jobs. See `capacity.Plan`.

    Args:
        snapshot: the nodes. They have only the pods of this plan.
        outlook: the announced node changes.
    """

    def __init__(self, snapshot: Snapshot, outlook: Outlook) -> None:
        self._snapshot = snapshot
        self._outlook = outlook
        self._spans: dict[int, Span] = {}
        self._now = 0

    def forget(self, now: int) -> None:
        """See `Plan`."""
        self._now = now
        for index in [index for index, span in self._spans.items() if span.end <= now]:
            del self._spans[index]

    def charge(self, assignment: Places, start: int, end: int) -> None:
        """See `Plan`. If a job runs longer, it stays on its nodes."""
        known = self._spans.get(assignment.job.index)
        if known is None:
            self._spans[assignment.job.index] = Span(assignment, start, end)
        else:
            known.end = end

    def refund(self, assignment: Places, start: int, end: int) -> None:
        """See `Plan`."""
        known = self._spans.get(assignment.job.index)
        if known is None:
            return
        known.end = start
        if start <= known.start:
            del self._spans[assignment.job.index]

    def earliest(self, request: object, job: Job, length: int, now: int) -> tuple[int, Places]:
        """See `Plan`. If rules between pods always exclude all nodes, returns `ENDLESS` and no nodes.

        The start of another job does not help a job, unless its pods must be near pods of the other job.
        """
        snapshot, events = self._snapshot, self._events(now)
        ahead = self._outlook.moments(now) if self._outlook.ahead else []
        self._show(now)
        start, done, hopeful = now, 0, True
        while True:
            moved = self._moved(job, start, min(start + length, ENDLESS), events[done:]) if hopeful else None
            if moved is not None:
                places, *others = moved
                for each in others:
                    self._spans[each.job.index].places.nodes = each.nodes
                return start, places
            if done == len(events) and not ahead:
                return ENDLESS, Places(job, ())
            start = min([*(events[done].time for _ in events[done : done + 1]), *ahead[:1]])
            hopeful = snapshot.between_pods or start in ahead[:1]
            ahead = ahead[1:] if start in ahead[:1] else ahead
            while done < len(events) and events[done].time == start:
                event = events[done]
                hopeful = hopeful or not event.starts
                if event.starts:
                    snapshot.put(event.span.places)
                else:
                    snapshot.take(event.span.places.job)
                done += 1

    def may_begin_before(self, time: int, request: object) -> bool:
        """See `Plan`."""
        return time > self._now

    def _moved(self, job: Job, start: int, end: int, events: Iterable[Event]) -> list[Places] | None:
        """Returns the nodes of a job that starts at `start`, and the nodes of reserved jobs that must move.

        If some job would not find nodes, the result is None. Jobs that start at `start` or earlier keep their
        nodes. The snapshot must have the state at `start`, and all `events` must be later.
        """
        snapshot = self._snapshot
        places = snapshot.find_during(job, self._outlook, start, end)
        if places is None:
            return None
        found = [places]
        snapshot.put(places)
        differs, runs = end, True  # until when nodes may differ from the plan; whether the job is running
        for event in events:
            if event.time >= differs:
                break
            if runs and event.time >= end:
                snapshot.take(job)
                runs = False
            own: Places | None = event.span.places
            assert own is not None
            if not event.starts:
                snapshot.take(own.job)
                continue
            with snapshot.during(self._outlook, event.time, event.span.end):
                own = own if snapshot.fits(own) else snapshot.find(own.job)
            if own is not event.span.places:
                if own is None:
                    self._show(start)
                    return None
                found.append(own)
                differs = max(differs, event.span.end)
            snapshot.put(own)
        return found

    def _show(self, time: int) -> None:
        there = {index: span.places for index, span in self._spans.items() if span.start <= time < span.end}
        self._snapshot.show(there)

    def _events(self, now: int) -> Sequence[Event]:
        found = []
        for index, span in self._spans.items():
            if span.start < span.end:
                if span.start > now:
                    found.append(Event(span.start, True, index, span))
                found.append(Event(span.end, False, index, span))
        return sorted(found)
