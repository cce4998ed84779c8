"""Intervals of means whose values are bounded: quantities are never below 0, and shares never exceed 1.

Student's interval of such a mean may extend beyond the bound. On the other side, the interval often misses
the long tail of the values. The module therefore computes the interval on a scale without bounds, which is
the logarithm of the mean or, for shares, its log-odds. The delta method converts the error of the mean to
that scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from harness.analysis.comparison.statistics.significance import Interval, mean_and_error, of_pairs, wide


def of_level(values: Sequence[float], most: float | None = None) -> Interval | None:
    """Computes the interval of a mean, on a scale of logarithms or log-odds.

    If a value is below 0, the result is Student's t interval.

    `most` is the largest possible value, if the interval uses log-odds, or else None.

    Returns:
        The interval, or None with fewer than two values.
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
