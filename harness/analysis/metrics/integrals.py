"""Computes exact integrals over time of the amounts that owners, such as queues, hold and request.

The integrals do not depend on how time is divided into pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.analysis.metrics import exact
from harness.base.arrays import Groups, Ints, firsts, next_of
from harness.base.units import INT64_MAX
from harness.plugins.measurement import Window

_HELD, _WAITING, _BEYOND = range(3)
"""The three sums for each owner: allocated, pending, and the demand beyond the limit."""


class Held(NamedTuple):
    """The amounts of a resource that an owner held and requested in a window, in resource-microseconds.

    An owner is, for example, a queue.

    Attributes:
        allocated: what pods held.
        demanded: what pods held or requested, which is at most the limit at any time.
        pending: what waiting pods requested.
    """

    allocated: int
    demanded: int
    pending: int


class Integrals:
    """Adds up what owners, such as queues, hold and request of several resources.

    The integral of a quantity is the sum of its changes, each multiplied by the time from the change to the
    end of the window. Demand can have a limit. What exceeds the limit is subtracted afterwards.

    Args:
        limits: the limits on the demand for each resource, with the time at which they begin to apply. None
            means no limit. The first limits apply from the beginning.
        window: the measured time. Nothing is held or requested at its beginning.
    """

    def __init__(
        self, owners: int, limits: Sequence[tuple[int, Sequence[int | None]]], window: Window
    ) -> None:
        self._time, self._end = window.start, window.end
        some = [each for each in limits if each[0] < window.end]
        self._limits = [_Limit.of(some, place) for place in range(len(limits[0][1]))]
        self._since = np.full(owners, window.start)
        # The quantities that are held or requested.
        self._levels = [np.zeros(owners, np.int64) for _ in self._limits]
        self._sums = [[[0, 0, 0] for _ in range(owners)] for _ in self._limits]
        # With a limit, the demand of all owners together is not the sum of their separate demands.
        self._asked, self._beyond = [0 for _ in self._limits], [0 for _ in self._limits]

    def add(self, time: Ints, owner: Ints, moves: Sequence[tuple[Ints, Ints]]) -> None:
        """Adds changes of the amounts that owners hold and request.

        All changes, including those of earlier calls, are in order of time. For each resource, `moves` has
        the changes of the quantity held, and the changes of the quantity held or requested.
        """
        groups = Groups(owner)
        number, ranked, last = groups.keys, time[groups.order], groups.last
        begins = np.append(0, ranked[:-1])[: len(ranked)]
        begins[groups.begins] = self._since[number[groups.begins]]
        self._since[number[last]] = ranked[last]
        since = np.append(self._time, time[:-1])[: len(time)]
        self._time = int(time[-1]) if len(time) else self._time
        left = self._end - ranked
        for place, (held, asks) in enumerate(moves):
            together = asks.cumsum() + self._asked[place]
            before = together - asks
            _, amounts, spans = self._limits[place].beyond(before, since, time)
            self._beyond[place] += exact.resource_time(amounts, spans)
            self._asked[place] = int(together[-1]) if len(time) else self._asked[place]
            by, holds = asks[groups.order], held[groups.order]
            self._integrate(place, _HELD, number, groups.begins, holds, left)
            self._integrate(place, _WAITING, number, groups.begins, by - holds, left)
            level = self._levels[place]
            after = groups.running(by) + level[number]
            level[number[last]] = after[last]
            self._cut(place, number, after - by, begins, ranked)

    def sums(self) -> tuple[list[Held], list[list[Held]]]:
        """Returns the sums for every resource, first for all owners together and then for each owner.

        The function assumes that the current amounts last until the end of the window.
        """
        every = np.arange(len(self._since))
        ends = np.full(len(every), self._end)
        for place, (level, asked) in enumerate(zip(self._levels, self._asked, strict=True)):
            self._cut(place, every, level, self._since, ends)
            last = (np.array([each]) for each in (asked, self._time, self._end))
            _, amounts, spans = self._limits[place].beyond(*last)
            self._beyond[place] += exact.resource_time(amounts, spans)
        of_all = []
        for beyond, of_owners in zip(self._beyond, self._sums, strict=True):
            held, waiting, _ = map(sum, zip(*of_owners, strict=True))
            of_all.append(_held(held, waiting, beyond))
        owned = zip(*self._sums, strict=True)
        return of_all, [[_held(*of_resource) for of_resource in of_owner] for of_owner in owned]

    def _cut(self, place: int, owner: Ints, level: Ints, since: Ints, until: Ints) -> None:
        """Subtracts what exceeds the limit during some spans. Owners must be in ascending order."""
        over, amounts, spans = self._limits[place].beyond(level, since, until)
        if len(over):
            some = owner[over]
            self._integrate(place, _BEYOND, some, np.flatnonzero(firsts(some)), amounts, spans)

    def _integrate(
        self, place: int, kind: int, owner: Ints, begins: Ints, amounts: Ints, spans: Ints
    ) -> None:
        """Adds up owners' quantities over some spans. Each of `begins` is the first row of an owner."""
        of_resource = self._sums[place]
        sums = exact.resource_times(amounts, spans, begins)
        for number, amount in zip(owner[begins].tolist(), sums, strict=True):
            of_resource[number][kind] += amount


def _held(held: int, waiting: int, beyond: int) -> Held:
    return Held(held, held + waiting - beyond, waiting)


class _Limit(NamedTuple):
    """The limits on the demand for a resource over time.

    They apply from the times in `begins`, in ascending order. The first time precedes all others.
    """

    begins: Ints
    most: Ints
    least: int

    @classmethod
    def of(cls, limits: Sequence[tuple[int, Sequence[int | None]]], place: int) -> _Limit:
        amounts = [amounts[place] for _, amounts in limits]
        most = np.array([INT64_MAX if each is None else min(each, INT64_MAX) for each in amounts], np.int64)
        begins = np.array([-INT64_MAX, *(begin for begin, _ in limits[1:])], np.int64)
        new = firsts(most)
        return cls(begins[new], most[new], int(most.min()))

    def beyond(self, level: Ints, since: Ints, until: Ints) -> tuple[Ints, Ints, Ints]:
        """Returns the rows whose level exceeds the limit, with the excess and its duration."""
        row = np.flatnonzero(level > self.least)
        if len(self.begins) == 1 or not len(row):
            return row, level[row] - self.least, until[row] - since[row]
        first = self.begins.searchsorted(since[row], "right") - 1
        counts = self.begins.searchsorted(until[row]) - first
        step = np.arange(counts.sum()) + np.repeat(first - counts.cumsum() + counts, counts)
        row = np.repeat(row, counts)
        amounts = level[row] - self.most[step]
        begins = np.maximum(since[row], self.begins[step])
        spans = np.minimum(until[row], next_of(self.begins, INT64_MAX)[step]) - begins
        over = amounts > 0
        return row[over], amounts[over], spans[over]
