"""Represents one allocation in Slurm's database: a run of a job, of an array task, or of a component."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

from harness.base.units import MINUTE, SECOND, since_1970
from harness_plugins.readers.slurm.amounts import Tres

PENDING, RUNNING, SUSPENDED, CANCELLED = "PENDING", "RUNNING", "SUSPENDED", "CANCELLED"
REQUEUED, RESIZING, PREEMPTED, NODE_FAIL = "REQUEUED", "RESIZING", "PREEMPTED", "NODE_FAIL"
NO_TIME = ("", "Unknown", "None", "N/A", "0")
"""The texts that mean a missing time in plain text, in the format `%s`, and in JSON."""

_LABEL = re.compile(
    r"(?P<base>[0-9]{1,18})(?:_(?P<task>[0-9]{1,18})|_\[(?P<tasks>[^\]]{1,9999})\]|\+(?P<offset>[0-9]{1,9}))?"
)
_STEP = re.compile(r"[0-9]+(?:_(?:[0-9]+|\[[^\]]*\])|\+[0-9]+)?\.(?:[a-z]+|TBD|[0-9]+(?:\+[0-9]+)?)")
_NUMBER = re.compile(r"[0-9]{1,18}")
_EPOCH = re.compile(r"[0-9]{1,12}")
_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_SPAN = re.compile(r"(?:([0-9]{1,6})-)?(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{2})(?:\.[0-9]{1,6})?")
_LATEST = 253_402_300_799
_LONGEST_MINUTES = 100 * 365 * 24 * 60


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of an allocation.

    Attributes:
        number: the database's own number, `JobIDRaw`, or "" if the dump lacks this column.
        label: `JobID`, which is easier to read.
        base: the number in the label, which is the number of the array, the heterogeneous job, or the job.
        tasks: a range such as `5-9%2` for tasks that have not been split off yet.
        offset: the component of a heterogeneous job, or None.
    """

    number: str
    label: str
    base: str
    task: int | None = None
    tasks: str = ""
    offset: int | None = None


def number_of(text: str) -> str:
    """Returns the number in the cell `JobIDRaw`.

    Raises:
        ValueError: the cell is not a number.
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError("is not the number of a job")
    return text


@lru_cache(maxsize=1 << 12)
def identity_of(number: str, label: str) -> Identity:
    """Returns the identity in the cells `JobIDRaw` and `JobID`, where one cell may be empty.

    Raises:
        ValueError: the label is not a job, or both cells are empty.
    """
    found = _LABEL.fullmatch(label or number)
    if not found:
        raise ValueError("is not a job such as 35, 35_2, 35_[4-6] or 83+1")
    return Identity(
        number,
        label or number,
        found["base"],
        None if found["task"] is None else int(found["task"]),
        found["tasks"] or "",
        None if found["offset"] is None else int(found["offset"]),
    )


def is_step(name: str) -> bool:
    """Returns True for the name of a job step, such as `13.batch`, `35_2.0` or `83+0.extern`."""
    return _STEP.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Record:
    """One allocation in the output of `sacct`.

    Times and spans are in microseconds. Times are relative to 1970 in UTC. None means that a value is not
    given.

    Attributes:
        place: the place of the allocation in the source, for messages.
        cluster: the cluster, or "" if the dump lacks this column.
        state: the first word of the state. For example, it is `CANCELLED` for `CANCELLED by 1003`.
        by: whether the state shows which user cancelled the job.
        submit: the time of the submission or of the requeue.
        eligible: when the job became eligible to start.
        elapsed: how long the job worked, without suspensions.
        suspended: how long the job was suspended.
        limit: the time limit. It is also None if there is no limit.
        restarts: how often the job was requeued. Only newer versions have this number.
        allocated: the granted amounts, which are empty before the start.
        assigned: whether the job has nodes, or None if unknown.
    """

    place: str
    cluster: str
    identity: Identity
    user: str
    account: str
    partition: str
    qos: str
    name: str | None
    state: str
    by: bool
    submit: int | None
    eligible: int | None
    start: int | None
    end: int | None
    elapsed: int | None
    suspended: int
    limit: int | None
    restarts: int | None
    allocated: Tres
    requested: Tres
    assigned: bool | None

    @property
    def ended(self) -> bool:
        """True if the run has ended.

        `sacct -T` prints the end of its window as the end of a run that has not ended. Such a run is not
        over.
        """
        return self.end is not None and self.state not in (PENDING, RUNNING, SUSPENDED)

    @property
    def ran(self) -> bool:
        """True if the job held resources. If Slurm refused a submitted job, it has a start but no node."""
        if self.start is None or self.state == PENDING:
            return False
        return self.assigned is not False

    @property
    def work(self) -> int | None:
        """The time during which the job worked."""
        if self.elapsed is not None or self.end is None or self.start is None:
            return self.elapsed
        return max(0, self.end - self.start - self.suspended)


@dataclass
class Dump:
    """All allocations in the output of `sacct`.

    Attributes:
        records: one record for each allocation and run.
        read: the number of rows in the source.
        left_out: the number of rows that are not allocations, by reason.
        lacks: the missing columns that would improve the trace.
    """

    records: list[Record]
    read: int
    left_out: dict[str, int]
    notes: list[str] = field(default_factory=list)
    lacks: tuple[str, ...] = ()


STEPS = "steps, which are parts of jobs"


class Clock:
    """Reads times, which are seconds since 1970 or in ISO 8601. Times without an offset are local times.

    Attributes:
        local: the number of times without an offset.
        doubtful: the number of local times in an hour that a clock change skips or repeats. They are read
            with the offset before the change, unless the job would then end before it has worked as long as
            it did.
    """

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self.local = 0
        self.doubtful = 0

    def time(self, text: str, since: int | None = None) -> int | None:
        """Returns the time of a cell, or None for `Unknown` and similar words.

        In a repeated hour, the result is the time after `since` if possible.

        Raises:
            ValueError: the cell is not a time.
        """
        if text in NO_TIME:
            return None
        if _EPOCH.fullmatch(text):
            if int(text) > _LATEST:
                raise ValueError("is not a time in the years 1970 to 9999")
            return int(text) * SECOND
        if not _ISO.fullmatch(text):
            raise ValueError("is not a time such as 2026-11-22T03:38:14 or 1795318694")
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            self.local += 1
            return self._of_zone(moment, since)
        return _microseconds(moment)

    def _of_zone(self, moment: datetime, since: int | None) -> int:
        if self._zone is UTC:
            return _microseconds(moment.replace(tzinfo=UTC))
        first, second = (moment.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1))
        early, late = _microseconds(first), _microseconds(second)
        if early != late:
            self.doubtful += 1
            if since is not None and early < since <= late:
                return late
        return early


def _microseconds(moment: datetime) -> int:
    try:
        return since_1970(moment)
    except OverflowError as error:
        raise ValueError("is not a time of the years 1 to 9999") from error


def span_of(text: str) -> int:
    """Returns the microseconds of a text in the form `[days-][hours:]minutes:seconds`.

    Raises:
        ValueError: the text has another form.
    """
    found = _SPAN.fullmatch(text)
    if not found:
        raise ValueError("is not a span such as 1-02:30:00")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * SECOND


def limit_of(text: str) -> int | None:
    """Returns the time limit in a cell, which is a number of minutes or a span.

    For `UNLIMITED`, the result is None.

    Raises:
        ValueError: the text is not a time limit.
    """
    if text in ("", "UNLIMITED", "INFINITE"):
        return None
    if ":" in text:
        return span_of(text)
    return minutes_of(int(text)) if _NUMBER.fullmatch(text) else _no_limit()


def minutes_of(minutes: int) -> int | None:
    """Returns a time limit in microseconds, or None for more than a century, which means no limit."""
    return minutes * MINUTE if minutes <= _LONGEST_MINUTES else None


def _no_limit() -> int:
    raise ValueError("is not a time limit such as 90 (minutes), 01:30:00 or UNLIMITED")
