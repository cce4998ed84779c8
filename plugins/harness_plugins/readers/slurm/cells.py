"""Splits the lines of `sacct -P` into cells, even if names contain the delimiter or a line break.

It also splits lines that another program wrote as CSV with quotes.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, islice
from pathlib import Path

from harness.base.errors import Fault, TraceError
from harness.readers.counts import counted
from harness.readers.source import contents, lines_of, not_utf8, shown, stop_at_many, trace_error

COMMAND = (
    "SLURM_TIME_FORMAT=%s sacct -aXDP --noconvert -S 2026-10-01 -E 2026-11-01 -o JobIDRaw,JobID,Cluster,"
    "Partition,QOS,Account,User,Submit,Eligible,Start,End,ElapsedRaw,State,NNodes,ReqCPUS,ReqMem,ReqTRES,"
    "AllocTRES,TimelimitRaw,Suspended,JobName"
)

_FREE = (
    "JobName", "Comment", "AdminComment", "SystemComment", "SubmitLine", "WorkDir", "WCKey", "Container",
    "Extra", "FailedNode", "StdErr", "StdIn", "StdOut",
)  # fmt: skip
"""Columns with free text from users, which `sacct` does not quote."""

_FIRST = re.compile(r"([A-Za-z]+)([^A-Za-z]+)")
_BEGINS = re.compile(r"[0-9]+(?:[_+.][^|]*)?[^A-Za-z0-9 ]")
_WAYS = 200
_JOINED = 200


Meaning = Callable[[Sequence[str], Sequence[str]], Hashable | None]
"""A function that returns the meaning of cells under these column names, ignoring free text.

For an invalid row, the function returns None.
"""


@dataclass(frozen=True)
class Table:
    """The output of `sacct -P`.

    Attributes:
        lines: the cells of each row, with the line number of the row.
        counted: the number of rows that each note concerns. The numbers are complete after all lines are
            read.
    """

    path: Path
    names: tuple[str, ...]
    lines: Iterator[tuple[int, list[str]]]
    counted: dict[str, int] = field(default_factory=dict)


def open_cells(path: Path, faults: list[Fault], meaning: Meaning) -> Table:
    """Opens the rows of a file from `sacct -P` or `sacct -p`.

    Faults of lines that are not rows are added to `faults`. If a name contains the delimiter, a row has too
    many cells. They are joined in such a way that `meaning` can read all other columns.

    Raises:
        TraceError: the file has no header with columns. The message contains the `sacct` command to use.
    """
    lines = lines_of(path, contents(path))
    number, first = next(lines)
    head = _decoded(first, number, faults)
    if head is None:
        raise trace_error(path, faults, "")
    if head.startswith("sacct: "):
        what = f"is an error message of sacct, without rows: {head.removeprefix('sacct: ')[:200]}"
        raise TraceError(
            str(path), [Fault(f"line {number:,}", what)], hint="sacct -e lists its columns; " + _ASK
        )
    found = _FIRST.match(head.replace('"', ""))
    delimiter = found[2] if found else ""
    if delimiter and not delimiter.strip(" "):
        what = "has columns cut to a width, where long values end with +"
        raise TraceError(str(path), [Fault(f"line {number:,}", what)], hint=f"run sacct with -P: {COMMAND}")
    names = _split(head, delimiter, quoted='"' in head)
    trailing = names[-1] == ""
    names = [name.strip() for name in (names[:-1] if trailing else names)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        what = f"names the column {shown(twice[0])} twice"
        raise TraceError(str(path), [Fault(f"line {number:,}", what)])
    if not {"JobID", "JobIDRaw"} & set(names):
        what = f"is {shown(head)}, not a list of sacct's columns that includes JobID"
        raise TraceError(str(path), [Fault(f"line {number:,}", what)], hint=_ASK)
    counted: dict[str, int] = {}
    splitter = _Splitter(path, tuple(names), delimiter, head, faults, meaning, counted, trailing=trailing)
    return Table(path, tuple(names), splitter.rows(lines), counted)


_ASK = f"run {COMMAND}"
_NAMED = "rows have the delimiter in a name or comment. They were split so that all other columns are valid"
_BROKEN = "lines continue a name or comment with line breaks"
_HEADS = "additional header lines, as in concatenated files"


@dataclass(frozen=True)
class _Splitter:
    path: Path
    names: tuple[str, ...]
    delimiter: str
    head: str
    faults: list[Fault]
    meaning: Meaning
    counted: dict[str, int]
    trailing: bool

    def rows(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, list[str]]]:
        """Yields the cells of every row. If a name contains a line break, lines are joined."""
        waiting: list[tuple[int, str]] = []
        goes_on = False
        for number, line in lines:
            stop_at_many(self.path, self.faults)
            text = _decoded(line, number, self.faults)
            if text is None:
                continue
            if text == self.head:
                self._count(_HEADS)
                continue
            width = self._width(text)
            if width >= len(self.names):
                self._torn(waiting)
                waiting = []
                yield from self._row(number, text)
                goes_on = self.names[-1] in _FREE
                continue
            if not waiting and goes_on and not _BEGINS.match(text):
                self._count(_BROKEN)
                continue
            waiting.append((number, text))
            joined = "\n".join(part for _, part in waiting)
            if len(waiting) > 1 and self._width(joined) >= len(self.names):
                yield from self._row(waiting[0][0], joined)
                waiting = []
            elif len(waiting) >= _JOINED or not self._free:
                self._torn(waiting)
                waiting = []
        self._torn(waiting)

    @property
    def _free(self) -> list[int]:
        return [place for place, name in enumerate(self.names) if name in _FREE]

    def _width(self, text: str) -> int:
        return len(self._cells(text)) - self.trailing

    def _cells(self, text: str) -> list[str]:
        return _split(text, self.delimiter, quoted='"' in self.head)

    def _torn(self, waiting: Sequence[tuple[int, str]]) -> None:
        for number, text in waiting:
            what = f"has {counted(self._width(text), 'column')} instead of {len(self.names):,}"
            self.faults.append(Fault(f"line {number:,}", what))

    def _row(self, number: int, text: str) -> Iterator[tuple[int, list[str]]]:
        cells = self._cells(text)
        if self.trailing and cells.pop().strip():
            self.faults.append(Fault(f"line {number:,}", f"does not end with {shown(self.delimiter)}"))
            return
        cells = [cell.strip() for cell in cells]
        if len(cells) > len(self.names):
            told = self._told_apart(cells)
            if told is None:
                what = f"has {counted(len(cells), 'column')} instead of {len(self.names):,}"
                advice = ": request JobName as the last column, or use --delimiter" if self._free else ""
                if self.delimiter == ",":
                    advice = ": sacct does not quote amounts, which contain commas. Use sacct -P"
                self.faults.append(Fault(f"line {number:,}", what + advice))
                return
            self._count(_NAMED)
            cells = told
        yield number, cells

    def _told_apart(self, cells: list[str]) -> list[str] | None:
        """Joins cells of a row with too many cells, or returns None if not exactly one way is valid."""
        free = self._free
        surplus = len(cells) - len(self.names)
        found: dict[Hashable, list[str]] = {}
        for places in islice(combinations_with_replacement(free, surplus), _WAYS):
            joined: list[str] = []
            at = 0
            for place in range(len(self.names)):
                more = places.count(place)
                joined.append(self.delimiter.join(cells[at : at + more + 1]))
                at += more + 1
            means = self.meaning(self.names, joined)
            if means is not None:
                found.setdefault(means, joined)
        return next(iter(found.values())) if len(found) == 1 else None

    def _count(self, what: str) -> None:
        self.counted[what] = self.counted.get(what, 0) + 1


def _split(text: str, delimiter: str, *, quoted: bool) -> list[str]:
    """Returns the cells of a line. Other programs quote cells that contain a comma, and sacct does not.

    `quoted` says whether the names of the columns are in quotes, which shows that another program wrote the
    file.
    """
    if (quoted or delimiter == ",") and len(delimiter) == 1 and '"' in text:
        with suppress(csv.Error):  # such as a line break outside of quotes
            return next(csv.reader([text], delimiter=delimiter))
    return text.split(delimiter) if delimiter else [text]


def _decoded(line: bytes, number: int, faults: list[Fault]) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        faults.append(not_utf8(number, line, error))
        return None
