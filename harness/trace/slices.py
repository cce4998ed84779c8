"""Functions that return slices of columns as plain Python values, for a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, TypeAlias

import polars as pl

from harness.base.arrays import places

Slice: TypeAlias = Callable[[int, int], Iterable[Any]]
"""A function that returns the values of rows `start` to `start + count`; endless for a constant."""

_MOST_SHARED = 1 << 16


def constant(value: object) -> Slice:
    """Returns a slice function with one value for every row."""
    return lambda _start, _count: repeat(value)


def values(series: pl.Series) -> Slice:
    """Returns a slice function for the values of a column."""
    return lambda start, count: series.slice(start, count).to_list()


def texts(series: pl.Series) -> Slice:
    """Returns a slice function for texts without nulls; if few texts recur, equal texts share an object."""
    names = series.unique(maintain_order=True).cast(pl.String)
    if len(names) > _MOST_SHARED:
        return values(series)
    if len(names) == 1:
        return constant(names[0])
    codes = places(series, names)
    shared = names.to_list()
    return lambda start, count: map(shared.__getitem__, codes[start : start + count].tolist())
