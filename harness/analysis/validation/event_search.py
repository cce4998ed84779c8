"""Searches the events with which a simulation agrees with a record for the longest time.

Until the first event, a simulation of a closed loop equals the record. So the search goes forward in time. It
supposes events at the first difference, and replays until a day later. It goes on with the events that keep
the simulation equal to the record for longest, and returns to others if those lead nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple, TypeAlias

from harness.analysis.validation.agreement import TOLERANCE, Difference, Record
from harness.analysis.validation.history import History
from harness.analysis.validation.supposed import OPEN, Event, Quota, removal
from harness.base.errors import InputError
from harness.base.units import DAY, HOUR, SECOND

Events: TypeAlias = tuple[Event, ...]

_HORIZON = DAY
"""How long after a difference the effects of an event are compared."""
_STARTS = 4
"""A lower quota may begin after each of the last so many instants of the record before its first effect."""
_PRICE = HOUR
"""How much longer a simulation must agree to be worth one more begin or end of an event."""
_EFFORT = 2 * HOUR
"""Less likely events are tried only after so much shorter agreements."""
_BETTER = 0.8
"""If the agreement ends at the same time, at most this part of the differences may remain."""
_PATIENCE = 30
"""The search ends after so many replays of the whole record that brought no better events."""
_KEPT = 48
"""How many of the last replays are kept, for they take memory."""
_STEPS = 64
"""A quota is lower by a multiple of this part, if requests are not larger."""


class _State(NamedTuple):
    """Supposed events.

    Attributes:
        events: the events.
        until: how long the simulation agrees with the record, or as far as was examined.
        breaks: the differences that end the agreement; empty if it was not examined to its end.
        effort: how many groups of likelier events were tried.
    """

    events: Events
    until: int
    breaks: Sequence[Difference] = ()
    effort: int = 0

    @property
    def open(self) -> int:
        """How many events have not ended."""
        return sum(event.is_open for event in self.events)

    @property
    def worth(self) -> int:
        """The length of the agreement, less the price of the begins and ends of its events."""
        return self.until - (2 * len(self.events) - self.open) * _PRICE

    @property
    def rank(self) -> int:
        """States of higher rank are tried first."""
        return self.worth - self.effort * _EFFORT


class Search:
    """One search.

    Args:
        replay: replays with events until a time.
        record: the record.
        quotas: the quotas that may have been lower.
        unit: the largest amount that divides all requests.
        most: how many replays of the whole record the search may take; a shorter replay counts as a part.
        told: called with the time in microseconds until which the best simulation agrees.
    """

    def __init__(
        self,
        replay: Callable[[Events, int], History],
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
        self._short: dict[tuple[Events, int], Sequence[Difference]] = {}
        self._best = _State((), 0)
        self._seen: set[tuple[Events, int]] = set()
        self._heap: list[tuple[int, int, _State, Iterator[Events | None]]] = []
        self._order = count()

    def run(self) -> tuple[Events, int]:
        """The events of the simulation that agrees for longest, less their price, and until when it does."""
        self._push(self._best)
        while self._heap and self._left > 0 and self._idle < _PATIENCE:
            _, _, state, children = heappop(self._heap)
            if not state.breaks:
                if state.until >= self._record.end:
                    return state.events, state.until
                self._push(self.examined(state.events, state.until))
                continue
            try:
                events = next(children)
            except StopIteration:
                continue
            state = state if events is not None else state._replace(effort=state.effort + 1)
            heappush(self._heap, (-state.rank, next(self._order), state, children))
            if events is not None and self._is_promising(child := self.examined(events, state.until), state):
                self._push(child)
        return self._best.events, self._best.until

    def _push(self, state: _State) -> None:
        """Notes a state, whose events are to be continued."""
        key = _sorted(state.events), state.until
        if key in self._seen:
            return
        self._seen.add(key)
        heappush(self._heap, (-state.rank, next(self._order), state, self._continued(state)))
        if state.worth > self._best.worth:
            self._best, self._idle = state, 0.0
            self._told(state.until)

    def _is_promising(self, child: _State, state: _State) -> bool:
        """Whether a child agrees for longer, without an open event, or with fewer differences later."""
        at = state.until
        if child.until > at + TOLERANCE or (child.until >= at and child.open < state.open):
            return True
        return child.until >= at - TOLERANCE and (
            self._cost(child.events, at) < _BETTER * self._cost(state.events, at)
        )

    # --- replays ------------------------------------------------------------------------------------------

    def _played(self, events: Events, until: int) -> History:
        """The simulation with events, until a time or longer."""
        key = _sorted(events)
        played, history = self._kept.pop(key, (-1, None))
        if history is None or played < until:
            part = until / self._record.end
            self._left -= part
            self._idle += part
            try:
                history = self._replay(key, until)
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

    def examined(self, events: Events, at: int) -> _State:
        """The state of events, examined until a horizon after a time."""
        for (before, time), breaks in self._short.items():
            if time < at - TOLERANCE and _until(events, time + TOLERANCE) == before:
                return _State(events, time, breaks)
        until = self._horizon(at)
        breaks = self._record.breaks(self._played(events, until), 0, until)
        if not breaks:
            return _State(events, until)
        time = breaks[0].start
        first = [each for each in breaks if each.start == time]
        if time < at - TOLERANCE:
            self._short[_until(events, time + TOLERANCE), time] = first
        return _State(events, time, first)

    def _cost(self, events: Events, at: int) -> float:
        """The sizes of the differences around a time with events."""
        until = self._horizon(at)
        return self._record.cost(self._played(events, until), at, until)

    # --- what may have happened ---------------------------------------------------------------------------

    def _continued(self, state: _State) -> Iterator[Events | None]:
        """Events that may explain why the agreement ends, the likeliest first; None between groups.

        If a job then runs only in the simulation, capacity has gone; if only in the record, it is back.
        """
        simulated = self._played(state.events, self._horizon(state.until))
        lost = self._record.lost(simulated, state.until, state.until + TOLERANCE)
        if lost:
            time, jobs = next(iter(lost.items()))
            yield from self._removals(state.events, simulated, jobs, time)
            yield None
            yield from self._other_places(state, jobs, time)
            return
        early = self._is_early(state)
        for event in state.events:
            yield from self._fitted(state, self._ends(state, event, early))
            for quota in self._quotas:
                if quota.is_of(event) and event.end > state.until:
                    yield from self._fitted(state, self._amounts(state, event, quota, early), quota.name)
                    for earlier in (early, not early):
                        yield from self._fitted(state, self._begins(state, event, earlier), quota.name)
        if early:
            yield from self._idle_nodes(state, simulated)
            yield None
            queues = {self._record.queues[each.job] for each in state.breaks}
            for quota in sorted(self._quotas, key=lambda quota: quota.name not in queues):
                if not any(quota.is_of(event) and event.end > state.until for event in state.events):
                    yield from self._cuts(state, quota)

    def _is_early(self, state: _State, queue: str | None = None) -> bool:
        """Whether jobs of a queue run too early; if none of its jobs differs, whether any job does."""
        mine = [each for each in state.breaks if self._record.queues[each.job] == queue]
        return sum(each.amount for each in mine or state.breaks) > 0

    def _fitted(
        self, state: _State, options: Sequence[Events], queue: str | None = None, first: int = 0
    ) -> Iterator[Events]:
        """The best of several events that differ more and more from those of a state.

        If jobs still run too early, or still too late, events that differ more are tried, otherwise less;
        in steps that double, then by bisection.
        """
        early, step = self._is_early(state, queue), 1
        low, high, tried = -1, len(options), first
        found: dict[tuple[int, float], Events] = {}
        while high - low > 1:
            events = options[tried]
            child = self.examined(events, state.until)
            if child.until >= state.until - TOLERANCE:
                found[-child.until, self._cost(events, state.until)] = events
            elif not tried:
                break  # even the smallest change is wrong
            if not child.breaks:
                break
            if self._is_early(child, queue) == early:
                low = tried
            else:
                high = tried
            if low < 0 or high == len(options):
                tried = max(high - step, 0) if low < 0 else min(low + step, high - 1)
                step *= 2
            else:
                tried = (low + high) // 2
        if found:
            yield found[min(found)]

    # --- ends, begins and amounts -------------------------------------------------------------------------

    def _ends(self, state: _State, event: Event, later: bool) -> list[Events]:
        """Later or earlier ends of an event, the nearest first."""
        if later:
            ends = [] if event.is_open else [*self._between(event.end, state.until), OPEN]
        else:
            ends = self._between(event.start, min(event.end, self._began(state)))[::-1]
            ends = [self._began(state), *ends] if event.is_open else ends
        return [_replaced(state.events, event, event._replace(end=end)) for end in ends if end > event.start]

    def _begins(self, state: _State, event: Event, earlier: bool) -> list[Events]:
        """Earlier or later begins of an event, the nearest first."""
        if earlier:
            starts = self._between(event.start - DAY, event.start)[::-1]
        else:
            starts = self._between(event.start, min(event.end, state.until))
        return [_replaced(state.events, event, event._replace(start=start)) for start in starts]

    def _amounts(self, state: _State, event: Event, quota: Quota, more: bool) -> list[Events]:
        """Events with a quota that is lower by more or by less, the nearest first."""
        unit, was = self._step(quota), quota.nominal - event.value
        steps = range(was + unit, quota.nominal + 1, unit) if more else range(was - unit, 0, -unit)
        return [
            _replaced(state.events, event, event._replace(value=quota.nominal - amount)) for amount in steps
        ]

    def _step(self, quota: Quota) -> int:
        return self._unit * -(-quota.nominal // (_STEPS * self._unit))

    def _cuts(self, state: _State, quota: Quota) -> Iterator[Events]:
        """A quota became lower, not long before the agreement ends, by about what the record does not use."""
        found: list[Events] = []
        began, unit = self._began(state), self._step(quota)
        unused = sum(each.nominal for each in self._quotas) - self._record.used(state.until)
        for start in self._between(began - DAY, began)[: -_STARTS - 1 : -1]:
            if any(quota.is_of(event) and event.end > start for event in state.events):
                break
            options = [
                (*state.events, quota.lowered(amount, start))
                for amount in range(unit, quota.nominal + 1, unit)
            ]
            child = self.examined(options[-1], state.until)
            if child.breaks and child.until >= state.until - TOLERANCE and self._is_early(child, quota.name):
                continue  # even a quota of 0 comes too late
            guess = max(1, min(len(options) - 1, unused // unit))
            found += self._fitted(state, options, quota.name, guess - 1)
            if len(found) == 2 or (found and not self.examined(found[0], state.until).breaks):
                break
        yield from found

    def _between(self, start: int, end: int) -> list[int]:
        """Times between two others, one after each instant of the record, in order."""
        instants = [each + SECOND for each in self._record.instants]
        return [each for each in instants if start < each < end]

    def _began(self, state: _State) -> int:
        """When the first difference begins, also a short one shortly before the agreement ends."""
        until = self._horizon(state.until)
        differences = self._record.differences(self._played(state.events, until), until)
        return min(
            (each.start for each in differences if each.start > state.until - HOUR), default=state.until
        )

    # --- nodes --------------------------------------------------------------------------------------------

    def _removals(
        self, events: Events, simulated: History, jobs: frozenset[str], time: int
    ) -> Iterator[Events]:
        """The nodes left that ran the jobs which only the record evicts."""
        if names := self._nodes(events, simulated, jobs, time):
            yield (*events, removal(names, time))

    def _nodes(self, events: Events, simulated: History, jobs: frozenset[str], time: int) -> set[str]:
        scores = simulated.scores(jobs, time)
        return {node for node, score in scores.items() if score > 0} - _gone(events, time)

    def _other_places(self, state: _State, jobs: frozenset[str], time: int) -> Iterator[Events]:
        """An outage ended at another time, so that the nodes that left ran other jobs."""
        until = self._horizon(state.until)
        base = self._wrong(state.events, jobs, time)
        found: dict[float, Events] = {}
        for event in state.events if base else ():
            if event.kind != "Node":
                continue
            for later in (False, True):
                for events in self._ends(state, event, later):
                    if self.examined(events, state.until).until < state.until - TOLERANCE:
                        break
                    found.setdefault(self._wrong(events, jobs, time), events)
        for wrong in sorted(found):
            if wrong < base:
                yield from self._removals(found[wrong], self._played(found[wrong], until), jobs, time)

    def _wrong(self, events: Events, jobs: frozenset[str], time: int) -> int:
        """How many jobs an outage would wrongly evict, or not evict."""
        simulated = self._played(events, time)
        names = self._nodes(events, simulated, jobs, time)
        evicted = {job for job, nodes in simulated.nodes_at(time).items() if nodes & names}
        return len(evicted ^ jobs)

    def _idle_nodes(self, state: _State, simulated: History) -> Iterator[Events]:
        """Nodes left that ran nothing; a job that would have started there starts later."""
        first = state.breaks[0]
        names = simulated.nodes_at(first.start + 1).get(first.job, set()) - _gone(state.events, first.start)
        if names:
            yield (*state.events, removal(names, state.until))
            for event in state.events:
                if event.is_open and event.kind == "Node":
                    more = event._replace(names=tuple(sorted({*event.names, *names})))
                    yield _replaced(state.events, event, more)


def _gone(events: Events, time: int) -> set[str]:
    """The nodes that are removed at a time."""
    return {name for event in events if event.kind == "Node" and event.end > time for name in event.names}


def _replaced(events: Events, old: Event, new: Event) -> Events:
    return tuple(new if event == old else event for event in events)


def _sorted(events: Iterable[Event]) -> Events:
    return tuple(sorted(events, key=lambda event: (event.start, *event)))


def _until(events: Events, time: int) -> Events:
    """What events change until a time."""
    begun = (event for event in events if event.start <= time)
    return _sorted(event if event.end <= time else event._replace(end=OPEN) for event in begun)
