"""The ideal shares of holders: weighted max-min fairness over several resources, by progressive filling.

All holders rise together in proportion to their weights; each consumes in the proportions of what it demands
and stops when it has all of that. When a resource is full, the holders that demand it stop too, and the
others go on. It is computed for many instants at once: a *cell* is a holder at an instant, and cells are in
one column, holder by holder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

_ZERO = pl.Series([0.0])
_NEVER = pl.Series([float("inf")])
_NO = pl.Series([False])
_STRIDE = 16


class Grid(NamedTuple):
    """The shape of a column of cells."""

    holders: int
    instants: int

    def total(self, cells: pl.Series) -> pl.Series:
        """Add up the holders at each instant, always in the same order: halves are added, and again."""
        rest: pl.Series | None = None
        blocks = self.holders
        while blocks > 1:
            half, odd = divmod(blocks, 2)
            if odd:
                last = cells.slice(2 * half * self.instants, self.instants)
                rest = last if rest is None else rest + last
            middle = half * self.instants
            cells = cells.slice(0, middle) + cells.slice(middle, middle)
            blocks = half
        return cells if rest is None else cells + rest

    def spread(self, instants: pl.Series) -> pl.Series:
        """Give every holder the value of its instant."""
        return pl.concat([instants] * self.holders, rechunk=True)

    def cells(self, instants: pl.Series) -> pl.Series:
        """The numbers of the cells of some instants, in order."""
        number = pl.int_range(0, self.holders * len(instants), eager=True)
        return number // len(instants) * self.instants + instants.gather(number % len(instants))


class Wants(NamedTuple):
    """What holders ask for, cell by cell.

    At the water level x a holder has the share `weight * x` and consumes `rate * x` of a resource, as a part
    of all that there is of it; it has its `demand` at the level `limit` and stops there. Where a holder gets
    nothing, all of these are 0.

    Attributes:
        weight: how fast its share rises.
        demand: the share that it wants.
        limit: `demand / weight`.
        rates: for each resource, how fast it consumes that.
    """

    weight: pl.Series
    demand: pl.Series
    limit: pl.Series
    rates: Sequence[pl.Series]

    def where(self, mask: pl.Series) -> Wants:
        """The same, but nothing where the mask is false."""
        return self._with([column.zip_with(mask, _ZERO) for column in self._columns])

    def some(self, cells: pl.Series) -> Wants:
        """The same for some of the cells, by number."""
        return self._with([column.gather(cells) for column in self._columns])

    @property
    def _columns(self) -> list[pl.Series]:
        return [self.weight, self.demand, self.limit, *self.rates]

    @staticmethod
    def _with(columns: list[pl.Series]) -> Wants:
        return Wants(columns[0], columns[1], columns[2], columns[3:])


def ideal_shares(grid: Grid, wants: Wants) -> pl.Series:
    """The ideal share of each cell."""
    share = _ZERO.new_from_index(0, len(wants.weight))
    base = _ZERO.new_from_index(0, grid.instants)
    used = [base] * len(wants.rates)
    guess = _guess(grid, wants)
    for _ in wants.rates:  # each time one more of them is full
        level, full = _rise(grid, wants, used, base, guess)
        spread = grid.spread(level)
        stops = satisfied = wants.limit <= spread
        for rate, is_full in zip(wants.rates, full, strict=True):
            stops = stops | (grid.spread(is_full) & (rate > 0))
        share += wants.demand.zip_with(satisfied, wants.weight * spread).zip_with(stops, _ZERO)
        if stops.all():
            break
        height = wants.limit.zip_with(satisfied, spread)
        used = [
            before + grid.total((rate * height).zip_with(stops, _ZERO))
            for before, rate in zip(used, wants.rates, strict=True)
        ]
        wants = wants.where(~stops)
        base = guess = level
    return share


def _guess(grid: Grid, wants: Wants) -> pl.Series:
    """Levels that are nearly right until the first resource is full: those of an instant close by."""
    instants = pl.int_range(0, grid.instants, _STRIDE, eager=True)
    coarse = Grid(grid.holders, len(instants))
    base = _ZERO.new_from_index(0, coarse.instants)
    used = [base] * len(wants.rates)
    level, _ = _rise(coarse, wants.some(grid.cells(instants)), used, base, base)
    return level.gather(pl.int_range(0, grid.instants, eager=True) // _STRIDE)


def _rise(
    grid: Grid, wants: Wants, used: Sequence[pl.Series], base: pl.Series, guess: pl.Series
) -> tuple[pl.Series, list[pl.Series]]:
    """The level at which the next resource is full, and for each resource whether it is; infinite if none is.

    Consumption is a concave function of the level. Going on from anywhere as if no holder stopped on the way
    leads to a level that is not too high; repeated, it rises to the right one, and is exact once no holder
    stops on the way.

    Args:
        grid: the shape of the columns.
        wants: what the holders that still rise ask for.
        used: what the others have of each resource.
        base: a level at which no resource is more than full.
        guess: where to begin, too high or too low.
    """
    most = [rate * wants.limit for rate in wants.rates]
    ends, overfull = _ends(grid, wants, used, most, guess)
    # Far too high a guess, at which nothing rises any more, says nothing.
    nearest = _least(ends)
    level = base.zip_with(overfull | (nearest < base), nearest)
    while True:
        ends, _ = _ends(grid, wants, used, most, level)
        nearest = _least(ends)
        rises = nearest > level
        if not rises.any():
            return level, [(end <= level) & level.is_finite() for end in ends]
        level = nearest.zip_with(rises, level)


def _ends(
    grid: Grid, wants: Wants, used: Sequence[pl.Series], most: Sequence[pl.Series], level: pl.Series
) -> tuple[list[pl.Series], pl.Series]:
    """For each resource the level at which it is full if every holder that rises at `level` goes on for ever.

    Also, whether some resource is more than full although nothing that demands it rises any more.
    """
    rising = wants.limit > grid.spread(level)
    stopped = ~rising
    ends, overfull = [], _NO
    for rate, all_of_it, before in zip(wants.rates, most, used, strict=True):
        slope = grid.total(rate.zip_with(rising, _ZERO))
        left = 1.0 - before - grid.total(all_of_it.zip_with(stopped, _ZERO))
        ends.append((left / slope).zip_with(slope > 0, _NEVER))
        overfull = overfull | ((slope == 0) & (left < 0))
    return ends, overfull


def _least(columns: Sequence[pl.Series]) -> pl.Series:
    least, *others = columns
    for other in others:
        least = least.zip_with(least <= other, other)
    return least
