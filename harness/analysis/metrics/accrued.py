"""Statistics of times where some go on: these count with what has accrued so far, which is exact.

Nothing is estimated. Which jobs go on when a window ends depends on how long they are, so that those which
have ended say nothing of them. Each statistic comes with a mark that says whether it is the least that it can
become. A mean is if any time goes on. A percentile lies between two order statistics; it is if a time goes on
that is not above the larger of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from harness.analysis.metrics.exact import exact_sum, whole_sum
from harness.base.arrays import NEVER, Bools, Floats, Ints, between, quantile

Figure: TypeAlias = tuple[float | None, bool]
"""A statistic, and whether it is the least that it can become."""

NOTHING: Figure = (None, False)
"""That of no values."""


def statistics(values: Floats | Ints, going: Bools, names: Sequence[str]) -> list[Figure]:
    """Statistics of values.

    Args:
        values: what each comes to, or comes to so far; `NEVER` where there is none.
        going: which of them may grow yet.
        names: `mean`, `max` or percentiles such as `p95`.
    """
    there = values != NEVER
    known = values if there.all() else values[there]
    if not len(known):
        return [NOTHING for _ in names]
    parts = {name: 100 if name == "max" else int(name[1:]) for name in names if name != "mean"}
    # To find what percentiles lie between takes a fifth of the time of sorting.
    some = {place for percent in parts.values() for place in between(len(known), percent / 100)}
    ranked = np.partition(known, sorted(some)) if some else known
    unended = values[going & there] if going.any() else values[:0]
    lowest = unended.min() if len(unended) else None
    found: list[Figure] = []
    for name in names:
        if name == "mean":
            found.append((_sum(known) / len(known), lowest is not None))
            continue
        upper = ranked[-(-(len(known) - 1) * parts[name] // 100)]
        found.append((quantile(ranked, parts[name] / 100), lowest is not None and bool(lowest <= upper)))
    return found


def _sum(values: Floats | Ints) -> float:
    """A sum that is rounded once."""
    if values.dtype == np.int64:
        return float(whole_sum(values.astype(np.int64, copy=False)))
    return exact_sum(values.astype(np.float64, copy=False))
