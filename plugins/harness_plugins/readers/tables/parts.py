"""Defines the result of reading one file of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import polars as pl

Pick: TypeAlias = Callable[[Sequence[str]], list[str]]
"""A function that chooses the wanted columns from the columns of a file."""


class Part(NamedTuple):
    """The table in a file.

    Attributes:
        frame: the wanted columns, in types that the mapping language supports.
        has: the names of all columns in the file.
    """

    frame: pl.DataFrame
    has: list[str]


def lengths(values: Sequence[int | None]) -> pl.Series:
    """Represents lists by their lengths, because terms need only the length."""
    known = pl.Series(values, dtype=pl.Int64)
    return pl.select(pl.when(known.is_not_null()).then(pl.struct(length=known))).to_series()
