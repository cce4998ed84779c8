"""Proposes events that may explain why a simulation no longer agrees with a record."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import TypeAlias, TypeVar

from harness.analysis.validation.agreement import TOLERANCE
from harness.analysis.validation.history import History
from harness.analysis.validation.supposed import Event, Quota, removal
from harness.analysis.validation.trials import Events, State, Trials
from harness.base.grouping import grouped
from harness.base.units import DAY, HOUR, MINUTE, SECOND

S = TypeVar("S")
T = TypeVar("T")
Score: TypeAlias = tuple[int, float]
"""Minus the time until which a simulation agrees with the record, and the cost of later differences."""

_GRACE = 30 * SECOND
"""How long preempted jobs usually continue. A quota became lower this long before they ended."""
_AHEAD = 4 * HOUR
"""Each of many similar guesses is compared over this much simulated time."""
_SEVERAL = 40
"""The maximum number of equally likely guesses to compare."""
_TIMES = 30
"""The maximum number of minutes to try in an interval."""
_NEAR = 5
"""A lower quota is first tried at this many times, which are the likeliest."""
_EXPLORED = 3
"""Comparing other ends of one event may take as long as this many replays of the whole record."""
_LATEST = 2
"""The number of events whose other ends are tried before new events."""
_AROUND = 30
"""At least this many earlier and later ends are tried, even if some shorten the agreement."""
_STEPS = 64
"""A quota is reduced in about this many steps, or in fewer steps if requests are larger."""


class Guesses:
    """Proposes events for a search.

    `quotas` contains the quotas that may have been lower. `unit` is the largest amount that divides all
    requests.
    """

    def __init__(self, trials: Trials, quotas: Sequence[Quota], unit: int) -> None:
        self._trials = trials
        self._record = trials.record
        self._quotas = quotas
        self._unit = unit

    def of(self, state: State) -> Iterator[Events]:
        """Yields events that may explain why the simulation ceases to agree with the record.

        The likeliest events come first. If a job then runs only in the simulation, the recorded cluster lost
        capacity. If a job runs only in the record, the recorded cluster got capacity back.
        """
        simulated = self._trials.played(state.events, self._trials.horizon(state.until))
        lost = self._record.lost(simulated, state.until, state.until + TOLERANCE)
        if lost:
            time, jobs = next(iter(lost.items()))
            yield from self._removals(state, jobs, time)
            return
        early = self._is_early(state)
        yield from self._ends(state)
        for event in state.events[-3:]:
            yield tuple(each for each in state.events if each != event)
        for event, quota in self._lowered(state):
            for more in (early, not early):
                yield from self._fitted(state, self._amounts(state, event, quota, more), quota.name)
        queues = {self._record.queues[each.job] for each in state.breaks}
        others = [
            quota
            for quota in sorted(self._quotas, key=lambda quota: quota.name not in queues)
            if not any(quota.is_of(event) and event.end > state.until for event in state.events)
        ]
        starts = [state.until, state.until - _GRACE, *self._between(state.until - DAY, state.until)[::-1]]
        starts = [each for each in starts if each > 0]
        late = sum(each >= self._began(state) for each in starts)
        for event, _ in self._lowered(state):
            first, last = self._around(event.start, min(event.end, state.until))
            moved = [event._replace(start=start) for start in _minutes(first, last)]
            yield from self._best(state, event, [(each, self._score(state, event, each)) for each in moved])
        latest = sorted(state.events, key=lambda event: -event.end)
        for event in latest[:_LATEST]:
            yield from self._other_ends(state, event)
        for event in latest:
            if event.resource and state.until - 2 * DAY < event.end <= state.until:
                yield from self._likely(state, event, self._possible_begins(state, event))
        if early:
            for quota in others:
                yield from self._cuts(state, quota, starts[:_NEAR])
        for event in latest[_LATEST:]:
            if event.end > state.until - 2 * DAY:
                yield from self._other_ends(state, event)
        if not early:
            for quota in others:
                yield from self._cuts(state, quota, starts[:_NEAR])
        for event, quota in self._lowered(state):
            for earlier in (early, not early):
                yield from self._fitted(state, self._begins(state, event, earlier), quota.name)
        for quota in others:
            yield from self._cuts(state, quota, starts[_NEAR : late + _NEAR])
        if early:
            yield from self._idle_nodes(state, simulated)
        for events in self._ends(state, 1):
            for event in events:
                if event.is_open:
                    yield from self._other_ends(state._replace(events=events), event)
        for event in latest[_LATEST:]:
            if event.end <= state.until - 2 * DAY:
                yield from self._other_ends(state, event)

    def _ends(self, state: State, most: int = 2) -> Iterator[Events]:
        """Yields events in which some open ones end where the agreement ends, or at the first difference."""
        for ends in sorted({state.until, self._began(state)}):
            several = [event for event in state.events if event.is_open and event.start < ends]
            for count in range(1, most + 1):
                for ended in combinations(several, count):
                    yield tuple(
                        event._replace(end=ends) if event in ended else event for event in state.events
                    )

    def _lowered(self, state: State) -> Iterator[tuple[Event, Quota]]:
        for event in state.events:
            for quota in self._quotas:
                if quota.is_of(event) and event.end > state.until:
                    yield event, quota

    def _possible_ends(self, state: State, event: Event, time: int) -> Sequence[Event]:
        """Returns the event with other ends before a given time, unless its end is certain.

        An end is certain if jobs began then without another cause, and the agreement continued.
        """
        alone = sum(each.end == event.end for each in state.events) == 1
        if alone and event.end in self._record.sudden and event.end < time - TOLERANCE:
            return []
        about = min(event.end, time)
        start = max(event.start, min(about, time - DAY) - DAY)
        times = self._times(start, min(time, about + 2 * DAY))
        others = [event._replace(end=each) for each in times]
        return self._possible(state, event, others, bisect_left(times, about))

    def _possible_begins(self, state: State, event: Event) -> Sequence[Event]:
        times = self._times(event.start - DAY, min(event.start + DAY, event.end, state.until))
        others = [event._replace(start=each) for each in times]
        return self._possible(state, event, others, bisect_left(times, event.start))

    def _times(self, start: int, end: int) -> list[int]:
        """Returns the minutes between two times, and a time after each instant of the record."""
        start = max(start, 0)
        return sorted({*self._between(start, end), *range(start - start % MINUTE + MINUTE, end, MINUTE)})

    def _possible(self, state: State, event: Event, others: Sequence[Event], place: int) -> Sequence[Event]:
        """Returns those of the other events, in order of time, that do not shorten the agreement.

        Events far from `place` shorten the agreement. If pods wait for nodes, each minute counts, so the
        result always contains the nearest events.
        """
        early, late = others[:place], others[place:]
        first = bisect_left(early, True, key=lambda other: self._is_possible(state, event, other))
        last = bisect_left(late, True, key=lambda other: not self._is_possible(state, event, other))
        return others[max(min(first, place - _AROUND), 0) : place + max(last, _AROUND)]

    def _explored(self, options: Sequence[T], score: Callable[[T], S]) -> Iterator[tuple[T, S]]:
        """Yields some of several options with their scores.

        Most neighbours have the same score. The method therefore begins with the first and the last option.
        It then tries the middle of the longest gap between options with different scores, or else of any gap.
        """
        most = self._trials.spent + _EXPLORED
        found = {place: score(options[place]) for place in sorted({0, len(options) - 1}) if options}
        while self._trials.spent < most:
            gaps = [
                (found[low] == found[high], low - high, low)
                for low, high in pairwise(sorted(found))
                if high - low > 1
            ]
            if not gaps:
                break
            _, shorter, low = min(gaps)
            middle = low - shorter // 2
            found[middle] = score(options[middle])
        yield from ((options[place], each) for place, each in sorted(found.items()))

    def _is_possible(self, state: State, event: Event, other: Event) -> bool:
        events = _replaced(state.events, event, other)
        return self._trials.examined(events, state.until, 0).until >= state.until - TOLERANCE

    def _other_ends(self, state: State, event: Event) -> Iterator[Events]:
        yield from self._likely(state, event, self._possible_ends(state, event, state.until))

    def _likely(self, state: State, event: Event, others: Sequence[Event]) -> Iterator[Events]:
        yield from self._best(
            state, event, self._explored(others, lambda other: self._score(state, event, other))
        )

    def _best(self, state: State, event: Event, scores: Iterable[tuple[Event, Score]]) -> Iterator[Events]:
        """Yields the two best replacements of an event that do not shorten the agreement.

        The replacements with the best scores are compared again over a longer time.
        """
        alike = grouped((score, other) for other, score in scores if score[0] <= TOLERANCE - state.until)
        likely = [
            other for _, others in sorted(alike.items())[:2] for other in others[:: 1 + len(others) // 8]
        ]
        best = {self._score(state, event, other, DAY // 2): other for other in likely}
        yield from (_replaced(state.events, event, best[score]) for score in sorted(best)[:2])

    def _score(self, state: State, event: Event, other: Event, ahead: int = _AHEAD) -> Score:
        """Returns a score of the agreement if another event replaces this one. Less is better."""
        return self._score_of(_replaced(state.events, event, other), state.until, ahead)

    def _score_of(self, events: Events, at: int, ahead: int = _AHEAD) -> Score:
        child = self._trials.examined(events, at, ahead)
        return -child.until, self._trials.cost(events, at, ahead) if child.until >= at - TOLERANCE else 0.0

    def _is_early(self, state: State, queue: str | None = None) -> bool:
        """Returns True if jobs of a queue run too early. If none of its jobs differs, all queues count."""
        mine = [each for each in state.breaks if self._record.queues[each.job] == queue]
        return not state.is_outage and sum(each.amount for each in mine or state.breaks) > 0

    def _fitted(
        self, state: State, options: Sequence[Events], queue: str | None = None, first: int = 0
    ) -> Iterator[Events]:
        """Yields the best of several options, which differ more and more from the events of a state.

        If jobs still run too early, or still too late, options that differ more are tried, and otherwise
        options that differ less. Steps double at first, and a bisection follows.
        """
        early, step = self._is_early(state, queue), 1
        low, high, tried = -1, len(options), first
        found: dict[Score, Events] = {}
        while high - low > 1:
            events = options[tried]
            child = self._trials.examined(events, state.until)
            if child.until >= state.until - TOLERANCE:
                found[-child.until, self._trials.cost(events, state.until)] = events
            elif not tried:
                break  # even the smallest change is wrong
            if not child.breaks:
                break
            if self._is_early(child, queue) == early and not child.is_outage:
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

    def _begins(self, state: State, event: Event, earlier: bool) -> list[Events]:
        """Returns events with an earlier or later beginning of one event, the nearest first."""
        if earlier:
            starts = self._between(event.start - DAY, event.start)[::-1]
        else:
            starts = self._between(event.start, min(event.end, state.until))
        return [_replaced(state.events, event, event._replace(start=start)) for start in starts]

    def _amounts(self, state: State, event: Event, quota: Quota, more: bool) -> list[Events]:
        """Returns events with a larger or smaller cut of one quota, the nearest first."""
        unit, was = self._step(quota), quota.nominal - event.value
        steps = range(was + unit, quota.nominal + 1, unit) if more else range(was - unit, 0, -unit)
        return [
            _replaced(state.events, event, event._replace(value=quota.nominal - amount)) for amount in steps
        ]

    def _step(self, quota: Quota) -> int:
        return self._unit * -(-quota.nominal // (_STEPS * self._unit))

    def _cuts(self, state: State, quota: Quota, starts: Sequence[int]) -> Iterator[Events]:
        """Yields events with a lower quota shortly before the agreement ends, by about the unused amount."""
        unit = self._step(quota)
        unused = sum(each.nominal for each in self._quotas) - self._record.used(state.until)
        for start in starts:
            if any(quota.is_of(event) and event.end > start for event in state.events):
                break
            options = [
                (*state.events, quota.lowered(amount, start))
                for amount in range(unit, quota.nominal + 1, unit)
            ]
            child = self._trials.examined(options[-1], state.until)
            if child.until >= state.until - TOLERANCE and self._is_early(child, quota.name):
                continue  # even a quota of 0 comes too late
            guess = max(1, min(len(options) - 1, unused // unit))
            yield from self._fitted(state, options, quota.name, guess - 1)

    def _between(self, start: int, end: int) -> list[int]:
        """Returns, in order, the time after each instant of the record that is between two given times."""
        times = sorted({*self._record.sudden, *(each + SECOND for each in self._record.instants)})
        return [each for each in times if max(start, 0) < each < end]

    def _around(self, time: int, last: int) -> tuple[int, int]:
        """Returns the second last time before `time` at which the record changes, and the next such time."""
        before, after = self._between(time - DAY, time), self._between(time, last)
        return before[-2] if len(before) > 1 else time, after[0] if after else last

    def _began(self, state: State) -> int:
        """Returns when the first difference begins, even a short one just before the agreement ends."""
        until = self._trials.horizon(state.until)
        differences = self._record.differences(self._trials.played(state.events, until), until)
        return min(
            (each.start for each in differences if each.start > state.until - HOUR), default=state.until
        )

    # --- nodes --------------------------------------------------------------------------------------------

    def _removals(self, state: State, jobs: frozenset[str], time: int) -> Iterator[Events]:
        """Yields events that remove the nodes of the jobs that only the record evicts.

        If these nodes also run other jobs, an earlier event may have ended at another time.
        """
        found = {self._wrong(state.events, jobs, time): [state.events]}
        if 0 in found:
            yield from self._removed(state.events, jobs, time)
        for event in state.events:
            others = [
                _replaced(state.events, event, other) for other in self._possible_ends(state, event, time)
            ]
            for events, wrong in self._explored(others, lambda events: self._wrong(events, jobs, time)):
                if self._trials.examined(events, state.until, 0).until >= state.until - TOLERANCE:
                    found.setdefault(wrong, []).append(events)
        likely = found[min(found)]
        several = [
            removed
            for events in likely[:: 1 + len(likely) // _SEVERAL]
            for removed in self._removed(events, jobs, time)
        ]
        yield from sorted(several, key=lambda events: self._score_of(events, time))[:3]

    def _removed(self, events: Events, jobs: frozenset[str], time: int) -> Iterator[Events]:
        if names := self._nodes(events, self._trials.played(events, time), jobs, time):
            yield (*events, removal(names, time))

    def _nodes(self, events: Events, simulated: History, jobs: frozenset[str], time: int) -> set[str]:
        scores = simulated.scores(jobs, time)
        return {node for node, score in scores.items() if score > 0} - _gone(events, time)

    def _wrong(self, events: Events, jobs: frozenset[str], time: int) -> int:
        """Returns how many jobs an outage would wrongly evict, or fail to evict."""
        simulated = self._trials.played(events, time)
        names = self._nodes(events, simulated, jobs, time)
        evicted = {job for job, nodes in simulated.nodes_at(time).items() if nodes & names}
        return len(evicted ^ jobs)

    def _idle_nodes(self, state: State, simulated: History) -> Iterator[Events]:
        """Yields events that remove idle nodes, so that the first job that would start there starts later."""
        first = state.breaks[0]
        names = simulated.nodes_at(first.start + 1).get(first.job, set()) - _gone(state.events, first.start)
        if names:
            yield (*state.events, removal(names, state.until))
            for event in state.events:
                if event.is_open and event.kind == "Node":
                    more = event._replace(names=tuple(sorted({*event.names, *names})))
                    yield _replaced(state.events, event, more)


def _gone(events: Events, time: int) -> set[str]:
    return {name for event in events if event.kind == "Node" and event.end > time for name in event.names}


def _replaced(events: Events, old: Event, new: Event) -> Events:
    return tuple(new if event == old else event for event in events)


def _minutes(first: int, last: int) -> range:
    step = -(-(last - first) // (_TIMES * MINUTE)) * MINUTE
    return range(first - first % MINUTE + MINUTE, last, max(step, MINUTE))
