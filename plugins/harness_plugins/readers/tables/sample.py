"""Reads the first rows of a table, with its columns and some of their values."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harness.base.errors import HarnessError
from harness.readers.source import contents
from harness_plugins.readers.parquet_source import parquet_source
from harness_plugins.readers.tables.delimited import first_cells, read_text
from harness_plugins.readers.tables.documents import first_records, inner_list, is_json, table_of
from harness_plugins.readers.tables.mapping import is_number
from harness_plugins.readers.tables.typed import is_parquet, read_column

_ROWS = 1000
_BYTES = 1 << 20
_DELIMITERS = ("\t", ";", "|", ",")


class Sample(NamedTuple):
    """The first rows of a table.

    Attributes:
        frame: the columns, in types that the mapping language supports. Other columns are left out.
        records: the name of the list with the rows, which is inside each element of a JSON document, or "".
        delimiter: the character between the cells of delimited text, or "" if a mapping need not set it.
        header: whether the first line of delimited text seems to name the columns. No column has a number as
            its name.
    """

    frame: pl.DataFrame
    records: str = ""
    delimiter: str = ""
    header: bool = True


def sample_of(path: Path) -> Sample | None:
    """Returns the first rows of a file, or None if the file is not a table."""
    try:
        if is_parquet(path):
            return _parquet(path)
        data = contents(path)
        if is_json(data):
            records = first_records(data, _ROWS)
            inside = inner_list(records)
            return Sample(table_of(path, records, inside), inside)
        return _text(path, data)
    except (HarnessError, pa.ArrowException, OSError, ValueError):
        return None


def _parquet(path: Path) -> Sample:
    with pq.ParquetFile(parquet_source(path)) as file:
        batch = next(file.iter_batches(batch_size=_ROWS, use_threads=False), None)
        table = pa.Table.from_batches([] if batch is None else [batch], file.schema_arrow)
    columns = {}
    for place, name in enumerate(table.schema.names):
        try:
            columns[name] = read_column(table.column(place)).alias(name)
        except (pa.ArrowException, pl.exceptions.PolarsError, TypeError, ValueError):
            continue  # no term has this type
    return Sample(pl.DataFrame(list(columns.values())))


def _text(path: Path, data: bytes) -> Sample | None:
    head = data[:_BYTES]
    if len(head) < len(data):
        head = head[: head.rfind(b"\n") + 1] or head
    if b"\0" in head:
        return None
    head = head.decode(errors="replace").encode()  # a conversion names the bytes that are not UTF-8
    first = head.lstrip().partition(b"\n")[0]
    delimiter = max(_DELIMITERS, key=lambda each: first.count(each.encode()))
    if not first.count(delimiter.encode()):
        return None
    header = not any(map(is_number, first_cells(path, head, delimiter)))
    frame = read_text(path, head, list, delimiter=delimiter, header=header).frame
    usual = delimiter == "," or (delimiter == "\t" and ".tsv" in path.suffixes)
    return Sample(frame.head(_ROWS), delimiter="" if usual else delimiter, header=header)
