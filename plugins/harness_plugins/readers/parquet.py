"""Reads plain or gzipped Parquet files that already have the canonical schema.

pyarrow reads the files and checks every value before polars uses the values, so a damaged file leads to an
error message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harness import Reading
from harness.base.errors import Fault, TraceError
from harness.readers.counts import counted
from harness.readers.schema import CONVENTIONS_KEY, LEFT_OUT_KEY, VERSION, VERSION_KEY, column_of
from harness_plugins.readers.parquet_source import parquet_source
from harness_plugins.readers.parquet_types import held_as

_BATCH = 1 << 17
_FREELY = 1_000_000
_MOST_IN_A_BYTE = 100
"""The maximum number of rows that a file may have per byte. Even numbered names need more bytes than this."""


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads a canonical trace.

    Raises:
        TraceError: the Parquet file is incomplete, its schema is newer, or its columns cannot be stored.
    """
    frame, metadata, aside = read_frame(path, needed=lambda name: column_of(name) is not None)
    version = metadata.get(VERSION_KEY, VERSION)
    if version != VERSION:
        raise TraceError(
            str(path),
            [Fault(f"metadata {VERSION_KEY}", f"is {version!r}; this release reads version {VERSION}")],
            hint="use a newer release of harness",
        )
    notes = _json(path, metadata, CONVENTIONS_KEY, list, str)
    _json(path, metadata, LEFT_OUT_KEY, dict, int)
    metadata.pop(CONVENTIONS_KEY, None)
    notes += (
        f"column {name} is ignored, because harness cannot read its type, {kind}"
        for name, kind in aside.items()
    )
    return Reading(frame, rows_read=frame.height, notes=tuple(notes), metadata=metadata)


def read_frame(
    path: Path, *, needed: Callable[[str], bool]
) -> tuple[pl.DataFrame, dict[str, str], dict[str, pa.DataType]]:
    """Reads all rows of a Parquet file of any schema, and checks every value.

    `needed` returns True for a needed column. An unreadable column that is not needed is ignored.

    Returns:
        The rows, the key-value pairs that belong to harness, and the types of the ignored columns.

    Raises:
        TraceError: the Parquet file is incomplete, or needed columns cannot be read.
    """
    try:
        with _opened(path) as file:
            _check_rows(path, file.metadata.num_rows)
            metadata = _texts(file.schema_arrow.metadata)
            _check_names(path, file.schema_arrow.names)
            types = {field.name: _held_as(field) for field in file.schema_arrow}
            aside = {name: file.schema_arrow.field(name).type for name, kind in types.items() if kind is None}
            _check_types(path, {name: kind for name, kind in aside.items() if needed(name)})
            return _frame(file, types), metadata, aside
    except MemoryError as error:
        reason = "needs more memory than there is: it is damaged, or too large for this machine"
        raise TraceError(str(path), [Fault("", reason)]) from error
    except (TypeError, pa.ArrowNotImplementedError, pl.exceptions.PanicException) as error:
        raise TraceError(
            str(path),
            [Fault("", f"has columns that cannot be read: {error}")],
            hint="write the file without these columns, or with other types",
        ) from error
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TraceError(str(path), [Fault("", f"is not a whole Parquet file: {reason}")]) from error


def _opened(path: Path) -> pq.ParquetFile:
    """Opens a file so that recurring texts are read as dictionaries, which takes a quarter of the time."""
    source = parquet_source(path)
    file = pq.ParquetFile(source, pre_buffer=False)
    columns = map(file.schema.column, range(len(file.schema)))
    texts = [each.path for each in columns if _recurs(each.path) and each.physical_type == "BYTE_ARRAY"]
    return pq.ParquetFile(source, metadata=file.metadata, read_dictionary=texts, pre_buffer=False)


def _recurs(name: str) -> bool:
    known = column_of(name)
    return known is not None and known.recurs


def _held_as(field: pa.Field) -> pa.DataType | None:
    """Returns the type in which a column is read, see `held_as`. Recurring texts stay a dictionary."""
    kind = held_as(field.type)
    texts = pa.types.is_dictionary(field.type) and kind == pa.string() and _recurs(field.name)
    return field.type if texts else kind


def _check_rows(path: Path, rows: int) -> None:
    size = path.stat().st_size
    if rows > max(_FREELY, _MOST_IN_A_BYTE * size):
        what = f"says that it holds {counted(rows, 'row')} in {size:,} bytes, but jobs with names need more"
        raise TraceError(str(path), [Fault("", what)])


def _check_names(path: Path, names: list[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        what = "the file has several columns with this name"
        raise TraceError(str(path), [Fault(f"column {name}", what) for name in repeated])


def _check_types(path: Path, unreadable: Mapping[str, pa.DataType]) -> None:
    faults = [Fault(f"column {name}", f"{kind} is not a readable type") for name, kind in unreadable.items()]
    if faults:
        hint = "write it as the type that docs/traces.md names, such as int64, string or duration[us]"
        raise TraceError(str(path), faults, hint=hint)


def _frame(file: pq.ParquetFile, types: Mapping[str, pa.DataType | None]) -> pl.DataFrame:
    """Reads the rows column by column, because all columns together would take twice the memory."""
    columns = [_column(file, name, kind) for name, kind in types.items() if kind is not None]
    return pl.DataFrame(columns)


def _column(file: pq.ParquetFile, name: str, kind: pa.DataType) -> pl.Series:
    """Reads a column batch by batch, because keeping all batches would take twice the memory."""
    recurs = _recurs(name)
    column = _piece(pa.array([], kind), recurs=recurs)
    for batch in file.iter_batches(_BATCH, columns=[name], use_threads=False):
        batch.validate(full=True)
        column.extend(_piece(_held(batch.column(batch.schema.names.index(name)), kind), recurs=recurs))
    pa.default_memory_pool().release_unused()
    return column.rechunk().alias(name)


def _piece(values: pa.Array, *, recurs: bool) -> pl.Series:
    """Converts values to a polars series.

    Recurring texts become categories. Other texts are copied, so that the memory of the batch can be freed.
    """
    series = _series(values)
    if series.dtype != pl.String:
        return series
    return series.cast(pl.Categorical) if recurs else series + ""


def _held(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if values.type.equals(kind):
        return values
    plain = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    return plain.cast(kind)


def _series(plain: pa.Array) -> pl.Series:
    # Convert through a table. From a bare array, older polars versions read lists of structs without any
    # check, and may read invalid memory.
    return pl.DataFrame(pa.table({"column": plain})).to_series()


def _json(path: Path, metadata: Mapping[str, str], key: str, kind: type, of: type) -> Any:
    """Returns a value that a conversion stored in the metadata, or an empty value if it stored none."""
    text = metadata.get(key)
    try:
        value = kind() if text is None else json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, kind) or not all(
        isinstance(item, of)
        for item in (value.values() if isinstance(value, dict) else value)  # type: ignore[attr-defined]
    ):
        what = f"is not a JSON {'object' if kind is dict else 'list'} of {of.__name__}: {text!r:.60}"
        raise TraceError(str(path), [Fault(f"metadata {key}", what)])
    return value


def _texts(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {
        key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for key, value in sorted((metadata or {}).items())
        if key.startswith(b"harness.")
    }
