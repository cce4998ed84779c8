"""Creates one row per job, fills in defaults, and adds up the requests of all pods."""

from __future__ import annotations

from itertools import pairwise

import polars as pl

from harness.base.units import INT64_MAX
from harness.trace.schema import DEFAULT_NAMESPACE, REQUEST, Column, column_of, resources_of

ROW = "harness.row"
"""The number of a job's first row in its file, counted from 0.

The name can't clash, because no column of a trace begins with `harness.`.
"""
ROWS = "harness.rows"
"""The number of rows (pod sets) of a job."""

_FEW = 1 << 16
_HASHES = 1 << 20


def job_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the jobs of a trace, in the order of their first rows.

    `frame` has valid rows of a trace, in the schema's types.

    Returns:
        The trace's columns with one row per job. The column `pods` is the number of pods over all pod sets,
        and `request.<resource>` is the total of the job. The columns `namespace` and `user` are never null.
        `ROW` and `ROWS` are the job's first row in the file and its number of rows. Other columns that belong
        to pod sets, such as `labels`, are absent.
    """
    resources = resources_of(frame.columns)
    frame = frame.with_columns(
        pods_of(frame).alias("pods"),
        filled(frame, "namespace", DEFAULT_NAMESPACE),
        filled(frame, "user", ""),
        *(total_of(frame, name).cast(pl.Int64).alias(f"{REQUEST}{name}") for name in resources),
    )
    added = ["pods", *(f"{REQUEST}{name}" for name in resources)]
    same = [name for name in frame.columns if name not in added and not differs(name)]
    if not has_pod_sets(frame):
        return frame.select(
            *same,
            *added,
            pl.int_range(pl.len(), dtype=pl.UInt32).alias(ROW),
            pl.lit(1, pl.UInt32).alias(ROWS),
        )
    return (
        frame.with_row_index(ROW)
        .group_by("job_id", maintain_order=True)
        .agg(
            *(pl.col(name).first() for name in [*same, ROW] if name != "job_id"),
            *(pl.col(name).sum() for name in added),
            pl.len().alias(ROWS),
        )
        .with_columns(pl.col("pods").cast(pl.Int32))
    )


def count_jobs(frame: pl.DataFrame) -> int:
    """Returns the number of jobs in the rows of a trace. Without pod sets, each row is a job."""
    return frame["job_id"].n_unique() if "pod_set" in frame.columns else frame.height


def has_pod_sets(frame: pl.DataFrame) -> bool:
    """Returns True if any job has several rows."""
    return "pod_set" in frame.columns and not distinct(frame["job_id"])


def distinct(names: pl.Series) -> bool:
    """Returns True if all texts are distinct.

    For many texts, the function first compares hashes, because texts with different hashes differ. It
    compares them range by range, which uses little memory.
    """
    if len(names) <= _FEW:
        return names.n_unique() == len(names)
    hashes = names.hash()
    ranges = 1 + len(names) // _HASHES
    bounds = [2**64 * at // ranges for at in range(ranges + 1)]
    parts = (hashes.filter(hashes.is_between(low, high - 1)) for low, high in pairwise(bounds))
    return all(part.n_unique() == len(part) for part in parts) or names.n_unique() == len(names)


def differs(name: str) -> bool:
    """Returns True if rows of one job may differ in this column."""
    column: Column | None = column_of(name)
    return column is not None and column.of_pod_set


def pods_of(frame: pl.DataFrame) -> pl.Expr:
    """Returns the number of pods of each row, which is 1 by default."""
    if "pods" not in frame.columns:
        return pl.lit(1, pl.Int32)
    return pl.col("pods").fill_null(1)


def total_of(frame: pl.DataFrame, resource: str) -> pl.Expr:
    """Returns the total request of each row, which is the request of a pod multiplied by the number of pods.

    Its type is int128 if int64 might be too small.
    """
    name = f"{REQUEST}{resource}"
    request = pl.col(name).fill_null(0)
    if "pods" not in frame.columns:
        return request
    wide = _most(frame["pods"]) * _most(frame[name]) > INT64_MAX
    return request.cast(pl.Int128) * pods_of(frame) if wide else request * pods_of(frame)


def _most(series: pl.Series) -> int:
    least, most = series.min(), series.max()
    return max([1, *(abs(value) for value in (least, most) if isinstance(value, int))])


def filled(frame: pl.DataFrame, name: str, default: str) -> pl.Expr:
    """Returns a text column with a default for nulls. If the column is absent, all values are the default."""
    if name not in frame.columns:
        return pl.lit(default, pl.Categorical).alias(name)
    return pl.col(name).fill_null(default)
