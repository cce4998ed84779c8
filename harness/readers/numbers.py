"""Lossless conversions of numbers that were read as float64.

A double holds integers up to 2**53 exactly. If it holds a time of this century in seconds, its error is far
below a microsecond.
"""

from __future__ import annotations

import polars as pl

EXACT = 2**53
SECONDS = 2**53 // 1_000_000
"""The largest number of seconds that is exact to the microsecond (285 years)."""


def is_amount(column: pl.Expr) -> pl.Expr:
    """Returns True for values that are finite integers that a double holds exactly."""
    return column.is_finite() & (column.abs() <= EXACT) & (column == column.floor())


def is_seconds(column: pl.Expr) -> pl.Expr:
    """Returns True for values that are finite numbers of seconds and exact to the microsecond."""
    return column.is_finite() & (column.abs() <= SECONDS)


def microseconds(column: pl.Expr) -> pl.Expr:
    """Converts seconds to int64 microseconds, rounded to the nearest one. Whole seconds are exact."""
    whole = column.floor()
    return whole.cast(pl.Int64) * 1_000_000 + ((column - whole) * 1e6).round().cast(pl.Int64)
