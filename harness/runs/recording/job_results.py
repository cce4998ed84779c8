"""Writes `jobs.parquet` during a replay. Each chunk of jobs is written when all of its jobs have ended.

The rows are in order of arrival. A finished job stays in memory until all jobs of its chunk and of earlier
chunks have ended.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import polars as pl

from harness.base.arrays import Ints, as_series, distinct
from harness.base.errors import InputError
from harness.base.tables import schemas
from harness.base.tables.parquet import ShortTable, TableWriter, TimeKind, integers
from harness.base.units import INT64_MAX
from harness.engine.events import NEVER, PENDING, STATES
from harness.policy import Job

if TYPE_CHECKING:
    from harness.trace.jobs import Jobs


# How many jobs are added to columns together, which is much faster than adding them one by one.
_AT_ONCE = 1 << 12

_STILL_WAITING = (PENDING, NEVER, NEVER, NEVER, 0, 0, 0)
"""The values for a job that was never passed to `JobResults.add`."""


@final
class _Chunk:
    """The results of adjacent jobs in columns. `left` counts the jobs that have not ended yet."""

    __slots__ = ("_columns", "left")

    def __init__(self, rows: int) -> None:
        self.left = rows
        self._columns: list[Ints] = [np.full(rows, value, np.int64) for value in _STILL_WAITING]

    def keep(self, rows: Ints, values: Sequence[Ints]) -> None:
        """Store the results of some jobs. The columns are in the order of `JobResults.add`'s arguments."""
        for column, each in zip(self._columns, values, strict=True):
            column[rows] = each
        self.left -= len(rows)

    def columns(self, count: int) -> dict[str, pl.Series]:
        state, admitted, start, finish, preemptions, lost, idle = (each[:count] for each in self._columns)
        return {
            "admitted_time": _times(admitted),
            "start_time": _times(start),
            "finish_time": _times(finish),
            "state": pl.Series(STATES, dtype=pl.String).gather(as_series(state)),
            "preemptions": as_series(preemptions),
            "progress_lost": as_series(lost),
            "held_idle": as_series(idle),
        }


@final
class JobResults:
    """The rows of `jobs.parquet`.

    Args:
        jobs: the jobs of the replay, which provide the other columns of their rows.
        kind: whether times are written as timestamps or durations.
        rows: the number of rows in a chunk.
        timeline_queue: the name of each job's queue in the timeline, if namespace and queue don't determine
            it.
        files: whether the table is written to a file even if it is short.
    """

    def __init__(
        self,
        path: Path,
        jobs: Jobs,
        kind: TimeKind,
        rows: int,
        *,
        timeline_queue: pl.Series | None = None,
        files: bool,
    ) -> None:
        self._frame = jobs.frame
        extra: dict[str, pl.DataType] = {name: self._frame.schema[name] for name in jobs.extra}
        if timeline_queue is not None:
            self._frame = self._frame.with_columns(timeline_queue.alias(schemas.TIMELINE_QUEUE))
            extra[schemas.TIMELINE_QUEUE] = schemas.STRING()
        self._writer = TableWriter(path, schemas.jobs(jobs.resources, extra), kind, files=files)
        self._rows = rows
        self._written = 0  # The number of chunks.
        self._chunks: dict[int, _Chunk] = {}
        self._recent: list[tuple[int, ...]] = []  # These rows are not in a chunk yet.

    def add(
        self,
        job: Job,
        state: int,
        admitted: int,
        start: int,
        finish: int,
        preemptions: int,
        lost: int,
        idle: int,
    ) -> None:
        """Record how a job ended. See `harness.engine.events.Recorder`."""
        recent = self._recent
        recent.append((job.index, state, admitted, start, finish, preemptions, lost, idle))
        if len(recent) == _AT_ONCE:
            self._pack()
            while (first := self._chunks.get(self._written)) is not None and not first.left:
                self._write(first, self._frame.height)

    def close(self, arrived: int) -> ShortTable | None:
        """Write the remaining rows for the first `arrived` jobs, and finish the table.

        Returns the whole table if it is short.
        """
        self._pack()
        while (first := self._chunks.get(self._written)) is not None:
            self._write(first, arrived)
        return self._writer.close()

    def abandon(self) -> None:
        """Stop writing and leave the table incomplete."""
        self._writer.abandon()

    def _pack(self) -> None:
        """Move recent results into their chunks."""
        recent, self._recent = self._recent, []
        if not recent:
            return
        try:
            index, *values = (integers(column) for column in zip(*recent, strict=True))
        except struct.error as error:
            large = next(row[0] for row in recent if max(row) > INT64_MAX)
            raise InputError(
                f"job {self._frame['job_id'][large]}: the total time that its pods lost or spent without "
                "progress has more microseconds than 64 bits can count",
                hint="are durations and pods given in the right units?",
            ) from error
        numbers, rows = np.divmod(index, self._rows)
        for number in distinct(numbers).tolist():
            chunk = self._chunks.get(number)
            if chunk is None:
                left = self._frame.height - number * self._rows
                chunk = self._chunks[number] = _Chunk(min(self._rows, left))
            mine = numbers == number
            chunk.keep(rows[mine], [column[mine] for column in values])

    def _write(self, chunk: _Chunk, until: int) -> None:
        """Write the next chunk, without the jobs whose index is `until` or higher."""
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
    column = as_series(values)
    return column.set(column == NEVER, None)
