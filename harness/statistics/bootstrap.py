"""Paired bootstrap intervals for the difference between two runs of the same jobs.

A replay is deterministic, so what varies is which jobs there were. Jobs that arrive together wait together,
therefore *blocks* of jobs in order of arrival are drawn, the same ones for both runs. There are at most 64
blocks. As long as neighbouring blocks differ between the runs in a like manner, neighbours are joined, down
to 16: then blocks are longer than what goes on from one job to the next (Flyvbjerg and Petersen, 1989).

Intervals are percentiles of the differences over resamples, a little wider than their nominal ones because
blocks are few (Hesterberg, "What teachers should know about the bootstrap", 2015).
"""

from __future__ import annotations

import random
from functools import cached_property, lru_cache
from itertools import pairwise
from math import fsum, sqrt
from typing import NamedTuple

import polars as pl

from harness.statistics.significance import NORMAL, p_value, t_of_z

RESAMPLES = 1000
SEED = 1
CONFIDENCE = 0.95
MOST_BLOCKS = 64
LEAST_BLOCKS = 16
"""Of fewer jobs than this nothing can be said."""

_CORRELATED = 0.5  # standard errors: joining too many costs little, too few would make intervals too narrow
_CELLS = 512  # a sample is looked at as this many groups of neighbours in order of size


class Interval(NamedTuple):
    """What is known of a difference between two runs.

    Attributes:
        low: the lower end of its 95 % interval.
        high: the upper end.
        p: how likely a difference at least as large is by chance alone.
        blocks: how many blocks of jobs it was found from.
    """

    low: float
    high: float
    p: float
    blocks: int


class Paired:
    """The values of the same jobs in two runs.

    Args:
        base: one value a job in order of arrival, null where it has none.
        other: the same jobs' values in the other run.

    Attributes:
        blocks: how many blocks are drawn from; 0 where jobs are too few.
    """

    def __init__(self, base: pl.Series, other: pl.Series) -> None:
        known = base.is_not_null() | other.is_not_null()
        sides = (base.filter(known).cast(pl.Float64), other.filter(known).cast(pl.Float64))
        self.blocks = _blocks(*sides)
        self._samples = [_Sample(side, self.blocks) for side in sides] if self.blocks else []

    def interval(self, statistic: str) -> Interval | None:
        """The interval of how much a statistic of the other run is above the baseline's.

        Args:
            statistic: `mean`, `total` or a percentile such as `p95`.

        Returns:
            None where nothing can be said: too few jobs, or hardly any with a value.
        """
        if not self._samples:
            return None
        base, other = (sample.resampled(statistic) for sample in self._samples)
        found = (other - base).drop_nans()
        if len(found) < RESAMPLES // 2:
            return None
        freedom = self.blocks - 1
        wider = sqrt(self.blocks / freedom)
        tail = NORMAL.cdf(-wider * t_of_z(NORMAL.inv_cdf((1 + CONFIDENCE) / 2), freedom))
        low, high = (_percentile(found, share) for share in (tail, 1 - tail))
        spread = found.cast(pl.Float64).std()
        centre = _percentile(found, 0.5)
        error = wider * spread if isinstance(spread, float) else 0.0
        return Interval(low, high, p_value(centre, error, freedom), self.blocks)


class _Draws:
    """Resamples of some blocks, as long columns: one cell a resample and block.

    Attributes:
        block: the block of each cell; a number of 32 bits, by which values are picked five times as fast.
        resample: the resample of each cell, likewise.
        times: how often the block is drawn in the resample.
    """

    def __init__(self, blocks: int) -> None:
        draw = random.Random(SEED).random  # noqa: S311 - drawn for statistics
        cell = pl.int_range(RESAMPLES * blocks, dtype=pl.UInt32, eager=True)
        drawn = pl.Series([draw() for _ in range(RESAMPLES * blocks)]) * blocks
        self._blocks = blocks
        self.block = cell % blocks
        self.resample = cell // blocks
        self.times = counts(self.resample * blocks + drawn.cast(pl.UInt32), len(cell))

    def sums(self, cells: pl.Series) -> pl.Series:
        """For each resample the sum over its blocks, as often as they are drawn."""
        return (cells * self.times).reshape((RESAMPLES, self._blocks)).arr.sum()


_draws = lru_cache(maxsize=8)(_Draws)


class _Sample:
    """One run's values in blocks, and statistics of them over the resamples."""

    def __init__(self, values: pl.Series, blocks: int) -> None:
        known = values.is_not_null()
        block = pl.int_range(len(values), eager=True) * blocks // len(values)
        self._blocks = blocks
        self._draws = _draws(blocks)
        self._frame = pl.DataFrame({"value": values, "block": block}).filter(known)

    def resampled(self, statistic: str) -> pl.Series:
        """A statistic's value in each resample, NaN where no job with a value was drawn."""
        if self._frame.is_empty():
            return pl.Series([float("nan")]).new_from_index(0, RESAMPLES)
        if statistic == "mean":
            return self._total / self._count
        if statistic == "total":
            return self._total
        return self._quantile(int(statistic[1:]) / 100)

    @cached_property
    def _total(self) -> pl.Series:
        sums = self._frame.group_by("block", maintain_order=True).agg(pl.col("value").sum())
        of_blocks = pl.Series([0.0]).new_from_index(0, self._blocks).scatter(sums["block"], sums["value"])
        return self._draws.sums(of_blocks[self._draws.block])

    @cached_property
    def _count(self) -> pl.Series:
        of_blocks = counts(self._frame["block"], self._blocks)
        return self._draws.sums(of_blocks[self._draws.block])

    @cached_property
    def _sorted(self) -> pl.DataFrame:
        """The values in order of size, cut in cells of neighbours."""
        size = self._frame.height
        cell = pl.int_range(size, eager=True) * min(_CELLS, size) // size
        return self._frame.sort("value").with_columns(cell=cell)

    @cached_property
    def _cells(self) -> pl.DataFrame:
        """The least and the largest value of each cell."""
        values, cell = self._sorted["value"], self._sorted["cell"]
        first = (cell != cell.shift()).fill_null(value=True)
        return pl.DataFrame(
            {"low": values.filter(first), "high": values.filter(first.shift(-1, fill_value=True))}
        )

    @cached_property
    def _until(self) -> pl.Series:
        """For each block and cell, how many of the block's values are in the cell or below."""
        width = self._cells.height
        each = counts(self._sorted["block"] * width + self._sorted["cell"], self._blocks * width)
        rows = each.reshape((self._blocks, width)).arr.to_list()
        return rows.list.eval(pl.element().cum_sum()).explode()

    def _below(self, cell: pl.Series) -> pl.Series:
        """In each resample, how many of the values drawn are in its cell or below."""
        at = self._draws.block * self._cells.height + cell.cast(pl.UInt32)[self._draws.resample]
        return self._draws.sums(self._until[at])

    def _quantile(self, share: float) -> pl.Series:
        """A percentile, linear between order statistics; values of a cell are taken to be evenly spread."""
        last = self._cells.height - 1
        height = ((self._count - 1) * share).clip(0)
        place = height.floor().cast(pl.Int64)
        least = place.new_from_index(0, RESAMPLES) * 0
        most = least + last
        while (least < most).any():
            middle = (least + most) // 2
            enough = self._below(middle) > place
            least, most = least.zip_with(enough, middle + 1), middle.zip_with(enough, most)
        cell = least.clip(0, last)  # beyond the last one where nothing was drawn
        until = self._below(cell)
        before = self._below((cell - 1).clip(0)).zip_with(cell > 0, cell * 0)
        low, high = (self._cells[name].gather(cell) for name in ("low", "high"))
        step = (high - low) / (until - before - 1).clip(1)
        value = low + step * (place - before)
        following = (value + step).zip_with(
            place + 1 < until, self._cells["low"].gather((cell + 1).clip(0, last))
        )
        found = value + (height - place) * (following - value).clip(0)
        return found.zip_with(self._count > 0, found * float("nan"))


def counts(numbers: pl.Series, size: int) -> pl.Series:
    """How often each of the numbers 0, 1, ... is there."""
    found = numbers.alias("number").value_counts(name="count")
    zeros = pl.Series([0]).new_from_index(0, size)
    return zeros.scatter(found["number"], found["count"].cast(pl.Int64))


def _blocks(base: pl.Series, other: pl.Series) -> int:
    """How many blocks to draw from: as many as are independent of their neighbours."""
    if len(base) < LEAST_BLOCKS:
        return 0
    blocks = MOST_BLOCKS
    while blocks > len(base):
        blocks //= 2
    differences = other - base
    while blocks > LEAST_BLOCKS and _correlated(differences, blocks):
        blocks //= 2
    return blocks


def _correlated(differences: pl.Series, blocks: int) -> bool:
    """Whether mean differences of neighbouring blocks are alike."""
    block = pl.int_range(len(differences), eager=True) * blocks // len(differences)
    means = (
        pl.DataFrame({"block": block, "difference": differences})
        .group_by("block", maintain_order=True)
        .agg(pl.col("difference").mean())["difference"]
        .drop_nulls()
    )
    values = means.to_list()
    centre = fsum(values) / max(1, len(values))
    off = [value - centre for value in values]
    square = fsum(value * value for value in off)
    return square > 0 and fsum(a * b for a, b in pairwise(off)) / square > _CORRELATED / sqrt(blocks)


def _percentile(values: pl.Series, share: float) -> float:
    found = values.quantile(share, interpolation="linear")
    assert found is not None
    return found
