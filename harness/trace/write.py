"""Writes a trace as canonical Parquet. The file is complete or absent, and equal traces give equal bytes."""

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

from harness.base.errors import InputError, why
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
    """Write a trace with its metadata: source, licence, conventions, and counts of skipped rows.

    Raises:
        InputError: the file cannot be written. An existing file does not change.
    """
    with TraceWriter(path, _metadata(trace)) as writer:
        writer.write(trace.frame)


class TraceWriter:
    """A trace file that grows piece by piece.

    The file appears at its path when the `with` block ends without an error.

    Args:
        metadata: the file's own metadata. The version of the schema is added.
        level: the compression level of zstd.

    Raises:
        InputError: the file cannot be written. An existing file does not change.
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
        """Adds rows, which must have the columns of the first piece."""
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
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{self._path} cannot be written: {why(error).splitlines()[0]}") from error


def _metadata(trace: Trace) -> dict[str, str]:
    metadata = {SOURCE_KEY: trace.path.name, **trace.metadata}
    if trace.notes:
        metadata[CONVENTIONS_KEY] = json.dumps(trace.notes, ensure_ascii=False)
    if trace.left_out:
        metadata[LEFT_OUT_KEY] = json.dumps(trace.left_out, ensure_ascii=False)
    return metadata


def _column(series: pl.Series) -> pa.Array:
    """Returns a column in the schema's own types.

    This is necessary because polars' texts are large strings or categories, and its maps may be lists.
    """
    column = column_of(series.name)
    if column is not None and column.kind is Kind.MAP:
        pairs = [None if value is None else entries(value) for value in series.to_list()]
        return pa.array(pairs, pa.map_(pa.string(), pa.string()))
    if series.dtype == pl.Categorical:
        series = series.cast(pl.String)
    array = series.to_arrow(compat_level=pl.CompatLevel.oldest())
    return array.cast(pa.string()) if pa.types.is_large_string(array.type) else array


def _encoding(field: pa.Field) -> str | None:
    """Returns the encoding of a column.

    Times and ids are stored as deltas, because their values hardly repeat.
    """
    if pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type):
        return "DELTA_BINARY_PACKED"
    return "DELTA_BYTE_ARRAY" if field.name in ("job_id", "uid") else None
