"""Levels of several owners added up over time, exactly, however the time is cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.analysis.metrics import exact
from harness.base.arrays import Groups, Ints
from harness.base.units import INT64_MAX
from harness.plugins.measurement import Window


class Held(NamedTuple):
    """What an owner held and asked for of a resource over a window, in resource-microseconds.

    Attributes:
        allocated: held by pods.
        demanded: held or asked for, at most the limit at any time.
        pending: asked for by pods that waited.
    """

    allocated: int
    demanded: int
    pending: int


class Integrals:
    """Adds up what owners hold and ask for of some resources.

    Args:
        owners: how many there are.
        limits: from some times on, of each resource, how much of what is asked for counts; None for all of
            it. The first ones hold from the beginning.
        window: from when until when; nothing is held or asked for at its beginning.
    """

    def __init__(
        self, owners: int, limits: Sequence[tuple[int, Sequence[int | None]]], window: Window
    ) -> None:
        self._time, self._end = window.start, window.end
        first, *later = limits
        self._later = [each for each in later if each[0] < window.end]
        self._limits = _numbers(first[1])
        self._since = np.full(owners, window.start)
        self._levels = [np.zeros((2, owners), np.int64) for _ in first[1]]
        self._sums = [[[0, 0, 0] for _ in range(owners)] for _ in first[1]]
        # What all ask for together is not what each does where a limit cuts it.
        self._asked, self._demanded = [0 for _ in first[1]], [0 for _ in first[1]]

    def add(self, time: Ints, owner: Ints, moves: Sequence[tuple[Ints, Ints]]) -> None:
        """Take into account that levels move.

        Args:
            time: when, in order, and not before what was added earlier.
            owner: the number of whose levels move.
            moves: of each resource, how far what is held moves, and what is held or asked for.
        """
        while self._later and len(time) and self._later[0][0] <= time[-1]:
            begin, limits = self._later.pop(0)
            until = int(time.searchsorted(begin))
            self._add(time[:until], owner[:until], [(held[:until], asks[:until]) for held, asks in moves])
            self._reach(begin)
            self._limits = _numbers(limits)
            time, owner = time[until:], owner[until:]
            moves = [(held[until:], asks[until:]) for held, asks in moves]
        self._add(time, owner, moves)

    def _add(self, time: Ints, owner: Ints, moves: Sequence[tuple[Ints, Ints]]) -> None:
        """The same, while limits stay as they are."""
        groups = Groups(owner)
        number, ranked, last = groups.keys, time[groups.order], groups.last
        before = np.append(0, ranked[:-1])[: len(ranked)]
        before[groups.begins] = self._since[number[groups.begins]]
        self._since[number[last]] = ranked[last]
        since = np.diff(time, prepend=self._time)
        self._time = int(time[-1]) if len(time) else self._time
        for place, of_resource in enumerate(moves):
            together = of_resource[1].cumsum() + self._asked[place]
            asked = np.minimum(together - of_resource[1], self._limits[place])
            self._demanded[place] += exact.resource_time(asked, since)
            self._asked[place] = int(together[-1]) if len(time) else self._asked[place]
            levels = self._levels[place]
            found = []
            for level, moved in zip(levels, of_resource, strict=True):
                by = moved[groups.order]
                after = groups.running(by) + level[number]
                level[number[last]] = after[last]
                found.append(after - by)
            self._integrate(place, found[0], found[1], ranked - before, groups)

    def sums(self) -> tuple[list[Held], list[list[Held]]]:
        """What levels of every resource come to of all together, and of each owner.

        What they are now lasts until the end.
        """
        for begin, limits in self._later:
            self._reach(begin)
            self._limits = _numbers(limits)
        self._later = []
        self._reach(self._end)
        of_all = []
        for demanded, of_owners in zip(self._demanded, self._sums, strict=True):
            allocated, _, pending = map(sum, zip(*of_owners, strict=True))
            of_all.append(Held(allocated, demanded, pending))
        owned = zip(*self._sums, strict=True)
        return of_all, [[Held(*of_resource) for of_resource in of_owner] for of_owner in owned]

    def _reach(self, time: int) -> None:
        """Levels stay as they are up to a time."""
        groups = Groups(np.arange(len(self._since)))
        spans = (time - self._since).clip(0)
        for place, (held, asked) in enumerate(self._levels):
            self._integrate(place, held, asked, spans, groups)
        self._since[:] = np.maximum(self._since, time)
        span, self._time = max(0, time - self._time), max(self._time, time)
        for place, (together, limit) in enumerate(zip(self._asked, self._limits, strict=True)):
            self._demanded[place] += min(together, limit) * span

    def _integrate(self, place: int, held: Ints, asked: Ints, spans: Ints, groups: Groups) -> None:
        """Add levels that hold for some spans."""
        of_resource = self._sums[place]
        for kind, level in enumerate((held, np.minimum(asked, self._limits[place]), asked - held)):
            sums = exact.resource_times(level, spans, groups.begins)
            for number, amount in zip(groups.keys[groups.begins].tolist(), sums, strict=True):
                of_resource[number][kind] += amount


def _numbers(limits: Sequence[int | None]) -> list[int]:
    return [min(INT64_MAX if limit is None else limit, INT64_MAX) for limit in limits]
