"""Finds the jobs that were permanently rejected when they arrived, for `run.json`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from harness.base.arrays import firsts, next_of
from harness.runs.known import once
from harness.runs.run import REFUSED, Run


@once
def rejected_at_arrival(run: Run) -> pl.Series:
    """Returns the sorted numbers of the rows in `jobs.parquet` whose jobs were rejected on arrival."""
    known: Sequence[tuple[int, int]] | None = run.info.get(REFUSED)
    if known is not None:
        rows = [row for first, last in known for row in range(first, last + 1)]
        return pl.Series("job", rows, pl.Int32)
    refusals = run.micros("decisions").filter(pl.col("action") == "reject").select("job", "time").collect()
    if refusals.is_empty():
        return refusals["job"]
    submit = run.columns("jobs", "submit_time")["submit_time"]
    return refusals["job"].filter(refusals["time"] == submit[refusals["job"]]).unique().sort()


def refused_pieces(run: Run) -> list[tuple[int, int]]:
    """Returns the result of `rejected_at_arrival` as ranges, each with its first and last row."""
    rows = rejected_at_arrival(run).to_numpy()
    first = firsts(rows - np.arange(len(rows)))
    return list(zip(rows[first].tolist(), rows[next_of(first, end=True)].tolist(), strict=True))
