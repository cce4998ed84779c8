"""Writes `jobs.parquet` while a replay goes on: how jobs ended, a chunk as soon as all of its jobs are over.

Rows are in order of arrival. Jobs that are over wait in memory only for those that arrived before them.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import TYPE_CHECKING, final

import polars as pl

from harness.engine.events import NEVER, PENDING, STATES
from harness.errors import InputError
from harness.recording import schemas
from harness.recording.parquet import TableWriter, TimeKind, as_series

if TYPE_CHECKING:
    from harness.trace.jobs import Jobs


@final
class _Chunk:
    """How neighbouring jobs ended; `left` are not over yet."""

    __slots__ = ("admitted", "finish", "idle", "left", "lost", "preemptions", "start", "state")

    def __init__(self, rows: int) -> None:
        self.left = rows
        self.admitted, self.start, self.finish = (array("q", [NEVER]) * rows for _ in range(3))
        self.state = array("b", [PENDING]) * rows
        self.preemptions = array("i", [0]) * rows
        self.lost, self.idle = (array("q", [0]) * rows for _ in range(2))

    def columns(self) -> dict[str, pl.Series]:
        """The columns of `jobs.parquet` that say how jobs ended."""
        return pl.select(
            admitted_time=_time(self.admitted),
            start_time=_time(self.start),
            finish_time=_time(self.finish),
            state=pl.lit(pl.Series(STATES, dtype=pl.String)).gather(as_series(self.state)),
            preemptions=as_series(self.preemptions),
            progress_lost=as_series(self.lost),
            held_idle=as_series(self.idle),
        ).to_dict()


@final
class JobResults:
    """The rows of `jobs.parquet`.

    Args:
        path: the file.
        jobs: the jobs of the replay, for what their rows say about them.
        kind: how times are written.
        rows: how many make up a chunk.
    """

    def __init__(self, path: Path, jobs: Jobs, kind: TimeKind, rows: int) -> None:
        self._frame = jobs.frame
        extra = {name: self._frame.schema[name] for name in jobs.extra}
        self._writer = TableWriter(path, schemas.jobs(jobs.resources, extra), kind)
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
        chunk.admitted[row] = admitted
        chunk.start[row] = start
        chunk.finish[row] = finish
        chunk.state[row] = state
        chunk.preemptions[row] = preemptions
        try:
            chunk.lost[row] = lost
            chunk.idle[row] = idle
        except OverflowError as error:
            raise InputError(
                f"job {self._frame['job_id'][index]}: what its pods lost, or held in vain, is together more "
                "microseconds than 64 bits can count",
                hint="are durations and pods given in the right units?",
            ) from error
        chunk.left -= 1
        while (first := self._chunks.get(self._written)) is not None and not first.left:
            self._write(first, self._frame.height)

    def close(self, arrived: int) -> None:
        """Write what is left of the first `arrived` jobs, those that the replay saw, and finish the file."""
        while (first := self._chunks.get(self._written)) is not None:
            self._write(first, arrived)
        self._writer.close()

    def abandon(self) -> None:
        """Finish the file as it is."""
        self._writer.close()

    def _write(self, chunk: _Chunk, until: int) -> None:
        """Write the next chunk, with jobs up to the number `until`."""
        offset = self._written * self._rows
        rows = min(self._rows, until - offset)
        part = self._frame.slice(offset, rows)
        columns = part.to_dict()
        columns["submit_time"] = part["submit"]
        columns |= {name: column.head(rows) for name, column in chunk.columns().items()}
        self._writer.write(columns)
        del self._chunks[self._written]
        self._written += 1


def _time(column: array[int]) -> pl.Expr:
    values = pl.lit(as_series(column))
    return pl.when(values != NEVER).then(values)
