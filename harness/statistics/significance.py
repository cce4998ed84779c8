"""Tests of differences: Student's t by way of the normal distribution, and Holm's correction.

Between t and z Wallace's approximation is used (Annals of Mathematical Statistics 30, 1959), which is within
0.02 of z for the 15 and more degrees of freedom that occur here, in both directions the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign, exp, log1p, sqrt
from statistics import NormalDist

NORMAL = NormalDist()


def z_of_t(t: float, freedom: int) -> float:
    """The normal deviate that is as unlikely as a Student t of so many degrees of freedom."""
    return copysign(_scale(freedom) * sqrt(freedom * log1p(t * t / freedom)), t)


def t_of_z(z: float, freedom: int) -> float:
    """The Student t that is as unlikely as a normal deviate: the inverse of `z_of_t`."""
    return copysign(sqrt(freedom * (exp((z / _scale(freedom)) ** 2 / freedom) - 1)), z)


def p_value(estimate: float, error: float, freedom: int) -> float:
    """How likely an estimate at least so far from 0 is where there is no difference, to either side.

    Args:
        estimate: the difference.
        error: its standard error.
        freedom: degrees of freedom of the error.
    """
    if error == 0:
        return 0.0 if estimate else 1.0
    return 2 * NORMAL.cdf(-abs(z_of_t(estimate / error, freedom)))


def holm(values: Sequence[float]) -> list[float]:
    """P values corrected for as many tests as there are values (Holm, 1979), in the same order."""
    corrected = [1.0] * len(values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        least = max(least, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = least
    return corrected


def _scale(freedom: int) -> float:
    return (8 * freedom + 1) / (8 * freedom + 3)
