"""Searches the events with which a simulation agrees with a record for the longest time.

Until the first event, a simulation of a closed loop equals the record. So the search goes forward in time. It
supposes events at the first difference, and replays until a day later. It goes on with the events that keep
the simulation equal to the record for longest, and returns to others if those lead nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple, TypeAlias

from harness.analysis.validation.agreement import TOLERANCE, Difference, Record, part_of
from harness.analysis.validation.history import History
from harness.analysis.validation.supposed import Event, Quota, Row, removal
from harness.base.errors import InputError
from harness.base.units import DAY, HOUR, SECOND

Events: TypeAlias = tuple[Event, ...]

_HORIZON = DAY
"""How long after a difference the effects of an event are compared."""
_EARLIER = tuple(HOUR // 4 * quarters for quarters in (0, 1, 2, 4, 8, 16, 48))
"""How long before its first effect an event may have begun or ended."""
_STARTS = 4
"""A lower quota may begin after each of the last so many instants of the record before its first effect."""
_PIECES = 8
"""An end without an effect of its own is also tried after each of so many equal pieces of an event."""
_PRICE = HOUR
"""How much longer a simulation must agree to be worth one more begin or end of an event."""
_EFFORT = 2 * _PRICE
"""Events that take more replays are tried only after so much shorter agreements."""
_BETTER = 0.8
"""If the agreement ends at the same time, at most this part of the differences may remain."""
_PATIENCE = 30
"""The search ends after so many replays of the whole record that brought no better events."""
_KEPT = 48
"""How many of the last replays are kept, for they take memory."""
_STEPS = 64
"""A quota is lower by a multiple of this part, if requests are not larger."""
_EQUAL = 1e-9


class _State(NamedTuple):
    """Supposed events.

    Attributes:
        events: the events.
        until: how long the simulation agrees with the record; as far as was examined if it does not `end`.
        ends: whether the agreement ends then.
        points: how many begins and ends of events were supposed.
        effort: what is to be tried next: 0 events that take one replay, 1 lower quotas, 2 earlier ends.
    """

    events: Events
    until: int
    ends: bool
    points: int
    effort: int = 0

    @property
    def open(self) -> int:
        """How many events have not ended."""
        return sum(event.is_open for event in self.events)

    @property
    def worth(self) -> int:
        """The length of the agreement, less the price of its events."""
        return self.until - self.points * _PRICE

    @property
    def rank(self) -> int:
        """States of higher rank are tried first."""
        return self.worth - self.effort * _EFFORT


class Search:
    """One search.

    Args:
        replay: replays with rows of events until a time.
        record: the record.
        quotas: the quotas that may have been lower.
        unit: the largest amount that divides all requests.
        most: how many replays of the whole record the search may take; a shorter replay counts as a part.
        told: called with the time in microseconds until which the best simulation agrees.
    """

    def __init__(
        self,
        replay: Callable[[Sequence[Row], int], History],
        record: Record,
        quotas: Sequence[Quota],
        unit: int,
        most: float,
        told: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._replay = replay
        self._record = record
        self._quotas = quotas
        self._unit = unit
        self._left = most
        self._idle = 0.0
        self._told = told
        self._kept: dict[Events, tuple[int, History]] = {}
        self._best = _State((), 0, False, 0)
        self._seen: set[tuple[Events, int, int]] = set()
        self._heap: list[tuple[int, int, _State, Iterator[Events]]] = []
        self._order = count()

    def run(self) -> tuple[Events, int]:
        """The events of the simulation that agrees for longest, less their price, and until when it does."""
        self._push(self._best)
        while self._heap and self._left > 0 and self._idle < _PATIENCE:
            _, _, state, children = heappop(self._heap)
            if not state.ends:
                if state.until >= self._record.end:
                    return state.events, state.until
                self._push(self.examined(state.events, state.until, state.points))
            elif (events := next(children, None)) is not None:
                heappush(self._heap, (-state.rank, next(self._order), state, children))
                if self._is_promising(child := self.examined(events, state.until, state.points + 1), state):
                    self._push(child)
            elif state.effort < 2:
                self._push(state._replace(effort=state.effort + 1))
        return self._best.events, self._best.until

    def _push(self, state: _State) -> None:
        """Notes a state, whose events are to be continued."""
        key = _sorted(state.events), state.until, state.effort
        if key in self._seen:
            return
        self._seen.add(key)
        heappush(self._heap, (-state.rank, next(self._order), state, self._continued(state)))
        if state.worth > self._best.worth:
            self._best, self._idle = state, 0.0
            self._told(state.until)

    def _is_promising(self, child: _State, state: _State) -> bool:
        """Whether a child agrees for longer, or with fewer differences later, or without an open event."""
        if child.until > state.until + TOLERANCE or (child.until >= state.until and child.open < state.open):
            return True
        return child.until > state.until - HOUR and self.part(child.events, state) < _BETTER

    # --- replays ------------------------------------------------------------------------------------------

    def _played(self, events: Events, until: int) -> History:
        """The simulation with events, until a time or longer."""
        key = _sorted(events)
        played, history = self._kept.pop(key, (-1, None))
        if history is None or played < until:
            last = self._record.end
            self._left -= until / last
            self._idle += until / last
            rows = sorted((row for event in key for row in event.rows(last)), key=lambda row: row["kind"])
            try:
                history = self._replay(rows, until)
            except InputError:
                if not events:
                    raise
                history = History({}, {}, ())  # no job could run with such events
            played = until
        self._kept[key] = played, history
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        return history

    def _horizon(self, at: int) -> int:
        return min(self._record.end, at + _HORIZON)

    def examined(self, events: Events, at: int, points: int) -> _State:
        """The state of events, examined until a horizon after a time."""
        until = self._horizon(at)
        breaks = self._record.breaks(self._played(events, until), 0, until)
        return _State(events, breaks[0].start if breaks else until, bool(breaks), points)

    def part(self, events: Events, state: _State) -> float:
        """The part of the differences around the end of a state's agreement that remains with events."""
        until = self._horizon(state.until)
        base = self._record.costs(self._played(state.events, until), state.until, until)
        return part_of(self._record.costs(self._played(events, until), state.until, until), base)

    # --- what may have happened ---------------------------------------------------------------------------

    def _continued(self, state: _State) -> Iterator[Events]:
        """Events that may explain why the agreement ends.

        If a job then runs only in the simulation, capacity has gone; if only in the record, it is back.
        """
        if state.effort == 1:
            return self._lower_quotas(state)
        if state.effort == 2:
            return self._earlier_ends(state)
        return self._simple(state)

    def _simple(self, state: _State) -> Iterator[Events]:
        """Nodes left, or an event has ended when the first difference begins."""
        simulated, first = self._played(state.events, self._horizon(state.until)), self._first(state)
        lost = list(self._lost(state, simulated))
        yield from lost
        if lost or any(each.amount < 0 for each in first):
            for event in state.events:
                for end in sorted({self._began(state), state.until}) if event.is_open else ():
                    if event.start < end:
                        yield _replaced(state.events, event, event._replace(end=end))
        if not lost and first[0].amount > 0:
            yield from self._idle_nodes(state, simulated, first[0])

    def _first(self, state: _State) -> list[Difference]:
        """The differences that end the agreement."""
        until = self._horizon(state.until)
        breaks = self._record.breaks(self._played(state.events, until), 0, until)
        return [each for each in breaks if each.start == breaks[0].start]

    def _began(self, state: _State) -> int:
        """When the first difference begins, also a short one shortly before the agreement ends."""
        until = self._horizon(state.until)
        differences = self._record.differences(self._played(state.events, until), until)
        return min(
            (each.start for each in differences if each.start > state.until - HOUR), default=state.until
        )

    def _gone(self, state: _State) -> set[str]:
        """The nodes that are removed."""
        return {
            name for event in state.events if event.is_open and event.kind == "Node" for name in event.names
        }

    def _lost(self, state: _State, simulated: History) -> Iterator[Events]:
        """The nodes left that ran the jobs which only the record evicts."""
        for time, jobs in self._record.lost(simulated, state.until, state.until + TOLERANCE).items():
            scores = simulated.scores(jobs, time)
            if names := {node for node, each in scores.items() if each > 0} - self._gone(state):
                yield (*state.events, removal(names, time))
                return

    def _idle_nodes(self, state: _State, simulated: History, first: Difference) -> Iterator[Events]:
        """Nodes left that ran nothing; a job that would have started there starts later."""
        names = simulated.nodes_at(first.start + 1).get(first.job, set()) - self._gone(state)
        if names:
            yield (*state.events, removal(names, state.until))
            for event in state.events:
                if event.is_open and event.kind == "Node":
                    more = event._replace(names=tuple(sorted({*event.names, *names})))
                    yield _replaced(state.events, event, more)

    def _earlier_ends(self, state: _State) -> Iterator[Events]:
        """An open event ended earlier than the agreement: the best ends, once for each way to place pods."""
        at, events = state.until, state.events
        for event in events:
            if not event.is_open or event.start >= at:
                continue
            length = at - event.start
            ends = {at - earlier for earlier in _EARLIER if earlier < length}
            ends |= {at - length * piece // _PIECES for piece in range(1, _PIECES)}
            several = [_replaced(events, event, event._replace(end=end)) for end in sorted(ends)]
            parts = [self.part(one, state) for one in several]
            until, placed = self._horizon(at), dict[Hashable, list[Events]]()
            for one, part in zip(several, parts, strict=True):
                if part <= min(parts) + _EQUAL:
                    pods = self._played(one, until).pods
                    placed.setdefault(tuple(each for each in pods if each[0] < until), []).append(one)
            yield from (alike[len(alike) // 2] for alike in placed.values())

    def _lower_quotas(self, state: _State) -> Iterator[Events]:
        """A quota became lower, or was lower by another amount; first the quotas of jobs that differ."""
        queues = {self._record.queues[each.job] for each in self._first(state)}
        starts = self._starts(state)
        for quota in sorted(self._quotas, key=lambda quota: quota.name not in queues):
            mine = [event for event in state.events if quota.is_of(event)]
            current = next((event for event in mine if event.is_open), None)
            rest = tuple(event for event in state.events if event != current)
            if current is None and any(event.end > starts[0] for event in mine):
                continue
            start = starts[0] if current is None else current.start
            found = self._lowered(state, quota, rest, start, current)
            if current is None and found:
                event = found[min(found)][-1]
                for start in starts[1:]:
                    if all(each.end <= start for each in mine):
                        self._try((*rest, event._replace(start=start)), state, found)
            if found:
                yield found[min(found)]

    def _try(self, events: Events, state: _State, found: dict[tuple[int, float], Events]) -> _State:
        """Adds events to others, by how well they agree with the record: the smallest key is the best."""
        child = self.examined(events, state.until, 0)
        found[-child.until, self.part(events, state)] = events
        return child

    def _lowered(
        self, state: _State, quota: Quota, rest: Events, start: int, current: Event | None
    ) -> dict[tuple[int, float], Events]:
        """Events with several amounts of a quota, by how well they agree with the record.

        If a job of the quota still runs too early, the quota was lower; if one runs too late, it was higher.
        """
        unit = self._unit * -(-quota.nominal // (_STEPS * self._unit))
        low, high = 0, quota.nominal // unit + 1
        if current is not None:
            was = (quota.nominal - current.value) // unit
            low, high = (was, high) if self._is_early(self._first(state), quota) else (low, was)
        found: dict[tuple[int, float], Events] = {}
        while high - low > 1:
            middle = (low + high) // 2
            child = self._try((*rest, quota.lowered(middle * unit, start)), state, found)
            if child.ends and self._is_early(self._first(child), quota):
                low = middle
            else:
                high = middle
        return found

    def _is_early(self, first: Sequence[Difference], quota: Quota) -> bool:
        """Whether jobs of a quota run too early; if none of its jobs differs, whether any job does."""
        mine = [each for each in first if self._record.queues[each.job] == quota.name]
        return sum(each.amount for each in mine or first) > 0

    def _starts(self, state: _State) -> list[int]:
        """When a quota may have become lower, the last time first: after what the record did before."""
        runs, began = self._record.history.spans.values(), self._began(state)
        instants = sorted({each for spans in runs for span in spans for each in span if each < began})
        return [each + SECOND for each in reversed(instants[-_STARTS:])] or [0]


def _replaced(events: Events, old: Event, new: Event) -> Events:
    return tuple(new if event == old else event for event in events)


def _sorted(events: Iterable[Event]) -> Events:
    return tuple(sorted(events, key=lambda event: (event.start, *event)))
