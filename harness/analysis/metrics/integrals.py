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
        limits: of each resource, how much of what is asked for counts; None for all of it.
        window: from when until when; nothing is held or asked for at its beginning.
    """

    def __init__(self, owners: int, limits: Sequence[int | None], window: Window) -> None:
        self._end = window.end
        self._limits = [min(INT64_MAX if limit is None else limit, INT64_MAX) for limit in limits]
        self._since = np.full(owners, window.start)
        self._levels = [np.zeros((2, owners), np.int64) for _ in limits]
        self._sums = [[[0, 0, 0] for _ in range(owners)] for _ in limits]

    def add(self, time: Ints, owner: Ints, moves: Sequence[tuple[Ints, Ints]]) -> None:
        """Take into account that levels move.

        Args:
            time: when, in order, and not before what was added earlier.
            owner: the number of whose levels move.
            moves: of each resource, how far what is held moves, and what is held or asked for.
        """
        groups = Groups(owner)
        number, ranked, last = groups.keys, time[groups.order], groups.last
        before = np.append(0, ranked[:-1])[: len(ranked)]
        before[groups.begins] = self._since[number[groups.begins]]
        self._since[number[last]] = ranked[last]
        for place, of_resource in enumerate(moves):
            levels = self._levels[place]
            found = []
            for level, moved in zip(levels, of_resource, strict=True):
                by = moved[groups.order]
                after = groups.running(by) + level[number]
                level[number[last]] = after[last]
                found.append(after - by)
            self._integrate(place, found[0], found[1], ranked - before, groups)

    def sums(self) -> list[list[Held]]:
        """Of each owner what its levels of every resource come to; what they are now lasts until the end."""
        groups = Groups(np.arange(len(self._since)))
        for place, (held, asked) in enumerate(self._levels):
            self._integrate(place, held, asked, self._end - self._since, groups)
        self._since[:] = self._end
        owned = zip(*self._sums, strict=True)
        return [[Held(*of_resource) for of_resource in of_owner] for of_owner in owned]

    def _integrate(self, place: int, held: Ints, asked: Ints, spans: Ints, groups: Groups) -> None:
        """Add levels that hold for some spans."""
        of_resource = self._sums[place]
        for kind, level in enumerate((held, np.minimum(asked, self._limits[place]), asked - held)):
            sums = exact.resource_times(level, spans, groups.begins)
            for number, amount in zip(groups.keys[groups.begins].tolist(), sums, strict=True):
                of_resource[number][kind] += amount
