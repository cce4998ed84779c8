"""Delimited text as typed columns: every cell is checked, and each that is wrong is named by its line.

A reader states its columns as `Field`s. Cells are read as text first and converted column by column, so that
a file without faults costs hardly any Python for a line, and one with faults is searched only then.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from math import isnan
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.csv

from harness.errors import Fault, TraceError
from harness.units import SECOND
from harness_plugins.readers.numbers import EXACT, SECONDS, is_amount, is_seconds, microseconds
from harness_plugins.readers.source import contents, lines_of, refusal, shown

_SHOWN = 200
_EXAMPLE = datetime(2017, 10, 9, 7, 1, 55)
_SPAN = r"^(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,2}):(\d{2}(?:\.\d+)?)$"
_UNREADABLE = (pa.ArrowException, pl.exceptions.PolarsError, ValueError)


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a file.

    Attributes:
        name: in the table that is made, and as the header has it, unless `column` says otherwise.
        value: what a cell's text means; null where the text means nothing of the kind.
        expects: what a cell must be, for messages.
        limits: between which numbers it must be, if it is a number.
        empty: whether a cell may be empty, which gives null.
        absent: whether the file may lack the column; the table then lacks it too.
        label: what messages call it, its column if empty.
        column: as the header has it, where the name is another.
    """

    name: str
    value: Callable[[pl.Expr], pl.Expr]
    expects: str
    limits: tuple[float, float] | None = None
    empty: bool = False
    absent: bool = False
    label: str = ""
    column: str = ""

    @property
    def source(self) -> str:
        """The column of the file."""
        return self.column or self.name

    def or_empty(self) -> Field:
        """The same column, whose cells may be empty."""
        return replace(self, empty=True)

    def or_absent(self) -> Field:
        """The same column, which a file may lack and whose cells may be empty."""
        return replace(self, empty=True, absent=True)


def text(name: str) -> Field:
    """A column of texts; blanks around them do not count."""
    return Field(name, lambda cell: cell, "a text")


def choice(name: str, *words: str) -> Field:
    """A column of which each cell is one of these words."""
    return Field(name, lambda cell: pl.when(cell.is_in(words)).then(cell), f"one of {', '.join(words)}")


def whole(name: str, least: int = 0, most: int = EXACT) -> Field:
    """A column of whole numbers (`4`, `4.0`), int64."""

    def value(cell: pl.Expr) -> pl.Expr:
        number = cell.cast(pl.Float64, strict=False)
        return pl.when(is_amount(number) & number.is_between(least, most)).then(number).cast(pl.Int64)

    return Field(name, value, "a whole number", (least, most))


def number(name: str, least: float = 0, most: float = EXACT) -> Field:
    """A column of finite numbers, float64."""

    def value(cell: pl.Expr) -> pl.Expr:
        number = cell.cast(pl.Float64, strict=False)
        return pl.when(number.is_finite() & number.is_between(least, most)).then(number)

    return Field(name, value, "a number", (least, most))


def amount(name: str, scale: int, least: float = 0) -> Field:
    """A column of amounts in a larger unit, int64 after scaling and rounding to the nearest.

    Args:
        name: the column.
        scale: how much of the schema's unit one is, such as 1000 for cores or 2**30 for GiB.
        least: the smallest amount, in the file's unit.
    """
    most = EXACT // scale
    unscaled = number(name, least, most)

    def value(cell: pl.Expr) -> pl.Expr:
        return (unscaled.value(cell) * scale).round().cast(pl.Int64)

    return replace(unscaled, value=value)


def seconds(name: str, least: float = 0, unit: int = SECOND) -> Field:
    """A column of times or durations as numbers, int64 microseconds.

    Args:
        name: the column.
        least: the smallest allowed, in the file's unit.
        unit: microseconds of one.
    """
    most = SECONDS * SECOND // unit

    def value(cell: pl.Expr) -> pl.Expr:
        number = cell.cast(pl.Float64, strict=False)
        scaled = number * (unit / SECOND)
        good = is_seconds(scaled) & (number >= least)
        return microseconds(pl.when(good).then(scaled))

    return Field(name, value, "a number", (least, most))


def moment(name: str, form: str) -> Field:
    """A column of moments as text, timestamp[us] without a zone.

    Args:
        name: the column.
        form: how they are written, such as `%Y-%m-%d %H:%M:%S`.

    Raises:
        ValueError: a form by which a time cannot be read again.
    """
    example = _EXAMPLE.strftime(form)
    datetime.strptime(example, form)
    return Field(
        name,
        lambda cell: cell.str.to_datetime(form, time_unit="us", strict=False),
        f"a time such as {example}",
    )


def iso_moment(name: str) -> Field:
    """A column of moments as ISO 8601 writes them, timestamp[us, UTC]; without an offset they are UTC."""

    def value(cell: pl.Expr) -> pl.Expr:
        text = cell.str.replace(" ", "T", literal=True).str.replace("Z$", "+00:00")
        parsed = [
            text.str.to_datetime(form, time_unit="us", strict=False, time_zone="UTC")
            for form in ("%Y-%m-%dT%H:%M:%S%.f%z", "%Y-%m-%dT%H:%M%z")
        ]
        plain = [
            text.str.to_datetime(form, time_unit="us", strict=False).dt.replace_time_zone("UTC")
            for form in ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")
        ]
        return pl.coalesce(*parsed, *plain)

    return Field(name, value, "a time such as 2017-10-09T07:01:55+02:00")


def span(name: str) -> Field:
    """A column of durations as `[days-]hours:minutes:seconds`, int64 microseconds."""

    def value(cell: pl.Expr) -> pl.Expr:
        groups = cell.str.extract_groups(_SPAN)
        part = [groups.struct.field(str(place)) for place in (1, 2, 3, 4)]
        days, hours, minutes = (text.fill_null("0").cast(pl.Int64, strict=False) for text in part[:3])
        return microseconds(part[3].cast(pl.Float64) + days * 86_400 + hours * 3600 + minutes * 60)

    return Field(name, value, "a duration such as 1-02:30:00")


@dataclass(frozen=True, slots=True)
class Check:
    """What must not be between the values of one row; null counts as false."""

    field: str
    broken: pl.Expr
    says: str


@dataclass(frozen=True)
class Table:
    """A file of delimited text whose header line was read.

    Attributes:
        path: the file.
        names: of its columns.
        lines: the others, numbered, none of them blank.
        delimiter: between their cells.
        nulls: words that mean that a cell is empty.
    """

    path: Path
    names: tuple[str, ...]
    lines: Iterable[tuple[int, bytes]]
    delimiter: str = ","
    nulls: tuple[str, ...] = ()

    def typed(self, fields: Sequence[Field], *, checks: Iterable[Check] = ()) -> pl.DataFrame:
        """Its rows in the columns that are stated; others are left aside.

        Args:
            fields: the columns wanted, found by their names.
            checks: what must hold between the values of a row.

        Raises:
            TraceError: no such columns, no rows, or malformed lines, all of them named.
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
    path: Path, names: Sequence[str] | None = None, *, delimiter: str = ",", nulls: Sequence[str] = ()
) -> Table:
    """A file of delimited text, plain or gzipped.

    Args:
        path: the file.
        names: its columns if it has no header line.
        delimiter: between its cells.
        nulls: words that mean that a cell is empty, besides the empty one.

    Raises:
        TraceError: it cannot be read, or its header line names a column twice.
    """
    lines = lines_of(contents(path))
    if names is None:
        place, head = next(lines)
        try:
            names = _cells(head, delimiter)
        except UnicodeDecodeError as error:
            raise TraceError(str(path), [Fault(f"line {place:,}", "is not UTF-8 text")]) from error
    twice = sorted({name for name in names if names.count(name) > 1})
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
    """Lines of delimited text as typed columns.

    Args:
        path: where they come from, for messages.
        lines: numbered lines, none of them blank, with as many cells as there are names.
        names: of all columns.
        fields: the columns wanted.
        checks: what must hold between the values of a row.
        delimiter: between the cells.
        quoted: whether a cell may stand in double quotes.
        nulls: words that mean that a cell is empty.

    Raises:
        TraceError: no lines, or malformed ones, all of them named.
    """
    numbered = list(lines)
    if not numbered:
        raise TraceError(str(path), [Fault("", "holds no jobs")])
    split = partial(_split, names=names, delimiter=delimiter, quoted=quoted, nulls=nulls)
    rules = _Rules([field for field in fields if field.source in names], list(checks))
    try:
        cells = split(numbered, rules.fields)
    except _UNREADABLE as error:
        faults = _broken_lines(numbered, len(names), delimiter, quoted)
        sound = [item for item in numbered if item[0] not in faults]
        with suppress(*_UNREADABLE):  # name what is wrong in the others as well
            if faults and sound:
                cells = split(sound, rules.fields)
                for place, fault in rules.faults(sound, cells, rules.typed(cells)):
                    faults.setdefault(place, []).append(fault)
        ordered = [fault for _, found in sorted(faults.items()) for fault in found]
        raise refusal(path, ordered, f"cannot be read: {str(error).splitlines()[0]}") from error
    table = rules.typed(cells)
    wrong = [fault for _, fault in rules.faults(numbered, cells, table)]
    if wrong:
        raise refusal(path, wrong, "")
    return table


@dataclass(frozen=True)
class _Rules:
    """What cells must be, one by one and together."""

    fields: Sequence[Field]
    checks: Sequence[Check]

    def typed(self, cells: pl.DataFrame) -> pl.DataFrame:
        """The values of cells; null where there is none, or none that can be."""
        return cells.select(field.value(pl.col(field.source)).alias(field.name) for field in self.fields)

    def faults(
        self, lines: Sequence[tuple[int, bytes]], cells: pl.DataFrame, table: pl.DataFrame
    ) -> list[tuple[int, Fault]]:
        """Every cell that is wrong with the number of its line, in the order of lines."""
        known = {field.name: field for field in self.fields}
        found: list[tuple[int, str, str]] = []
        for field in self.fields:
            texts = cells[field.source]
            rows = _wrong(field, texts, table[field.name])
            found += [(row, field.name, _why(field, texts[row])) for row in rows.arg_true()]
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
    """The cells of the columns wanted as texts without blanks around them."""
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
        raise ValueError("a cell in quotes goes over more than one line")
    cells = cells.select(pl.all().str.strip_chars())
    return cells.select(pl.all().replace(list(nulls), "")) if nulls else cells


def _broken_lines(
    lines: Iterable[tuple[int, bytes]], width: int, delimiter: str, quoted: bool
) -> dict[int, list[Fault]]:
    """The lines that are no text, or have too few or too many cells, by their numbers."""
    faults: dict[int, list[Fault]] = {}
    for place, line in lines:
        try:
            found = len(_cells(line, delimiter, quoted=quoted))
            what = "" if found == width else f"has {found} columns instead of {width}"
        except UnicodeDecodeError as error:
            what = f"is not UTF-8 text: byte {line[error.start]:#04x} at its place {error.start + 1}"
        if what:
            faults[place] = [Fault(f"line {place:,}", what)]
    return faults


def _cells(line: bytes, delimiter: str = ",", *, quoted: bool = True) -> list[str]:
    decoded = line.decode()
    if not quoted:
        return decoded.split(delimiter)
    try:
        return [cell.strip() for cell in next(csv.reader([decoded], delimiter=delimiter))]
    except csv.Error:
        return []


def _why(field: Field, cell: str) -> str:
    """What is wrong with a cell that has no value."""
    if field.limits is not None:
        least, most = field.limits
        with suppress(ValueError):
            if not least <= float(cell) <= most and not isnan(float(cell)):
                return f"is out of range ({least:,} to {most:,})"
    return f"is not {field.expects}"


def _wrong(field: Field, cells: pl.Series, values: pl.Series) -> pl.Series:
    """Which rows have no value where there must be one."""
    return values.is_null() & (cells != "") if field.empty else values.is_null() | (cells == "")
