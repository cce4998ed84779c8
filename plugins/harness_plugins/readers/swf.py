"""Reads logs in the Standard Workload Format: 18 columns of numbers, -1 for what is unknown.

The format is defined by the Parallel Workloads Archive (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html).
What it leaves open is an option, and every convention that was applied is a note of the reading.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv

from harness import Reading
from harness.errors import Fault, TraceError
from harness_plugins.readers.numbers import EXACT, SECONDS, is_amount, is_seconds
from harness_plugins.readers.signs import SWF_COLUMNS
from harness_plugins.readers.source import contents, lines_of, refuse_lines, shown
from harness_plugins.readers.swf_jobs import jobs_of

COLUMNS = (
    "job", "submit", "wait", "run", "allocated", "cpu_used", "used_memory", "requested", "requested_time",
    "requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding",
    "think_time",
)  # fmt: skip
_TIMES = {"submit", "wait", "run", "cpu_used", "requested_time", "think_time"}
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_HEADER = re.compile(r";\s*([A-Za-z]+):\s*(.*\S)")


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Read a log; one job becomes one pod that asks for all its processors.

    Raises:
        TraceError: lines that are not 18 numbers, all of them named.
    """
    data = contents(path)
    records = _records(path, data)
    return jobs_of(records, _header(data), path.name, options)


def _records(path: Path, data: bytes) -> pl.DataFrame:
    """All records as float64 columns, checked to be exact in them."""
    body = _one_blank_apart(data)
    if not body:
        raise TraceError(str(path), [Fault("", "holds no jobs")])
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(body),
            read_options=pyarrow.csv.ReadOptions(column_names=COLUMNS),
            parse_options=pyarrow.csv.ParseOptions(delimiter=" ", quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(COLUMNS, pa.float64()), null_values=[]
            ),
        )
    except (pa.ArrowException, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise refuse_lines(path, lines_of(data, b";"), _wrong, f"cannot be read: {reason}") from error
    records = pl.from_arrow(table)
    assert isinstance(records, pl.DataFrame)
    good = records.select(
        pl.all_horizontal(
            (is_seconds if name in _TIMES else is_amount)(pl.col(name)).all() for name in COLUMNS
        )
    )
    if not good.item():
        raise refuse_lines(path, lines_of(data, b";"), _wrong, "has numbers out of range")
    return records


def _one_blank_apart(data: bytes) -> bytes:
    """The records alone, their numbers one blank apart, as a CSV parser wants them."""
    data = data.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    data = data.replace(b"\n ", b"\n").replace(b" \n", b"\n").strip(b" \n")
    return re.sub(rb"(?m)^;.*\n?", b"", data)


def _wrong(line: bytes) -> list[str]:
    """What is wrong with one record."""
    words = line.split()
    if len(words) != SWF_COLUMNS:
        return [f"has {len(words)} columns, a record of the Standard Workload Format has {SWF_COLUMNS}"]
    found: list[str] = []
    for place, (name, word) in enumerate(zip(COLUMNS, words, strict=True), start=1):
        where = f"column {place} ({name.replace('_', ' ')}): {shown(word)}"
        if not _NUMBER.fullmatch(word):
            found.append(f"{where} is not a number")
        elif abs(float(word)) > (SECONDS if name in _TIMES else EXACT):
            found.append(f"{where} is out of range")
        elif name not in _TIMES and not float(word).is_integer():
            found.append(f"{where} is not a whole number")
    return found


def _header(data: bytes) -> dict[str, str]:
    """The header's `; Key: value` lines; of a key that is repeated the first."""
    header: dict[str, str] = {}
    for line in data.splitlines():
        if not line.startswith(b";"):
            break
        match = _HEADER.match(line.decode("utf-8", "replace"))
        if match:
            header.setdefault(match[1], match[2])
    return header
