"""Reads the wanted columns of tables in Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.base.errors import Fault, TraceError
from harness.readers.source import first_bytes
from harness_plugins.readers.tables.parts import Part, Pick, lengths

_PARQUET = b"PAR1"


def is_parquet(path: Path) -> bool:
    """Returns True if a plain or packed file begins like Parquet."""
    return first_bytes(path, len(_PARQUET)) == _PARQUET


def read_parquet(path: Path, source: Any, pick: Pick) -> Part:
    """Reads only the wanted columns of a Parquet file.

    `source` is the file or a buffer with its content. `pick` chooses the columns to read.

    Raises:
        TraceError: the file is incomplete, a column occurs twice, or mappings cannot read the type of a
            column.
    """
    try:
        with pq.ParquetFile(source, pre_buffer=False) as file:
            schema = file.schema_arrow
            there = pick(schema.names)
            twice = [name for name in there if schema.names.count(name) > 1]
            if twice:
                raise TraceError(
                    str(path), [Fault(f"column {name}", "occurs more than once") for name in twice]
                )
            table = file.read(columns=there, use_threads=False)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TraceError(str(path), [Fault("", f"is not a whole Parquet file: {reason}")]) from error
    columns = []
    for name in there:
        try:
            columns.append(read_column(table[name]).alias(name))
        except (pa.ArrowException, pl.exceptions.PolarsError, TypeError, ValueError) as error:
            kind, reason = schema.field(name).type, str(error).splitlines()[0]
            what = f"is {kind}, which mappings cannot read: {reason}"
            raise TraceError(str(path), [Fault(f"column {name}", what)]) from error
    return Part(pl.DataFrame(columns), list(schema.names))


def read_column(column: pa.ChunkedArray) -> pl.Series:
    """Returns a column in a type that the mapping language supports.

    Raises:
        TypeError: the column is of another type.
    """
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array(
            [chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type
        )
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        column = pc.cast(column, pa.timestamp("us", "UTC" if kind.tz else None))
    elif pa.types.is_timestamp(kind):
        column = pc.cast(column, pa.timestamp("ns", "UTC" if kind.tz else None))
    elif pa.types.is_date(kind):
        column = pc.cast(column, pa.timestamp("us"))
    elif pa.types.is_duration(kind):
        column = pc.cast(column, pa.duration("ns" if kind.unit == "ns" else "us"))
    elif pa.types.is_decimal(kind) or pa.types.is_large_string(kind):
        column = pc.cast(column, pa.string())
    elif pa.types.is_float16(kind):
        column = pc.cast(column, pa.float32())
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return lengths(pc.list_value_length(column).to_pylist())
    elif not (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        or pa.types.is_string(kind) or pa.types.is_null(kind)
    ):  # fmt: skip
        raise TypeError("mappings read numbers, text, times, durations, lists, and true or false")
    found = pl.DataFrame(pa.table({"column": column})).to_series()
    if pa.types.is_temporal(kind) and getattr(kind, "unit", "") == "ns":
        return _in_microseconds(found)
    return found.fill_nan(None) if found.dtype.is_float() else found


def _in_microseconds(column: pl.Series) -> pl.Series:
    """Rounds nanoseconds to the nearest microseconds, in the same way as numbers of nanoseconds."""
    fine = column.to_physical()
    near = fine // 1000 + (fine % 1000 >= 500).cast(pl.Int64)
    if isinstance(column.dtype, pl.Datetime):
        return near.cast(pl.Datetime("us", column.dtype.time_zone))
    return near.cast(pl.Duration("us"))
