"""Reads delimited text. Quoted cells may contain line breaks, and an empty cell is null."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.csv

from harness.base.errors import IN_UTF8, Fault, TraceError
from harness.readers.counts import counted
from harness.readers.source import shown
from harness_plugins.readers.tables.mapping import NO_HEADER, another_delimiter, is_number
from harness_plugins.readers.tables.parts import Part, Pick

_BLOCK = 1 << 24
_LISTED = 1000
_TABS = (".tsv", ".tab")
_OTHERS = ("\t", ";", "|")


def read_text(path: Path, data: bytes, pick: Pick, *, delimiter: str = "", header: bool = True) -> Part:
    """Reads the wanted columns of delimited text.

    `pick` chooses the columns to read. A `delimiter` of "" means the delimiter that the first line seems to
    have. Without a header line (`header`), the names are numbers that start at 1.

    Raises:
        TraceError: a name is repeated, a row has too few or too many cells, or the content is not text.
    """
    delimiter = delimiter or _likely(path, data)
    _check_text(path, data)
    names = column_names(path, data, delimiter, header=header)
    wanted = pick(names)
    if b"\n" not in data:  # only a header line
        data += b"\n"
    faults: list[Fault] = []
    begin = 1 if header else 0

    def take(row: pyarrow.csv.InvalidRow) -> str:
        if row.text.strip() and len(faults) < _LISTED:
            what = f"has {counted(row.actual_columns, 'cell')} instead of {len(names)}"
            faults.append(Fault(f"row {row.number - begin:,}", what))
        return "skip"

    try:
        _check_quotes(path, data, delimiter)
        table = pyarrow.csv.read_csv(
            pa.BufferReader(data.lstrip(b"\r\n")),
            read_options=pyarrow.csv.ReadOptions(
                column_names=names, skip_rows_after_names=begin, use_threads=False, block_size=_BLOCK
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=take
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.string()),
                include_columns=wanted or names[:1],
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except (pa.ArrowException, ValueError) as error:
        what = f"cannot be read as delimited text: {str(error).splitlines()[0]}"
        raise TraceError(str(path), [Fault("", what)]) from error
    if faults:
        raise TraceError(str(path), faults, hint=another_delimiter(names))
    cells = pl.DataFrame(table).select(pl.col(name).str.strip_chars() for name in wanted)
    return Part(
        cells.select(pl.when(pl.col(name) != "").then(pl.col(name)).alias(name) for name in wanted), names
    )


def _likely(path: Path, data: bytes) -> str:
    """Returns a tab for a file of tabs, else a comma; if the first line lacks it, the most frequent mark."""
    usual = "\t" if any(each in _TABS for each in path.suffixes) else ","
    first = data.lstrip().partition(b"\n")[0]
    if usual.encode() in first:
        return usual
    return max((usual, *_OTHERS), key=lambda each: first.count(each.encode()))


def column_names(path: Path, data: bytes, delimiter: str, *, header: bool) -> list[str]:
    """Returns the column names of delimited text, from its first record.

    A column without a name, such as the index that pandas writes, is called `column 1` by its position.

    Raises:
        TraceError: the record is not text, or names a column twice.
    """
    names = first_cells(path, data, delimiter)
    if not header:
        return [str(number) for number in range(1, len(names) + 1)]
    names = [name or f"column {place}" for place, name in enumerate(names, 1)]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        faults = [Fault("header", f"names the column {shown(name)} twice") for name in twice]
        raise TraceError(str(path), faults, hint=NO_HEADER if any(map(is_number, names)) else None)
    return names


def first_cells(path: Path, data: bytes, delimiter: str) -> list[str]:
    """Returns the cells of the first record, which may be the header.

    Raises:
        TraceError: the record is not text.
    """
    head = io.StringIO(data[:_BLOCK].decode("utf-8", "ignore"), newline="")
    try:
        first = next(
            row for row in csv.reader(head, delimiter=delimiter) if any(cell.strip() for cell in row)
        )
    except (StopIteration, csv.Error) as error:
        raise TraceError(str(path), [Fault("line 1", "is not delimited text")]) from error
    return [cell.strip() for cell in first]


def _check_quotes(path: Path, data: bytes, delimiter: str) -> None:
    """Raises an error for a quote that is never closed, because the rest of the file would be one cell."""
    if data.count(b'"') % 2 == 0:
        return
    rows = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=delimiter, strict=True)
    begin = 1
    try:
        for _ in rows:
            begin = rows.line_num + 1
    except csv.Error as error:
        what = f"begins a row with a quote that does not close: {error}"
        raise TraceError(str(path), [Fault(f"line {begin:,}", what)]) from error


def _check_text(path: Path, data: bytes) -> None:
    try:
        _ = data.isascii() or data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"is not UTF-8 text: byte {data[error.start]:#04x}"
        raise TraceError(str(path), [Fault(f"line {line:,}", what)], hint=IN_UTF8) from error
