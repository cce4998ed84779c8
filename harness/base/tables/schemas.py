"""The tables of a run folder: their columns and types, which are part of the public interface.

Times have the trace's kind: timestamps, or durations since the trace's origin, in microseconds. A change to
any of these tables raises `VERSION`, which every file carries in its metadata as `harness.run_schema`; runs
of the versions in `READABLE` are still read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

VERSION = "4"
"""What is written."""

READABLE = ("2", "3", VERSION)
"""What is read. Version 3 does not say which pods that run on their own progressed, nor which metrics are the
least that they can become. Version 2 does not either. It also lacks what jobs ask for, who holds what quota,
what the cluster consists of, and sums. It has pods and preemptors by name only."""

TIME = pl.Int64
"""Stands for a column of the trace's kind; microseconds since the origin while a run is being computed."""

STRING = pl.String
COUNT = pl.Int64
ROW = pl.Int32
"""Number of a row in `jobs.parquet`, from 0: the cheap key to join with."""


TIMELINE_QUEUE = "timeline_queue"
"""A column that `jobs.parquet` has only where labels of pods name several quotas in one namespace and queue.
It is the timeline's name for the queue of the job."""


POD_SETS = "pod_sets"
"""A column of `jobs.parquet` with the pod sets of jobs whose pods do not all ask for the same, in runs that
have any, see `harness.base.tables.pod_set_texts`."""


RAN_BEFORE = "ran_before"
"""A column of `jobs.parquet` in runs that began with jobs of the manifests: how long each of these had run by
then. It is null for jobs that came later, and for pods without an end, such as those of a DaemonSet."""

LOST_BEFORE = "lost_before"
"""A column of `stints.parquet` in such runs: how much of that an eviction threw away, with the stint."""


def jobs(resources: Iterable[str], extra: Mapping[str, pl.DataType]) -> dict[str, pl.DataType]:
    """`jobs.parquet`: one row a job, in order of arrival; `extra` are further columns, as of the trace."""
    return {
        "job_id": STRING(),
        "queue": STRING(),
        "namespace": STRING(),
        "user": STRING(),
        "priority": pl.Int32(),
        "pods": pl.Int32(),
        "submit_time": TIME(),
        "admitted_time": TIME(),
        "start_time": TIME(),
        "finish_time": TIME(),
        "duration": pl.Duration("us"),
        "state": STRING(),
        "preemptions": pl.Int32(),
        "progress_lost": pl.Duration("us"),
        "held_idle": pl.Duration("us"),
        **requests(resources),
        **extra,
    }


DECISIONS: dict[str, pl.DataType] = {
    "seq": COUNT(),
    "time": TIME(),
    "cycle": COUNT(),
    "action": STRING(),
    "job": ROW(),
    "job_id": STRING(),
    "pod": STRING(),
    "pod_number": pl.Int32(),
    "successor": pl.Int32(),
    "pods": pl.Int32(),
    "holding": pl.Int8(),
    "queue": STRING(),
    "by": STRING(),
    "by_job": ROW(),
    "reason": STRING(),
    "node": STRING(),
    "flavors": STRING(),
    "detail": STRING(),
}
"""`decisions.parquet`: one row a decision, in the order in which they took effect."""


def stints(resources: Iterable[str], *, before: bool = False) -> dict[str, pl.DataType]:
    """`stints.parquet`: spans in which pods of a job held resources in one state.

    Args:
        resources: what jobs ask for.
        before: whether jobs were there before the replay began.
    """
    return {
        "job": ROW(),
        "job_id": STRING(),
        "queue": STRING(),
        "pods": pl.Int32(),
        "start": TIME(),
        "end": TIME(),
        "state": STRING(),
        "lost": pl.Duration("us"),
        "pod_number": pl.Int32(),
        **({LOST_BEFORE: pl.Duration("us")} if before else {}),
        **requests(resources),
    }


def requests(resources: Iterable[str]) -> dict[str, pl.DataType]:
    """How much of each resource is asked for or held, by a job or by some of its pods."""
    return {f"request.{resource}": COUNT() for resource in resources}


TIMELINE: dict[str, pl.DataType] = {
    "time": TIME(),
    "queue": STRING(),
    "resource": STRING(),
    "allocated": COUNT(),
    "pending": COUNT(),
    "held": COUNT(),
    "running_jobs": COUNT(),
    "pending_jobs": COUNT(),
    "share": pl.Float64(),
    "dominant_share": pl.Float64(),
    "weighted_share": pl.Int64(),
}
"""`timeline.parquet`: the state of each queue after every instant at which it changed."""

METRICS: dict[str, pl.DataType] = {
    "metric": STRING(),
    "scope": STRING(),
    "resource": STRING(),
    "value": pl.Float64(),
    "unit": STRING(),
    "better": STRING(),
    "at_least": pl.Boolean(),
}
"""`metrics.parquet`: one row a measured value."""


CAUSES: dict[str, pl.DataType] = {"minute": COUNT(), "job": ROW(), "cause": pl.Int8()}
"""`causes.parquet`: one row a job and judgement that changes why it waits, in runs where that was judged;
whole minutes from the first arrival, and a number of `harness.analysis.metrics.idle.CAUSES`."""

_NEWER: Mapping[str, Mapping[str, Sequence[str]]] = {
    "2": {
        "decisions": ("pod_number", "successor", "holding", "by_job"),
        "timeline": ("held",),
        "stints": ("pod_number",),
        "metrics": ("at_least",),
    },
    "3": {"stints": ("pod_number",), "metrics": ("at_least",)},
}
"""By version the columns that it does not have."""


def table(name: str, resources: Iterable[str], version: str) -> Mapping[str, pl.DataType]:
    """The columns that a table has at least in some version; traces bring further ones for `jobs`."""
    of_name: Mapping[str, Mapping[str, pl.DataType]] = {
        "jobs": jobs(() if version == "2" else resources, {}),
        "decisions": DECISIONS,
        "stints": stints(resources),
        "timeline": TIMELINE,
        "metrics": METRICS,
        "causes": CAUSES,
    }
    newer = _NEWER.get(version, {}).get(name, ())
    return {column: dtype for column, dtype in of_name[name].items() if column not in newer}
