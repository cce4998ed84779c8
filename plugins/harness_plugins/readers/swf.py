"""Reads logs in the Standard Workload Format, which has 18 columns of numbers. -1 means unknown.

The Parallel Workloads Archive defines the format (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html).
Options decide what the format does not specify, and the notes of the result list every convention that was
applied. MetaCentrum's extension has three more columns: the hosts of a job, the name of its queue, and its
request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from harness import Reading
from harness.readers.cells import EXACT, SECONDS, Field, seconds, text, whole
from harness.readers.delimited import typed_rows
from harness.readers.source import contents, every_line, lines_of
from harness_plugins.readers.sniff import SWF_EXTENDED_COLUMNS
from harness_plugins.readers.swf_jobs import jobs_of

COLUMNS = (
    "job", "submit", "wait", "run", "allocated", "cpu_used", "used_memory", "requested", "requested_time",
    "requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding",
    "think_time",
)  # fmt: skip
EXTENSION = ("hosts", "queue_name", "node_spec")
_TIMES = {"submit", "wait", "run", "cpu_used", "requested_time", "think_time"}
_LONGEST_REMARK = 400
_MOST = dict.fromkeys(("allocated", "requested"), 10**9)
"""The maximum number of processors of a job. No machine has more."""

_HEADER = re.compile(r";\s*([A-Za-z]+):\s*(.*\S)")


def _field(place: int, name: str) -> Field:
    if name in EXTENSION:
        field = text(name)
    else:
        field = seconds(name, -SECONDS) if name in _TIMES else whole(name, -EXACT, _MOST.get(name, EXACT))
    return replace(field, label=f"column {place} ({name.replace('_', ' ')})")


_FIELDS = tuple(_field(place, name) for place, name in enumerate(COLUMNS + EXTENSION, start=1))


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads a log. A job becomes a pod, or a gang of pods if the number of its nodes is known.

    Raises:
        TraceError: lines do not have 18 numbers (or 21 columns, in MetaCentrum's extension). The error lists
            all faults.
        OptionError: an option is out of range.
    """
    data = contents(path)
    records = _records(path, data)
    reading = jobs_of(records, _header(data), path.name, options)
    return replace(reading, notes=(*reading.notes, *_remarks(data)))


def _records(path: Path, data: bytes) -> pl.DataFrame:
    """Returns the records in typed columns, as wide as the first record, with times in microseconds."""
    lines = [(number, b" ".join(line.split())) for number, line in lines_of(path, data, b";")]
    extended = bool(lines) and lines[0][1].count(b" ") == SWF_EXTENDED_COLUMNS - 1
    columns = COLUMNS + EXTENSION if extended else COLUMNS
    return typed_rows(path, lines, columns, _FIELDS, delimiter=" ", quoted=False)


def _header(data: bytes) -> dict[str, str]:
    """Returns the `; Key: value` lines of the header, with keys in lower case.

    If a key is repeated, the first line is used.
    """
    header: dict[str, str] = {}
    for line in _header_lines(data):
        match = _HEADER.match(line)
        if match:
            header.setdefault(match[1].lower(), match[2])
    return header


def _header_lines(data: bytes) -> Iterator[str]:
    for line in every_line(data):
        if not line.startswith(b";"):
            return
        yield line.decode("utf-8", "replace")


def _remarks(data: bytes) -> list[str]:
    """Returns the text of each `; Note:` line in the header, with its continuation lines.

    Some notes change the meaning of columns. For example, a note may say that submit times are start times.
    """
    found: list[str] = []
    goes_on = False
    for line in _header_lines(data):
        match = _HEADER.match(line)
        text = line.lstrip(";").strip()
        if match:
            goes_on = match[1].lower() == "note"
            if goes_on:
                found.append(match[2])
        elif not text:
            goes_on = False
        elif goes_on:
            found[-1] += f" {text}"
    return [f"the log's header notes: {remark:.{_LONGEST_REMARK}}" for remark in found]
