"""Reads the tables of Alibaba's PAI trace of 2020: a table of jobs, and next to it a table of their tasks.

The tables have no header lines. Times are in seconds since a time that was not published, and 0 means that a
time is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from harness import Reading
from harness.base.errors import OptionError
from harness.readers.cells import amount, seconds, text, whole
from harness.readers.delimited import open_table
from harness.readers.names import GPU, MILLI_GPU, MODEL, affinity_to_models
from harness.readers.schema import leave_out
from harness.readers.source import also_read

METADATA = {
    "harness.source": "Alibaba PAI, cluster-trace-gpu-v2020 (github.com/alibaba/clusterdata)",
    "harness.license": "CC-BY-4.0; Weng et al., MLaaS in the Wild, NSDI 2022",
}
JOB_COLUMNS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TASK_COLUMNS = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem",
    "plan_gpu", "gpu_type",
)  # fmt: skip

_MOST = 1_000_000
_FAILED = "Failed"
_GIB = 2**30
_JOBS = (text("job_name"), text("user").or_empty(), text("status"), seconds("start_time").or_empty())
_TASKS = (
    text("job_name"),
    text("task_name"),
    whole("inst_num", 0, _MOST).or_empty(),
    seconds("start_time").or_empty(),
    seconds("end_time").or_empty(),
    amount("plan_cpu", 10).or_empty(),
    amount("plan_mem", _GIB).or_empty(),
    amount("plan_gpu", 10).or_empty(),
    text("gpu_type").or_empty(),
)


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads the job table and the task table. The tasks of a job become its pod sets.

    Raises:
        TraceError: a table cannot be read, or lines are malformed. The error lists all faults.
        OptionError: there is no option with the task table, and the name of the job table does not show where
            the task table is.
    """
    jobs = open_table(path, JOB_COLUMNS).typed(_JOBS)
    beside = _task_table(path, options)
    tasks = open_table(beside, TASK_COLUMNS).typed(_TASKS)
    read_jobs = jobs.height
    jobs = jobs.join(_spans(tasks), on="job_name", how="left", maintain_order="left")
    jobs, left_out = leave_out(
        jobs,
        {
            "an earlier row has the same job name": ~pl.col("job_name").is_first_distinct(),
            "submit time unknown": _unknown("start_time"),
            "without tasks in the task table": pl.col("tasks").is_null(),
            "a task has no number of instances": pl.col("uncounted"),
            "not ended, or ended at an unknown time (a task has no start or no end)": pl.col("open"),
            "failed": pl.col("status") == _FAILED if options["failed"] == "drop" else None,
        },
    )
    frame = _pod_sets(jobs, tasks, options)
    gpu = (
        f"{MILLI_GPU}, plan_gpu x 10"
        if options["gpu"] == "milli"
        else f"whole {GPU}: a share counts as a whole GPU"
    )
    notes = (
        "a job is submitted at its own start_time; it runs from the first start to the last end of its tasks",
        "the tasks of a job are pod sets of inst_num pods each; a job of more than one instance is a gang",
        f"the queue is the {options['tenant']}",
        f"GPUs are {gpu}",
        f"gpu_type is a required node affinity to the label {MODEL}"
        if options["gpu_type"] == "affinity"
        else "gpu_type is not requested",
        "times count from a point that was not published; hours of the day and weekdays are in UTC+8",
    )
    return Reading(frame, read_jobs, left_out, notes, {**METADATA, **also_read(beside)})


def _task_table(path: Path, options: Mapping[str, Any]) -> Path:
    if options["tasks"]:
        return Path(options["tasks"])
    if "job_table" not in path.name:
        raise OptionError(f"option tasks: {path.name} does not say where its task table is; name that file")
    return path.with_name(path.name.replace("job_table", "task_table"))


def _unknown(time: str) -> pl.Expr:
    """Returns an expression that is true for an unknown time: null, or 0 as in the publisher's analysis."""
    return pl.col(time).fill_null(0) == 0


def _spans(tasks: pl.DataFrame) -> pl.DataFrame:
    """Returns the start and end of each job's tasks. `open` is True unless all times are known."""
    return tasks.group_by("job_name").agg(
        pl.col("start_time").min().alias("began"),
        pl.col("end_time").max().alias("ended"),
        (_unknown("start_time") | _unknown("end_time") | (pl.col("end_time") < pl.col("start_time")))
        .any()
        .alias("open"),
        (pl.col("inst_num").fill_null(0) == 0).any().alias("uncounted"),
        pl.len().alias("tasks"),
    )


def _pod_sets(jobs: pl.DataFrame, tasks: pl.DataFrame, options: Mapping[str, Any]) -> pl.DataFrame:
    """Returns one row for each task. A second task with the same name gets a number."""
    again = pl.int_range(1, pl.len() + 1).over("job_name", "task_name").cast(pl.String)
    tasks = tasks.select(
        "job_name",
        pl.when(again == "1").then("task_name").otherwise(pl.col("task_name") + "-" + again).alias("pod_set"),
        "inst_num",
        pl.col("plan_cpu").fill_null(0),
        pl.col("plan_mem").fill_null(0),
        pl.col("plan_gpu").fill_null(0),
        "gpu_type",
    )
    rows = jobs.join(tasks, on="job_name", how="inner", maintain_order="left_right")
    tenant = pl.col(options["tenant"])
    milli = options["gpu"] == "milli"
    gpus = pl.col("plan_gpu") if milli else -(-pl.col("plan_gpu") // 1000)
    model = pl.when(pl.col("plan_gpu") > 0).then("gpu_type").otherwise(pl.lit(""))
    return rows.select(
        pl.col("job_name").alias("job_id"),
        pl.col("start_time").cast(pl.Duration("us")).alias("submit_time"),
        (pl.col("ended") - pl.col("began")).cast(pl.Duration("us")).alias("duration"),
        pl.when(tenant == "")
        .then(pl.lit("default"))
        .otherwise(tenant)
        .first()
        .over("job_name")
        .alias("queue"),
        pl.col("plan_cpu").alias("request.cpu"),
        pl.col("plan_mem").alias("request.memory"),
        gpus.alias(f"request.{MILLI_GPU if milli else GPU}"),
        pl.col("inst_num").cast(pl.Int32).alias("pods"),
        "user",
        "pod_set",
        *([affinity_to_models(model).alias("affinity")] if options["gpu_type"] == "affinity" else []),
        pl.col("began").cast(pl.Duration("us")).alias("recorded_start"),
        pl.col("ended").cast(pl.Duration("us")).alias("recorded_end"),
        "status",
    )
