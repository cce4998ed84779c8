"""Divides the changes of held and requested amounts into pieces of time.

Because only one piece is in memory, memory does not grow with a run's length. A piece consists of parts. Sums
of floats are rounded once for each part, so the results do not depend on how many parts a piece has.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.base.arrays import Groups, Ints, firsts, next_of
from harness.plugins.measurement import Window


class Moves(NamedTuple):
    """Changes of the amounts that holders hold or request, in order of time.

    A holder is a quota, or a queue without a quota.

    Attributes:
        holder: for each change, the number of the holder.
        levels: how much each amount changes. A key such as `allocated<n>` is for the n-th resource.
    """

    time: Ints
    holder: Ints
    levels: Mapping[str, Ints]

    def part(self, rows: slice) -> Moves:
        """Returns the changes in the given rows."""
        levels = {name: level[rows] for name, level in self.levels.items()}
        return Moves(self.time[rows], self.holder[rows], levels)

    def then(self, later: Moves) -> Moves:
        """Returns these changes, followed by later changes."""
        levels = {name: np.concatenate((level, later.levels[name])) for name, level in self.levels.items()}
        times, holders = (self.time, later.time), (self.holder, later.holder)
        return Moves(np.concatenate(times), np.concatenate(holders), levels)


class Piece(NamedTuple):
    """The amounts that holders hold or request during a period.

    A holder is a quota, or a queue without a quota. A *level* is a set of amounts that a holder keeps for
    some time. `holder`, `at`, `span` and each array in `levels` have one entry for each level.

    Attributes:
        times: the times at which anything changes, in ascending order.
        end: the time until which the levels at the last of these times apply.
        at: the index in `times` at which the level begins. For each holder, these indexes ascend, and the
            first one is 0.
        span: how long the level lasts.
        levels: the amounts. A key such as `allocated<n>` is for the n-th resource.
        parts: the indexes in `times` at which parts begin; the first one is 0. The cluster changes only at
            these times, and every holder begins a new level there.
    """

    times: Ints
    end: int
    holder: Ints
    at: Ints
    span: Ints
    levels: Mapping[str, Ints]
    parts: Ints

    @property
    def spans(self) -> Ints:
        """The span between each time in `times` and the next one; after the last time, until `end`."""
        return next_of(self.times, self.end) - self.times


def cut(
    found: Iterable[Moves],
    owners: int,
    names: Sequence[str],
    window: Window,
    *,
    changes: int,
    turns: Sequence[int] = (),
    alike: Container[int] = (),
) -> Iterator[Piece]:
    """Adds up changes of amounts, and yields the resulting amounts over a window in pieces of time.

    `found` has the changes of the amounts `names`, such as `allocated0`, in order of time. Nothing changes
    before the window. Each piece has about `changes` changes. The cluster changes at the times `turns`, in
    order, at which new pieces begin. At the times in `alike`, a new piece begins only if the current piece
    would get more than `changes` changes. Otherwise, a new part of the piece suffices.
    """
    state: Mapping[str, Ints] = {name: np.zeros(owners, np.int64) for name in names}
    parts: list[_Part] = []
    size = 0
    for part in _parts(found, names, window, changes, turns):
        longer = 1 + len(part.changes.time)
        if parts and (part.start not in alike or size + longer > changes):
            piece, state = _piece(state, parts)
            yield piece
            parts, size = [], 0
        parts.append(part)
        size += longer
    yield _piece(state, parts)[0]


class _Part(NamedTuple):
    """The changes of a span, from its first time (inclusive) to its last (exclusive)."""

    changes: Moves
    start: int
    end: int


def _parts(
    found: Iterable[Moves], names: Sequence[str], window: Window, changes: int, turns: Sequence[int]
) -> Iterator[_Part]:
    start = window.start
    nothing = np.zeros(0, np.int64)
    waiting = Moves(nothing, nothing, dict.fromkeys(names, nothing))
    ahead = [each for each in reversed(turns) if window.start < each < window.end]
    for batch in found:
        waiting = waiting.then(batch)
        while ahead and len(waiting.time) and waiting.time[-1] >= ahead[-1]:
            turn = ahead.pop()
            done = int(waiting.time.searchsorted(turn))
            yield _Part(waiting.part(slice(done)), start, turn)
            waiting, start = waiting.part(slice(done, None)), turn
        while len(waiting.time) > changes:
            # The next table may contain further changes at the time of the last change.
            last = int(waiting.time[changes - 1])
            done = int(waiting.time.searchsorted(last))
            if not done:
                changes *= 2
                continue
            yield _Part(waiting.part(slice(done)), start, last)
            waiting, start = waiting.part(slice(done, None)), last
    while ahead:
        turn = ahead.pop()
        yield _Part(waiting, start, turn)
        waiting, start = waiting.part(slice(0)), turn
    yield _Part(waiting, start, window.end)


def _piece(state: Mapping[str, Ints], parts: Sequence[_Part]) -> tuple[Piece, Mapping[str, Ints]]:
    every = np.arange(len(next(iter(state.values()), ())))
    still = Moves(every, every, {name: np.zeros(len(every), np.int64) for name in state})
    rows: list[Moves] = []
    for part in parts:
        begun = still if rows else still._replace(levels=state)
        rows += [begun._replace(time=np.full(len(every), part.start)), part.changes]
    time = np.concatenate([each.time for each in rows])
    new = firsts(time)
    times, at = time[new], new.cumsum() - 1
    groups = Groups(np.concatenate([each.holder for each in rows]))
    at = at[groups.order]
    # If a holder has several changes at the same time, only the state after the last change becomes a level.
    stays = groups.last
    stays[:-1] |= at[1:] != at[:-1]
    moved = {name: np.concatenate([each.levels[name] for each in rows]) for name in state}
    levels = {name: groups.running(level[groups.order])[stays] for name, level in moved.items()}
    holder, at, last = groups.keys[stays], at[stays], groups.last[stays]
    begin, end = times[at], parts[-1].end
    until = next_of(begin, end)
    until[last] = end
    latest = {name: level[last] for name, level in levels.items()}
    begins = times.searchsorted([part.start for part in parts])
    return Piece(times, end, holder, at, until - begin, levels, begins), latest
