"""What is read of one file of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import polars as pl

Pick: TypeAlias = Callable[[Sequence[str]], list[str]]
"""Which of the columns that a file has are wanted."""


class Part(NamedTuple):
    """A table of a file.

    Attributes:
        frame: the columns that are wanted, in the types that terms have.
        has: the names of all its columns.
    """

    frame: pl.DataFrame
    has: list[str]


def lengths(values: Sequence[int | None]) -> pl.Series:
    """Lists as their lengths alone, which is all that a term asks of them."""
    known = pl.Series(values, dtype=pl.Int64)
    return pl.select(pl.when(known.is_not_null()).then(pl.struct(length=known))).to_series()
