"""Levels of several owners added up over time, exactly, however the time is cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.analysis.metrics import exact
from harness.base.arrays import Groups, Ints, firsts
from harness.base.units import INT64_MAX
from harness.plugins.measurement import Window

_HELD, _WAITING, _BEYOND = range(3)
"""The sums of each owner: what its pods hold, what they wait for, and what is beyond the limit."""


class Held(NamedTuple):
    """The resource-microseconds that an owner held and asked for, for a resource and a window.

    Attributes:
        allocated: held by pods.
        demanded: held or asked for, at most the limit at any time.
        pending: asked for by pods that waited.
    """

    allocated: int
    demanded: int
    pending: int


class Integrals:
    """Adds up what owners hold and ask for, for some resources.

    A change of a level counts from its time until the end; that is enough for held and waiting amounts. From
    what is asked for, the part beyond a limit is subtracted again.

    Args:
        owners: how many there are.
        limits: for each resource the most that counts of what is asked for, with the time from which this
            holds; None for no limit. The first ones hold from the beginning.
        window: the begin and end; nothing is held or asked for at its beginning.
    """

    def __init__(
        self, owners: int, limits: Sequence[tuple[int, Sequence[int | None]]], window: Window
    ) -> None:
        self._time, self._end = window.start, window.end
        first, *later = limits
        self._later = [each for each in later if each[0] < window.end]
        self._limits = _numbers(first[1])
        self._since = np.full(owners, window.start)
        self._levels = [np.zeros(owners, np.int64) for _ in first[1]]  # what is held or asked for
        self._sums = [[[0, 0, 0] for _ in range(owners)] for _ in first[1]]
        # What all ask for together is not what each does where a limit cuts it.
        self._asked, self._beyond = [0 for _ in first[1]], [0 for _ in first[1]]

    def add(self, time: Ints, owner: Ints, moves: Sequence[tuple[Ints, Ints]]) -> None:
        """Takes changes of levels into account.

        Args:
            time: when, in order, and not before what was added earlier.
            owner: the number of the owner whose levels change.
            moves: for each resource the changes in what is held, and in what is held or asked for.
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
        """Takes changes of levels into account, while limits stay as they are."""
        groups = Groups(owner)
        number, ranked, last = groups.keys, time[groups.order], groups.last
        spans = ranked - np.append(0, ranked[:-1])[: len(ranked)]
        spans[groups.begins] = ranked[groups.begins] - self._since[number[groups.begins]]
        self._since[number[last]] = ranked[last]
        since = np.diff(time, prepend=self._time)
        self._time = int(time[-1]) if len(time) else self._time
        left = self._end - ranked
        for place, (held, asks) in enumerate(moves):
            together = asks.cumsum() + self._asked[place]
            before = together - asks
            over = np.flatnonzero(before > self._limits[place])
            self._beyond[place] += exact.resource_time(before[over] - self._limits[place], since[over])
            self._asked[place] = int(together[-1]) if len(time) else self._asked[place]
            by, holds = asks[groups.order], held[groups.order]
            self._integrate(place, _HELD, number, groups.begins, holds, left)
            self._integrate(place, _WAITING, number, groups.begins, by - holds, left)
            level = self._levels[place]
            after = groups.running(by) + level[number]
            level[number[last]] = after[last]
            self._cut(place, number, after - by, spans)

    def sums(self) -> tuple[list[Held], list[list[Held]]]:
        """The sums for every resource, of all owners together and of each owner.

        The present levels last until the end.
        """
        for begin, limits in self._later:
            self._reach(begin)
            self._limits = _numbers(limits)
        self._later = []
        self._reach(self._end)
        of_all = []
        for beyond, of_owners in zip(self._beyond, self._sums, strict=True):
            held, waiting, _ = map(sum, zip(*of_owners, strict=True))
            of_all.append(_held(held, waiting, beyond))
        owned = zip(*self._sums, strict=True)
        return of_all, [[_held(*of_resource) for of_resource in of_owner] for of_owner in owned]

    def _reach(self, time: int) -> None:
        """Adds up the current levels until a time."""
        every = np.arange(len(self._since))
        spans = (time - self._since).clip(0)
        for place, level in enumerate(self._levels):
            self._cut(place, every, level, spans)
        self._since[:] = np.maximum(self._since, time)
        span, self._time = max(0, time - self._time), max(self._time, time)
        for place, (together, limit) in enumerate(zip(self._asked, self._limits, strict=True)):
            self._beyond[place] += max(0, together - limit) * span

    def _cut(self, place: int, owner: Ints, level: Ints, spans: Ints) -> None:
        """Subtracts the amounts beyond the limit for some spans, from owners in ascending order."""
        over = np.flatnonzero(level > self._limits[place])
        if len(over):
            some = owner[over]
            begins = np.flatnonzero(firsts(some))
            self._integrate(place, _BEYOND, some, begins, level[over] - self._limits[place], spans[over])

    def _integrate(
        self, place: int, kind: int, owner: Ints, begins: Ints, amounts: Ints, spans: Ints
    ) -> None:
        """Adds up the amounts of owners for some spans; the rows of an owner begin at one of `begins`."""
        of_resource = self._sums[place]
        sums = exact.resource_times(amounts, spans, begins)
        for number, amount in zip(owner[begins].tolist(), sums, strict=True):
            of_resource[number][kind] += amount


def _held(held: int, waiting: int, beyond: int) -> Held:
    return Held(held, held + waiting - beyond, waiting)


def _numbers(limits: Sequence[int | None]) -> list[int]:
    return [min(INT64_MAX if limit is None else limit, INT64_MAX) for limit in limits]
