"""Computes step functions of what each holder holds, and of the number of its waiting jobs."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from harness.analysis.metrics.levels import holder_behind
from harness.plugins.measurement import Window
from harness.runs.run import Run

LEVELS = ("allocated", "pending_jobs")


def moves(run: Run, resource: str) -> pl.DataFrame:
    """Returns how the levels of holders change, with the columns `time`, `holder` and one per level."""
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
    """Returns the resource-microseconds that each holder held within a window, from a result of `moves`."""
    held = pl.col("allocated").cast(pl.Int128) * (window.end - pl.col("time"))
    sums = changes.filter(pl.col("time") < window.end).group_by("holder").agg(held.sum())
    return {holder: int(amount) for holder, amount in sums.iter_rows()}


def levels(changes: pl.DataFrame, places: Mapping[str, int]) -> pl.DataFrame:
    """Adds up the levels of the holders in each series, in the form that `per_pixel` expects.

    `changes` is the result of `moves`. `places` contains the number of each holder's series.
    """
    numbers = pl.col("holder").replace_strict(list(places), list(places.values()), return_dtype=pl.Int32)
    return (
        changes.group_by(series=numbers, time="time")
        .agg(pl.col(LEVELS).sum())
        .sort("series", "time")
        .with_columns(pl.col(LEVELS).cum_sum().over("series"))
    )
