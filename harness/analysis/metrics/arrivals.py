"""Finds the jobs that arrived within a window, and the jobs that were rejected permanently.

A job that is rejected on arrival counts only as rejected. A job that is rejected later also counts as
waiting, because the job waited until then.
"""

from __future__ import annotations

import polars as pl

from harness.base.tables.schemas import LOST_BEFORE, RAN_BEFORE
from harness.plugins.measurement import Window
from harness.runs.known import once
from harness.runs.refused import rejected_at_arrival
from harness.runs.run import Run


@once
def rejected(run: Run, window: Window) -> pl.Series:
    """Returns the rows in `jobs.parquet` of the jobs that had been rejected by the end of a window."""
    refusals = (pl.col("action") == "reject") & (pl.col("time") <= window.end)
    return run.micros("decisions").filter(refusals).select("job").collect()["job"]


@once
def request_columns(run: Run) -> list[str]:
    """Returns the columns of `jobs.parquet` that contain requests, with one column for each resource.

    Runs of schema 2 have no such columns.
    """
    there = run.scan("jobs").collect_schema()
    return [column for column in (f"request.{resource}" for resource in run.resources) if column in there]


def counted(run: Run, only: pl.Series | None = None) -> pl.Series:
    """Returns, for each job of a run, whether it is in `only` and was not rejected on arrival."""
    return _admissible(run) if only is None else only & _admissible(run)


@once
def _admissible(run: Run) -> pl.Series:
    every = pl.repeat(True, run.columns("jobs", "submit_time").height, eager=True)
    return every.scatter(rejected_at_arrival(run), False)


def needs(run: Run, window: Window) -> pl.DataFrame:
    """Returns the `submit_time` of each job and its need for each resource, in resource-microseconds.

    A job's need is the requests of its pods multiplied by its duration, even if the job hasn't run that long.
    Progress from before the replay, for example of a job from a dump, reduces the need. If an eviction within
    the window discards that progress, the job needs it again. A job whose run time is unknown needs nothing.
    Runs of schema 2 do not record requests.
    """
    amounts = request_columns(run)
    before = [RAN_BEFORE] if RAN_BEFORE in run.micros("jobs").collect_schema() else []
    jobs = run.columns("jobs", "submit_time", "duration", *before, *amounts)
    span = pl.col("duration") - (pl.col(RAN_BEFORE).fill_null(0) if before else 0)
    of_time = [pl.col(name).cast(pl.Int128) * span.fill_null(0) for name in amounts]
    if not before:
        return jobs.select("submit_time", *of_time)
    again = (
        run.micros("stints")
        .filter((pl.col(LOST_BEFORE) > 0) & (pl.col("end") <= window.end))
        .group_by("job")
        .agg(
            (pl.col(name).cast(pl.Int128) * pl.col(LOST_BEFORE)).sum().alias(f"again.{name}")
            for name in amounts
        )
        .collect()
    )
    rows = jobs.select(
        pl.int_range(pl.len(), dtype=pl.Int32).alias("job"), "submit_time", "duration", *of_time
    )
    known = pl.col("duration").is_not_null()
    return rows.join(again, on="job", how="left", maintain_order="left").select(
        "submit_time", *(pl.col(name) + pl.when(known).then(f"again.{name}").fill_null(0) for name in amounts)
    )
