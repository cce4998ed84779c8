"""Computes the ideal shares of quotas: weighted max-min fairness over several resources.

A queue without a quota counts like a quota. Both are called holders.

The method is progressive filling. The levels of all holders rise together, in proportion to the holders'
weights. Each holder consumes resources in the proportions of its demand, and stops when its demand is met.
When a resource is exhausted, all holders that demand this resource stop as well, and the other holders
continue. Many times are computed together in one table. The table has a row for each holder and a column for
each time, and a *cell* is one holder at one time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.base.arrays import Bools, Floats, Ints, quotients

_STRIDE = 16


class Wants(NamedTuple):
    """The demands of holders. Each array has a row for each holder and a column for each time.

    At the water level x, a holder has the share `weight * x` and consumes the fraction `rate * x` of a
    resource's capacity. At the level `limit`, the holder's `demand` is met and the holder stops. If a holder
    gets nothing, all of these values are 0.

    Attributes:
        weight: how fast the holder's share rises.
        demand: the share that the holder wants.
        rates: for each resource, how fast the holder consumes it.
    """

    weight: Floats
    demand: Floats
    limit: Floats
    rates: Sequence[Floats]

    def where(self, mask: Bools) -> Wants:
        """Returns the same demands, but sets all demands to 0 for which the mask is false."""
        return self._with([np.where(mask, column, 0.0) for column in self._columns])

    def at(self, instants: Ints) -> Wants:
        """Returns the demands in the columns with the given numbers."""
        return self._with([column[:, instants] for column in self._columns])

    @staticmethod
    def side_by_side(some: Sequence[Wants]) -> Wants:
        """Joins tables with equal numbers of holders by placing their columns side by side."""
        weight, demand, limit, rates = zip(*some, strict=True)
        columns = map(np.hstack, (weight, demand, limit, *zip(*rates, strict=True)))
        return Wants._with(list(columns))

    @property
    def _columns(self) -> list[Floats]:
        return [self.weight, self.demand, self.limit, *self.rates]

    @staticmethod
    def _with(columns: list[Floats]) -> Wants:
        return Wants(columns[0], columns[1], columns[2], columns[3:])


def total(cells: Floats) -> Floats:
    """Adds up the values of all holders at each time.

    The function adds recursively by halves, so that the order of additions is always the same.
    """
    rest: Floats | None = None
    while len(cells) > 1:
        half, odd = divmod(len(cells), 2)
        if odd:
            rest = cells[-1] if rest is None else rest + cells[-1]
        cells = cells[:half] + cells[half : 2 * half]
    whole: Floats = cells[0]
    return whole if rest is None else whole + rest


def ideal_shares(some: Sequence[Wants], lengths: Sequence[Sequence[int]]) -> list[Floats]:
    """Computes the ideal share of each holder at each time, for several tables of demands.

    All tables have equal numbers of holders and resources. The columns of each table form consecutive parts.
    `lengths` contains, for each table, the number of columns in each part. The shares in one part do not
    depend on other parts.
    """
    found = _shares(Wants.side_by_side(some), [length for of_table in lengths for length in of_table])
    return np.split(found, np.cumsum([sum(of_table) for of_table in lengths])[:-1], axis=1)


def _shares(wants: Wants, lengths: Sequence[int]) -> Floats:
    share = np.zeros_like(wants.weight)
    base: Floats = np.zeros(share.shape[1])
    used = [base] * len(wants.rates)
    guess = _guess(wants, lengths)
    for _ in wants.rates:  # Each round exhausts one more resource.
        level, full = _rise(wants, used, base, guess)
        stops = satisfied = wants.limit <= level
        for rate, is_full in zip(wants.rates, full, strict=True):
            stops = stops | (is_full & (rate > 0))
        # An infinite level satisfies every holder.
        reached = np.where(np.isfinite(level), level, 0.0)
        share += np.where(stops, np.where(satisfied, wants.demand, wants.weight * reached), 0.0)
        if stops.all():
            break
        height = np.where(satisfied, wants.limit, reached)
        used = [
            before + total(np.where(stops, rate * height, 0.0))
            for before, rate in zip(used, wants.rates, strict=True)
        ]
        wants = wants.where(~stops)
        base = guess = level
    return share


def _guess(wants: Wants, lengths: Sequence[int]) -> Floats:
    """Guesses the level at which each column first exhausts a resource, from a nearby column.

    The nearby column belongs to the same part of the table, so other parts do not influence the result.
    """
    ends = np.cumsum(lengths)
    sampled = (np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)) % _STRIDE == 0
    coarse = wants.at(np.flatnonzero(sampled))
    base: Floats = np.zeros(coarse.weight.shape[1])
    level, _ = _rise(coarse, [base] * len(wants.rates), base, base)
    found: Floats = level[sampled.cumsum() - 1]
    return found


def _rise(wants: Wants, used: Sequence[Floats], base: Floats, guess: Floats) -> tuple[Floats, list[Bools]]:
    """Returns the level at which the next resources are exhausted, and these resources.

    The level is infinite if no resource is exhausted. Consumption is a concave function of the level.
    Extrapolation from any level, as if no holder stopped on the way, therefore never gives a level that is
    too high. Further steps raise the level, and the level is exact once no holder stops on the way to it.

    `used` has, for each resource, the consumption of the holders that have stopped rising. `base` is a level
    at which no resource is more than fully used. `guess` is the level to begin with, which may be too high or
    too low.
    """
    most = [rate * wants.limit for rate in wants.rates]
    ends, overfull = _ends(wants, used, most, guess)
    # A guess is useless if it is so high that no holder is rising any more.
    nearest: Floats = np.minimum.reduce(ends)
    level: Floats = np.where(overfull | (nearest < base), base, nearest)
    ends, _ = _ends(wants, used, most, level)
    while True:
        nearest = np.minimum.reduce(ends)
        # Most columns find their level in the first step.
        rises = np.flatnonzero(nearest > level)
        if not len(rises):
            return level, [(end <= level) & np.isfinite(level) for end in ends]
        level[rises] = nearest[rises]
        of_rises, _ = _ends(
            wants.at(rises),
            [before[rises] for before in used],
            [all_of_it[:, rises] for all_of_it in most],
            level[rises],
        )
        for end, found in zip(ends, of_rises, strict=True):
            end[rises] = found


def _ends(
    wants: Wants, used: Sequence[Floats], most: Sequence[Floats], level: Floats
) -> tuple[list[Floats], Bools]:
    """Returns the level that would exhaust each resource if every holder that rises at `level` went on.

    The second result says whether a resource is overused although no rising holder demands it.
    """
    rising = wants.limit > level
    ends, overfull = [], np.zeros(len(level), np.bool_)
    for rate, all_of_it, before in zip(wants.rates, most, used, strict=True):
        slope = total(np.where(rising, rate, 0.0))
        left = 1.0 - before - total(np.where(rising, 0.0, all_of_it))
        ends.append(quotients(left, slope, otherwise=np.inf))
        overfull |= (slope == 0) & (left < 0)
    return ends, overfull
