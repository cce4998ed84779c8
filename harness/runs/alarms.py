"""What a run is worth nothing for: nothing started, or what was admitted was never bound."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from harness.runs.recorded import notes_of

if TYPE_CHECKING:
    from harness.runs.run import Run


def alarms(run: Run) -> Iterator[str]:
    """Sentences about a run whose figures would mislead; none where its tables were not kept."""
    yield from notes_of(run.info)
    if run.info.get("kept", "all") != "all":
        return
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
            f"nothing started: of {found['jobs']:,} jobs {found['rejected']:,} were rejected and "
            f"{waiting:,} were left waiting; {_explained(run, found['first'])}"
        )
    whole = run.info["settings"]["until_us"] is None
    if run.info["cluster"]["nodes"] and found["idle"] and (whole or not found["started"]):
        yield (
            f"{found['idle']:,} of {found['admitted']:,} jobs that were admitted never ran: no node took "
            f"their pods, or not all of a gang's, and they keep their quota; "
            f"{_explained(run, found['first_idle'])}"
        )


def _explained(run: Run, job: str) -> str:
    return f"why: {shlex.join(['harness', 'explain', str(run.path), job])}"
