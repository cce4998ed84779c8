"""What tests of reports are made of: traces, and names that try to be markup."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from harness.analysis.report.report import Report
from harness.base.units import SECOND

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</script><svg onload=alert(3)>",
    "a\x1b[31mred\u202eder",
    "`|**b**[l](javascript:alert(4))|",
    ' d="M1.2345,6.7" </title>&amp;',
    "of\u2028three\u2029lines",
    "constructor",
)
"""Queues whose names are taken for text wherever they are written."""


def cut(report: Report, *names: str) -> Report:
    """A report of these chapters alone: to draw the charts of all takes seconds."""
    kept = [each for each in report.chapters if each.name in names]
    assert len(kept) == len(names)
    return replace(report, chapters=kept)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """A trace; times in seconds."""
    frame = pl.DataFrame(
        [
            {"duration": 10, "request.cpu": 1000, "priority": 0, "job_id": f"j{n}", **row}
            for n, row in enumerate(rows)
        ],
        infer_schema_length=None,
    )
    times = ["submit_time", "duration"]
    frame.with_columns(
        (pl.col(times) * SECOND).cast(pl.Duration("us")), pl.col("priority").cast(pl.Int32)
    ).write_parquet(path)
    return path
