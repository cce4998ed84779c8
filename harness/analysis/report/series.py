"""Computes how the amounts that each quota's jobs hold, and the numbers of waiting jobs, change over time.

A queue without a quota counts like a quota. Both are called holders.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from harness.analysis.metrics.levels import holder_behind
from harness.plugins.measurement import Window
from harness.runs.run import Run

LEVELS = ("allocated", "pending_jobs")


def moves(run: Run, resource: str) -> pl.DataFrame:
    """Returns the changes of held amounts and of numbers of waiting jobs.

    The columns are `time`, `holder`, and the change of each quantity in `LEVELS`.
    """
    behind = holder_behind(run)
    return (
        run.micros("timeline")
        .filter(pl.col("resource") == resource)
        .select("time", "queue", *LEVELS)
        .collect()
        .with_columns(pl.col(LEVELS) - pl.col(LEVELS).shift(1, fill_value=0).over("queue"))
        .select(
            "time",
            pl.col("queue").replace_strict(list(behind), list(behind.values())).alias("holder"),
            *LEVELS,
        )
    )


def used(changes: pl.DataFrame, window: Window) -> Mapping[str, int]:
    """Returns the resource-microseconds that the jobs of each holder held within a window.

    `changes` is a result of `moves`.
    """
    held = pl.col("allocated").cast(pl.Int128) * (window.end - pl.col("time"))
    sums = changes.filter(pl.col("time") < window.end).group_by("holder").agg(held.sum())
    return {holder: int(amount) for holder, amount in sums.iter_rows()}


def levels(changes: pl.DataFrame, places: Mapping[str, int]) -> pl.DataFrame:
    """Returns the quantities of each series over time, in the form that `per_pixel` expects.

    `changes` is the result of `moves`. `places` maps each holder to the number of its series. If a series has
    several holders, their quantities are added up.
    """
    numbers = pl.col("holder").replace_strict(list(places), list(places.values()), return_dtype=pl.Int32)
    return (
        changes.group_by(series=numbers, time="time")
        .agg(pl.col(LEVELS).sum())
        .sort("series", "time")
        .with_columns(pl.col(LEVELS).cum_sum().over("series"))
    )
