"""Converts the output of `sacct -P` to records, checks every cell that it uses, and lists faults by line."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import TypeVar

from harness.base.errors import Fault, TraceError
from harness.base.units import SECOND
from harness.readers.counts import counted
from harness.readers.source import shown, stop_at_many, trace_error
from harness_plugins.readers.slurm.amounts import Tres, requested_memory, tres_of_text
from harness_plugins.readers.slurm.cells import COMMAND, open_cells
from harness_plugins.readers.slurm.record import (
    STEPS,
    Clock,
    Dump,
    Identity,
    Record,
    identity_of,
    is_step,
    limit_of,
    number_of,
    span_of,
)

T = TypeVar("T")

_NEEDED = (
    ("JobIDRaw", "JobID"), ("State",), ("Submit", "Eligible"), ("Start",), ("End",),
    ("AllocTRES", "ReqTRES", "AllocCPUS", "NCPUS", "ReqCPUS"),
)  # fmt: skip
"""Groups of columns. A dump must have at least one column of each group."""

_NO_NODES = ("None assigned", "None", "")
_UNKNOWN_SPANS = ("INVALID", "Partition_Limit")
_INVALID = "spans are unknown to sacct (INVALID or Partition_Limit), so they count as absent"
_DEVICES = ("AllocGRES", "ReqGRES")
_UNREAD = "rows have devices only in AllocGRES or ReqGRES: the reader takes GPUs from AllocTRES and ReqTRES"
_COUNT_MOST = 10**9


def read_text(path: Path, clock: Clock) -> Dump:
    """Reads the records of a file from `sacct -P`.

    Raises:
        TraceError: columns are missing, or lines are malformed. The error lists all faults.
    """
    faults: list[Fault] = []
    table = open_cells(path, faults, _meaning)
    _require_columns(path, table.names)
    row = _Row(table.names, clock, faults, table.counted)
    records: list[Record] = []
    steps = 0
    for number, cells in table.lines:
        if row.is_step(cells):
            steps += 1
        else:
            record = row.record(number, cells)
            if record is not None:
                records.append(record)
        stop_at_many(path, faults)
    if faults:
        raise trace_error(path, faults, "")
    if not records:
        what = f"holds no jobs, only {counted(steps, 'step')} of jobs" if steps else "holds no jobs"
        raise TraceError(str(path), [Fault("", what)], hint=f"run {COMMAND}")
    notes = [f"{count:,} {what}" for what, count in table.counted.items()]
    wanted = ("AllocTRES", "ReqTRES", "Suspended", "ElapsedRaw", "Elapsed", "JobIDRaw")
    lacks = tuple(name for name in wanted if name not in table.names)
    return Dump(records, len(records) + steps, {STEPS: steps} if steps else {}, notes, lacks)


def _require_columns(path: Path, names: Sequence[str]) -> None:
    missing = [" or ".join(some) for some in _NEEDED if not set(some) & set(names)]
    if missing:
        what = f"has no column {', '.join(missing)}; the columns are {', '.join(names)[:300]}"
        raise TraceError(str(path), [Fault("header", what)], hint=f"run {COMMAND}")


def _meaning(names: Sequence[str], cells: Sequence[str]) -> Hashable | None:
    """Returns the content of a row without the name of the job, or None for cells that are not a row."""
    faults: list[Fault] = []
    row = _Row(names, Clock(UTC), faults, {})
    if row.is_step(cells):
        return STEPS
    record = row.record(0, cells)
    return None if record is None or faults else replace(record, name=None)


class _Row:
    def __init__(
        self, names: Sequence[str], clock: Clock, faults: list[Fault], counted: dict[str, int]
    ) -> None:
        self._places: Mapping[str, int] = {name: place for place, name in enumerate(names)}
        self._ids = [self._places[name] for name in ("JobID", "JobIDRaw") if name in self._places]
        self._clock = clock
        self._faults = faults
        self._counted = counted
        self._line = 0
        self._cells: Sequence[str] = ()

    def is_step(self, cells: Sequence[str]) -> bool:
        """Returns whether `JobID` names a step, or else `JobIDRaw`, which other programs write as `35.0`."""
        return is_step(next((cells[place] for place in self._ids if cells[place]), ""))

    def record(self, line: int, cells: Sequence[str]) -> Record | None:
        """Returns the allocation of a row. If the row is malformed, adds faults and returns None."""
        self._line, self._cells = line, cells
        before = len(self._faults)
        identity = self._identity()
        submit = self._time("Submit", None)
        eligible = self._time("Eligible", submit)
        start = self._time("Start", eligible)
        state, _, tail = self._text("State").partition(" ")
        if not state.replace("_", "").isalpha():
            self._fault("State", "is not a state such as COMPLETED")
        allocated, requested = self._amounts()
        suspended = self._span("Suspended", span_of) or 0
        elapsed = self._count("ElapsedRaw")
        record_elapsed = self._span("Elapsed", span_of) if elapsed is None else elapsed * SECOND
        end = self._time("End", None if start is None else start + (record_elapsed or 0) + suspended)
        limit = self._span("TimelimitRaw" if "TimelimitRaw" in self._places else "Timelimit", limit_of)
        restarts = self._count("Restarts")
        if len(self._faults) > before or identity is None:
            return None
        if allocated.gpus is None and requested.gpus is None and any(map(self._text, _DEVICES)):
            self._tally(_UNREAD)
        return Record(
            f"line {line:,}",
            self._text("Cluster"),
            identity,
            self._text("User"),
            self._text("Account"),
            self._text("Partition"),
            self._text("QOS"),
            self._text("JobName") if "JobName" in self._places else None,
            state,
            bool(tail),
            submit,
            eligible,
            start,
            end,
            record_elapsed,
            suspended,
            limit,
            restarts,
            allocated,
            requested,
            self._assigned(allocated),
        )

    def _identity(self) -> Identity | None:
        number, label = self._parsed("JobIDRaw", number_of) or "", self._text("JobID")
        try:
            return identity_of(number, label)
        except ValueError as error:
            if label or not self._text("JobIDRaw"):
                self._fault("JobID", str(error))
            return None

    def _amounts(self) -> tuple[Tres, Tres]:
        """Returns the granted and requested amounts, from TRES if possible, or from other columns."""
        allocated = self._parsed("AllocTRES", tres_of_text) or Tres()
        requested = self._parsed("ReqTRES", tres_of_text) or Tres()
        nodes, cpus = requested.nodes, requested.cpus
        nodes = self._first("NNodes", "ReqNodes", "AllocNodes") if nodes is None else nodes
        cpus = self._first("ReqCPUS", "NCPUS", "AllocCPUS") if cpus is None else cpus
        memory, rounded = requested.memory, requested.rounded
        if memory is None:
            memory, rounded = self._parsed("ReqMem", lambda text: requested_memory(text, cpus, nodes)) or (
                None,
                False,
            )
        gpus = requested.gpus if "ReqTRES" in self._places else allocated.gpus
        requested = replace(requested, nodes=nodes, cpus=cpus, memory=memory, gpus=gpus, rounded=rounded)
        if "AllocTRES" not in self._places:
            allocated = replace(
                requested,
                cpus=self._first("AllocCPUS", "NCPUS", "ReqCPUS") or requested.cpus,
                nodes=self._first("AllocNodes", "NNodes") or nodes,
            )
        return allocated, requested

    def _assigned(self, allocated: Tres) -> bool | None:
        """Returns whether the row has nodes, from the first column that shows this, or None if unknown."""
        if "AllocTRES" in self._places:
            return bool(allocated)
        if "NodeList" in self._places:
            return self._text("NodeList") not in _NO_NODES
        if "AllocNodes" in self._places:
            return self._first("AllocNodes") != 0
        return None

    def _text(self, name: str) -> str:
        place = self._places.get(name)
        return "" if place is None else self._cells[place]

    def _parsed(self, name: str, parse: Callable[[str], T]) -> T | None:
        """Returns the parsed cell, or None if it is empty, absent, or malformed, which adds a fault."""
        text = self._text(name)
        if not text:
            return None
        try:
            return parse(text)
        except ValueError as error:
            self._fault(name, str(error))
            return None

    def _span(self, name: str, parse: Callable[[str], T]) -> T | None:
        if self._text(name) in _UNKNOWN_SPANS:
            self._tally(_INVALID)
            return None
        return self._parsed(name, parse)

    def _tally(self, what: str) -> None:
        self._counted[what] = self._counted.get(what, 0) + 1

    def _time(self, name: str, since: int | None) -> int | None:
        return self._parsed(name, lambda text: self._clock.time(text, since))

    def _count(self, name: str) -> int | None:
        return self._parsed(name, _whole)

    def _first(self, *names: str) -> int | None:
        return next((count for name in names if (count := self._count(name)) is not None), None)

    def _fault(self, name: str, what: str) -> None:
        self._faults.append(Fault(f"line {self._line:,}", f"{name}: {shown(self._text(name))} {what}"))


def _whole(text: str) -> int | None:
    """Returns a count. Without --noconvert, sacct prints 2048 nodes as `2K`."""
    if text in ("Unknown", "None"):
        return None
    digits = text.removesuffix("K")
    count = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= 18 else -1
    count *= 1 if digits == text else 1024
    if not 0 <= count <= _COUNT_MOST:
        raise ValueError(f"is not a whole number from 0 to {_COUNT_MOST:,}")
    return count
