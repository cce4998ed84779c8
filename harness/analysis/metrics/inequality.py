"""Measures of inequality: Jain's index and the Gini coefficient."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum


def jain(values: Sequence[float]) -> float | None:
    """Returns Jain's index, (Σx)² / (n Σx²), or None if Σx² is 0.

    The index is 1 if all values are equal, and 1/n if one member has everything. It shows neither which
    members have more nor how little all members have. It is defined in Jain, Chiu and Hawe, DEC-TR-301, 1984.
    """
    square = fsum(value * value for value in values)
    return fsum(values) ** 2 / (len(values) * square) if square else None


def gini(values: Sequence[float]) -> float | None:
    """Returns the Gini coefficient, ΣΣ|x − y| / (2 n Σx), or None if Σx is 0.

    The coefficient is 0 if all values are equal, and (n − 1)/n if one member has everything. Its value can be
    the same whether a few members have nothing or many members have slightly less than the average. Gini
    introduced it in 1912.
    """
    whole, count = fsum(values), len(values)
    if not whole:
        return None
    ranked = fsum((2 * place - count - 1) * value for place, value in enumerate(sorted(values), 1))
    return ranked / (count * whole)
