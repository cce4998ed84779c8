"""Finds the preemptions of a run, with their victims, their beneficiaries, and their consequences.

All pods that a job loses to one preemptor at the same time count as a single preemption. Schedulers that
preempt jobs can therefore be compared with schedulers that preempt pods.
"""

from __future__ import annotations

import polars as pl

from harness.analysis.metrics.levels import names_of_jobs
from harness.plugins.measurement import Window
from harness.runs.run import Run


def preempted_pods(run: Run, window: Window) -> pl.DataFrame:
    """Returns the preemptions, earliest first. Each row is one pod, or a job that is preempted as a whole.

    The columns are:

    - `time`, `seq`, `reason`, `detail`: the columns of the decision.
    - `job` and `by`: the rows of the victim and of its preemptor in `jobs.parquet`.
    - `queue` and `by_queue`: the queues that these jobs name.
    - `quota`: the quota that the victim counts against, or null.
    - `victim` and `beneficiary`: the quotas of the two jobs, or their queues if they have no quota.
    - `pod` and `successor`: the columns of the pod; `pod` is null if the whole job is preempted.
    - `pods`: the number of pods that are preempted.
    """
    rows = (
        run.micros("decisions")
        .filter((pl.col("action") == "preempt") & (pl.col("time") <= window.end))
        .select("seq", "time", "job", "pods", "successor", "reason", "detail", pod="pod_number", by="by_job")
        .collect()
    )
    names, job, by = names_of_jobs(run), pl.lit(rows["job"]), pl.lit(rows["by"])
    sides = names.select(
        pl.col("queue").gather(job),
        by_queue=pl.col("queue").gather(by),
        quota=pl.col("quota").gather(job),
        victim=pl.col("holder").gather(job),
        beneficiary=pl.col("holder").gather(by),
    )
    return rows.with_columns(sides.get_columns())


def with_held(run: Run, pods: pl.DataFrame) -> pl.DataFrame:
    """Adds the columns `held` and `since` to the rows of `preempted_pods`.

    The column `held` is the number of preempted pods that held resources. Pods that are preempted one by one
    are bound. A job that is preempted as a whole may have been admitted but not started, or only some of its
    pods may be bound. The column `since` is the time at which the last of the preempted pods began to hold
    resources.
    """
    if pods.is_empty():
        return pods.with_columns(held=pl.lit(0, pl.Int64), since="time")
    action, single = pl.col("action"), pl.col("pod_number").is_not_null()
    begins = (action == "bind") | ((pl.col("holding") == 1) & action.is_in(["admit", "start"]))
    ends = action.is_in(["finish", "gone"]) & single
    goes = action.is_in(["preempt", "evict"]) & ~single
    moved = (
        run.micros("decisions")
        .filter(begins | ends | goes)
        .filter(pl.col("job").is_in(pods["job"].unique().implode()))
        .select(
            "seq",
            "job",
            "successor",
            pod="pod_number",
            begun=pl.when(begins).then("time"),
            stay=goes.cum_sum().over("job") - goes.cast(pl.UInt32),
            single=single,
            moved=pl.col("pods").cast(pl.Int64) * (begins.cast(pl.Int8) - ends.cast(pl.Int8)),
        )
        .collect()
    )
    # If a whole job is evicted, its pods belong to the stay before the eviction, even though they leave
    # later.
    of_pod = pl.col("stay").first().over("job", "pod", "successor")
    moved = moved.with_columns(stay=pl.when("single").then(of_pod).otherwise("stay")).drop("single")
    of_jobs = moved.with_columns(
        held=pl.col("moved").cum_sum().over("job", "stay"),
        since=pl.col("begun").forward_fill().over("job", "stay"),
    ).select("seq", "held", "since")
    of_pods = moved.filter(pl.col("pod").is_not_null() & pl.col("begun").is_not_null())
    return (
        pods.join(of_jobs, on="seq", how="left", maintain_order="left")
        .join(
            of_pods.select("job", "pod", "successor", bound="begun"),
            on=["job", "pod", "successor"],
            how="left",
            maintain_order="left",
        )
        .with_columns(
            held=pl.when(pl.col("pod").is_null()).then("held").otherwise(1),
            since=pl.coalesce("bound", "since", "time"),
        )
        .drop("bound")
    )


def preemptions(pods: pl.DataFrame) -> pl.DataFrame:
    """Reduces the rows of `preempted_pods` to one row per preemption, earliest first."""
    return pods.unique(["job", "by", "time"], keep="first", maintain_order=True)


def restarts(run: Run, window: Window, pods: pl.DataFrame) -> pl.Series:
    """Returns, for each preemption, the time at which its job ran again, in microseconds, or null.

    A job runs again once it makes progress and every preempted pod holds its resources again. A job with a
    run time of 0 counts as running again when it finishes.
    """
    if pods.is_empty():
        return pl.Series("again", dtype=pl.Int64)
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
        # If a job ran before the replay and is preempted as the replay begins, its stint has no length.
        .filter(pl.col("start") < pl.col("end"))
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
            running, left_on="back", right_on="start", by="job", strategy="forward", check_sortedness=False
        )
        .select("number", again=pl.coalesce("start", pl.when(pl.col("finish") <= window.end).then("finish")))
        .join(held_again.select("number"), on="number", how="right", maintain_order="right")["again"]
    )


def _held_again(run: Run, window: Window, pods: pl.DataFrame) -> pl.DataFrame:
    """Adds the column `back` to the rows of `preempted_pods`.

    The column contains the time at which the pod's successor begins to hold its resources. If a job is
    preempted as a whole, the column contains the time of the preemption, so only the job's next progress
    matters.
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
