"""Writes a trace as canonical Parquet: the same bytes for the same trace, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harness.base.errors import InputError
from harness.base.files.whole import whole_file
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
_SMALLEST = 9


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace with what is known about it: source, licence, conventions, and what was left out.

    Raises:
        InputError: the file cannot be written; whatever was there before is untouched.
    """
    with TraceWriter(path, _metadata(trace)) as writer:
        writer.write(trace.frame)


class TraceWriter:
    """A trace file that grows piece by piece; it is in its place when the `with` block ends well.

    Args:
        path: the file.
        metadata: what the file says about itself; the version of the schema is added.
        level: how hard zstd tries.

    Raises:
        InputError: the file cannot be written; whatever was there before is untouched.
    """

    def __init__(self, path: Path, metadata: Mapping[str, str], *, level: int = _SMALLEST) -> None:
        if not path.parent.is_dir():
            raise InputError(f"{path} cannot be written: there is no folder {path.parent}")
        self._path, self._level = path, level
        self._metadata = dict(sorted({**metadata, VERSION_KEY: VERSION}.items()))
        self._open = ExitStack()
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        with self._said():
            self._file = self._open.enter_context(whole_file(self._path))
        return self

    def write(self, frame: pl.DataFrame) -> None:
        """Add rows; their columns are those of the first piece."""
        table = pa.table({series.name: _column(series) for series in frame})
        table = table.replace_schema_metadata(self._metadata)
        with self._said():
            if self._writer is None:
                self._writer = self._opened(table)
            self._writer.write_table(table, row_group_size=_ROW_GROUP)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._said():
            self._open.__exit__(kind, error, trace)

    def _opened(self, table: pa.Table) -> pq.ParquetWriter:
        encodings = {field.name: encoding for field in table.schema if (encoding := _encoding(field))}
        writer = pq.ParquetWriter(
            self._file,
            table.schema,
            compression="zstd",
            compression_level=self._level,
            use_dictionary=[name for name in table.column_names if name not in encodings],
            column_encoding=encodings,
        )
        self._open.callback(writer.close)
        return writer

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Whatever keeps the file from being written becomes a message."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
            raise InputError(f"{self._path} cannot be written: {reason}") from error


def _metadata(trace: Trace) -> dict[str, str]:
    metadata = {SOURCE_KEY: trace.path.name, **trace.metadata}
    if trace.notes:
        metadata[CONVENTIONS_KEY] = json.dumps(trace.notes, ensure_ascii=False)
    if trace.left_out:
        metadata[LEFT_OUT_KEY] = json.dumps(trace.left_out, ensure_ascii=False)
    return metadata


def _column(series: pl.Series) -> pa.Array:
    """A column in the schema's own types: polars' texts are large or categories, its maps maybe lists."""
    column = column_of(series.name)
    if column is not None and column.kind is Kind.MAP:
        pairs = [None if value is None else entries(value) for value in series.to_list()]
        return pa.array(pairs, pa.map_(pa.string(), pa.string()))
    if series.dtype == pl.Categorical:
        series = series.cast(pl.String)
    array = series.to_arrow(compat_level=pl.CompatLevel.oldest())
    return array.cast(pa.string()) if pa.types.is_large_string(array.type) else array


def _encoding(field: pa.Field) -> str | None:
    """Times and ids hardly repeat, so that a dictionary is only in the way; their steps are small."""
    if pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type):
        return "DELTA_BINARY_PACKED"
    return "DELTA_BYTE_ARRAY" if field.name in ("job_id", "uid") else None
