"""Writes tables to Parquet files in chunks, so that the same rows always give the same bytes."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from struct import pack

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harness.base.arrays import Ints
from harness.base.errors import RunError, why
from harness.base.tables import schemas
from harness.base.values import Value, fixed

TIMES = ("time", "start", "end", "submit_time", "admitted_time", "start_time", "finish_time")
"""The columns that contain times, which files store in the trace's kind of time."""

DISTINCT = ("job_id", "pod")
"""Columns with texts that rarely repeat."""

FEW = 1 << 13
"""The maximum number of rows of a table that stays in memory.

Reading a short table back from its file would take too long.
"""

_CODED = 16 << 20
"""The maximum size in bytes of a column's dictionary of texts, which is usually sufficient for a chunk of
details.
"""

_PLAIN = (
    pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64,
    pl.Boolean, pl.String, pl.Duration, pl.Datetime,
)  # fmt: skip
"""The types that don't change when they are written to a file and read back."""

_TEXTS = (pl.String, pl.Categorical, pl.Enum)


@fixed()
class TimeKind(Value):
    """The way in which a trace counts time.

    Attributes:
        origin: the origin of the trace, in microseconds since the epoch, or 0 if times are durations.
        timestamp: whether times are timestamps. If not, they are durations since the start of the trace.
        zone: the time zone of timestamps, or None.
    """

    origin: int = 0
    timestamp: bool = False
    zone: str | None = None

    @property
    def dtype(self) -> pl.DataType:
        """The type of a time column."""
        return pl.Datetime("us", self.zone) if self.timestamp else pl.Duration("us")


class UnwritableError(RunError):
    """A table can't be written, for example because the disk is full.

    The class is not an `OSError`, because harness would blame such an error on the policy that made the last
    decision.
    """


class ShortTable:
    """A table with all of its rows in memory, because it is short.

    `pieces` has the rows in chunks, as `Run.micros` returns them. `schema` has the type of each column in a
    file. Times in a file count from `origin`, in microseconds since the epoch.
    """

    def __init__(
        self, pieces: Sequence[pl.DataFrame], schema: Mapping[str, pl.DataType], origin: int
    ) -> None:
        self._pieces, self._schema, self._origin = pieces, schema, origin

    @cached_property
    def micros(self) -> pl.DataFrame:
        """Returns the rows, with times and durations as integers."""
        if not self._pieces:
            nothing = pl.Series(dtype=pl.Int64)
            return _as_micros(dict.fromkeys(self._schema, nothing), self._schema)
        first, *others = self._pieces
        found = first.clone()
        for piece in others:
            found.extend(piece)
        return found

    @property
    def frame(self) -> pl.DataFrame:
        """Returns the rows as they would be read from a file."""
        return _typed(self.micros, self._schema, self._origin)

    def write(self, path: Path) -> None:
        """Write the rows to a file.

        Raises:
            UnwritableError: the rows can't be written.
        """
        file = _File(path, self._schema, self._origin)
        for piece in self._pieces:
            file.append(piece)
        file.close()


class TableWriter:
    """A table that grows in chunks. While it is short, its rows are also in memory.

    Args:
        schema: the type of each column. Columns in `TIMES` are given in microseconds since the origin.
        kind: the form in which times are written.
        files: whether to write a short table to a file as well.
    """

    def __init__(
        self, path: Path, schema: Mapping[str, pl.DataType], kind: TimeKind, *, files: bool = True
    ) -> None:
        self._path, self._origin, self._files = path, kind.origin, files
        self._schema = {name: kind.dtype if name in TIMES else dtype for name, dtype in schema.items()}
        self._file: _File | None = None
        plain = all(isinstance(dtype, _PLAIN) for dtype in schema.values())
        self._held: list[pl.DataFrame] | None = [] if plain else None
        self._rows = 0

    def write(self, columns: Mapping[str, pl.Series]) -> None:
        """Append rows, with columns in any order, after casting them to their types.

        Raises:
            UnwritableError: the rows can't be written to the file.
        """
        piece = _as_micros(columns, self._schema)
        self._rows += piece.height
        if self._held is not None and self._rows <= FEW:
            self._held.append(piece)
            return
        self._spill()
        self._opened().append(piece)

    def close(self) -> ShortTable | None:
        """Finishes the table, and returns its rows if the table is short.

        Raises:
            UnwritableError: the file cannot be written.
        """
        short = None if self._held is None else ShortTable(self._held, self._schema, self._origin)
        if short is None:
            self._opened().close()
        elif self._files:
            short.write(self._path)
        return short

    def abandon(self) -> None:
        """Close the file of an unwanted table, if the file exists."""
        if self._file is not None:
            self._file.close()

    def _spill(self) -> None:
        held, self._held = self._held, None
        for piece in held or ():
            self._opened().append(piece)

    def _opened(self) -> _File:
        if self._file is None:
            self._file = _File(self._path, self._schema, self._origin)
        return self._file


class _File:
    """A Parquet file that grows in chunks. `origin` is the number of microseconds to add to times."""

    def __init__(self, path: Path, schema: Mapping[str, pl.DataType], origin: int) -> None:
        self._schema, self._origin = schema, origin
        self._arrow = _arrow_schema(tuple(schema.items()))
        # Texts that recur get a dictionary. Without one, the oldest supported polars can't read categories.
        # For numbers and distinct texts, a dictionary would cost time and add bytes.
        recurring = [name for name, dtype in schema.items() if dtype in _TEXTS and name not in DISTINCT]
        # Minima and maxima of texts help no reader, and finding them takes a fifth of the writing time.
        ordered = [name for name, dtype in schema.items() if dtype not in _TEXTS]
        with _told():
            self._writer = pq.ParquetWriter(
                path,
                self._arrow,
                compression="zstd",
                compression_level=1,
                use_dictionary=recurring,
                dictionary_pagesize_limit=_CODED,
                write_statistics=ordered,
            )

    def append(self, piece: pl.DataFrame) -> None:
        """Write rows with times and durations as integers."""
        frame = _typed(piece, self._schema, self._origin)
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        with _told():
            self._writer.write_table(pa.Table.from_arrays(table.columns, schema=self._arrow))

    def close(self) -> None:
        with _told():
            self._writer.close()


@lru_cache
def _arrow_schema(columns: tuple[tuple[str, pl.DataType], ...]) -> pa.Schema:
    schema = pl.DataFrame(schema=dict(columns)).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    return schema.with_metadata({"harness.run_schema": schemas.VERSION})


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnwritableError(why(error)) from error


def in_micros(schema: pl.Schema, origin: int) -> list[pl.Expr]:
    """Returns the columns of a file, with times since the origin and durations as integers."""
    columns = []
    for name, dtype in schema.items():
        if name in TIMES:
            columns.append(pl.col(name).cast(pl.Int64) - origin)
        elif dtype == pl.Duration:
            columns.append(pl.col(name).cast(pl.Int64))
        else:
            columns.append(pl.col(name))
    return columns


def _as_micros(columns: Mapping[str, pl.Series], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Returns columns in the order and types of a schema, with times and durations as integers."""
    found = []
    for name, dtype in schema.items():
        column = columns[name]
        if name in TIMES:
            column = column.cast(pl.Int64)
        else:
            column = column.cast(dtype)
            column = column.cast(pl.Int64) if isinstance(dtype, pl.Duration) else column
        found.append(column.alias(name))
    return pl.DataFrame(found)


def _typed(piece: pl.DataFrame, schema: Mapping[str, pl.DataType], origin: int) -> pl.DataFrame:
    """Returns rows with the types of a schema and with times since the epoch."""
    return pl.DataFrame(
        [(piece[name] + origin if name in TIMES else piece[name]).cast(each) for name, each in schema.items()]
    )


def extend(column: array[int], values: Sequence[int]) -> None:
    """Append integers in one step, which is twice as fast as the array's own method.

    Raises:
        struct.error: an integer is too large for the column.
    """
    column.frombytes(pack(f"{len(values)}{column.typecode}", *values))


def integers(values: Sequence[int]) -> Ints:
    """Returns an array of integers, packed as in `extend`.

    Raises:
        struct.error: an integer is too large for 64 bits.
    """
    return np.frombuffer(pack(f"{len(values)}q", *values), np.int64)
