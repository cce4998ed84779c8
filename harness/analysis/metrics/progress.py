"""How long jobs made progress, and the progress of unfinished jobs that no eviction has discarded.

A job loses progress when its eviction begins. If the pods of a job run independently, the job has the
progress of its least advanced pod, which is 0 if any pod has never started. Run time from before the replay,
which a dump may record, is included.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from harness.base.arrays import NEVER, Bools, Groups, Ints, as_series, distinct, is_text, numbers
from harness.base.tables.schemas import LOST_BEFORE, RAN_BEFORE
from harness.plugins.measurement import Window
from harness.runs.known import once
from harness.runs.run import Run

_POD = "pod_number"


@once
def kept_progress(run: Run, window: Window) -> Ints:
    """Returns the progress that each job has kept at the end of a window, in microseconds.

    Jobs are in order of arrival. The progress never exceeds the job's duration. It is 0 if the job has
    finished by then, or if its run time is unknown.
    """
    there = run.micros("jobs").collect_schema()
    before = [RAN_BEFORE] if RAN_BEFORE in there else []
    jobs = run.columns("jobs", "finish_time", "duration", "pods", *before)
    finish, duration, pods = numbers(jobs, "finish_time", "duration", "pods")
    going = ((finish == NEVER) | (finish > window.end)) & (duration != NEVER)
    kept: Ints = np.zeros(len(finish), np.int64)
    if not going.any():
        return kept
    for name in before:
        kept += jobs[name].fill_null(0).to_numpy()
    job, pod, amount = _progress(run, window, going, pods)
    alone = pod != NEVER
    np.add.at(kept, job[~alone], amount[~alone])
    if alone.any():
        _add_least(kept, run, window, pods, (job[alone], pod[alone], amount[alone]))
    kept[~going] = 0
    most: Ints = np.minimum(kept, duration.clip(0))
    return most


def _progress(run: Run, window: Window, going: Bools, pods: Ints) -> tuple[Ints, Ints, Ints]:
    """Returns the progress that jobs have kept in stints, as three columns: jobs, pods, and progress.

    The pod is known only if pods run independently. Runs older than schema 4 do not distinguish such pods, so
    their progress is unknown.
    """
    there = run.micros("stints").collect_schema()
    more = [name for name in (_POD, LOST_BEFORE) if name in there]
    found: list[tuple[Ints, Ints, Ints]] = []
    for batch in run.batches("stints", ("job", "pods", "start", "end", "state", "lost", *more)):
        job, count, start, end, lost = numbers(batch, "job", "pods", "start", "end", "lost")
        rows = going[job] & is_text(batch["state"], "progress") & (start <= window.end)
        if _POD not in there:
            rows &= count == pods[job]
        if not rows.any():
            continue
        job, start, end, lost = (column[rows] for column in (job, start, end, lost))
        pod, earlier = (
            next(numbers(batch, name))[rows] if name in there else np.full(len(job), otherwise)
            for name, otherwise in ((_POD, NEVER), (LOST_BEFORE, 0))
        )
        # An eviction that ends after the window has not discarded anything yet.
        gone = np.where(end <= window.end, lost + earlier, 0)
        found.append((job, pod, np.minimum(end, window.end) - start - gone))
    if not found:
        nothing: Ints = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    job, pod, amount = map(np.concatenate, zip(*found, strict=True))
    return job, pod, amount


def _add_least(kept: Ints, run: Run, window: Window, pods: Ints, alone: tuple[Ints, Ints, Ints]) -> None:
    """Adds the progress of each job's least advanced pod, for jobs whose pods run independently."""
    job, pod, amount = alone
    wanted = _wanted(run, window, job, pods)
    groups = Groups(job * (int(pod.max()) + 1) + pod)
    amounts = np.add.reduceat(amount[groups.order], groups.begins)
    owners = job[groups.order[groups.begins]]
    of_jobs = Groups(owners)
    for _, rows in of_jobs:
        owner = int(owners[of_jobs.order[rows][0]])
        ranked = np.sort(amounts[of_jobs.order[rows]])[::-1]
        number = int(wanted[owner])
        least = int(ranked[min(number, len(ranked)) - 1])
        # If there is progress for fewer pods than should run, some pods have not started.
        kept[owner] += min(least, 0) if number > len(ranked) else least


def _wanted(run: Run, window: Window, jobs: Ints, pods: Ints) -> Ints:
    """Returns how many pods of each job should run.

    After an admission, this is the number of pods that were last admitted plus the number of completed pods.
    A job without admissions should run all its pods.
    """
    wanted = pods.copy()
    action, whole = pl.col("action"), pl.col("pod_number").is_null()
    admissions = (
        run.micros("decisions")
        .filter(((action == "admit") & whole) | ((action == "finish") & ~whole))
        .filter((pl.col("time") <= window.end) & pl.col("job").is_in(distinct(jobs).tolist()))
        .select("job", "action", pods=pl.col("pods") + (action == "finish").cum_sum().over("job"))
        .filter(action == "admit")
        .collect()
    )
    job, count = numbers(admissions, "job", "pods")
    wanted[job] = count  # If a job was admitted several times, the last admission remains.
    return wanted


@once
def progress(run: Run, window: Window) -> pl.Series:
    """Returns how long each job made progress, in microseconds and in the jobs' order of arrival.

    If several pods make progress at the same time, the time counts only once. Progress after the end of the
    window is ignored.
    """
    jobs = run.columns("jobs", "submit_time").height
    total, times = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    for spans in _spans(run, window):
        job, start, end = numbers(spans, "job", "start", "end")
        times += np.bincount(job, minlength=jobs)
        total[job] = end - start
    if (times > 1).any():
        again = as_series((times > 1).view(np.int8)) == 1
        several = pl.concat(spans.filter(again.gather(spans["job"])) for spans in _spans(run, window))
        job, spent = numbers(_side_by_side(several), "job", "progress")
        total[job] = spent
    return as_series(total)


def _spans(run: Run, window: Window) -> Iterator[pl.DataFrame]:
    for batch in run.batches("stints", ("job", "start", "end", "state")):
        yield batch.filter((pl.col("state") == "progress") & (pl.col("start") < window.end)).select(
            "job", "start", end=pl.min_horizontal("end", pl.lit(window.end))
        )


def _side_by_side(spans: pl.DataFrame) -> pl.DataFrame:
    """Returns, for each job, how much time its spans cover. Overlaps count only once."""
    before = pl.col("end").cum_max().shift(1).over("job")
    return (
        spans.sort("job", "start")
        .with_columns(start=pl.max_horizontal("start", before))
        .group_by("job")
        .agg(progress=(pl.col("end") - pl.col("start")).clip(0).sum())
    )
