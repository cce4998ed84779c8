"""Statistics of times of which some have not ended: Kaplan and Meier's estimate (JASA 53, 1958).

A time that has not ended is *censored*: it will be longer than it is so far. It counts among those that are
as long, and what becomes of it later is taken to be what becomes of the others that are longer.

Equal values end before they are censored. A quantile is the least value at which the part that is longer is
no more than the rest; it is null where so many never ended. The largest value is the quantile of all. The
mean is restricted: what is longer than the longest, ended or not, counts as that long, and as no less than
is possible at all.

What has not come to the least that is possible, as a delay of a job that has not lasted its duration, says
nothing: it is less than all that ended, so that it is censored before them, and they stand for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.arrays import Bools, Floats, Ints, firsts, quotients
from harness.metrics.exact import exact_sum

_SAME = 1 + 1e-12
"""How far apart parts may be that are the same but for rounding."""


def estimate(
    times: Ints | Floats, ended: Bools, statistics: Sequence[str], *, least: int = 0
) -> list[float | None]:
    """Statistics of some times.

    Args:
        times: what each comes to, or comes to so far, which may be less than is possible.
        ended: whether it has ended.
        statistics: `mean`, `max` or percentiles such as `p95`.
        least: what is possible at least.
    """
    order = times.argsort()
    begins = np.flatnonzero(firsts(times[order]))
    value = times[order[begins]]
    both = np.diff(begins, append=len(times))
    ends = np.add.reduceat(ended[order], begins, dtype=np.int64)
    left = len(times) - both.cumsum()
    stay = left + both - ends
    # Those that are longer stand for those that are censored here, too.
    more = np.where((stay > left) & (left > 0), quotients(stay, left), 1.0).cumprod()
    # What each that is as long stands for, and then the part that is longer, as parts of all.
    weight = np.append(1.0, more[:-1]) / len(times)
    longer = stay * weight
    found: list[float | None] = []
    for name in statistics:
        if name == "mean":
            counted = np.append(value[:-1], max(value[-1], least))
            found.append(exact_sum(counted * weight * np.where(left == 0, both, ends)))
            continue
        percent = 100 if name == "max" else int(name[1:])
        reached = value[longer * 100 <= (100 - percent) * _SAME]
        found.append(float(reached[0]) if len(reached) else None)
    return found
