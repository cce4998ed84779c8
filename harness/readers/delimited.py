"""Reads delimited text as typed columns, checks every cell, and reports each fault with its line.

Cells are first read as text and then converted column by column, so a file without faults needs hardly any
Python code per line. Only a file with faults is searched line by line.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.csv

from harness.base.errors import Fault, TraceError
from harness.base.text import counted
from harness.readers.cells import Field
from harness.readers.source import contents, lines_of, not_utf8, shown, trace_error

_SHOWN = 200
_MANY = 10_000
_UNREADABLE = (pa.ArrowException, pl.exceptions.PolarsError, ValueError)


@dataclass(frozen=True, slots=True)
class Check:
    """A rule for the values of a row. A row violates the rule if `broken` is true for it."""

    field: str
    broken: pl.Expr
    says: str


@dataclass(frozen=True)
class Table:
    """A file of delimited text whose header line was read.

    Attributes:
        lines: the other non-blank lines, with their numbers.
        delimiter: the separator of cells.
        nulls: the words for an empty cell.
    """

    path: Path
    names: tuple[str, ...]
    lines: Iterable[tuple[int, bytes]]
    delimiter: str = ","
    nulls: tuple[str, ...] = ()

    def typed(self, fields: Sequence[Field], *, checks: Iterable[Check] = ()) -> pl.DataFrame:
        """Returns the rows with only the declared columns.

        Args:
            fields: the wanted columns, which are found by name.
            checks: rules for the values of a row.

        Raises:
            TraceError: a column is missing, there are no rows, or a line is malformed. The error lists all
                faults.
        """
        missing = [field.source for field in fields if not field.absent and field.source not in self.names]
        if missing:
            has = ", ".join(self.names)
            has = has if len(has) <= _SHOWN else f"{has[: _SHOWN - 3]}..."
            says = f"has no column {', '.join(missing)}; the columns are {has}"
            raise TraceError(str(self.path), [Fault("header", says)])
        return typed_rows(
            self.path,
            self.lines,
            self.names,
            fields,
            checks=checks,
            delimiter=self.delimiter,
            nulls=self.nulls,
        )


def open_table(
    path: Path,
    names: Sequence[str] | None = None,
    *,
    header: bool = True,
    delimiter: str = ",",
    nulls: Sequence[str] = (),
    data: bytes | None = None,
) -> Table:
    """Open a file of delimited text, plain or gzipped.

    Args:
        path: the file.
        names: the names of the columns, for a file without a header line.
        header: whether the first line contains the names. Otherwise, the columns are named by their numbers,
            from 1.
        delimiter: the separator of cells.
        nulls: words that stand for an empty cell, in addition to the empty text.
        data: the content of the file, if it was read before.

    Raises:
        TraceError: the file cannot be read, or its header line names a column twice.
    """
    lines = lines_of(path, contents(path) if data is None else data)
    if names is None:
        place, head = next(lines)
        try:
            names = _cells(head, delimiter)
        except (UnicodeDecodeError, csv.Error) as error:
            raise TraceError(str(path), [Fault(f"line {place:,}", "is not delimited text")]) from error
        if not header:
            names, lines = [str(number) for number in range(1, len(names) + 1)], chain([(place, head)], lines)
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        faults = [Fault("header", f"names the column {shown(name)} twice") for name in twice]
        raise TraceError(str(path), faults)
    return Table(path, tuple(names), lines, delimiter, tuple(nulls))


def typed_rows(
    path: Path,
    lines: Iterable[tuple[int, bytes]],
    names: Sequence[str],
    fields: Sequence[Field],
    *,
    checks: Iterable[Check] = (),
    delimiter: str = ",",
    quoted: bool = True,
    nulls: Sequence[str] = (),
) -> pl.DataFrame:
    """Returns lines of delimited text as typed columns.

    Args:
        path: the source of the lines, for messages.
        lines: numbered non-blank lines, with as many cells as there are names.
        names: the names of all columns.
        fields: the wanted columns.
        checks: rules for the values of a row.
        delimiter: the separator of cells.
        quoted: whether a cell may be in double quotes.
        nulls: the words for an empty cell.

    Raises:
        TraceError: there are no lines, or a line is malformed. The error lists all faults.
    """
    numbered = _taken(path, lines, len(names), delimiter, quoted=quoted)
    if not numbered:
        raise TraceError(str(path), [Fault("", "holds no jobs")])
    split = partial(_split, names=names, delimiter=delimiter, quoted=quoted, nulls=nulls)
    rules = _Rules([field for field in fields if field.source in names], list(checks))
    try:
        cells = split(numbered, rules.fields)
    except _UNREADABLE as error:
        faults = _broken_lines(numbered, len(names), delimiter, quoted)
        sound = [item for item in numbered if item[0] not in faults]
        with suppress(*_UNREADABLE):  # report the faults of the other columns as well
            if faults and sound:
                cells = split(sound, rules.fields)
                for place, fault in rules.faults(sound, cells, rules.typed(cells)):
                    faults.setdefault(place, []).append(fault)
        ordered = [fault for _, found in sorted(faults.items()) for fault in found]
        raise trace_error(path, ordered, f"cannot be read: {str(error).splitlines()[0]}") from error
    table = rules.typed(cells)
    wrong = [fault for _, fault in rules.faults(numbered, cells, table)]
    if wrong:
        raise trace_error(path, wrong, "")
    return table


def _taken(
    path: Path, lines: Iterable[tuple[int, bytes]], width: int, delimiter: str, *, quoted: bool
) -> list[tuple[int, bytes]]:
    """Returns the lines, or raises an error if very many of them are too short for a record.

    Otherwise, the faults of that many lines could exhaust the memory.
    """
    numbered: list[tuple[int, bytes]] = []
    short = 0
    for item in lines:
        numbered.append(item)
        short += len(item[1]) < width - 1  # bytes of the separators
        if short >= _MANY:
            broken = _broken_lines(numbered, width, delimiter, quoted)
            raise trace_error(path, [fault for found in broken.values() for fault in found], "")
    return numbered


@dataclass(frozen=True)
class _Rules:
    fields: Sequence[Field]
    checks: Sequence[Check]

    def typed(self, cells: pl.DataFrame) -> pl.DataFrame:
        return cells.select(field.value(pl.col(field.source)).alias(field.name) for field in self.fields)

    def faults(
        self, lines: Sequence[tuple[int, bytes]], cells: pl.DataFrame, table: pl.DataFrame
    ) -> list[tuple[int, Fault]]:
        known = {field.name: field for field in self.fields}
        found: list[tuple[int, str, str]] = []
        for field in self.fields:
            texts = cells[field.source]
            rows = field.wrong(texts, table[field.name])
            found += [(row, field.name, field.says(texts[row])) for row in rows.arg_true()]
        for check in self.checks:
            rows = table.select(check.broken.fill_null(value=False)).to_series()
            found += [(row, check.field, check.says) for row in rows.arg_true()]
        found.sort(key=lambda item: item[0])
        faults = []
        for row, name, says in found:
            field, place = known[name], lines[row][0]
            cell = cells[field.source][row]
            what = f"{shown(cell)} {says}" if cell else "is empty"
            faults.append((place, Fault(f"line {place:,}", f"{field.label or field.source}: {what}")))
        return faults


def _split(
    lines: Sequence[tuple[int, bytes]],
    fields: Sequence[Field],
    *,
    names: Sequence[str],
    delimiter: str,
    quoted: bool,
    nulls: Sequence[str],
) -> pl.DataFrame:
    """Returns the cells of the wanted columns as texts without leading and trailing spaces."""
    wanted = list(dict.fromkeys(field.source for field in fields))
    table = pyarrow.csv.read_csv(
        pa.BufferReader(b"\n".join(line for _, line in lines)),
        read_options=pyarrow.csv.ReadOptions(column_names=list(names), use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, quote_char='"' if quoted else False),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted, null_values=[]
        ),
    )
    cells = pl.from_arrow(table)
    assert isinstance(cells, pl.DataFrame)
    if cells.height != len(lines):
        raise ValueError("a quoted cell spans more than one line")
    cells = cells.select(pl.all().str.strip_chars())
    return cells.select(pl.all().replace(list(nulls), "")) if nulls else cells


def _broken_lines(
    lines: Iterable[tuple[int, bytes]], width: int, delimiter: str, quoted: bool
) -> dict[int, list[Fault]]:
    faults: dict[int, list[Fault]] = {}
    for place, line in lines:
        try:
            found = len(_cells(line, delimiter, quoted=quoted))
            what = "" if found == width else f"has {counted(found, 'column')} instead of {width}"
        except UnicodeDecodeError as error:
            faults[place] = [not_utf8(place, line, error)]
            continue
        except csv.Error as error:
            what = f"does not consist of quoted cells and delimiters: {error}"
        if what:
            faults[place] = [Fault(f"line {place:,}", what)]
    return faults


def _cells(line: bytes, delimiter: str = ",", *, quoted: bool = True) -> list[str]:
    decoded = line.decode()
    if not quoted:
        return decoded.split(delimiter)
    return [cell.strip() for cell in next(csv.reader([decoded], delimiter=delimiter))]
