"""What runs of an older schema do not say in numbers is read out of their texts."""

from __future__ import annotations

import polars as pl


def with_numbers(decisions: pl.LazyFrame, jobs: pl.LazyFrame) -> pl.LazyFrame:
    """The decisions of a run of schema 2 with the columns `pod_number`, `successor` and `by_job` of schema 3.

    Args:
        decisions: `decisions.parquet`; a pod's name there is its job's, the pod's number where the job has
            several, and `-r<k>` for its k-th successor.
        jobs: `jobs.parquet`.
    """
    rest = pl.col("pod").str.slice(pl.col("job_id").str.len_chars())
    number, successor = (
        pl.when(pl.col("pod").is_not_null()).then(rest.str.extract(pattern).cast(pl.Int32).fill_null(0))
        for pattern in (r"^-(\d+)", r"-r(\d+)$")
    )
    rows = jobs.select(by="job_id").with_row_index("by_job").with_columns(pl.col("by_job").cast(pl.Int32))
    return decisions.with_columns(pod_number=number, successor=successor).join(
        rows, on="by", how="left", maintain_order="left"
    )
