"""Means, percentiles and indices of inequality, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple


class Value(NamedTuple):
    """A number, and whether the jobs that are not over make it the least that it can become."""

    number: Fraction | None
    at_least: bool | None = False


class Sample(NamedTuple):
    """What one job brings, and whether it may become more."""

    number: Fraction
    open: bool = False


def shape_of(samples: Sequence[Sample], shape: str) -> Value:
    """A mean, the largest, or a percentile: linear between the two order statistics around it."""
    if not samples:
        return Value(None)
    if shape == "mean":
        return Value(
            sum(each.number for each in samples) / Fraction(len(samples)), any(s.open for s in samples)
        )
    values = sorted(each.number for each in samples)
    place = Fraction(100 if shape == "max" else int(shape[1:]), 100) * (len(values) - 1)
    low, high = values[floor(place)], values[ceil(place)]
    number = low + (place - floor(place)) * (high - low)
    return Value(number, any(each.open and each.number <= high for each in samples))


def jain(parts: Sequence[Fraction]) -> Fraction | None:
    """Jain's index of fairness."""
    squares = sum(part * part for part in parts)
    return sum(parts) ** 2 / Fraction(len(parts) * squares) if squares else None


def gini(parts: Sequence[Fraction]) -> Fraction | None:
    """Gini's coefficient."""
    whole = sum(parts)
    pairs = sum(abs(one - other) for one in parts for other in parts)
    return Fraction(pairs) / (2 * len(parts) * whole) if whole else None
