"""Computes a checksum of a table's values, which does not depend on how the table is stored."""

from __future__ import annotations

import hashlib
import json

import polars as pl

_ROWS = 1 << 16  # rows per step, because a table may not fit into memory
_NO_VALUE = "-"


def frame_digest(frame: pl.DataFrame, *besides: str) -> str:
    """Returns the SHA-256 of a table's names, types and values, and of the additional texts in `besides`."""
    found = hashlib.sha256()
    dtypes = [[name, "String" if _is_category(dtype) else str(dtype)] for name, dtype in frame.schema.items()]
    found.update(json.dumps([frame.height, dtypes, besides]).encode())
    for part in frame.iter_slices(_ROWS):
        texts = [text for place, column in enumerate(part) for text in _told(pl.nth(place), column)]
        for text in part.select(text.alias(str(number)) for number, text in enumerate(texts)).row(0):
            found.update(text.encode())
    return found.hexdigest()


def _told(values: pl.Expr, column: pl.Series) -> list[pl.Expr]:
    """Converts the values of a column to texts. Two values have the same text only if they are equal."""
    dtype = column.dtype
    if dtype.is_temporal() or dtype.is_numeric() or dtype == pl.Boolean:
        return [_joined(values.to_physical().cast(pl.String), ",", _NO_VALUE)]
    if dtype == pl.String or _is_category(dtype):
        values = values.cast(pl.String)
        lengths = values.str.len_bytes().cast(pl.String)
        return [_joined(lengths, ",", _NO_VALUE), _joined(values, "", "")]
    return [pl.lit(json.dumps([repr(value) for value in column.to_list()]))]


def _joined(values: pl.Expr, between: str, no_value: str) -> pl.Expr:
    return values.fill_null(no_value).str.join(between)


def _is_category(dtype: pl.DataType) -> bool:
    return isinstance(dtype, (pl.Categorical, pl.Enum))
