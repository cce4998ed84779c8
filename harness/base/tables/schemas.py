"""Defines the columns and types of the tables in a run folder, which are part of the public interface.

Times are of the same kind as in the trace. They are timestamps, or durations since the trace's origin, in
microseconds. Every change to these tables increments `VERSION`, which the metadata of every file contains as
`harness.run_schema`. harness can still read runs with the versions in `READABLE`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

VERSION = "4"
"""The version that harness writes."""

READABLE = ("2", "3", VERSION)
"""The versions that harness can read.

Version 3 doesn't record the progress of pods that run on their own, nor which metrics are lower bounds.
Version 2 also lacks requests, quota holders, the content of the cluster, and checksums. It identifies pods
and preemptors only by name.
"""

TIME = pl.Int64
"""The type of a time column. Files contain the trace's kind of time, and a replay uses microseconds since the
origin.
"""

STRING = pl.String
COUNT = pl.Int64
ROW = pl.Int32
"""The number of a job's row in `jobs.parquet`, counted from 0. This column is the fastest key for joins."""


TIMELINE_QUEUE = "timeline_queue"
"""A column with the name that a job's queue has in the timeline.

`jobs.parquet` has it only if labels of pods name several quotas in one namespace and queue.
"""


POD_SETS = "pod_sets"
"""A column of `jobs.parquet` with the pod sets of a job whose pods have different requests.

Only runs with such jobs have it. See `harness.base.tables.pod_set_texts`.
"""


RAN_BEFORE = "ran_before"
"""A column of `jobs.parquet` that contains how long a job had run before the replay began.

Only runs that began with jobs from the manifests have this column. It is null for jobs that arrived later,
and for pods without an end, such as those of a DaemonSet.
"""

LOST_BEFORE = "lost_before"
"""A column of `stints.parquet` in runs with `RAN_BEFORE`.

It contains how much of a job's run time from before the replay was lost in an eviction.
"""


def jobs(resources: Iterable[str], extra: Mapping[str, pl.DataType]) -> dict[str, pl.DataType]:
    """Returns the columns of `jobs.parquet`, which has one row for each job in the order of arrival.

    `extra` contains additional columns, such as those of the trace.
    """
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
"""The columns of `decisions.parquet`, which contains the decisions in the order in which they took effect."""


def stints(resources: Iterable[str], *, before: bool = False) -> dict[str, pl.DataType]:
    """Returns the columns of `stints.parquet`.

    Each row is a stint: a time span in which pods of a job held resources and stayed in one state. `before`
    adds the column `lost_before`, which is needed if jobs already existed when the replay began.
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
    """Returns one column per resource, for the quantity that a job, or some of its pods, request or hold."""
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
"""The columns of `timeline.parquet`, which contains the state of each queue after every time at which it
changed.
"""

METRICS: dict[str, pl.DataType] = {
    "metric": STRING(),
    "scope": STRING(),
    "resource": STRING(),
    "value": pl.Float64(),
    "unit": STRING(),
    "better": STRING(),
    "at_least": pl.Boolean(),
}
"""The columns of `metrics.parquet`, which has one row for each measured value."""


CAUSES: dict[str, pl.DataType] = {"minute": COUNT(), "job": ROW(), "cause": pl.Int8()}
"""The columns of `causes.parquet`, which has a row whenever the reason why a job waits changes.

Only runs for which harness has determined these reasons have the table. Its columns contain whole minutes
since the first arrival, and an index into `harness.analysis.metrics.idle.CAUSES`.
"""

_NEWER: Mapping[str, Mapping[str, Sequence[str]]] = {
    "2": {
        "decisions": ("pod_number", "successor", "holding", "by_job"),
        "timeline": ("held",),
        "stints": ("pod_number",),
        "metrics": ("at_least",),
    },
    "3": {"stints": ("pod_number",), "metrics": ("at_least",)},
}
"""Maps a version and a table to the columns that the table lacks in this version."""


def table(name: str, resources: Iterable[str], version: str) -> Mapping[str, pl.DataType]:
    """Returns the columns that a table has in every run of the given version.

    In addition to these, the table `jobs` can have columns of the trace.
    """
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
