"""Checks the names of columns, whether queues are tenants, and whether ids are unique."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.base.units import SECOND, format_duration
from harness.trace.job_rows import distinct
from harness.trace.level import SUBMIT
from harness.trace.lint.finding import Finding, Material, counted
from harness.trace.misnamed import misnamed

_SHOWN = 6
_SMALL = 100
"""A queue with less than this share (1 / N) of the jobs is too small to provide information."""


def check_tenants(material: Material) -> Iterator[Finding]:
    """Finds a trace with a single queue, or with many queues that have only one job.

    Equally named queues of different namespaces are different queues.
    """
    jobs = material.jobs
    sizes = jobs.group_by("namespace", "queue").len()
    single = int((sizes["len"] == 1).sum())
    if sizes.height == 1 and jobs.height > 1:
        users = jobs["user"].n_unique()
        yield Finding(
            "one-tenant",
            f"all jobs are in one queue, {sizes['queue'][0]!r}, so fair sharing has no other queue to share "
            "with",
            f"--tenants column:user makes a queue for each of the {users:,} users"
            if users > 1
            else "--tenants column:NAME uses another column, and column:job_id,hash:8 creates eight tenants",
        )
    elif single:
        yield Finding(
            "tenant-of-one-job",
            f"{single:,} of {sizes.height:,} queues have a single job: figures about them are based on a "
            "single sample",
            f"--tenants top:{max(1, min(20, sizes.height - single))} merges all queues but the largest",
        )


def check_priorities(material: Material) -> Iterator[Finding]:
    """Finds queues that probably represent priorities, because their recorded waits differ greatly.

    It checks only traces without priorities.
    """
    jobs = material.jobs
    if "recorded_start" not in jobs.columns or {"priority", "priority_class"} & set(jobs.columns):
        return
    start = pl.col("recorded_start").to_physical() - material.trace.origin
    ranks = (
        jobs.group_by("queue")
        .agg(pl.len().alias("jobs"), (start - pl.col(SUBMIT)).median().alias("wait"))
        .filter((pl.col("jobs") * _SMALL >= jobs.height) & pl.col("wait").is_not_null())
        .sort("wait", "queue")
    )
    if ranks.height < 2 or ranks["wait"][-1] <= max(10 * SECOND, 3 * ranks["wait"][0]):
        return
    names = [str(name) for name in ranks["queue"]]
    shown = ", ".join(
        f"{name} {format_duration(wait)}"
        for name, wait in ranks.select("queue", "wait").head(_SHOWN).iter_rows()
    )
    given = ",".join(f"{name}:{100 * (len(names) - place)}" for place, name in enumerate(names))
    yield Finding(
        "queues-rank",
        f"the recorded median waits rank the queues in the same way as priorities: {shown}",
        f"--priority-from queue={given},*:0 gives the queues such priorities, and --tenants column:user "
        "gives each user a queue",
    )


def check_ids(material: Material) -> Iterator[Finding]:
    """Finds ids that refer to several jobs."""
    jobs = material.jobs
    if "uid" in jobs.columns:
        again = int(jobs["uid"].drop_nulls().is_duplicated().sum())
        if again:
            yield Finding(
                "uid-reused",
                f"{counted(again, jobs.height)} share their uid with another job",
                "omit the column 'uid' so that the row number breaks ties",
            )
    folded = jobs["job_id"].str.strip_chars().str.to_lowercase()
    alike = 0 if distinct(folded) else int(folded.is_duplicated().sum())
    if alike:
        yield Finding(
            "id-reused",
            f"{counted(alike, jobs.height)} have an id that differs from another id only in case or spaces",
            "these are probably attempts of one job that was recorded several times",
        )
    several = jobs.filter(pl.col("pods") > 1)["job_id"]
    if len(several):
        clash = int(
            (
                jobs["job_id"].str.replace(r"-\d+$", "").is_in(several.implode())
                & jobs["job_id"].str.contains(r"-\d+$")
            ).sum()
        )
        if clash:
            yield Finding(
                "id-like-a-pod",
                f"{counted(clash, jobs.height)} have the name of another job's pod (NAME-0, NAME-1, ...)",
                "rename them, because a join by pod name would mix them up",
            )


def check_columns(material: Material) -> Iterator[Finding]:
    """Finds columns outside the schema that have a name similar to a column of the schema."""
    for name, meant in misnamed(material.trace.frame.schema).items():
        yield Finding(
            "column-name",
            f"the column {name!r} is not in the schema, so policies do not see it",
            f"did you mean {meant!r}? rename the column; an unknown column is kept, but has no effect",
        )
