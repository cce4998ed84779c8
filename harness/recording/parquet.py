"""Writes tables as Parquet, chunk by chunk, with the same bytes for the same rows."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import pack

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import RunError
from harness.recording import schemas

TIMES = ("time", "start", "end", "submit_time", "admitted_time", "start_time", "finish_time")
"""Columns that hold a time; in the files they have the trace's kind."""

DISTINCT = ("job_id", "pod", "detail")
"""Columns of texts that hardly ever recur."""


@dataclass(frozen=True, slots=True)
class TimeKind:
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


class TableWriter:
    """One Parquet file that grows by chunks.

    Args:
        path: the file.
        schema: column -> type; columns of `TIMES` are given as microseconds since the origin.
        kind: how times are written.
    """

    def __init__(self, path: Path, schema: Mapping[str, pl.DataType], kind: TimeKind) -> None:
        self._kind = kind
        self._schema = {name: kind.dtype if name in TIMES else dtype for name, dtype in schema.items()}
        arrow = pl.DataFrame(schema=self._schema).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
        self._arrow = arrow.with_metadata({"harness.run_schema": schemas.VERSION})
        # Texts that recur become codes; for numbers and names a dictionary costs time and only adds bytes.
        recurring = [
            name for name, dtype in self._schema.items() if dtype == pl.String and name not in DISTINCT
        ]
        self._writer = pq.ParquetWriter(
            path, self._arrow, compression="zstd", compression_level=1, use_dictionary=recurring
        )

    def write(self, columns: Mapping[str, pl.Series]) -> None:
        """Append rows; columns may come in any order and are cast to their types.

        Raises:
            UnwritableError: the file takes no more.
        """
        given = pl.DataFrame([columns[name].alias(name) for name in self._schema])
        frame = given.select(
            (pl.col(name) + self._kind.origin if name in TIMES else pl.col(name)).cast(dtype)
            for name, dtype in self._schema.items()
        )
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        try:
            self._writer.write_table(pa.Table.from_arrays(table.columns, schema=self._arrow))
        except OSError as error:
            raise UnwritableError(error.strerror or str(error)) from error

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


def extend(column: array[int], values: Sequence[int]) -> None:
    """Append integers all at once: it takes half of what the array itself takes, which parses each of them.

    Raises:
        struct.error: one is too large for the column.
    """
    column.frombytes(pack(f"{len(values)}{column.typecode}", *values))


def as_series(column: array[int]) -> pl.Series:
    """A column of machine integers without copying it."""
    types = {"q": pa.int64(), "i": pa.int32(), "b": pa.int8()}
    buffers = [None, pa.py_buffer(column)]
    array = pa.Array.from_buffers(types[column.typecode], len(column), buffers)
    return pl.Series(_Exported(array))


class _Exported:
    """An arrow array that polars takes by Arrow's C interface.

    Given as what it is, polars would first import all of pyarrow's functions, which takes longer than a
    short replay.
    """

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """See the Arrow PyCapsule interface."""
        return self._array.__arrow_c_array__(requested_schema)  # type: ignore[no-any-return]
