"""Joins all files of a table.

Columns with the same name are joined, and the times of each file become UTC.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from harness.base.errors import Fault, TraceError
from harness.base.options import did_you_mean
from harness.readers.counts import first_of
from harness_plugins.readers.tables.files import parts_of
from harness_plugins.readers.tables.mapping import ONE_COLUMN, TableMapping
from harness_plugins.readers.tables.times import Clock
from harness_plugins.readers.tables.values import ROW, WIDE, Columns

_NAMED = 40
_EXACT = 2**53


@dataclass(frozen=True)
class Rows:
    """The rows of all files.

    Attributes:
        frame: the wanted columns, under internal names, and the number of each row.
        columns: the wanted columns, by their names in the files.
        has: all columns of the files.
        parts: each file, with the number of rows in the files before it.
        twice: for each column of times without a zone, how many of its times are in an hour that occurs
            twice.
    """

    root: Path
    frame: pl.DataFrame
    columns: Columns
    has: Sequence[str]
    parts: Sequence[tuple[str, int]]
    twice: Mapping[str, int]

    def place(self, row: int) -> str:
        """Returns the number of a row in its file, counted from 1, with the file if there are several."""
        name, before = self.parts[bisect_right(self.parts, row, key=lambda part: part[1]) - 1]
        where = f"row {row - before + 1:,}"
        return f"{name}: {where}" if len(self.parts) > 1 else where

    def cell(self, row: int, column: str) -> str | None:
        """Returns the value of a row in a column as text, or None if the cell is empty."""
        value = self.frame[row, self.columns.names[column]]
        return None if value is None else str(value)


def read_rows(root: Path, paths: Sequence[Path], mapping: TableMapping, clock: Clock) -> Rows:
    """Reads the rows of these files, in the given order.

    Raises:
        TraceError: a file cannot be read, a column is in no file, or the mapping names no column.
    """
    frames: list[pl.DataFrame] = []
    names: list[str] = []
    parts: list[tuple[str, int]] = []
    rows = 0
    twice: Counter[str] = Counter()
    for path in paths:
        label = (
            path.relative_to(root).as_posix() if root.is_dir() and path.is_relative_to(root) else path.name
        )
        for frame, has in parts_of(path, mapping):
            names += has
            if len(paths) > 1 and not mapping.pick(has):
                what = f"has none of the columns that the mapping names ({', '.join(mapping.wanted)})"
                raise TraceError(str(path), [Fault("", what)], hint="the key 'files' names the table's files")
            frame = _in_zone(path, frame, clock, twice)
            parts.append((label, rows))
            frames.append(frame)
            rows += frame.height
    known = list(dict.fromkeys(names))
    missing = [name for name in mapping.wanted if name not in known]
    if missing:
        faults = [Fault(f"column {name}", _missing(name, known)) for name in missing]
        one = len(known) == 1 and mapping.short
        raise TraceError(str(root), faults, hint=ONE_COLUMN if one else mapping.remedy(known))
    wanted = mapping.of_table(known, root).wanted
    if not wanted:
        what = "the mapping names none of its columns"
        raise TraceError(str(root), [Fault("", what)], hint=mapping.remedy(known))
    joined = _joined(root, frames, parts, wanted)
    called = {name: f"c{place}" for place, name in enumerate(wanted)}
    ours = pl.DataFrame([joined[name].alias(called[name]) for name in wanted])
    return Rows(root, ours.with_row_index(ROW), Columns(dict(joined.schema), called), known, parts, twice)


def _in_zone(path: Path, frame: pl.DataFrame, clock: Clock, twice: Counter[str]) -> pl.DataFrame:
    """Returns a frame in which typed times without a zone are read in the zone of the clock."""
    columns = []
    for column in frame:
        if column.dtype != pl.Datetime("us"):
            columns.append(column)
            continue
        moments = clock.moments(pl.lit(column))
        earlier, later = (pl.select(each).to_series() for each in moments)
        if earlier.null_count() > column.null_count():
            row = int((column.is_not_null() & earlier.is_null()).arg_max() or 0)
            what = f"{column[row]} does not exist in {clock.zone}, because the clocks skip it"
            raise TraceError(str(path), [Fault(f"row {row + 1:,}, column {column.name}", what)])
        twice[column.name] += int((earlier != later).sum())
        columns.append(earlier.cast(pl.Datetime("us", "UTC")).alias(column.name))
    return pl.DataFrame(columns)


def _missing(name: str, known: Sequence[str]) -> str:
    near = did_you_mean(name, known)
    return f"is in no file; {near or f'the columns are {first_of(known, _NAMED)}'}"


def _joined(
    root: Path, frames: Sequence[pl.DataFrame], parts: Sequence[tuple[str, int]], wanted: Sequence[str]
) -> pl.DataFrame:
    """Concatenates frames, so that each column gets the widest of its types."""
    types: dict[str, tuple[pl.DataType, str]] = {}
    for frame, (label, _) in zip(frames, parts, strict=True):
        for name, dtype in frame.schema.items():
            known, before = types.get(name, (pl.Null(), label))
            wider = _wider(known, dtype)
            if wider == pl.Float64 and known != dtype and any(map(_is_large, _pieces(frames, name))):
                wider = None
            if wider is None:
                what = f"is {_said(dtype)} in {label}, but {_said(known)} in {before}"
                raise TraceError(str(root), [Fault(f"column {name}", what)])
            types[name] = (wider, before if known == wider else label)
    return pl.DataFrame([_column_of(frames, name, types[name][0]) for name in wanted])


def _said(dtype: pl.DataType) -> str:
    if dtype.is_numeric():
        return "whole numbers" if dtype.is_integer() else "numbers with decimals"
    said: dict[type[pl.DataType], str] = {
        pl.String: "text",
        pl.Datetime: "times",
        pl.Duration: "durations",
        pl.Boolean: "true or false",
        pl.Struct: "lists",
    }
    return said.get(type(dtype), str(dtype))


def _column_of(frames: Sequence[pl.DataFrame], name: str, dtype: pl.DataType) -> pl.Series:
    pieces = (
        frame[name].cast(dtype) if name in frame.columns else pl.Series(name, [None] * frame.height, dtype)
        for frame in frames
    )
    return pl.concat([pl.Series(name, [], dtype), *pieces])


def _wider(one: pl.DataType, other: pl.DataType) -> pl.DataType | None:
    if one == other or other == pl.Null:
        return one
    if one == pl.Null:
        return other
    if one.is_integer() and other.is_integer():
        return WIDE()
    if one.is_numeric() and other.is_numeric():
        return pl.Float64()
    return None


def _pieces(frames: Sequence[pl.DataFrame], name: str) -> Iterator[pl.Series]:
    return (frame[name] for frame in frames if name in frame.columns)


def _is_large(column: pl.Series) -> bool:
    """Returns True if a column has integers that no float can represent exactly."""
    return column.dtype.is_integer() and bool((column.cast(WIDE).abs() > _EXACT).any())
