"""Statistics of durations that may still be growing when the window ends.

The value of a duration that hasn't ended is its length so far, and nothing is estimated. Jobs that are still
running at the end of a window tend to be long, so statistics of only the completed jobs would be biased. Each
statistic has a flag that says whether it is only a lower bound. A mean is a lower bound if any duration is
still growing. A percentile lies between two order statistics, and it is a lower bound if any growing duration
is at most the larger of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TypeAlias

import numpy as np

from harness.analysis.metrics.exact import exact_sum, whole_sum
from harness.base.arrays import NEVER, Bools, Floats, Ints, between, quantile

Figure: TypeAlias = tuple[float | None, bool]
"""A statistic, and whether it is only a lower bound because it can still grow."""

NOTHING: Figure = (None, False)


def statistics(values: Floats | Ints, going: Bools, names: Sequence[str]) -> list[Figure]:
    """Computes statistics of durations that may still be growing.

    `values` has the final value of each duration or slowdown, its value so far, or `NEVER` if there is none.
    `going` says whether each value can still grow. The statistics are `mean`, `max` or percentiles such as
    `p95` and `p99_9`.
    """
    there = values != NEVER
    known = values if there.all() else values[there]
    if not len(known):
        return [NOTHING for _ in names]
    parts = {name: _part(name) for name in names if name != "mean"}
    # It takes a fifth of the time to partition values at the needed order statistics instead of sorting them.
    some = {place for part in parts.values() for place in between(len(known), float(part))}
    ranked = np.partition(known, sorted(some)) if some else known
    unended = values[going & there] if going.any() else values[:0]
    lowest = unended.min() if len(unended) else None
    found: list[Figure] = []
    for name in names:
        if name == "mean":
            found.append((_sum(known) / len(known), lowest is not None))
            continue
        upper = ranked[ceil((len(known) - 1) * parts[name])]
        found.append((quantile(ranked, float(parts[name])), lowest is not None and bool(lowest <= upper)))
    return found


@lru_cache
def _part(name: str) -> Fraction:
    """Returns the fraction of values that are at most `max`, `p95` or `p99_9`."""
    return Fraction(1) if name == "max" else Fraction(name[1:].replace("_", ".")) / 100


def _sum(values: Floats | Ints) -> float:
    if values.dtype == np.int64:
        return float(whole_sum(values.astype(np.int64, copy=False)))
    return exact_sum(values.astype(np.float64, copy=False))
