"""Warns about runs whose numbers mislead, because no job started or admitted jobs were never bound."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from harness.base.text import counted
from harness.base.units import format_duration
from harness.policy import CONTROLLER_CRASH
from harness.runs.recorded import notes_of

if TYPE_CHECKING:
    from harness.runs.run import Run


def alarms(run: Run) -> Iterator[str]:
    """Yields sentences about misleading numbers in a run.

    If the run did not keep its tables, the function yields only the notes of the run itself.
    """
    yield from notes_of(run.info)
    if run.info.get("kept", "all") != "all":
        return
    yield from _crashes(run)
    started, admitted = pl.col("start_time").is_not_null(), pl.col("admitted_time").is_not_null()
    counts = run.micros("jobs").select(
        jobs=pl.len(),
        started=started.sum(),
        admitted=admitted.sum(),
        idle=(admitted & ~started).sum(),
        rejected=(pl.col("state") == "rejected").sum(),
        first=pl.col("job_id").filter(~started).first(),
        first_idle=pl.col("job_id").filter(admitted & ~started).first(),
    )
    found = counts.collect().row(0, named=True)
    if not found["jobs"]:
        return
    if not found["started"]:
        waiting = found["jobs"] - found["rejected"]
        yield (
            f"no job started: {counted(found['jobs'], 'job')} in all, {found['rejected']:,} rejected and "
            f"{waiting:,} left waiting; {_explained(run, found['first'])}"
        )
    whole = run.info["settings"]["until_us"] is None
    if run.info["cluster"]["nodes"] and found["idle"] and (whole or not found["started"]):
        yield (
            f"{found['idle']:,} of {found['admitted']:,} admitted jobs never ran: some or all of their pods "
            f"found no node while the jobs held quota; {_explained(run, found['first_idle'])}"
        )


def _crashes(run: Run) -> Iterator[str]:
    """Yields a sentence that says when and why the real component would first have crashed."""
    crashes = run.micros("decisions").filter(pl.col("reason") == CONTROLLER_CRASH)
    first = crashes.select("time", "job_id", "detail", jobs=pl.len()).head(1).collect()
    if not first.is_empty():
        time, job, detail, jobs = first.row(0)
        yield (
            f"the real controller would have crashed, first {format_duration(time)} after the beginning at "
            f"{job} (jobs: {jobs:,}), and again after each restart: {json.loads(detail)['message']}; "
            f"{_explained(run, job)}"
        )


def _explained(run: Run, job: str) -> str:
    return f"why: {shlex.join(['harness', 'explain', str(run.path), job])}"
