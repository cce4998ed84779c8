"""Writes `jobs.parquet` while a replay goes on: how jobs ended, a chunk as soon as all of its jobs are over.

Rows are in order of arrival. Jobs that are over wait in memory only for those that arrived before them.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import polars as pl

from harness.arrays import Ints
from harness.engine.events import NEVER, PENDING, STATES
from harness.errors import InputError
from harness.recording import schemas
from harness.recording.parquet import ShortTable, TableWriter, TimeKind, as_series

if TYPE_CHECKING:
    from harness.trace.jobs import Jobs


_ROW = struct.Struct("=qqqqqib")
_COLUMNS = np.dtype(
    [
        ("admitted", "i8"),
        ("start", "i8"),
        ("finish", "i8"),
        ("lost", "i8"),
        ("idle", "i8"),
        ("preemptions", "i4"),
        ("state", "i1"),
    ]
)
"""What `_ROW` packs: a row is written with one call, which takes a third of one for each column."""


@final
class _Chunk:
    """How neighbouring jobs ended, packed; `left` are not over yet."""

    __slots__ = ("left", "packed")

    def __init__(self, rows: int) -> None:
        self.left = rows
        self.packed = bytearray(_ROW.pack(NEVER, NEVER, NEVER, 0, 0, 0, PENDING) * rows)

    def columns(self, count: int) -> dict[str, pl.Series]:
        """The columns of `jobs.parquet` that say how the first of these jobs ended."""
        rows = np.frombuffer(self.packed, _COLUMNS, count)
        column = {name: np.ascontiguousarray(rows[name]) for name in rows.dtype.names or ()}
        return {
            "admitted_time": _times(column["admitted"]),
            "start_time": _times(column["start"]),
            "finish_time": _times(column["finish"]),
            "state": pl.Series(STATES, dtype=pl.String).gather(as_series(column["state"])),
            "preemptions": as_series(column["preemptions"]),
            "progress_lost": as_series(column["lost"]),
            "held_idle": as_series(column["idle"]),
        }


@final
class JobResults:
    """The rows of `jobs.parquet`.

    Args:
        path: the file.
        jobs: the jobs of the replay, for what their rows say about them.
        kind: how times are written.
        rows: how many make up a chunk.
        files: whether a short table becomes a file as well.
    """

    def __init__(self, path: Path, jobs: Jobs, kind: TimeKind, rows: int, *, files: bool) -> None:
        self._frame = jobs.frame
        extra = {name: self._frame.schema[name] for name in jobs.extra}
        self._writer = TableWriter(path, schemas.jobs(jobs.resources, extra), kind, files=files)
        self._rows = rows
        self._written = 0  # chunks
        self._chunks: dict[int, _Chunk] = {}

    def add(
        self,
        index: int,
        state: int,
        admitted: int,
        start: int,
        finish: int,
        preemptions: int,
        lost: int,
        idle: int,
    ) -> None:
        """How one job ended; see `harness.engine.events.Recorder`."""
        number, row = divmod(index, self._rows)
        chunk = self._chunks.get(number)
        if chunk is None:
            chunk = self._chunks[number] = _Chunk(min(self._rows, self._frame.height - number * self._rows))
        at = row * _ROW.size
        try:
            _ROW.pack_into(chunk.packed, at, admitted, start, finish, lost, idle, preemptions, state)
        except struct.error as error:
            raise InputError(
                f"job {self._frame['job_id'][index]}: what its pods lost, or held in vain, is together more "
                "microseconds than 64 bits can count",
                hint="are durations and pods given in the right units?",
            ) from error
        chunk.left -= 1
        if chunk.left:
            return
        while (first := self._chunks.get(self._written)) is not None and not first.left:
            self._write(first, self._frame.height)

    def close(self, arrived: int) -> ShortTable | None:
        """Write what is left of the first `arrived` jobs, those that the replay saw, and finish the table.

        Answers all of it if it is short.
        """
        while (first := self._chunks.get(self._written)) is not None:
            self._write(first, arrived)
        return self._writer.close()

    def abandon(self) -> None:
        """Leave the table as it is."""
        self._writer.abandon()

    def _write(self, chunk: _Chunk, until: int) -> None:
        """Write the next chunk, with jobs up to the number `until`."""
        offset = self._written * self._rows
        rows = min(self._rows, until - offset)
        part = self._frame.slice(offset, rows)
        columns = part.to_dict()
        columns["submit_time"] = part["submit"]
        columns |= chunk.columns(rows)
        self._writer.write(columns)
        del self._chunks[self._written]
        self._written += 1


def _times(values: Ints) -> pl.Series:
    """Times as a column, null where there is none."""
    column = as_series(values)
    return column.set(column == NEVER, None)
