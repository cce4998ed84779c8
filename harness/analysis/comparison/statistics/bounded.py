"""Intervals of means, and of mean differences, for values that have a bound such as 0 or 1.

If a share is 1 in one of two runs, the difference is the distance of the other run's share from 1. This
distance is small in most twins and large in a few. A count that is 0 in one run behaves in the same way.
Student's t assumes symmetric differences, but these differences have a long tail on one side. Ten differences
often don't show that tail at all. Near a bound, values vary more the farther they are from it, but their
square roots do not. (See Bartlett, "The square root transformation in analysis of variance", Supplement to
the Journal of the Royal Statistical Society 3, 1936.)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign, exp, fsum, sqrt

from harness.analysis.comparison.statistics.significance import (
    Interval,
    mean_and_error,
    of_pairs,
    p_value,
    wide,
)


def of_bounded_pairs(base: Sequence[float], other: Sequence[float]) -> Interval | None:
    """Returns an interval that covers two estimated intervals of a mean paired difference.

    One of the two intervals is Student's. The other interval has the same mean but is computed on the scale
    of signed square roots. Its width is derived from the spread of the roots of the differences. The result
    has the larger of the two p values. With fewer than two pairs, it is None.
    """
    found = of_pairs(base, other, ratio=False)
    if found is None or found.certain:
        return found
    differences = [after - before for before, after in zip(base, other, strict=True)]
    middle = _root(fsum(differences) / found.size)
    _, error = mean_and_error([_root(each) for each in differences])
    low, high = (_square(middle + sign * wide(error, found.size)) for sign in (-1, 1))
    p = p_value(middle, error, found.size - 1)
    return found._replace(low=min(found.low, low), high=max(found.high, high), p=max(found.p, p))


def _root(value: float) -> float:
    return copysign(sqrt(abs(value)), value)


def _square(value: float) -> float:
    return copysign(value * value, value)


def of_level(values: Sequence[float], most: float | None = None) -> Interval | None:
    """Computes the interval of a mean, on a scale of logarithms or log-odds.

    Quantities are never below 0, and shares never exceed 1. Student's interval of such a mean may extend
    beyond the bound. On the other side, the interval often misses the long tail of the values. The interval
    is therefore computed on a scale without bounds, which is the logarithm of the mean or, for shares, its
    log-odds. The delta method converts the error of the mean to that scale.

    If a value is below 0, the result is Student's t interval. With fewer than two values, it is None.

    `most` is the largest possible value, if the interval uses log-odds, or else None.
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
