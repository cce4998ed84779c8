"""Writes tables as Parquet, chunk by chunk, with the same bytes for the same rows."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from struct import pack

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harness.base.arrays import Ints
from harness.base.errors import RunError
from harness.base.tables import schemas
from harness.base.values import Value, fixed

TIMES = ("time", "start", "end", "submit_time", "admitted_time", "start_time", "finish_time")
"""Columns that hold a time; in the files they have the trace's kind."""

DISTINCT = ("job_id", "pod")
"""Columns of texts that hardly ever recur."""

FEW = 1 << 13
"""So few rows of a table stay in memory, for to read them from a file takes longer than all else."""

_CODED = 16 << 20
"""So many bytes of a column's texts have codes at most: all that differ of a chunk of details, as a rule."""

_PLAIN = (
    pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64,
    pl.Boolean, pl.String, pl.Duration, pl.Datetime,
)  # fmt: skip
"""Types that are read from a file as they were written."""

_TEXTS = (pl.String, pl.Categorical, pl.Enum)


@fixed()
class TimeKind(Value):
    """How a trace counts time.

    Attributes:
        origin: microseconds since the epoch for timestamps, 0 for durations.
        timestamp: whether times are timestamps; else they are durations since the origin.
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
    """A table cannot be written, say because the disk is full.

    It is no `OSError`, which would look like the fault of the policy that just decided something.
    """


class ShortTable:
    """All rows of a table that is short enough to stay in memory.

    Args:
        pieces: the rows, chunk by chunk, as `Run.micros` answers them.
        schema: column -> its type in a file.
        origin: microseconds since the epoch, which times in a file count from.
    """

    def __init__(
        self, pieces: Sequence[pl.DataFrame], schema: Mapping[str, pl.DataType], origin: int
    ) -> None:
        self._pieces, self._schema, self._origin = pieces, schema, origin

    @cached_property
    def micros(self) -> pl.DataFrame:
        """The rows, times and durations as integers."""
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
        """The rows as they are read from a file."""
        return _typed(self.micros, self._schema, self._origin)

    def write(self, path: Path) -> None:
        """Write a file of them.

        Raises:
            UnwritableError: it cannot be written.
        """
        file = _File(path, self._schema, self._origin)
        for piece in self._pieces:
            file.append(piece)
        file.close()


class TableWriter:
    """One table that grows by chunks: a Parquet file, and where it stays short also a table in memory.

    Args:
        path: the file.
        schema: column -> type; columns of `TIMES` are given as microseconds since the origin.
        kind: how times are written.
        files: whether a short table becomes a file as well.
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
        """Append rows; columns may come in any order and are cast to their types.

        Raises:
            UnwritableError: the file takes no more.
        """
        piece = _as_micros(columns, self._schema)
        self._rows += piece.height
        if self._held is not None and self._rows <= FEW:
            self._held.append(piece)
            return
        self._spill()
        self._opened().append(piece)

    def close(self) -> ShortTable | None:
        """Finish the table; answers all of it if it is short.

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
        """Close the file of a table that nobody wants, if it has been begun."""
        if self._file is not None:
            self._file.close()

    def _spill(self) -> None:
        """Write what is only in memory so far; it does not stay there."""
        held, self._held = self._held, None
        for piece in held or ():
            self._opened().append(piece)

    def _opened(self) -> _File:
        if self._file is None:
            self._file = _File(self._path, self._schema, self._origin)
        return self._file


class _File:
    """A Parquet file that grows by chunks.

    Args:
        path: where it is.
        schema: column -> its type in the file.
        origin: what is added to times.
    """

    def __init__(self, path: Path, schema: Mapping[str, pl.DataType], origin: int) -> None:
        self._schema, self._origin = schema, origin
        arrow = pl.DataFrame(schema=schema).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
        self._arrow = arrow.with_metadata({"harness.run_schema": schemas.VERSION})
        # Texts that recur become codes; for numbers and names a dictionary costs time and only adds bytes.
        # Of categories the oldest polars that is allowed reads nothing else.
        recurring = [name for name, dtype in schema.items() if dtype in _TEXTS and name not in DISTINCT]
        # The least and the greatest of some texts help no reader, and to find them takes a fifth of writing.
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
        """Write rows whose times and durations are integers.

        Raises:
            UnwritableError: the file takes no more.
        """
        frame = _typed(piece, self._schema, self._origin)
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        with _told():
            self._writer.write_table(pa.Table.from_arrays(table.columns, schema=self._arrow))

    def close(self) -> None:
        """Finish the file.

        Raises:
            UnwritableError: it cannot be finished.
        """
        with _told():
            self._writer.close()


@contextmanager
def _told() -> Iterator[None]:
    """What the system says of a file becomes an `UnwritableError`."""
    try:
        yield
    except OSError as error:
        raise UnwritableError(error.strerror or str(error)) from error


def _as_micros(columns: Mapping[str, pl.Series], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Columns in the order of a schema, with its types but for times and durations, which are integers."""
    found = []
    for name, dtype in schema.items():
        column = columns[name]
        if name in TIMES:
            column = column.cast(pl.Int64)
        else:
            column = column.cast(dtype)
            column = column.to_physical() if isinstance(dtype, pl.Duration) else column
        found.append(column.alias(name))
    return pl.DataFrame(found)


def _typed(piece: pl.DataFrame, schema: Mapping[str, pl.DataType], origin: int) -> pl.DataFrame:
    """Rows with the types of a schema, times counted from the epoch."""
    return pl.DataFrame(
        [(piece[name] + origin if name in TIMES else piece[name]).cast(each) for name, each in schema.items()]
    )


def extend(column: array[int], values: Sequence[int]) -> None:
    """Append integers all at once: it takes half of what the array itself takes, which parses each of them.

    Raises:
        struct.error: one is too large for the column.
    """
    column.frombytes(pack(f"{len(values)}{column.typecode}", *values))


def integers(values: Sequence[int]) -> Ints:
    """An array of integers, likewise.

    Raises:
        struct.error: one is too large for 64 bits.
    """
    return np.frombuffer(pack(f"{len(values)}q", *values), np.int64)
