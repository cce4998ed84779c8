"""Computes the quantiles of an event's time over many futures. In some futures, it may never happen."""

from __future__ import annotations

import math
from collections.abc import Sequence

SHARES = (0.1, 0.5, 0.9)
"""The shares of the three quantiles. The first and the last quantile enclose 80 % of the futures."""

Times = tuple[float | None, float | None, float | None]
"""The quantiles for `SHARES`, in microseconds from now. None stands for times after the horizon."""


def quantile(times: Sequence[int | None], share: float) -> float | None:
    """Returns the time by which an event has happened in a share of the futures, or None.

    The result is None if the event happens in fewer futures. With n futures, the i-th earliest time stands
    for the share `i / (n + 1)`. The difference between the shares of two times is then the probability that
    the time in a further future lies between them, however few futures there are.

    `times` has the time of the event in each future, or None if the event never happens. `share` is between 0
    and 1.
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
    """Returns the quantiles for `SHARES`."""
    low, middle, high = (quantile(times, share) for share in SHARES)
    return low, middle, high
