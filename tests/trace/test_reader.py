"""Rows that a reader leaves out."""

from __future__ import annotations

import polars as pl

from harness.plugins.reading import leave_out


def test_a_row_is_left_out_for_the_first_reason_that_holds() -> None:
    """Rows in are rows kept plus rows left out; what is null is no reason, and an option can keep rows."""
    rows = pl.DataFrame({"run": [1, -1, None, -1, 0], "size": [1, 0, 0, 1, 1]})
    kept, left_out = leave_out(
        rows,
        {
            "not run": pl.col("run") < 0,
            "too small": pl.col("size") == 0,
            "of no length": None,
            "too large": pl.col("size") > 9,
        },
    )
    assert left_out == {"not run": 2, "too small": 1}
    assert kept["run"].to_list() == [1, 0]
    assert rows.height == kept.height + sum(left_out.values())
