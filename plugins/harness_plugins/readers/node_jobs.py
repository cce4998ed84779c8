"""Reads tables of Slurm jobs that have the number of nodes of each job, such as those of Helios and Acme."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from harness import Reading
from harness.readers.cells import Field, amount, seconds, text, whole
from harness.readers.counts import counted
from harness.readers.delimited import open_table
from harness.readers.gangs import pods_of
from harness.readers.names import GPU
from harness.readers.schema import leave_out

_MOST = 1_000_000
_NULLS = ("None", "NaN", "nan", "NaT", "NULL", "Unknown")


def reader_of(
    time: Callable[[str], Field], *, kept: Sequence[str], note: str, metadata: Mapping[str, str]
) -> Callable[[Path, Mapping[str, Any]], Reading]:
    """Returns a function that reads tables of jobs with their numbers of GPUs, CPUs and nodes.

    The columns of a table are job_id, user, gpu_num, cpu_num, node_num, state, three times and a duration.

    The options of the reader are `tenant` and `gpus_per_node`. `tenant` names the column that becomes the
    queue. `gpus_per_node` limits the GPUs of a pod if a job's GPUs do not divide evenly by its nodes.
    The reader raises a `TraceError` that lists all malformed lines, or an `OptionError` if `gpus_per_node` is
    less than 1.

    Args:
        time: returns the declaration of a time column with a given name.
        kept: further text columns of the table, which the trace keeps.
        note: a further assumption, for the notes of the trace.
        metadata: the metadata of the trace.
    """

    def read(path: Path, options: Mapping[str, Any]) -> Reading:
        tenant = options["tenant"]
        notes = (f"the queue is {tenant}", note)
        return _read(path, time, tenant, kept, options["gpus_per_node"], notes, metadata)

    return read


def _read(
    path: Path,
    time: Callable[[str], Field],
    tenant: str,
    kept: Sequence[str],
    gpus_per_node: int,
    notes: Sequence[str],
    metadata: Mapping[str, str],
) -> Reading:
    fields = [
        text("job_id"),
        *(text(name).or_empty() for name in dict.fromkeys(("user", "state", tenant, *kept))),
        whole("gpu_num", most=_MOST).or_empty(),
        whole("cpu_num", most=_MOST).or_empty(),
        whole("node_num", most=_MOST).or_empty(),
        *(time(f"{name}_time").or_empty() for name in ("submit", "start", "end")),
        seconds("duration").or_empty(),
        amount("mem_per_pod_GB", 2**30).or_absent(),
    ]
    rows = open_table(path, nulls=_NULLS).typed(fields)
    start, end = pl.col("start_time"), pl.col("end_time")
    jobs, left_out = leave_out(
        rows,
        {
            "submit time unknown": pl.col("submit_time").is_null(),
            "never started (no start_time)": start.is_null(),
            "not ended (no end_time)": end.is_null(),
            "ended before it started": end < start,
        },
    )
    pods = _pods(jobs, gpus_per_node)
    run = (end - start).alias("duration")
    frame = jobs.select(
        "job_id",
        "submit_time",
        run,
        pl.when(pl.col(tenant) == "").then(pl.lit("default")).otherwise(tenant).alias("queue"),
        "user",
        start.alias("recorded_start"),
        end.alias("recorded_end"),
        "state",
        *(name for name in kept if name != "user"),
        *([pl.col("mem_per_pod_GB").alias("request.memory")] if "mem_per_pod_GB" in jobs.columns else []),
    ).hstack(pods)
    differs = (jobs.select(run).to_series().dt.total_microseconds() - jobs["duration"]).abs() > _SECOND
    other = counted(int(differs.sum()), "job")
    said = f"a job runs from start_time to end_time; for {other}, the column 'duration' has another value"
    return Reading(frame, rows.height, left_out, (said, *_split_notes(jobs, pods), *notes), metadata)


_SECOND = 1_000_000


def _pods(jobs: pl.DataFrame, gpus_per_node: int) -> pl.DataFrame:
    """Returns equal pods for each job, one on each node of the job.

    If the GPUs of a job do not divide evenly by the number of its nodes, the job has smaller pods.
    """
    gpus, nodes = jobs["gpu_num"].fill_null(0), jobs["node_num"].fill_null(1).clip(lower_bound=1)
    other = pods_of(gpus, gpus_per_node, "gpus_per_node")
    even = gpus % nodes == 0
    pods = nodes.zip_with(even, other["pods"].cast(pl.Int64))
    cpu = jobs["cpu_num"].fill_null(0) * 1000
    return pl.DataFrame(
        [
            (-(-cpu // pods)).alias("request.cpu"),
            (gpus // nodes).zip_with(even, other["each"]).alias(f"request.{GPU}"),
            pods.cast(pl.Int32).alias("pods"),
            (pods > 1).alias("gang"),
        ]
    )


def _split_notes(jobs: pl.DataFrame, pods: pl.DataFrame) -> tuple[str, ...]:
    uneven = int((pods["pods"] != jobs["node_num"].fill_null(1).clip(lower_bound=1)).sum())
    gangs = int(pods["gang"].sum())
    notes = [f"a job of several nodes ({counted(gangs, 'job')}) is a gang of equal pods, one on each node"]
    if uneven:
        notes.append(
            f"{counted(uneven, 'job')} cannot divide their GPUs evenly among nodes: "
            "they become gangs of smaller pods"
        )
    return tuple(notes)
