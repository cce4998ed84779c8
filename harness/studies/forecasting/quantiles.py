"""Quantiles of the time of an event over futures. In some futures, the event may never happen."""

from __future__ import annotations

import math
from collections.abc import Sequence

SHARES = (0.1, 0.5, 0.9)
"""The quantiles of a start; 80 % of the futures are between the first and the last quantile."""

Times = tuple[float | None, float | None, float | None]
"""The quantiles of `SHARES`, in microseconds from now; None for times after the horizon."""


def quantile(times: Sequence[int | None], share: float) -> float | None:
    """Returns the time by which an event has happened in a share of the futures; None if it happens in fewer.

    With n futures, the i-th time stands for the share i / (n + 1). The probability that an outcome of the
    same kind lies between two times is therefore the difference of their shares, no matter how few futures
    there are.

    Args:
        times: when the event happens in each future; None if it never happens.
        share: the share of the futures, between 0 and 1.
    """
    ordered = sorted(math.inf if time is None else time for time in times)
    if not ordered:
        return None
    place = min(max(share * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    low = ordered[math.floor(place)]
    high = ordered[math.ceil(place)]
    found = low if low == high else low + (place - math.floor(place)) * (high - low)
    return None if math.isinf(found) else found


def quantiles(times: Sequence[int | None]) -> Times:
    """Returns the quantiles of `SHARES`."""
    low, middle, high = (quantile(times, share) for share in SHARES)
    return low, middle, high
