"""Replays the events that a search tries, and compares each replay with a record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from harness.analysis.validation.agreement import TOLERANCE, Difference, Record
from harness.analysis.validation.branches import Branches
from harness.analysis.validation.history import History
from harness.analysis.validation.supposed import OPEN, Event
from harness.base.errors import InputError
from harness.base.units import DAY, HOUR

Events: TypeAlias = tuple[Event, ...]

_HORIZON = DAY // 2
"""Simulations are compared up to this much simulated time after a difference."""
_PRICE = HOUR
"""Each further beginning or end of an event must make the agreement this much longer."""
_EFFORT = HOUR
"""Each replay spent on a state lowers its rank as if its agreement were this much shorter."""
_KEPT = 256
"""The maximum number of recent replays in memory."""


class State(NamedTuple):
    """Events that a search tries, with the agreement between their simulation and the record.

    Attributes:
        until: the time until which simulation and record agree. If no difference was found yet, this is the
            end of the examined time.
        breaks: the differences that end the agreement. Empty if no difference was found yet.
        effort: the simulated time spent on trying further events for this state, as a multiple of the whole
            record.
    """

    events: Events
    until: int
    breaks: Sequence[Difference] = ()
    effort: float = 0.0

    @property
    def open(self) -> int:
        """The number of events that have not ended."""
        return sum(event.is_open for event in self.events)

    @property
    def is_outage(self) -> bool:
        """True if simulation and record cease to agree because only the record evicts jobs."""
        return any(not each.amount for each in self.breaks)

    @property
    def worth(self) -> int:
        """How long simulation and record agree, minus a penalty for each start and each end of an event."""
        return self.until - (2 * len(self.events) - self.open) * _PRICE

    @property
    def rank(self) -> float:
        """The rank of the state, which is highest if no difference from the record was found yet."""
        return self.worth - self.effort * _EFFORT if self.breaks else OPEN


class Trials:
    """Replays the events that a search tries."""

    def __init__(self, branches: Branches, record: Record) -> None:
        self.record = record
        self._branches = branches
        self._kept: dict[Events, tuple[int, History]] = {}
        self._short: dict[tuple[Events, int], Sequence[Difference]] = {}

    @property
    def spent(self) -> float:
        """The total simulated time of all replays, as a multiple of the whole record."""
        return self._branches.spent / self.record.end

    def played(self, events: Events, until: int) -> History:
        """Returns the simulation with these events, at least up to the given time."""
        key = in_order(events)
        played, history = self._kept.pop(key, (-1, None))
        if history is None or played < until:
            try:
                history = self._branches.history(key, until)
            except InputError:
                if not events:
                    raise
                history = History({}, {}, ())  # no job could run with such events
            played = until
        self._kept[key] = played, history
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        return history

    def horizon(self, at: int, ahead: int = _HORIZON) -> int:
        """Returns the time `at` plus `ahead`, but at most the end of the record."""
        return min(self.record.end, at + ahead)

    def examined(self, events: Events, at: int, ahead: int = _HORIZON) -> State:
        """Finds out how long the simulation with these events agrees with the record.

        The simulation is examined up to the time `at + ahead`.
        """
        for (before, time), breaks in self._short.items():
            if time < at - TOLERANCE and _until(events, time + TOLERANCE) == before:
                return State(events, time, breaks)
        until = self.horizon(at, ahead)
        breaks = self.record.breaks(self.played(events, until), 0, until)
        if not breaks:
            return State(events, until)
        time = breaks[0].start
        first = [each for each in breaks if each.start == time]
        if time < at - TOLERANCE:
            self._short[_until(events, time + TOLERANCE), time] = first
        return State(events, time, first)

    def cost(self, events: Events, at: int, ahead: int = _HORIZON) -> float:
        """Returns the total size of the differences near a time, in the simulation with these events."""
        until = self.horizon(at, ahead)
        return self.record.cost(self.played(events, until), at, until)


def in_order(events: Iterable[Event]) -> Events:
    """Returns the same events in order of time."""
    return tuple(sorted(events, key=lambda event: (event.start, *event)))


def _until(events: Events, time: int) -> Events:
    begun = (event for event in events if event.start <= time)
    return in_order(event if event.end <= time else event._replace(end=OPEN) for event in begun)
