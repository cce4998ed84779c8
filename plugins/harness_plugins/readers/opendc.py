"""Reads the tasks of OpenDC's Parquet traces, and of the Workflow Trace Format, which OpenDC also ships."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from harness import Reading
from harness.base.errors import Fault, TraceError
from harness.base.units import INT64_MAX
from harness.readers.counts import agreeing
from harness.readers.schema import Rule, breaches, leave_out
from harness_plugins.readers.parquet import read_frame

METADATA = {"harness.source": "OpenDC (github.com/atlarge-research/opendc), tasks of a trace in Parquet"}
_MEGABYTE = 10**6
_MILLISECOND = 1000
_MOST = 2**53
_NAMES = ("id", "workflow_id", "user_id")
_OF_TASKS = ("id", "submission_time", "duration", "cpu_count", "mem_capacity")
_OF_WORKFLOWS = ("id", "ts_submit", "runtime", "resource_amount_requested", "workflow_id", "user_id")
_FURTHER = ("cpu_capacity", "gpu_capacity", "deferrable", "deadline")
_NEEDED = frozenset((*_OF_TASKS, *_OF_WORKFLOWS, *_FURTHER, "gpu_count", "parents"))


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads tasks in either format. Every task becomes a job with one pod.

    Raises:
        TraceError: the Parquet file is incomplete, columns are missing or are not numbers, or values are out
            of range.
    """
    frame, _, _ = read_frame(path, needed=_NEEDED.__contains__)
    if "ts_submit" in frame.columns:
        return _workflows(path, frame)
    return _tasks(path, frame)


def _tasks(path: Path, frame: pl.DataFrame) -> Reading:
    """Reads OpenDC's own format. Times are in milliseconds, and submissions are relative to 1970."""
    rows = _checked(path, frame, _OF_TASKS, optional=("gpu_count",))
    further = [name for name in _FURTHER if name in rows.columns]
    gpus = [pl.col("gpu_count").alias("request.nvidia.com/gpu")] if "gpu_count" in rows.columns else []
    jobs = rows.select(
        pl.col("id").cast(pl.String).alias("job_id"),
        (pl.col("submission_time") * _MILLISECOND).cast(pl.Datetime("us", "UTC")).alias("submit_time"),
        (pl.col("duration") * _MILLISECOND).cast(pl.Duration("us")),
        pl.lit("default").alias("queue"),
        (pl.col("cpu_count") * 1000).alias("request.cpu"),
        (pl.col("mem_capacity").cast(pl.Int128) * _MEGABYTE).alias("request.memory"),
        *gpus,
        *further,
    )
    notes = (
        "every task is a job of one pod; the trace has no users, so all jobs are in queue 'default'",
        "a task requests its cpu_count, and its mem_capacity in megabytes of 10^6 bytes",
        *(["gpu_count becomes a request for nvidia.com/gpu, for every kind of GPU"] if gpus else []),
        *_dependent(rows),
        "the trace keeps deadlines and whether a task could be deferred, but policies do not see them",
    )
    return Reading(jobs, frame.height, notes=notes, metadata=METADATA)


def _workflows(path: Path, frame: pl.DataFrame) -> Reading:
    """Reads the Workflow Trace Format, with times in ms since the trace's start, or -1 if unknown."""
    rows = _checked(path, frame, _OF_WORKFLOWS, least=-1)
    kept, left_out = leave_out(
        rows,
        {
            "submit time unknown (-1)": pl.col("ts_submit") < 0,
            "run time unknown (-1)": pl.col("runtime") < 0,
            "number of processors unknown": pl.col("resource_amount_requested") <= 0,
        },
    )
    user = pl.when(pl.col("user_id") >= 0).then(pl.col("user_id").cast(pl.String))
    jobs = kept.select(
        pl.col("id").cast(pl.String).alias("job_id"),
        (pl.col("ts_submit") * _MILLISECOND).cast(pl.Duration("us")).alias("submit_time"),
        (pl.col("runtime") * _MILLISECOND).cast(pl.Duration("us")).alias("duration"),
        user.fill_null("default").alias("queue"),
        (pl.col("resource_amount_requested") * 1000).alias("request.cpu"),
        pl.col("workflow_id").cast(pl.String),
    )
    notes = (
        "every task is a job of one pod; the queue is the user, or 'default' if the user is unknown",
        *_dependent(rows),
    )
    return Reading(jobs, frame.height, left_out, notes, METADATA)


def _dependent(rows: pl.DataFrame) -> list[str]:
    if not isinstance(rows.schema.get("parents"), pl.List):
        return []
    count = int((rows["parents"].list.len().fill_null(0) > 0).sum())
    when = "harness does not wait for the parents"
    return [f"{agreeing(count, 'task', 'depend')} on other tasks (parents); {when}"] if count else []


def _checked(
    path: Path, frame: pl.DataFrame, names: tuple[str, ...], *, optional: tuple[str, ...] = (), least: int = 0
) -> pl.DataFrame:
    """Returns a table in which the named columns are int64.

    Optional columns may be absent, and a null in an optional column means 0. Other columns do not change.
    """
    there = [name for name in optional if name in frame.columns]
    faults = [Fault(f"column {name}", "is missing") for name in names if name not in frame.columns]
    faults += [
        Fault(f"column {name}", f"is {frame[name].dtype}, but must have numbers")
        for name in (*names, *there)
        if name in frame.columns and not frame[name].dtype.is_numeric()
    ]
    if faults:
        raise TraceError(str(path), faults)
    frame = frame.with_columns(pl.col(there).fill_null(0))
    rules = []
    for name in (*names, *there):
        # A 64-bit integer may be a name. As a float, it would be equal to neighbouring integers.
        most = INT64_MAX if name in _NAMES and frame[name].dtype.is_integer() else _MOST
        number = pl.col(name)
        rules.append(Rule(name, number.is_null(), "is missing"))
        whole = pl.lit(value=True) if frame[name].dtype.is_integer() else number == number.floor()
        exact = number.is_between(least, most) & whole
        rules.append(Rule(name, ~exact, f"is not a whole number from {least} to {most:,}"))
    faults = breaches(frame.drop("job_id", strict=False), rules)
    if faults:
        raise TraceError(str(path), faults)
    return frame.with_columns(pl.col(*names, *there).cast(pl.Int64))
