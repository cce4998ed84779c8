"""The jobs that arrived within a window, and which of them were refused for good."""

from __future__ import annotations

import polars as pl

from harness.arrays import NEVER, numbers
from harness.metrics.exact import resource_time
from harness.metrics.known import once
from harness.metrics.measurement import Window
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


def asked_for(run: Run, window: Window) -> dict[str, int]:
    """For each resource what the jobs that arrived and were not refused need in all, resource-microseconds.

    It counts whole, also of a job that has not run so long. Pods of the manifests that ran before, of which
    nobody knows how long they run, do not count. Runs of schema 2 do not say, and have no resource here.
    """
    amounts = request_columns(run)
    if not amounts:
        return {}
    refused = rejected(run, window).to_numpy()
    sums, offset = [0] * len(amounts), 0
    for batch in run.batches("jobs", ("submit_time", "duration", *amounts)):
        submit, duration, *totals = numbers(batch, "submit_time", "duration", *amounts)
        counts = (submit <= window.end) & (duration != NEVER)
        counts[refused[(refused >= offset) & (refused < offset + batch.height)] - offset] = False
        offset += batch.height
        for place, total in enumerate(totals):
            sums[place] += resource_time(total[counts], duration[counts])
    return dict(zip(run.resources, sums, strict=True))
