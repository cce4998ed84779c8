"""Tests whether a series is long enough to be divided into independent blocks.

The method of Flyvbjerg and Petersen estimates the variance of a mean from the means of blocks, then from
blocks that are twice as long, and so on. The estimate rises as long as neighbouring blocks are similar, and
it reaches a plateau when they are no longer similar. (See "Error estimates on averages of correlated data",
Journal of Chemical Physics 91, 1989.) Each doubling raises the estimate by the correlation of neighbouring
blocks. This module tests that correlation at every length.

In a congested queue, waits are correlated over a long time. The few long blocks of a trace then show no
plateau, or only seem to show one. If a trace has few long queues by chance, then the estimate, the visible
correlation, and the difference of two runs are all too small. The decision whether to print an interval
should depend on that chance as little as possible. For this reason, the module correlates the ranks of
blocks, because a few long queues hardly change them. (See Bartels, "The rank version of von Neumann's ratio
test for randomness", Journal of the American Statistical Association 77, 1982.)

Even short blocks must be nearly independent, so the correlation between neighbours among the 1,024 blocks of
the finest level must not exceed 1/8. This bound was calibrated on queues with known waits. Their loads and
seeds differ from those in docs/statistics.md.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import polars as pl
from numpy.typing import NDArray

FINEST = 1024
"""The maximum number of blocks at the finest level. Each further level has half as many blocks."""

COARSEST = 64

_FIRST = 1 / 8
_LATER = 3.0  # in standard errors of a correlation of 0; large, as twelve tests can fail by chance


def levels_off(values: NDArray[np.float64], *, ranked: bool = True) -> bool:
    """Returns True if the estimated error of the mean levels off.

    `values` has at least 128 values in order of time. If `ranked` is true, the ranks of blocks are
    correlated, or else their means, which is necessary if a few values make up most of the sum.
    """
    blocks = FINEST
    while 2 * blocks > len(values):
        blocks //= 2
    first, *later = _correlations(values, blocks, ranked=ranked)
    return first <= _FIRST and all(
        found <= _LATER / sqrt(blocks >> level) for level, found in enumerate(later, start=1)
    )


def memory(values: NDArray[np.float64], blocks: int) -> float:
    """Returns the factor by which correlation between blocks increases the standard error of the mean.

    The error is estimated three times: from `blocks` blocks, from half as many, and from twice as many. The
    result is `largest estimate / first estimate`. If blocks are independent, the estimates differ only by
    chance, so the largest one is a safe choice. The series must have at least `2 * blocks` values.
    """
    means = _means(values, 2 * blocks)
    squares = []
    for _ in range(3):
        squares.append(float(means.var(ddof=1)) / len(means))
        means = (means[::2] + means[1::2]) / 2
    return sqrt(max(squares) / squares[1]) if squares[1] > 0 else 1.0


def _means(values: NDArray[np.float64], blocks: int) -> NDArray[np.float64]:
    edges = np.arange(blocks + 1) * len(values) // blocks
    found: NDArray[np.float64] = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    return found


def _correlations(values: NDArray[np.float64], blocks: int, *, ranked: bool) -> list[float]:
    means = _means(values, blocks)
    found = []
    while len(means) >= COARSEST:
        sizes = pl.Series(means).rank().to_numpy() if ranked else means
        off = sizes - sizes.mean()
        square = float(off @ off)
        found.append(float(off[1:] @ off[:-1]) / square if square > 0 else 0.0)
        means = (means[::2] + means[1::2]) / 2
    return found
