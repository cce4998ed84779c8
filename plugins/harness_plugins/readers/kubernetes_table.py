"""Converts the jobs of a cluster to the rows of a trace."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from harness.base.units import date_text
from harness.models.cluster import TopologyRequest
from harness.policy import PodSet
from harness.readers.names import label_maps
from harness.readers.schema import LIMIT, REQUEST
from harness_plugins.readers.kubernetes_objects import Recorded

_TOPOLOGY = {
    "topology_required": pl.String,
    "topology_preferred": pl.String,
    "topology_slice": pl.String,
    "topology_group": pl.String,
    "topology_unconstrained": pl.Boolean,
    "topology_slice_size": pl.Int32,
}
"""The columns of topology requests, with their types."""


def frame_of(jobs: Sequence[Recorded], options: Mapping[str, Any]) -> pl.DataFrame:
    """Returns the jobs as a table with one row for each pod set."""
    rows = [(job, pod_set) for job in jobs for pod_set in job.pod_sets]
    pods = [pod_set for _, pod_set in rows]
    zoned = pl.Datetime("us", "UTC")

    def of_job(name: str, dtype: Any, *, column: str = "") -> pl.Series:
        values = [getattr(job, name) for job, _ in rows]
        return pl.Series(column or name, [None if value == "" else value for value in values], dtype=dtype)

    columns = [
        pl.Series("job_id", _names(rows)),
        of_job("submit", pl.Int64, column="submit_time").cast(zoned),
        pl.Series("duration", [_run(job, options) for job, _ in rows], dtype=pl.Duration("us")),
        of_job("queue", pl.String),
        *_amounts(REQUEST, [pod_set.requests for pod_set in pods]),
        *_amounts(LIMIT, [pod_set.limits for pod_set in pods]),
        pl.Series("pods", [pod_set.count for pod_set in pods], dtype=pl.Int32),
        pl.Series("min_pods", [pod_set.min_count for pod_set in pods], dtype=pl.Int32),
        of_job("gang", pl.Boolean),
        of_job("priority", pl.Int32)
        if options["priority"] == "number"
        else of_job("priority_class", pl.String),
        of_job("preemption_policy", pl.String),
        of_job("namespace", pl.String),
        pl.Series("pod_set", [pod_set.name for pod_set in pods]),
        of_job("grace_period", pl.Duration("us")),
        label_maps("labels", [pod_set.labels for pod_set in pods]),
        label_maps("node_selector", [pod_set.node_selector for pod_set in pods]),
        *(_texts(name, pods) for name in ("tolerations", "affinity", "pod_template")),
        *_topologies(pods),
        of_job("uid", pl.String),
        pl.Series("recorded_start", [_first(job) for job, _ in rows], dtype=pl.Int64).cast(zoned),
        of_job("end", pl.Int64, column="recorded_end").cast(zoned),
        pl.Series("recorded_runs", [_runs(job) for job, _ in rows], dtype=pl.String),
        of_job("evictions", pl.Int64),
    ]
    return pl.DataFrame([column for column in columns if column.null_count() < len(rows)])


def _names(rows: Sequence[tuple[Recorded, PodSet]]) -> list[str]:
    uids: dict[str, list[str]] = {}
    for job, _ in sorted(rows, key=lambda row: row[0].submit or 0):
        known = uids.setdefault(job.name, [job.uid])
        if job.uid and job.uid not in known:
            known.append(job.uid)
    places = [uids[job.name].index(job.uid) if job.uid else 0 for job, _ in rows]
    return [
        f"{job.name}#{place + 1}" if place else job.name for (job, _), place in zip(rows, places, strict=True)
    ]


def _first(job: Recorded) -> int | None:
    return job.runs[0].begun if job.runs else job.start


def _runs(job: Recorded) -> str | None:
    """Returns all runs of a job as JSON, or None for a job with at most one run."""
    if len(job.runs) < 2:
        return None
    return json.dumps(
        [
            {
                "start": date_text(run.begun),
                "end": None if run.end is None else date_text(run.end),
                "state": run.state,
            }
            for run in job.runs
        ]
    )


def _run(job: Recorded, options: Mapping[str, Any]) -> int:
    assert job.start is not None
    assert job.end is not None
    run = job.end - job.start if job.run is None else job.run
    return run + (job.past if options["attempts"] == "total" else 0)


def _texts(name: str, pods: Iterable[PodSet]) -> pl.Series:
    return pl.Series(name, [getattr(pod_set, name) for pod_set in pods], dtype=pl.String)


def has_large_slice(pod_set: PodSet) -> bool:
    """Returns True if a requested slice has more pods than the pod set."""
    slices = () if pod_set.topology is None else pod_set.topology.slices
    return any(each.size > pod_set.count for each in slices)


def _topologies(pods: Iterable[PodSet]) -> list[pl.Series]:
    """Returns the columns of topology requests. Of several layers of slices, they have only the first.

    Slices that are too large are left out. Kueue admits such a Workload, but no trace can have it.
    """
    rows = []
    for pod_set in pods:
        request = pod_set.topology or TopologyRequest()
        layers = ((each.level, each.size) for each in request.slices if each.size <= pod_set.count)
        level, size = next(layers, (None, None))
        texts = (request.required or None, request.preferred or None, level, request.group or None)
        rows.append((*texts, request.unconstrained or None, size))
    return pl.DataFrame(rows, _TOPOLOGY, orient="row").get_columns()


def _amounts(prefix: str, tables: Sequence[Mapping[str, int]]) -> list[pl.Series]:
    resources = sorted({resource for table in tables for resource in table})
    return [
        pl.Series(f"{prefix}{resource}", [table.get(resource) for table in tables], dtype=pl.Int128)
        for resource in resources
    ]
