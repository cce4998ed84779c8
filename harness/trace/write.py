"""Writes a trace as canonical Parquet: the same bytes for the same trace, whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import InputError
from harness.trace.schema import CONVENTIONS_KEY, LEFT_OUT_KEY, SOURCE_KEY, VERSION, VERSION_KEY
from harness.trace.trace import Trace

_ROW_GROUP = 1 << 17


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace with what is known about it: source, licence, conventions, and what was left out.

    Raises:
        InputError: the file cannot be written; whatever was there before is untouched.
    """
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}")
    table = trace.frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    table = table.cast(pa.schema([pa.field(field.name, _plain(field.type)) for field in table.schema]))
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


def _plain(dtype: pa.DataType) -> pa.DataType:
    """The schema's own arrow types: polars' texts are `large_string`, its maps may be lists of entries."""
    if pa.types.is_large_string(dtype):
        return pa.string()
    if pa.types.is_map(dtype):
        return pa.map_(_plain(dtype.key_type), _plain(dtype.item_type))
    return dtype


def _encoding(field: pa.Field) -> str | None:
    """Times and ids hardly repeat, so that a dictionary is only in the way; their steps are small."""
    if pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type):
        return "DELTA_BINARY_PACKED"
    return "DELTA_BYTE_ARRAY" if field.name in ("job_id", "uid") else None
