"""The preemptions of a run: who was preempted for whom, and what followed from it.

One preemption is one (job, preemptor, instant), however many pods it took, so that schedulers that preempt
jobs and schedulers that preempt pods compare.
"""

from __future__ import annotations

import polars as pl

from harness.metrics.levels import names_of_jobs
from harness.metrics.measurement import Window
from harness.runs.run import Run


def preempted_pods(run: Run, window: Window) -> pl.DataFrame:
    """The decisions to preempt, in order, one row a pod; a job that goes as a whole is one row.

    Columns: `time, job` and `by` (the rows of both in `jobs.parquet`), `queue` and `by_queue` (which both
    name), `quota` (which the job counts against, or null), `victim` and `beneficiary` (the holders of both),
    `pod` (its number, null where the job goes as a whole), `successor`, `pods, reason, detail`.
    """
    rows = (
        run.micros("decisions")
        .filter((pl.col("action") == "preempt") & (pl.col("time") <= window.end))
        .select("time", "job", "pods", "successor", "reason", "detail", pod="pod_number", by="by_job")
        .collect()
    )
    names = names_of_jobs(run, "queue", "quota", "holder")
    return rows.with_columns(
        queue=names["queue"].gather(rows["job"]),
        by_queue=names["queue"].gather(rows["by"]),
        quota=names["quota"].gather(rows["job"]),
        victim=names["holder"].gather(rows["job"]),
        beneficiary=names["holder"].gather(rows["by"]),
    )


def preemptions(pods: pl.DataFrame) -> pl.DataFrame:
    """One row a preemption, in order, from `preempted_pods`."""
    return pods.unique(["job", "by", "time"], keep="first", maintain_order=True)


def restarts(run: Run, window: Window, pods: pl.DataFrame) -> pl.Series:
    """For each preemption when its job ran again, microseconds, or null.

    A job runs again when it progresses and every pod that the preemption took holds its resources again. A
    job that needs no time at all runs when it finishes.
    """
    preemption = ("job", "by", "time")
    held_again = (
        _held_again(run, window, pods)
        .group_by(preemption, maintain_order=True)
        .agg(back=pl.when(pl.col("back").is_not_null().all()).then(pl.col("back").max()))
        .with_row_index("number")
    )
    running = (
        run.micros("stints")
        .filter((pl.col("state") == "progress") & (pl.col("start") < window.end))
        .filter(pl.col("job").is_in(pods["job"].unique().implode()))
        .select("job", "start")
        .collect()
        .sort("start")
    )
    finish = run.micros("jobs").select(pl.col("finish_time")).collect()["finish_time"]
    ended = finish.gather(held_again["job"])
    return (
        held_again.with_columns(finish=ended)
        .drop_nulls("back")
        .sort("back")
        .join_asof(
            running,
            left_on="back",
            right_on="start",
            by="job",
            strategy="forward",
            check_sortedness=False,
        )
        .select("number", again=pl.coalesce("start", pl.when(pl.col("finish") <= window.end).then("finish")))
        .join(held_again.select("number"), on="number", how="right", maintain_order="right")["again"]
    )


def _held_again(run: Run, window: Window, pods: pl.DataFrame) -> pl.DataFrame:
    """The rows of `preempted_pods` with `back`: from when on the pod's successor holds its resources.

    Jobs that went as a whole stop as a whole: their next progress tells, wherever they hold resources again.
    """
    single = pods.filter(pl.col("pod").is_not_null())
    if single.is_empty():
        return pods.with_columns(back="time")
    binds = (
        run.micros("decisions")
        .filter((pl.col("action") == "bind") & (pl.col("time") <= window.end))
        .filter(pl.col("job").is_in(single["job"].unique().implode()))
        .select("job", pl.col("successor") - 1, pod="pod_number", back="time")
        .collect()
    )
    return pods.join(binds, on=["job", "pod", "successor"], how="left", maintain_order="left").with_columns(
        back=pl.when(pl.col("pod").is_null()).then("time").otherwise("back")
    )
