"""The inequality of some values: Jain's index and Gini's coefficient."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum


def jain(values: Sequence[float]) -> float | None:
    """(Σx)² / (n Σx²): 1 if all are equal, 1/n if one has everything; None if there is nothing.

    Source: Jain, Chiu and Hawe, DEC-TR-301, 1984. The index does not see who has more, nor how little all
    have.
    """
    square = fsum(value * value for value in values)
    return fsum(values) ** 2 / (len(values) * square) if square else None


def gini(values: Sequence[float]) -> float | None:
    """Returns ΣΣ|x − y| / (2 n Σx): 0 if all are equal, (n − 1)/n if one member has all; None if Σx is 0.

    Source: Gini, 1912. A few members with nothing, or many with a little less than the average, can give the
    same value.
    """
    whole, count = fsum(values), len(values)
    if not whole:
        return None
    ranked = fsum((2 * place - count - 1) * value for place, value in enumerate(sorted(values), 1))
    return ranked / (count * whole)
