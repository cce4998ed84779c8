"""The significance of a difference: its interval, its p value, and corrections for many tests.

Student's t comes from scipy. Importing scipy takes half a second, so the import is postponed until the first
test.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum, log, sqrt
from typing import NamedTuple

CONFIDENCE = 0.95
LEVEL = 1 - CONFIDENCE

_SAME = 1e-12  # The relative error of equal values that are computed in a different order.

ALIKE = 6
"""If this many differences or more are all equal, the difference is certain without a test.

Fewer differences may be equal by chance, for example differences of counts.
"""


class Interval(NamedTuple):
    """The estimated range of the difference between a value and the baseline's value.

    Attributes:
        low: the lower end of the 95 % interval.
        high: the upper end of the interval.
        p: the probability that chance alone causes a difference at least as large.
        size: the number of twins, or blocks of jobs, from which the interval was computed.
        ratio: True if the ends are factors of the baseline's value, False if they are differences in the
            metric's unit.
    """

    low: float
    high: float
    p: float
    size: int
    ratio: bool = False

    @property
    def certain(self) -> bool:
        """True if all differences were equal, so no test was necessary."""
        return self.low == self.high

    @property
    def has_nothing(self) -> bool:
        """True if the interval includes the value for no difference, which is 0 or the factor 1."""
        return self.low <= (1 if self.ratio else 0) <= self.high


def of_pairs(base: Sequence[float], other: Sequence[float], *, ratio: bool) -> Interval | None:
    """Returns Student's interval of paired differences.

    If all pairs differ by the same amount, the interval is a point, and no test is needed. The p value is
    then 1 if this amount is 0, and 0 otherwise. However, if there are fewer than `ALIKE` pairs, a sign test
    gives a p value that is too large for a verdict.

    If `ratio` is true, the differences are those of logarithms, which requires values above 0. With fewer
    than two pairs, the result is None.
    """
    if len(base) < 2 or len(other) < 2:
        return None
    if ratio:
        differences = [log(after) - log(before) for before, after in zip(base, other, strict=True)]
    else:
        differences = [after - before for before, after in zip(base, other, strict=True)]
    count = len(differences)
    centre, error = mean_and_error(differences)
    size = max(abs(value) for value in (*base, *other))
    same = _SAME * (1 if ratio else size)
    if max(differences) - min(differences) <= same:
        point = 0.0 if abs(centre) <= same else centre
        ends, p = (point, point), _p_of_equal(count) if point else 1.0
    else:
        half = wide(error, count)
        ends, p = (centre - half, centre + half), p_value(centre, error, count - 1)
    low, high = map(_factor, ends) if ratio else ends
    return Interval(low, high, p, count, ratio)


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Returns the mean of at least two values, and its standard error."""
    count = len(values)
    centre = fsum(values) / count
    return centre, sqrt(fsum((value - centre) ** 2 for value in values) / (count - 1) / count)


def wide(error: float, count: int) -> float:
    """Returns half the width of Student's interval around a mean, given the mean's standard error."""
    return error * t_quantile((1 + CONFIDENCE) / 2, count - 1)


def _p_of_equal(count: int) -> float:
    """Returns the probability that this many pairs all differ in the same direction by chance."""
    return 0.0 if count >= ALIKE else 2.0 ** (1 - count)


def p_value(estimate: float, error: float, freedom: int) -> float:
    """Returns the two-sided probability of an estimate at least this far from 0 if there is no difference.

    `error` is the standard error, and `freedom` is its degrees of freedom.
    """
    if error == 0:
        return 0.0 if estimate else 1.0
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(estimate / error)))


def t_quantile(share: float, freedom: int) -> float:
    """Returns the quantile of Student's t distribution for a probability."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))


def holm(values: Sequence[float]) -> list[float]:
    """Returns p values corrected for as many tests as there are values (Holm, 1979), in the same order."""
    corrected = [1.0] * len(values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        least = max(least, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = least
    return corrected


def _factor(logarithm: float) -> float:
    """Returns the factor for a logarithm, or infinity if the factor would exceed any float."""
    return exp(logarithm) if logarithm < 700 else float("inf")
