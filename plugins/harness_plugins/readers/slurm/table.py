"""Converts jobs to the columns of a trace."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from harness.base.units import date_text
from harness.readers.names import label_maps
from harness.readers.schema import REQUEST, kubernetes_name
from harness_plugins.readers.slurm.chains import Run
from harness_plugins.readers.slurm.jobs import Job, held_by
from harness_plugins.readers.slurm.pods import CPU, amounts_of

_TIME = pl.Datetime("us", "UTC")
_SPAN = pl.Duration("us")


def tenant_of(job: Job, tenant: str) -> str:
    """Returns the partition, account, QOS or user of a job, or "" if the dump lacks it."""
    value: str = getattr(job.chain.last, tenant)
    return value


def frame_of(
    jobs: Sequence[Job],
    options: Mapping[str, Any],
    priorities: Mapping[str, int] | None,
    restarts: Callable[[Job], int | None],
) -> pl.DataFrame:
    """Returns a table with one row for each pod set.

    `restarts` returns how often a job was requeued. It is None if the dump cannot show this.
    """
    rows = [(job, name) for job in jobs for name in job.pods]
    counts = [len(job.pods) for job in jobs]

    def of_job(name: str, dtype: Any, value: Callable[[Job], Any]) -> pl.Series:
        values = [
            each for job, count in zip(jobs, counts, strict=True) for each in (value(job) or None,) * count
        ]
        return pl.Series(name, values, dtype=dtype)

    def exact(name: str, dtype: Any, value: Callable[[Job], Any]) -> pl.Series:
        values = [each for job, count in zip(jobs, counts, strict=True) for each in (value(job),) * count]
        return pl.Series(name, values, dtype=dtype)

    resources = sorted({resource for job, name in rows for resource in job.pods[name].each})
    columns = [
        exact("job_id", pl.String, lambda job: job.name),
        exact("submit_time", pl.Int64, lambda job: job.submit).cast(_TIME),
        exact("duration", _SPAN, lambda job: job.duration),
        exact("queue", pl.String, lambda job: tenant_of(job, options["tenant"]) or "default"),
        *(
            pl.Series(
                f"{REQUEST}{resource}",
                [job.pods[name].each.get(resource) for job, name in rows],
                dtype=pl.Int64,
            )
            for resource in resources or [CPU]
        ),
        pl.Series("pods", [job.pods[name].count for job, name in rows], dtype=pl.Int32),
        *_priority(of_job, exact, options, priorities),
        of_job("user", pl.String, lambda job: job.chain.last.user),
        pl.Series("pod_set", [name for _, name in rows], dtype=pl.String),
        label_maps("node_selector", [job.pods[name].selector for job, name in rows]),
        exact("recorded_start", pl.Int64, lambda job: job.chain.runs[0].start).cast(_TIME),
        exact("recorded_end", pl.Int64, lambda job: job.chain.runs[-1].end if job.over else None).cast(_TIME),
        exact("recorded_submit", pl.Int64, lambda job: job.chain.submit).cast(_TIME),
        exact("recorded_eligible", pl.Int64, lambda job: job.chain.eligible).cast(_TIME),
        of_job("recorded_state", pl.String, lambda job: job.chain.last.state),
        exact("recorded_restarts", pl.Int64, restarts),
        exact("recorded_preemptions", pl.Int64, lambda job: _preemptions(job, restarts)),
        of_job("recorded_runs", pl.String, lambda job: _runs(job, options)),
        of_job("recorded_suspended", _SPAN, lambda job: sum(run.last.suspended for run in job.chain.runs)),
        of_job("requested_time", _SPAN, lambda job: job.chain.last.limit),
        of_job("slurm_job_id", pl.String, lambda job: job.label),
        of_job("job_name", pl.String, lambda job: job.chain.last.name),
        of_job("partition", pl.String, lambda job: job.chain.last.partition),
        of_job("account", pl.String, lambda job: job.chain.last.account),
        of_job("qos", pl.String, lambda job: job.chain.last.qos),
    ]
    frame = pl.DataFrame(columns)
    several = frame["pod_set"].n_unique() > 1
    empty = [column.name for column in frame if column.null_count() == frame.height]
    unknown = [name for name in empty if not name.startswith(REQUEST)]
    return frame.drop([*unknown, *([] if several else ["pod_set"])])


def _priority(
    of_job: Callable[..., pl.Series],
    exact: Callable[..., pl.Series],
    options: Mapping[str, Any],
    priorities: Mapping[str, int] | None,
) -> list[pl.Series]:
    if options["priority"] == "class":
        return [
            of_job(
                "priority_class",
                pl.String,
                lambda job: job.chain.last.qos and kubernetes_name(job.chain.last.qos),
            )
        ]
    if options["priority"] == "number" and priorities is not None:
        return [exact("priority", pl.Int64, lambda job: priorities.get(job.chain.last.qos, 0))]
    return []


def _preemptions(job: Job, restarts: Callable[[Job], int | None]) -> int | None:
    return None if restarts(job) is None else job.chain.preemptions


def _runs(job: Job, options: Mapping[str, Any]) -> str | None:
    if len(job.chain.runs) == 1:
        return None
    return json.dumps([_run(place, run, job, options) for place, run in enumerate(job.chain.runs)])


def _run(place: int, run: Run, job: Job, options: Mapping[str, Any]) -> dict[str, Any]:
    totals: Counter[str] = Counter()
    nodes = 0
    for chain in job.components:
        for same in chain.runs[place : place + 1]:
            amounts, count = amounts_of(*held_by(same, options))
            nodes += count
            totals.update(amounts)
    return {
        "start": _iso(run.start),
        "end": _iso(run.end),
        "state": run.last.state,
        "eligible": _iso(run.first.eligible),
        "nodes": nodes,
        "request": dict(totals),
    }


def _iso(time: int | None) -> str | None:
    return None if time is None else date_text(time)
