"""Joins the rows of one job, which are its runs after requeues, its sizes after changes, and its components.

The database has a row for each run of a job (`sacct -D`), and all these rows have the same number. The number
of a job may also be used again later, if the controller lost its state or its counter started again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.base.units import DAY, SECOND
from harness_plugins.readers.slurm.record import (
    CANCELLED,
    NODE_FAIL,
    PENDING,
    PREEMPTED,
    REQUEUED,
    RESIZING,
    RUNNING,
    SUSPENDED,
    Identity,
    Record,
)

_BACK_OFF = 121 * SECOND
"""How long a requeued job is not eligible: its credential's 120 s (the default) plus 1 s (`job_mgr.c`)."""

_REMEMBERED = 300 * SECOND
"""The time for which a controller remembers an ended job and can requeue it, by default (`MinJobAge`)."""

_GOES_ON = (REQUEUED, RESIZING, PREEMPTED, NODE_FAIL)
_NOT_OVER = (PENDING, RUNNING, SUSPENDED)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a job.

    Attributes:
        first: the row of the run. If the job was resized, this is the first row, with the initial size.
        last: the row with the end of the run.
    """

    first: Record
    last: Record

    @property
    def start(self) -> int:
        """The start of the run."""
        assert self.first.start is not None
        return self.first.start

    @property
    def end(self) -> int | None:
        """The end of the run, or None if the run has not ended or its end is unknown."""
        return self.last.end if self.last.ended else None

    @property
    def work(self) -> int | None:
        """The time during which the run worked. Suspensions do not count."""
        return self.last.work

    @property
    def resized(self) -> bool:
        """True if the allocation was changed during the run.

        If only the last row is known, its `Submit` is later than its `Start`.
        """
        submit, start = self.last.submit, self.last.start
        return self.first is not self.last or (submit is not None and start is not None and submit > start)


@dataclass(frozen=True, slots=True)
class Chain:
    """All rows of one job, task or component, in chronological order.

    Attributes:
        runs: the runs that held resources, according to these rows.
        again: how often the job's number had been used before.
    """

    records: tuple[Record, ...]
    runs: tuple[Run, ...]
    again: int = 0

    @property
    def identity(self) -> Identity:
        """The identity in the last row.

        Earlier rows can lack it, because a task of an array gets its own name only when it is split off.
        """
        return self.records[-1].identity

    @property
    def last(self) -> Record:
        """The last row."""
        return self.records[-1]

    @property
    def submit(self) -> int | None:
        """The time of the first submission, which is the earliest `Submit` of all rows.

        A requeue adds a row with a later `Submit`.
        """
        return min((record.submit for record in self.records if record.submit is not None), default=None)

    @property
    def eligible(self) -> int | None:
        """The time when the first run became eligible to start."""
        begun = self.runs[0].first if self.runs else self.records[0]
        return begun.eligible

    @property
    def backed_off(self) -> bool:
        """True if the first known row is a requeue, so that earlier rows are missing.

        A requeued job becomes eligible a fixed time after its `Submit`.
        """
        submit, eligible = self.records[0].submit, self.records[0].eligible
        return submit is not None and eligible is not None and eligible - submit == _BACK_OFF

    @property
    def preemptions(self) -> int:
        """The number of runs that were preempted."""
        return sum(run.last.state == PREEMPTED for run in self.runs)

    @property
    def goes_on(self) -> bool:
        """True if the job was requeued and the rows do not show its end."""
        return bool(self.runs) and self.last.state in (PENDING, REQUEUED)


def chains_of(records: Iterable[Record]) -> tuple[list[Chain], int]:
    """Returns the jobs of these rows, sorted by their first rows, and the number of repeated rows."""
    rows: dict[tuple[str, str, int | None], list[Record]] = {}
    for record in records:
        identity = record.identity
        key = (record.cluster, identity.number or identity.label, identity.task)
        rows.setdefault(key, []).append(record)
    chains: list[Chain] = []
    repeated = 0
    for key in rows:
        kept = _without_repeated(rows[key])
        repeated += len(rows[key]) - len(kept)
        chains += _split(kept)
    return chains, repeated


def _life(record: Record) -> tuple[int, bool, int]:
    known = (record.submit, record.eligible, record.start, record.end)
    begun = next((time for time in known if time is not None), 0)
    return begun, record.start is None, record.start or 0


def _without_repeated(rows: Sequence[Record]) -> list[Record]:
    """Returns rows without duplicates of the same run, as in dumps of overlapping periods."""
    if len(rows) == 1:
        return list(rows)
    by_submission: dict[int | None, list[Record]] = {}
    for row in sorted(rows, key=_life):
        by_submission.setdefault(row.eligible if row.submit is None else row.submit, []).append(row)
    kept: list[Record] = []
    for same in by_submission.values():
        different = list({(row.start, row.end, row.state): row for row in same}.values())
        if len(different) > 1 and not any(row.state in _GOES_ON for row in different):
            over = [row for row in different if row.state not in _NOT_OVER]
            different = over or different[:1]  # started rows are first
        known = {row.start for row in different if row.state not in (*_NOT_OVER, RESIZING)}
        kept += [row for row in different if row.state not in (RUNNING, SUSPENDED) or row.start not in known]
    return sorted(kept, key=_life)


def _split(rows: Sequence[Record]) -> list[Chain]:
    """Returns the consecutive jobs that had the same number."""
    lives: list[list[Record]] = []
    for row in rows:
        if lives and _continues(lives[-1][-1], row):
            lives[-1].append(row)
        else:
            lives.append([row])
    return [Chain(tuple(life), _runs(life), again) for again, life in enumerate(lives)]


def _continues(before: Record, row: Record) -> bool:
    """Returns True if a row belongs to the same job as the previous row with the same number."""
    if before.state in (REQUEUED, RESIZING):
        return True
    if before.end is None and before.submit is not None and before.submit == row.submit:
        return True  # the same submission, with more facts in another dump
    if (before.user, before.account, before.qos) != (row.user, row.account, row.qos):
        return False
    if before.end is None:
        return before.name == row.name
    if before.state == CANCELLED and not before.by:
        return False  # the controller lost its state, and numbers its jobs from the start
    since = row.submit if row.submit is not None else row.eligible
    if since is None:
        return False
    if before.state in _GOES_ON:
        return since - before.end <= DAY
    return since - before.end <= _REMEMBERED and before.name == row.name


def _runs(rows: Sequence[Record]) -> tuple[Run, ...]:
    runs: list[Run] = []
    resized: Record | None = None
    for row in rows:
        if not row.ran:
            continue
        if resized is not None and resized.start == row.start:
            runs[-1] = Run(runs[-1].first, row)
        else:
            runs.append(Run(row, row))
        resized = row if row.state == RESIZING else None
    return tuple(runs)


def cut_to_window(records: Sequence[Record]) -> set[int]:
    """Returns the positions of rows for which `sacct -T` made up a start or an end.

    If a job has not ended, `sacct -T` prints the end of the window as its end. If a job started before the
    window, it prints the start of the window. These times are therefore the earliest start and the latest end
    of all jobs.
    """
    ends = {row.end for row in records if row.state in _NOT_OVER and row.end is not None}
    if not ends:
        return set()
    begin = min(
        (row.start for row in records if row.start is not None and row.state != PENDING), default=None
    )
    return {
        place
        for place, row in enumerate(records)
        if row.state != PENDING and row.start is not None and (row.start == begin or row.end in ends)
    }
