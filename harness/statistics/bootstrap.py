"""Paired bootstrap intervals for the difference between two runs of the same jobs, where they can be had.

A replay is deterministic, so what varies is which jobs there were. Jobs that arrive together wait together,
therefore *blocks* of jobs in order of arrival are drawn, the same ones for both runs. That is right where
blocks are much longer than what goes on from one job to the next, which `harness.statistics.plateau` tests.

Where both values can only be above 0 the interval is of their ratio. Intervals are percentiles of the
differences over resamples, a little wider than their nominal ones because blocks are few (Hesterberg, "What
teachers should know about the bootstrap", 2015).
"""

from __future__ import annotations

import random
from functools import cached_property, lru_cache
from math import exp, sqrt
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtr

from harness.statistics.plateau import levels_off
from harness.statistics.significance import CONFIDENCE, Interval, p_value, t_quantile

RESAMPLES = 1000
SEED = 1
BLOCKS = 32
LEAST_JOBS = 128
"""Of fewer jobs than this nothing can be said."""

_FLIPS = 9_999
_CELLS = 512  # a sample is looked at as this many groups of neighbours in order of size

Numbers = NDArray[np.float64]


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
        sides = [side.filter(known).cast(pl.Float64).to_numpy() for side in (base, other)]
        self.blocks = BLOCKS if len(sides[0]) >= LEAST_JOBS else 0
        self._sides = sides
        self._samples = [_Sample(side, self.blocks) for side in sides] if self.blocks else []

    @cached_property
    def congested(self) -> bool:
        """Whether blocks of jobs are too much alike, in one run or in what it differs from the other by."""
        base, other = (np.nan_to_num(side) for side in self._sides)
        return not all(map(levels_off, (base, other, other - base)))

    def interval(self, statistic: str) -> Interval | None:
        """The interval of how much a statistic of the other run is above the baseline's.

        Args:
            statistic: `mean`, `total` or a percentile such as `p95`.

        Returns:
            None where nothing can be said: too few jobs, or hardly any with a value.
        """
        if not self._samples:
            return None
        sides = np.stack([sample.resampled(statistic) for sample in self._samples])
        base, other = sides[:, np.isfinite(sides).all(axis=0)]
        if len(base) < RESAMPLES // 2:
            return None
        ratio = bool(min(base.min(), other.min()) > 0)
        found = np.log(other / base) if ratio else other - base
        freedom = self.blocks - 1
        wider = sqrt(self.blocks / freedom)
        tail = float(ndtr(-wider * t_quantile((1 + CONFIDENCE) / 2, freedom)))
        low, centre, high = (float(each) for each in np.quantile(found, (tail, 0.5, 1 - tail)))
        if statistic == "total":
            before, after = (sample.sums() for sample in self._samples)
            p = _sign_flipped(after - before)
        else:
            p = p_value(centre, wider * float(found.std(ddof=1)), freedom)
        if ratio:
            low, high = exp(low), exp(high)
        return Interval(low, high, p, self.blocks, ratio)


class _Sample:
    """One run's values in blocks, and statistics of them over the resamples."""

    def __init__(self, values: Numbers, blocks: int) -> None:
        known = np.isfinite(values)
        self._blocks = blocks
        self._block = (np.arange(len(values)) * blocks // len(values))[known]
        self._values = values[known]

    def sums(self) -> Numbers:
        """The sum of each block."""
        return np.bincount(self._block, self._values, self._blocks).astype(np.float64)

    def resampled(self, statistic: str) -> Numbers:
        """A statistic's value in each resample, NaN where no job with a value was drawn."""
        if not len(self._values):
            return np.full(RESAMPLES, np.nan)
        if statistic == "total":
            return self._drawn(self.sums())
        if statistic == "mean":
            with np.errstate(invalid="ignore"):
                return self._drawn(self.sums()) / self._count
        return self._quantile(int(statistic[1:]) / 100)

    def _drawn(self, of_blocks: NDArray[Any]) -> Numbers:
        """For each resample the sum over its blocks, as often as they are drawn."""
        found: Numbers = _times(self._blocks) @ of_blocks.astype(np.float64)
        return found

    @cached_property
    def _count(self) -> Numbers:
        """How many values each resample has."""
        return self._drawn(np.bincount(self._block, minlength=self._blocks))

    def _quantile(self, share: float) -> Numbers:
        """A percentile, linear between order statistics; values of a cell are taken to be evenly spread."""
        order = np.argsort(self._values, kind="stable")
        size = len(order)
        cells = min(_CELLS, size)
        cell = np.arange(size) * cells // size
        ends = np.searchsorted(cell, np.arange(cells), side="right") - 1
        starts = np.searchsorted(cell, np.arange(cells), side="left")
        low, high = self._values[order[starts]], self._values[order[ends]]
        each = np.bincount(self._block[order] * cells + cell, minlength=self._blocks * cells)
        until = self._drawn(each.reshape(self._blocks, cells).cumsum(axis=1))

        height = np.maximum((self._count - 1) * share, 0)
        place = np.floor(height)
        at = np.minimum((until <= place[:, None]).sum(axis=1), cells - 1)
        row = np.arange(RESAMPLES)
        reached = until[row, at]
        before = np.where(at > 0, until[row, np.maximum(at - 1, 0)], 0)
        step = (high[at] - low[at]) / np.maximum(reached - before - 1, 1)
        value = low[at] + step * (place - before)
        beyond = low[np.minimum(at + 1, cells - 1)]
        following = np.where(place + 1 < reached, value + step, beyond)
        found = value + (height - place) * np.maximum(following - value, 0)
        return np.where(self._count > 0, found, np.nan)


@lru_cache(maxsize=4)
def _times(blocks: int) -> Numbers:
    """How often each block is drawn in each resample."""
    draw = random.Random(SEED).random  # noqa: S311 - drawn for statistics, alike in every version
    drawn = np.array([int(draw() * blocks) for _ in range(RESAMPLES * blocks)]).reshape(RESAMPLES, blocks)
    cells = (drawn + blocks * np.arange(RESAMPLES)[:, None]).ravel()
    return np.bincount(cells, minlength=RESAMPLES * blocks).reshape(RESAMPLES, blocks).astype(np.float64)


@lru_cache(maxsize=4)
def _signs(blocks: int) -> Numbers:
    """Signs for blocks, drawn at random."""
    draw = random.Random(SEED).getrandbits  # noqa: S311 - likewise
    bits = np.array([draw(1) for _ in range(_FLIPS * blocks)]).reshape(_FLIPS, blocks)
    return 2.0 * bits - 1


def _sign_flipped(differences: Numbers) -> float:
    """How likely a sum of differences at least so large is if each block's sign were a matter of chance.

    Where few blocks have most of a sum, as of lost work, a standard error says nothing; signs do.
    """
    apart = differences[differences != 0]
    if not len(apart):
        return 1.0
    if abs(apart.sum()) >= np.abs(apart).sum():  # all of one sign
        return float(2.0 ** (1 - len(apart)))
    sums = np.abs(_signs(len(apart)) @ apart)
    return float(1 + np.count_nonzero(sums >= abs(apart.sum()) * (1 - 1e-12))) / (1 + _FLIPS)
