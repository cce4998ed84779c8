"""Searches for the events that make a simulation agree with a record for the longest time.

Until the first event, an exact simulation equals the record, so the search goes forward in time. At the first
difference, the search tries several events that may have happened, and replays some more hours with each of
them. It continues with the events whose simulation agrees for the longest time. If further events do not make
this simulation agree for longer, the search returns to the other events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count

from harness.analysis.validation.agreement import TOLERANCE
from harness.analysis.validation.guesses import Guesses
from harness.analysis.validation.trials import Events, State, Trials, in_order

_BETTER = 0.8
"""Events that don't make the agreement longer must reduce later differences to at most this fraction."""
_PATIENCE = 100
"""The search ends if this many replays of the whole record have found no better events."""


class Search:
    """A search for the events that make a simulation agree with a record.

    The search may take up to `most` replays of the whole record. A shorter replay counts as a fraction.
    `told` receives the time in microseconds until which the best simulation agrees.
    """

    def __init__(
        self, trials: Trials, guesses: Guesses, most: float, told: Callable[[int], None] = lambda _: None
    ) -> None:
        self._trials = trials
        self._guesses = guesses
        self._most = most
        self._told = told
        self._since = 0.0
        self._best = State((), 0)
        self._seen: set[tuple[Events, int]] = set()
        self._heap: list[tuple[float, int, State, Iterator[Events]]] = []
        self._order = count()

    def run(self) -> tuple[Events, int]:
        """Returns the events of the best simulation, and the time until which it agrees."""
        self._push(self._best)
        while self._heap and self._trials.spent < min(self._most, self._since + _PATIENCE):
            _, _, state, children = heappop(self._heap)
            if not state.breaks:
                if state.until >= self._trials.record.end:
                    return state.events, state.until
                self._push(self._trials.examined(state.events, state.until))
                continue
            spent = self._trials.spent
            events = next(children, None)
            if events is None:
                continue
            child = self._trials.examined(events, state.until)
            if self._is_promising(child, state):
                self._push(child)
            state = state._replace(effort=state.effort + self._trials.spent - spent)
            heappush(self._heap, (-state.rank, next(self._order), state, children))
        return self._best.events, self._best.until

    def _push(self, state: State) -> None:
        key = in_order(state.events), state.until
        if key in self._seen:
            return
        self._seen.add(key)
        heappush(self._heap, (-state.rank, next(self._order), state, self._guesses.of(state)))
        if state.worth > self._best.worth:
            self._best, self._since = state, self._trials.spent
            self._told(state.until)

    def _is_promising(self, child: State, state: State) -> bool:
        """Returns True if a child agrees for longer than its state, or has fewer differences afterwards."""
        at = state.until
        if child.until > at + TOLERANCE or child.worth > state.worth:
            return True
        if child.until < at - TOLERANCE:
            return False
        ended = any(event.end == at for event in child.events)
        return self._trials.cost(child.events, at) < (1 if ended else _BETTER) * self._trials.cost(
            state.events, at
        )
