"""Paired bootstrap intervals for the difference between two runs of the same jobs.

A replay is deterministic, so only the sample of jobs is random. Jobs that arrive together also wait together.
The bootstrap therefore draws *blocks* of jobs, which are in order of arrival, and it draws the same blocks
for both runs. This method is valid only if a job has little influence beyond its own block, which
`plateau.py` tests.

If both runs have values above 0 in every resample, the interval describes the ratio of the values. The
standard error of a mean or percentile is computed from its resamples. Because there are few blocks, the error
is enlarged slightly (Hesterberg, "What teachers should know about the bootstrap", 2015). It is enlarged
further if longer blocks show a larger error.

A trace may contain a busy period by chance. Such a period makes a difference larger, and also its error.
Intervals are therefore corrected for skewness (`ends_of_mean`), as Tafazzoli and Wilson do for batch means.
Their paper is "Skart: a skewness- and autoregression-adjusted batch-means procedure for simulation analysis"
(IIE Transactions 43, 2011). To estimate the skewness of blocks, the module leaves out one block after the
other. For sums of lost work, the intervals are percentiles of the resamples.
"""

from __future__ import annotations

import random
from functools import cached_property, lru_cache
from math import erfc, exp, sqrt
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harness.analysis.comparison.statistics.plateau import levels_off, memory
from harness.analysis.comparison.statistics.significance import Interval
from harness.analysis.comparison.statistics.skewed import ends_of_mean, p_of_mean, skewness

RESAMPLES = 1000
SEED = 1
BLOCKS = 32
T_OF_BLOCKS = 2.039513446396408
"""The `(1 + CONFIDENCE) / 2` quantile of Student's t with `BLOCKS - 1` degrees of freedom.

The value is a constant because most comparisons need nothing else from scipy, which takes long to import.
"""
LEAST_JOBS = 128
"""If fewer jobs have a value, there is no interval."""

_FLIPS = 9_999
_CELLS = 512  # A sample is divided into this many groups of values of similar size.

Numbers = NDArray[np.float64]


class Paired:
    """The values of the same jobs in two runs.

    Args:
        base: one value for each job in order of arrival; null if a job has no value.
        other: the same jobs' values in the other run.

    Attributes:
        blocks: the number of blocks to draw from; 0 if there are too few jobs.
    """

    def __init__(self, base: pl.Series, other: pl.Series) -> None:
        known = base.is_not_null() | other.is_not_null()
        sides = [side.filter(known).cast(pl.Float64).to_numpy() for side in (base, other)]
        self.blocks = BLOCKS if len(sides[0]) >= LEAST_JOBS else 0
        self._sides = sides
        self._congested: dict[bool, bool] = {}

    @cached_property
    def _samples(self) -> list[_Sample]:
        return [_Sample(side, self.blocks) for side in self._sides] if self.blocks else []

    def congested(self, statistic: str) -> bool:
        """Returns True if neighbouring blocks of jobs are too similar to be treated as independent.

        The blocks must be independent in both runs and in the difference. For sums of lost work, the test
        compares the means of blocks, because a few jobs lose most of the work. For other statistics, it
        compares ranks.
        """
        ranked = statistic != "total"
        if ranked not in self._congested:
            base, other = (np.nan_to_num(side) for side in self._sides)
            every = (base, other, other - base)
            self._congested[ranked] = not all(levels_off(each, ranked=ranked) for each in every)
        return self._congested[ranked]

    @cached_property
    def _memory(self) -> float:
        """The standard error of the difference of means, relative to the error for independent blocks."""
        base, other = (np.nan_to_num(side) for side in self._sides)
        means = base.mean(), other.mean()
        return memory(other / means[1] - base / means[0] if min(means) > 0 else other - base, self.blocks)

    def interval(self, statistic: str) -> Interval | None:
        """Returns the interval of a statistic's difference between the other run and the baseline.

        `statistic` is `mean`, `total` or a percentile such as `p95`. The result is None if there are too few
        jobs or too few values.
        """
        if not self._samples:
            return None
        sides = np.stack([sample.resampled(statistic) for sample in self._samples])
        known: NDArray[np.bool_] = np.all(np.isfinite(sides), axis=0)
        if np.count_nonzero(known[:RESAMPLES]) < RESAMPLES // 2 or not known[RESAMPLES:].all():
            return None
        ratio = bool(sides[:, known].min() > 0)
        base, other = sides
        found = np.log(other / base) if ratio else other - base
        resamples, (whole, *without) = found[:RESAMPLES][known[:RESAMPLES]], found[RESAMPLES:].tolist()
        wider = sqrt(self.blocks / (self.blocks - 1))
        if statistic == "total":
            before, after = (sample.sums() for sample in self._samples)
            p = _sign_flipped(after - before)
            tail = erfc(wider * T_OF_BLOCKS / sqrt(2)) / 2  # This is the tail of the normal distribution.
            low, high = (float(each) for each in np.quantile(resamples, (tail, 1 - tail)))
        else:
            error = wider * self._memory * float(resamples.std(ddof=1))
            about = (whole, error, -skewness(without), self.blocks)
            p = p_of_mean(*about)
            low, high = ends_of_mean(*about)
        if ratio:
            low, high = exp(low), exp(high)
        return Interval(low, high, p, self.blocks, ratio)


class _Sample:
    """One run's values in blocks, with their statistics over the resamples."""

    def __init__(self, values: Numbers, blocks: int) -> None:
        known = np.isfinite(values)
        self._blocks = blocks
        self._block = (np.arange(len(values)) * blocks // len(values))[known]
        self._values = values[known]

    def sums(self) -> Numbers:
        return np.bincount(self._block, self._values, self._blocks).astype(np.float64)

    def resampled(self, statistic: str) -> Numbers:
        """Returns a statistic's value in each resample, then over all blocks, then without each block.

        A value is NaN if no job with a value was drawn.
        """
        if not len(self._values):
            return np.full(RESAMPLES + 1 + self._blocks, np.nan)
        if statistic == "total":
            return self._drawn(self.sums())
        if statistic == "mean":
            with np.errstate(invalid="ignore"):
                return self._drawn(self.sums()) / self._count
        return self._quantile(int(statistic[1:]) / 100)

    def _drawn(self, of_blocks: NDArray[Any]) -> Numbers:
        """Returns the sum over each resample's blocks. A block counts as often as it is drawn."""
        found: Numbers = _times(self._blocks) @ of_blocks.astype(np.float64)
        return found

    @cached_property
    def _count(self) -> Numbers:
        return self._drawn(np.bincount(self._block, minlength=self._blocks))

    def _quantile(self, share: float) -> Numbers:
        """Returns a percentile for each resample, by linear interpolation between order statistics.

        The method assumes that values are spread evenly within a cell.
        """
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
        row = np.arange(len(until))
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
    """Returns a matrix that says how often each block is drawn in each resample.

    Further rows contain all blocks once, and then all blocks except one.
    """
    draw = random.Random(SEED).random  # noqa: S311 - drawn for statistics, and the same in every version
    drawn = np.array([int(draw() * blocks) for _ in range(RESAMPLES * blocks)]).reshape(RESAMPLES, blocks)
    cells = (drawn + blocks * np.arange(RESAMPLES)[:, None]).ravel()
    times = np.bincount(cells, minlength=RESAMPLES * blocks).reshape(RESAMPLES, blocks)
    return np.concatenate([times.astype(np.float64), np.ones((1, blocks)), 1 - np.eye(blocks)])


@lru_cache(maxsize=4)
def _signs(blocks: int) -> Numbers:
    draw = random.Random(SEED).getrandbits  # noqa: S311 - likewise
    bits = np.array([draw(1) for _ in range(_FLIPS * blocks)]).reshape(_FLIPS, blocks)
    return 2.0 * bits - 1


def _sign_flipped(differences: Numbers) -> float:
    """Returns the p value of a sum, assuming that the signs of the blocks' differences are random.

    If a few blocks make up most of a sum of lost work, the standard error of the sum has no meaning.
    The signs of the differences still carry information.
    """
    apart = differences[differences != 0]
    if not len(apart):
        return 1.0
    if abs(apart.sum()) >= np.abs(apart).sum():  # All of them have the same sign.
        return float(2.0 ** (1 - len(apart)))
    sums = np.abs(_signs(len(apart)) @ apart)
    return float(1 + np.count_nonzero(sums >= abs(apart.sum()) * (1 - 1e-12))) / (1 + _FLIPS)
