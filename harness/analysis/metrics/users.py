"""Measures how evenly useful work is spread over users, relative to their requests.

Jobs without a user are left out. A user with small requests counts as much as a user with large ones. The
metrics do not show whether work was done early or late.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.analysis.metrics.arrivals import counted, needs, request_columns
from harness.analysis.metrics.inequality import gini, jain
from harness.analysis.metrics.owners import names_users
from harness.analysis.metrics.shown import Shown
from harness.plugins.measurement import Measurement, Window
from harness.runs.run import Run

SHOWN = (
    Shown("fairness.jain_users", "how much a user requested"),
    Shown("fairness.gini_users", "how much a user requested, and who has more"),
)


def measure(
    run: Run, window: Window, *, until: int | None = None, only: pl.Series | None = None
) -> Iterator[Measurement]:
    """Yields the Gini coefficient and Jain's index over users by resource, or null if no job has a user.

    Args:
        run: the run.
        window: the measured time.
        until: the end of the run's own window, if it is later than the end of `window`.
        only: whether each job of the run counts; by default, all jobs do.
    """
    parts: list[list[float]] = [[] for _ in run.resources]
    if request_columns(run) and names_users(run):
        named = pl.when(pl.lit(counted(run, only))).then("user").fill_null("")
        users = run.columns("jobs", "user").select(named)["user"]
        parts = _parts(run, window, until or window.end, users)
    for resource, values in zip(run.resources, parts, strict=True):
        yield Measurement("fairness.gini_users", gini(values), "ratio", "lower", resource=resource)
        yield Measurement("fairness.jain_users", jain(values), "ratio", "higher", resource=resource)


def _parts(run: Run, window: Window, until: int, users: pl.Series) -> list[list[float]]:
    """Returns the useful fraction of each user's requested resource-time, by resource."""
    columns = request_columns(run)
    useful = _useful(run, window, until, users)
    asked = (
        needs(run, window)
        .with_columns(user=users)
        .filter((pl.col("submit_time") <= window.end) & (pl.col("user") != ""))
        .group_by("user")
        .agg(pl.col(columns).sum())
    )
    both = asked.join(useful, on="user", how="left", suffix=" useful").sort("user")
    found = []
    for name in columns:
        rows = both.select(name, pl.col(f"{name} useful").fill_null(0)).iter_rows()
        found.append([int(part) / int(whole) for whole, part in rows if whole])
    return found


def _useful(run: Run, window: Window, until: int, users: pl.Series) -> pl.DataFrame:
    """Returns, for each user, the resource-time of the progress that completed jobs kept."""
    finished = run.columns("jobs", "finish_time")["finish_time"]
    columns = request_columns(run)
    sums = []
    for batch in run.batches("stints", ("job", "start", "end", "state", "lost", *columns)):
        progress = batch.filter((pl.col("state") == "progress") & (pl.col("start") < window.end))
        done = (finished.gather(progress["job"]) <= until).fill_null(value=False)
        # An eviction discards the last part of the stint.
        kept = pl.col("end") - pl.when(pl.col("end") <= until).then("lost").otherwise(0)
        span = (pl.min_horizontal(kept, pl.lit(window.end)) - pl.col("start")).clip(0)
        of_users = progress.with_columns(user=users.gather(progress["job"])).filter(done).group_by("user")
        sums.append(of_users.agg((pl.col(name).cast(pl.Int128) * span).sum() for name in columns))
    return pl.concat(sums).group_by("user").agg(pl.col(columns).sum())
