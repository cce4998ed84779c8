"""Measures of inequality: Jain's index and the Gini coefficient."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum


def jain(values: Sequence[float]) -> float | None:
    """Returns (Σx)² / (n Σx²): 1 if all values are equal, 1/n if one member has everything; None if Σx² is 0.

    The index is defined in Jain, Chiu and Hawe, DEC-TR-301, 1984. It shows neither which members have more
    nor how little all members have.
    """
    square = fsum(value * value for value in values)
    return fsum(values) ** 2 / (len(values) * square) if square else None


def gini(values: Sequence[float]) -> float | None:
    """Returns ΣΣ|x − y| / (2 n Σx): 0 if all are equal, (n − 1)/n if one has everything; None if Σx is 0.

    The coefficient was introduced by Gini in 1912. Its value can be the same whether a few members have
    nothing or many members have slightly less than the average.
    """
    whole, count = fsum(values), len(values)
    if not whole:
        return None
    ranked = fsum((2 * place - count - 1) * value for place, value in enumerate(sorted(values), 1))
    return ranked / (count * whole)
