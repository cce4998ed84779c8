"""Writes event tables as CSV or Parquet, depending on the suffix of the file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.base.errors import OptionError
from harness.cli.output import write_output, writing
from harness.cluster.changes.event_table import COLUMNS


def check_name(output: Path) -> None:
    """Refuse a file name whose suffix does not select a format.

    Raises:
        OptionError: the suffix is neither `.csv` nor `.parquet`.
    """
    if not output.name.endswith((".csv", ".parquet")):
        raise OptionError(f"{output} is not the name of a table", hint="use the suffix .csv or .parquet")


def text_of(rows: Sequence[Mapping[str, str]]) -> str:
    """Returns the rows of a table of events as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write(output: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write a table of events.

    Raises:
        InputError: the file cannot be written.
    """
    if output.suffix != ".parquet":
        write_output(output, text_of(rows))
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    table = pa.Table.from_pylist([dict(row) for row in rows], schema)
    with writing(output) as file:
        pq.write_table(table, file, compression="zstd")
