"""Finds the jobs that a record and a simulation have in common, with their starts in both."""

from __future__ import annotations

import polars as pl

from harness.base.errors import RunError
from harness.base.units import HOUR
from harness.runs.run import Run

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""The classes of sizes. A job is in the largest class that does not exceed its request."""


def pairs_of(recorded: Run, simulated: Run, resource: str) -> pl.DataFrame:
    """Returns a table with one row per job that started in the record, in order of arrival.

    `resource` measures the size of a job.

    Returns: Columns `job_id, queue, priority`, `size` (a class, as text), `hour` (of the day of submission,
        UTC), `submit`, `wait`, `simulated_wait`, `recorded_evictions`, `simulated_evictions`. `recorded` and
        `simulated` are first starts, in microseconds since the origin. `simulated` is null for a job that
        never starts in the simulation. `error` is the simulated start minus the recorded start.

    Raises:
        RunError: the runs have different traces, or no job started in the record.
    """
    if not recorded.is_record:
        raise RunError(f"run {recorded.info['run']} is not a record of what happened")
    if recorded.info["trace"]["sha256"] != simulated.info["trace"]["sha256"]:
        raise RunError(f"runs {recorded.info['run']} and {simulated.info['run']} have different traces")
    origin = recorded.info["trace"]["origin_us"]
    amount = pl.col(f"request.{resource}") if resource else pl.col("pods")
    ours = recorded.micros("jobs").filter(pl.col("start_time").is_not_null())
    left = ours.select(
        "job_id",
        "queue",
        "priority",
        _size(amount, 1000 if resource == "cpu" else 1).alias("size"),
        ((pl.col("submit_time") + origin) // HOUR % 24).cast(pl.Int8).alias("hour"),
        pl.col("submit_time").alias("submit"),
        pl.col("start_time").alias("recorded"),
        pl.col("preemptions").alias("recorded_evictions"),
    )
    right = simulated.micros("jobs").select(
        "job_id", pl.col("start_time").alias("simulated"), pl.col("preemptions").alias("simulated_evictions")
    )
    frame = (
        left.join(right, on="job_id", how="inner", maintain_order="left")
        .with_columns(
            wait=pl.col("recorded") - pl.col("submit"),
            simulated_wait=pl.col("simulated") - pl.col("submit"),
            error=pl.col("simulated") - pl.col("recorded"),
        )
        .collect()
    )
    if frame.is_empty():
        raise RunError("no job of the record started, so there is nothing to compare with")
    return frame


def _size(amount: pl.Expr, one: int) -> pl.Expr:
    size = pl.lit(f"below {SIZES[0]}")
    for low, high in zip(SIZES, (*SIZES[1:], None), strict=True):
        name = f"{low}" if low == 1 else f"{low}-{high - 1}" if high else f"{low} or more"
        size = pl.when(amount >= low * one).then(pl.lit(name)).otherwise(size)
    return size
