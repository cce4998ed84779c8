"""Replays a record many times, with different tables of events that change the cluster.

Many of these tables begin with the same events, so parts of earlier replays are reused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.analysis.validation.history import History, Played, history_of
from harness.analysis.validation.supposed import Event, rows_of
from harness.base.copies import in_a_copy
from harness.base.units import HOUR, SECOND
from harness.cluster.changes.edits import Edit, Instant
from harness.engine.sources import FAR

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.plugins import Plugins
    from harness.runs.plan import Plan
    from harness.runs.request import Request

_STEP = HOUR
"""A paused replay advances if this saves at least this much simulated time and an earlier pause exists."""
_KEPT = 8
"""The maximum number of paused replays, because each takes memory."""


@dataclass
class _Paused:
    events: Sequence[Event]
    at: int
    played: Played
    again: int = 0
    """The simulated time that a later pause would have saved so far."""


class Branches:
    """Replays a record with different events, without repeating the parts that replays have in common.

    Each replay continues in a copy of the process, from the time at which an earlier replay was paused. If
    the system cannot copy processes, each replay begins at the origin. `possible` contains an example of each
    kind of event that replays will have. `end` is the record's end, in microseconds since the origin.

    Attributes:
        spent: the total simulated time of all replays, in microseconds.
    """

    def __init__(
        self, request: Request, plugins: Plugins, world: Cluster, possible: Sequence[Event], end: int
    ) -> None:
        self._request = request
        self._plugins = plugins
        self._world = world
        self._later = [each._replace(start=end + SECOND, end=end + 2 * SECOND) for each in possible]
        self._end = end
        self._paused: list[_Paused] = []
        self._edits: dict[Event, Sequence[tuple[Edit, ...]]] = {}
        self.spent = 0

    def history(self, events: Sequence[Event], until: int) -> History:
        """Replays the record with these events until the given time.

        Raises:
            InputError: no job can run with such events.
        """
        until = max(until, 1)
        paused, changes = self._nearest(events, until), self._changes(events)

        def gone_on() -> History:
            paused.played.go_on(changes, until)
            return paused.played.end()

        self.spent += until - paused.at
        answer = in_a_copy(gone_on)
        return history_of(self._plan(events, until)) if answer is None else answer[0]

    def _nearest(self, events: Sequence[Event], until: int) -> _Paused:
        """Returns the latest usable pause. If a later pause would save time, creates it first."""
        fit = [(min(until, _parted(each.events, events)), each) for each in self._paused]
        fit = sorted((one for one in fit if one[1].at < one[0]), key=lambda one: one[1].at)
        if not fit:
            return self._pause(events, until - 1)
        parted, best = fit[-1]
        best.again += parted - best.at
        if len(fit) > 1 and parted - best.at > _STEP:
            self.spent += parted - 1 - best.at
            best.played.go_on(self._changes(best.events), parted - 1)
            best.at, best.again = parted - 1, 0
        elif 4 * best.again > parted:
            best.again = 0
            return self._pause(events, parted - 1)
        self._paused.remove(best)
        self._paused.append(best)
        return best

    def _pause(self, events: Sequence[Event], at: int) -> _Paused:
        self.spent += at
        new = _Paused(tuple(events), at, Played(self._plan(events, at)))
        self._paused = [*self._paused[1 - _KEPT :], new]
        return new

    def _changes(self, events: Sequence[Event]) -> list[Instant]:
        found: dict[int, tuple[Edit, ...]] = {}
        for event in events:
            alike = event._replace(start=SECOND, end=2 * SECOND)
            if alike not in self._edits:
                self._edits[alike] = [each.edits for each in self._plan([alike], 0).cluster.changes[:2]]
            times = event.start, min(event.end, self._end)
            for time, edits in zip(times, self._edits[alike], strict=True):
                if time in found:  # the order of the edits matters
                    return list(self._plan(events, 0).cluster.changes)
                found[time] = edits
        return [Instant(time, edits) for time, edits in sorted(found.items())]

    def _plan(self, events: Sequence[Event], until: int) -> Plan:
        rows = [*rows_of(events, self._end), *rows_of(self._later, self._end + 2 * SECOND)]
        cluster = self._world.patched([dict(row) for row in rows])
        return replace(self._request, cluster=cluster, until=until).plan(self._plugins)


def _parted(one: Sequence[Event], other: Sequence[Event]) -> int:
    """Returns the first time at which only one of two tables of events changes something."""
    moments = [
        {(time, each._replace(end=0)) for each in events for time in (each.start, each.end)}
        for events in (one, other)
    ]
    return min((time for time, _ in moments[0] ^ moments[1]), default=FAR)
