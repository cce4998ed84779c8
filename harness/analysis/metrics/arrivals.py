"""The jobs that arrived within a window, and which of them were refused for good.

Jobs that were refused as they arrived count nowhere but among the refused. One that is refused later has
waited in vain until then, and goes on to wait.
"""

from __future__ import annotations

import polars as pl

from harness.analysis.metrics.exact import resource_time
from harness.base.arrays import NEVER, numbers
from harness.plugins.measurement import Window
from harness.runs.known import once
from harness.runs.refused import rejected_at_arrival
from harness.runs.run import Run


@once
def rejected(run: Run, window: Window) -> pl.Series:
    """The rows in `jobs.parquet` of jobs that were refused within a window."""
    refusals = (pl.col("action") == "reject") & (pl.col("time") <= window.end)
    return run.micros("decisions").filter(refusals).select("job").collect()["job"]


@once
def request_columns(run: Run) -> list[str]:
    """The columns of `jobs.parquet` with what jobs ask for, one a resource; runs of schema 2 have none."""
    there = run.scan("jobs").collect_schema()
    return [column for column in (f"request.{resource}" for resource in run.resources) if column in there]


def counted(run: Run, only: pl.Series | None = None) -> pl.Series:
    """Whether each job of a run counts: of those given, or of all, the ones not refused at their arrival."""
    mask = pl.repeat(True, run.columns("jobs", "submit_time").height, eager=True) if only is None else only
    refused = rejected_at_arrival(run)
    return mask if refused.is_empty() else mask.clone().scatter(refused, False)


def asked_for(run: Run, window: Window, only: pl.Series | None = None) -> dict[str, int]:
    """For each resource what the jobs that arrived need in all, resource-microseconds.

    Args:
        run: the run.
        window: what is measured.
        only: whether each job of the run counts, see `counted`.

    It counts whole, also of a job that has not run so long. Pods of the manifests that ran before, with
    unknown run times, do not count. Runs of schema 2 do not say, and have no resource here.
    """
    amounts = request_columns(run)
    if not amounts:
        return {}
    mask = counted(run, only).to_numpy()
    sums, offset = [0] * len(amounts), 0
    for batch in run.batches("jobs", ("submit_time", "duration", *amounts)):
        submit, duration, *totals = numbers(batch, "submit_time", "duration", *amounts)
        counts = (submit <= window.end) & (duration != NEVER) & mask[offset : offset + batch.height]
        offset += batch.height
        for place, total in enumerate(totals):
            sums[place] += resource_time(total[counts], duration[counts])
    return dict(zip(run.resources, sums, strict=True))
