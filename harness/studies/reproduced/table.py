"""Formats published results as tables, with the value of harness, the difference and the reason."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from harness.base.markdown import pipe_table
from harness.base.text import aligned
from harness.studies.reproduced.case import Row

Results = Mapping[str, Sequence[Row]]

_HEAD = ("result", "figure", "theirs", "ours", "difference", "reason")


def text(results: Results, width: int | None = None) -> str:
    """Returns one table per result, followed by the reasons, for a terminal of `width` columns."""
    parts = []
    for name, rows in results.items():
        lines = [[name, *_HEAD[2:5]], *([row.figure, *_values(row)] for row in rows)]
        reasons = dict.fromkeys(row.reason for row in rows if row.reason)
        parts.append("\n".join([aligned(lines, width=width), *(f"  {reason}" for reason in reasons)]))
    return "\n\n".join(parts)


def markdown(results: Results) -> str:
    """Returns the results as a single Markdown table."""
    rows = [
        (name if number == 0 else "", row.figure, *_values(row), row.reason or "-")
        for name, of in results.items()
        for number, row in enumerate(of)
    ]
    return "\n".join(pipe_table([_HEAD, *rows], left=(0, 1, 5)))


def to_json(results: Results) -> str:
    """Returns the results as JSON."""
    found = {
        name: [{**row._asdict(), "difference": row.difference} for row in rows]
        for name, rows in results.items()
    }
    return json.dumps({"schema": "1", "results": found}, indent=2)


def _values(row: Row) -> tuple[str, str, str]:
    return row.theirs or "-", row.ours, row.difference
