"""Fairness between users: how unequal the parts are that became useful of what each of them asked for.

Users are those that the trace names; jobs of nobody do not count. A user who asked for little weighs as much
as one who asked for much, and whether work was done early or late does not show.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.metrics.arrivals import rejected, request_columns
from harness.metrics.inequality import gini, jain
from harness.metrics.measurement import Measurement, Window
from harness.runs.run import Run


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """Gini's coefficient and Jain's index over users, for each resource; null where no user is named."""
    users = run.columns("jobs", "user")["user"].fill_null("")
    columns = request_columns(run)
    known = bool(columns) and bool((users != "").any())
    parts = _parts(run, window, users, columns) if known else [[] for _ in run.resources]
    for resource, values in zip(run.resources, parts, strict=True):
        yield Measurement("fairness.gini_users", gini(values), "ratio", "lower", resource=resource)
        yield Measurement("fairness.jain_users", jain(values), "ratio", "higher", resource=resource)


def _parts(run: Run, window: Window, users: pl.Series, columns: list[str]) -> list[list[float]]:
    """For each resource useful over demanded resource-time, of every user who asked for any."""
    useful = _useful(run, window, users, columns)
    refused = rejected(run, window)
    asked = (
        run.columns("jobs", "submit_time", "duration", *columns)
        .with_row_index("job")
        .with_columns(user=users)
        .filter((pl.col("submit_time") <= window.end) & (pl.col("user") != ""))
        .filter(~pl.col("job").is_in(refused.implode()))
        .group_by("user")
        .agg((pl.col(name).cast(pl.Int128) * pl.col("duration")).sum() for name in columns)
    )
    both = asked.join(useful, on="user", how="left", suffix=" useful").sort("user")
    found = []
    for name in columns:
        rows = both.select(name, pl.col(f"{name} useful").fill_null(0)).iter_rows()
        found.append([int(part) / int(whole) for whole, part in rows if whole])
    return found


def _useful(run: Run, window: Window, users: pl.Series, columns: list[str]) -> pl.DataFrame:
    """For each user the resource-time of progress that finished jobs kept."""
    finished = run.columns("jobs", "finish_time")["finish_time"]
    sums = []
    for batch in run.batches("stints", ("job", "start", "end", "state", "lost", *columns)):
        kept = batch.filter((pl.col("state") == "progress") & (pl.col("start") < window.end))
        done = (finished.gather(kept["job"]) <= window.end).fill_null(value=False)
        lost = pl.when(pl.col("end") <= window.end).then("lost").otherwise(0)
        span = pl.min_horizontal("end", pl.lit(window.end)) - pl.col("start") - lost
        of_users = kept.with_columns(user=users.gather(kept["job"])).filter(done).group_by("user")
        sums.append(of_users.agg((pl.col(name).cast(pl.Int128) * span).sum() for name in columns))
    return pl.concat(sums).group_by("user").agg(pl.col(columns).sum())
