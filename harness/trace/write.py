"""Writes a trace as canonical Parquet: the same bytes for the same trace, whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import InputError
from harness.trace.schema import (
    CONVENTIONS_KEY,
    LEFT_OUT_KEY,
    SOURCE_KEY,
    VERSION,
    VERSION_KEY,
    Kind,
    column_of,
    entries,
)
from harness.trace.trace import Trace

_ROW_GROUP = 1 << 17


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace with what is known about it: source, licence, conventions, and what was left out.

    Raises:
        InputError: the file cannot be written; whatever was there before is untouched.
    """
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}")
    table = pa.table({series.name: _column(series) for series in trace.frame})
    table = table.replace_schema_metadata(dict(sorted(_metadata(trace).items())))
    encodings = {field.name: encoding for field in table.schema if (encoding := _encoding(field))}
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            pq.write_table(
                table,
                aside,
                row_group_size=_ROW_GROUP,
                compression="zstd",
                compression_level=9,
                use_dictionary=[name for name in table.column_names if name not in encodings],
                column_encoding=encodings,
            )
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InputError(f"{path} cannot be written: {reason}") from error


def _metadata(trace: Trace) -> dict[str, str]:
    metadata = {SOURCE_KEY: trace.path.name, **trace.metadata, VERSION_KEY: VERSION}
    if trace.notes:
        metadata[CONVENTIONS_KEY] = json.dumps(trace.notes, ensure_ascii=False)
    if trace.left_out:
        metadata[LEFT_OUT_KEY] = json.dumps(trace.left_out, ensure_ascii=False)
    return metadata


def _column(series: pl.Series) -> pa.Array:
    """A column in the schema's own types: polars' texts are large, its maps maybe lists."""
    column = column_of(series.name)
    if column is not None and column.kind is Kind.MAP:
        pairs = [None if value is None else entries(value) for value in series.to_list()]
        return pa.array(pairs, pa.map_(pa.string(), pa.string()))
    array = series.to_arrow(compat_level=pl.CompatLevel.oldest())
    return array.cast(pa.string()) if pa.types.is_large_string(array.type) else array


def _encoding(field: pa.Field) -> str | None:
    """Times and ids hardly repeat, so that a dictionary is only in the way; their steps are small."""
    if pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type):
        return "DELTA_BINARY_PACKED"
    return "DELTA_BYTE_ARRAY" if field.name in ("job_id", "uid") else None
