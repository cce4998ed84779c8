"""Reads event tables from CSV files, which can be gzipped, or Parquet files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from harness.base.errors import ClusterError, Fault, why
from harness.base.options import did_you_mean
from harness.base.text import counted
from harness.cluster.yaml.fields import shown
from harness.cluster.yaml.sources import text_of

COLUMNS = ("time", "until", "kind", "name", "field", "value")
"""The columns of an event table."""

NEEDED = ("time", "kind", "name", "field")
"""The required columns, in which no cell may be empty."""

MOST_ROWS = 100_000
"""The maximum number of rows. A longer table is probably the wrong file, and would use too much memory."""

_CSV = (".csv", ".csv.gz")
_PARQUET = ".parquet"
_MICROSECOND = timedelta(microseconds=1)


class Row(NamedTuple):
    """A row of an event table.

    Attributes:
        cells: maps each column to its text, which is "" for an empty cell.
    """

    number: int
    cells: Mapping[str, str]

    def where(self, column: str) -> str:
        """Returns the name that messages use for a cell."""
        return f"row {self.number:,}, column {column}"


def is_table(path: Path) -> bool:
    """Returns True if a file has a suffix of event tables."""
    return path.name.endswith((*_CSV, _PARQUET))


def is_row(content: Any) -> bool:
    """Returns True if a Python value is a row of an event table and not a document."""
    return isinstance(content, Mapping) and {"time", "field"} <= content.keys() and "metadata" not in content


def read_table(path: Path, faults: list[Fault]) -> list[Row]:
    """Returns the rows of an event table.

    Each empty cell in a required column is added to `faults`.

    Raises:
        ClusterError: the file can't be read, or has the wrong columns.
    """
    lines = _of_parquet(path) if path.name.endswith(_PARQUET) else _of_csv(path)
    head = next(lines, ())
    _check_columns(str(path), head)
    rows = []
    for number, cells in enumerate(lines, 1):
        if number > MOST_ROWS:
            raise ClusterError(str(path), [Fault("", f"has more than {MOST_ROWS:,} rows")])
        if len(cells) == len(head):
            rows.append(Row(number, dict.fromkeys(COLUMNS, "") | dict(zip(head, cells, strict=True))))
        else:
            what = f"has {counted(len(cells), 'cell')}, but the table has {counted(len(head), 'column')}"
            faults.append(Fault(f"row {number:,}", what))
    return _whole(rows, faults)


def rows_of(contents: Sequence[Any], source: str, faults: list[Fault]) -> list[Row]:
    """Returns the rows of an event table in memory. Each row maps columns to values.

    See `read_table`.

    Raises:
        ClusterError: a value is not a row, or has the wrong columns.
    """
    rows = []
    for number, content in enumerate(contents, 1):
        if not isinstance(content, Mapping):
            raise ClusterError(source, [Fault(f"row {number:,}", f"must be a mapping, not {shown(content)}")])
        _check_columns(source, [str(name) for name in content], f"row {number:,}")
        cells = {str(name): _cell(value) for name, value in content.items()}
        rows.append(Row(number, dict.fromkeys(COLUMNS, "") | cells))
    return _whole(rows, faults)


def _whole(rows: list[Row], faults: list[Fault]) -> list[Row]:
    faults += (Fault(row.where(name), "is empty") for row in rows for name in NEEDED if not row.cells[name])
    return rows


def _check_columns(source: str, head: Sequence[str], where: str = "header") -> None:
    faults = [
        Fault(where, f"there is no column {shown(name)}; {did_you_mean(name, COLUMNS)}")
        for name in head
        if name not in COLUMNS
    ]
    faults += [Fault(where, f"has no column {name}") for name in NEEDED if name not in head]
    faults += [Fault(where, f"has the column {name} twice") for name in COLUMNS if head.count(name) > 1]
    if faults:
        raise ClusterError(source, faults, hint=f"a table of events has the columns {', '.join(COLUMNS)}")


def _of_csv(path: Path) -> Iterator[Sequence[str]]:
    """Yields the rows of a CSV file, starting with the header. Empty lines are skipped."""
    reader = csv.reader(io.StringIO(text_of(path), newline=""), strict=True)
    try:
        for cells in reader:
            if cells:
                yield [cell.strip() for cell in cells]
    except csv.Error as error:
        raise ClusterError(str(path), [Fault(f"line {reader.line_num:,}", f"is not CSV: {error}")]) from error


def _of_parquet(path: Path) -> Iterator[Sequence[str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as content, pq.ParquetFile(content) as file:
            yield file.schema_arrow.names
            for batch in file.iter_batches():
                columns = [list(map(_cell, _values(column))) for column in batch.columns]
                yield from zip(*columns, strict=True)
    except (OSError, ValueError, pa.ArrowException) as error:
        what = why(error).partition("\n")[0]
        raise ClusterError(str(path), [Fault("", f"cannot be read as Parquet: {what}")]) from error


def _values(column: Any) -> Iterable[Any]:
    """Returns the values of a column. Times and durations are converted from nanoseconds to microseconds."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)
    elif pa.types.is_duration(kind):
        column = column.cast(pa.duration("us"), safe=False)
    found: Iterable[Any] = column.to_pylist()
    return found


def _cell(value: Any) -> str:
    """Returns the text that a CSV file would contain for a value."""
    if value is None:
        return ""
    if isinstance(value, timedelta):
        return f"{value // _MICROSECOND}us"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip()
