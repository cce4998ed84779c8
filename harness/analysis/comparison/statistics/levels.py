"""Intervals of means whose values have a bound: amounts are never below 0, and shares are also at most 1.

Student's interval of such a mean may reach beyond the bound, and often misses the long tail on the other
side. On a scale without bounds it does neither: the logarithm of the mean, or its log-odds for shares. The
error on that scale follows from the error of the mean by the delta method.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from harness.analysis.comparison.statistics.significance import Interval, mean_and_error, of_pairs, wide


def of_level(values: Sequence[float], most: float | None = None) -> Interval | None:
    """The interval of a mean, on the scale of logarithms or log-odds; Student's if any value is below 0.

    Args:
        values: the values, which differ only by chance.
        most: the largest possible value, for the scale of log-odds; None for no such bound.

    Returns:
        None with fewer than two values.
    """
    found = of_pairs([0.0] * len(values), values, ratio=False)
    if found is None or found.certain or min(values) < 0:
        return found
    mean, error = mean_and_error(values)
    if most is None or max(values) > most:
        half = wide(error / mean, found.size)
        return found._replace(low=mean * exp(-half), high=mean * exp(half))
    half = wide(error * most / (mean * (most - mean)), found.size)
    low, high = (most * mean / (mean + (most - mean) * exp(-sign * half)) for sign in (-1, 1))
    return found._replace(low=low, high=high)
