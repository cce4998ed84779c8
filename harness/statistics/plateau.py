"""Whether a series is long enough for its blocks to be independent: the plateau of Flyvbjerg and Petersen.

The variance of a mean is estimated from the means of blocks, and again of blocks twice as long, and so on.
The estimate rises as long as neighbouring blocks are alike, and levels off where they are not ("Error
estimates on averages of correlated data", Journal of Chemical Physics 91, 1989). A doubling raises it by the
correlation of neighbouring blocks, which is what is tested here, at every length.

Where a queue is congested, its waits remember each other for so long that the few long blocks of a trace show
no plateau, or only seem to: in a trace that by chance had few long queues both the estimate and the memory
that shows are too small. Therefore short blocks already must be little alike: of the 1,024 that the finest
level has, the estimate may rise by at most 45 % with their first doubling. Both bounds were chosen on queues
with known waits, see docs/statistics.md.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

FINEST = 1024
"""How many blocks a series is cut in at most, at first; each level has half as many as the one before."""

COARSEST = 64

_FIRST_RISE = 0.45
_RISE = 2.0  # standard errors of a correlation that is not there


def levels_off(values: NDArray[np.float64]) -> bool:
    """Whether the estimate of the error of the mean levels off.

    Args:
        values: a series in order of time, of at least 128 values.
    """
    blocks = FINEST
    while 2 * blocks > len(values):
        blocks //= 2
    rises = _rises(values, blocks)
    return rises[0] <= _FIRST_RISE and all(
        rise <= _RISE / sqrt(blocks >> level) for level, rise in enumerate(rises) if level
    )


def _rises(values: NDArray[np.float64], blocks: int) -> list[float]:
    """By which part the estimate rises when blocks are joined in pairs, level by level."""
    edges = np.arange(blocks + 1) * len(values) // blocks
    means = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    found = []
    while len(means) >= COARSEST:
        off = means - means.mean()
        square = float(off @ off)
        found.append(float(off[1:] @ off[:-1]) / square if square > 0 else 0.0)
        means = (means[::2] + means[1::2]) / 2
    return found
