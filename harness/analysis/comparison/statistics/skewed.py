"""Conservative intervals of means, corrected for the skewness of the values."""

from __future__ import annotations

from collections.abc import Sequence
from math import cbrt, fsum, sqrt

from harness.analysis.comparison.statistics.significance import CONFIDENCE, p_value, t_quantile

_STRAIGHT = 1e-6  # If the skewness is smaller, a correction would only add rounding noise.


def skewness(values: Sequence[float]) -> float:
    """Estimates the skewness of the values' distribution; 0 if all values are equal."""
    count = len(values)
    centre = fsum(values) / count
    square = fsum((value - centre) ** 2 for value in values) / (count - 1)
    if count < 3 or square <= 0:
        return 0.0
    cube = count * fsum((value - centre) ** 3 for value in values) / ((count - 1) * (count - 2))
    return cube / (square * sqrt(square))


def ends_of_mean(estimate: float, error: float, skew: float, count: int) -> tuple[float, float]:
    """Returns the ends of an interval that covers two estimated intervals of a mean.

    One interval is Student's t, which assumes symmetric values. The other interval is corrected for the
    values' skewness, which skews the ratio of a mean to its error in the opposite direction. Hall's
    transformation removes that skewness up to terms of 1/n ("On the removal of skewness by transformation",
    Journal of the Royal Statistical Society B 54, 1992). The transformation is strictly increasing, so its
    inverse gives the ends. (See Willink, "A confidence interval and test for the mean of an asymmetric
    distribution", Communications in Statistics: Theory and Methods 34, 2005.)
    """
    most = t_quantile((1 + CONFIDENCE) / 2, count - 1)
    part = skew / (6 * sqrt(count))
    lowest, highest = min(-most, _untransformed(-most, part)), max(most, _untransformed(most, part))
    return estimate - error * highest, estimate - error * lowest


def p_of_mean(estimate: float, error: float, skew: float, count: int) -> float:
    """Returns the larger of two p values of a mean: Student's, and the one that is corrected for skewness.

    The result is below the significance level exactly if 0 is outside the interval of `ends_of_mean`. Both
    functions have the same arguments.
    """
    if error == 0:
        return 0.0 if estimate else 1.0
    part, ratio = skew / (6 * sqrt(count)), estimate / error
    transformed = ratio + part + 2 * part * ratio**2 + 4 / 3 * part**2 * ratio**3
    # If the two ratios have different signs, 0 is inside the interval, no matter which of them is larger.
    least = min(abs(ratio), abs(transformed)) if ratio * transformed > 0 else 0.0
    return p_value(least, 1.0, count - 1)


def _untransformed(value: float, part: float) -> float:
    """Returns the ratio of a mean to its error, given its value after Hall's transformation."""
    if abs(part) < _STRAIGHT:
        return value
    return (cbrt(1 + 6 * part * (value - part)) - 1) / (2 * part)
