"""Reads `cluster_job_log`, the full log of Microsoft's Philly, which is JSON with every attempt to run a job.

Every attempt after the first one is a real restart, because the job failed or was moved. The column
`attempts` has the number of attempts, so that you can compare them with the disruption in a replay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from harness import Reading
from harness.base.errors import Fault, TraceError
from harness.base.units import SECOND
from harness.models.manifests import Fields
from harness.readers.counts import agreeing, times
from harness.readers.gangs import gpu_columns, gpu_notes
from harness.readers.source import read_json, stop_at_many, trace_error
from harness_plugins.readers.philly import LICENSE

METADATA = {
    "harness.source": "Microsoft Philly (github.com/msr-fiddle/philly-traces), cluster_job_log",
    "harness.license": LICENSE,
}
_FORM = "%Y-%m-%d %H:%M:%S"
_UNKNOWN = ("", "None")


class _Attempt(NamedTuple):
    start: datetime | None
    end: datetime | None
    gpus: int


class _Job(NamedTuple):
    job_id: str
    submit_time: datetime | None
    queue: str
    user: str
    status: str
    attempts: tuple[_Attempt, ...]


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads the log. If a job has more GPUs than a node, it becomes a gang of equal pods, as in the extract.

    Raises:
        TraceError: the JSON does not have the expected structure, or jobs are malformed. The error lists all
            faults.
        OptionError: an option is out of range.
    """
    document = read_json(path)
    if not isinstance(document, list):
        raise TraceError(str(path), [Fault("", "is not a JSON list of jobs")])
    faults: list[Fault] = []
    jobs = []
    for number, entry in enumerate(document, start=1):
        jobs.append(_job(entry, f"job {number:,}", faults))
        stop_at_many(path, faults)
    if faults:
        raise trace_error(path, faults, "")
    left_out = Counter(reason for job in jobs if (reason := _without(job)))
    kept = [job for job in jobs if not _without(job)]
    gpus = pl.Series([job.attempts[-1].gpus for job in kept], dtype=pl.Int64)
    per_node = options["gpus_per_node"]
    total = options["attempts"] == "total"
    frame = pl.DataFrame(
        [
            _column("job_id", [job.job_id for job in kept], pl.String),
            _column("submit_time", [job.submit_time for job in kept], pl.Datetime("us")),
            _column("duration", [_run(job, total=total) for job in kept], pl.Duration("us")),
            _column("queue", [job.queue for job in kept], pl.String),
            *gpu_columns(gpus, per_node),
            _column("user", [job.user for job in kept], pl.String),
            _column("recorded_start", [job.attempts[0].start for job in kept], pl.Datetime("us")),
            _column("recorded_end", [job.attempts[-1].end for job in kept], pl.Datetime("us")),
            _column("status", [job.status for job in kept], pl.String),
            _column("attempts", [len(job.attempts) for job in kept], pl.Int64),
        ]
    )
    notes = (
        "the queue is the virtual cluster; the time zone of times is not stated",
        *gpu_notes(per_node, frame["gang"]),
        *_notes(kept, total=total),
        "GPUs are from the last attempt; CPU, memory and priorities are not in the log",
    )
    return Reading(frame, len(jobs), dict(left_out), notes, METADATA)


def _column(name: str, values: list[Any], dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    return pl.Series(name, values, dtype=dtype)


def _job(entry: Any, where: str, faults: list[Fault]) -> _Job:
    fields = Fields(entry, where, faults)
    attempts = []
    for attempt in fields.items("attempts"):
        machines = attempt.items("detail")
        gpus = sum(len(machine.texts("gpus")) for machine in machines)
        attempts.append(_Attempt(_time(attempt, "start_time"), _time(attempt, "end_time"), gpus))
    return _Job(
        fields.string("jobid", required=True),
        _time(fields, "submitted_time"),
        fields.string("vc", required=True),
        fields.string("user"),
        fields.string("status"),
        tuple(attempts),
    )


def _time(fields: Fields, name: str) -> datetime | None:
    text = fields.string(name)
    if text in _UNKNOWN:
        return None
    try:
        return datetime.strptime(text, _FORM)
    except ValueError:
        fields.fault(name, f"{text!r:.40} is not a time such as 2017-10-07 01:12:09")
        return None


def _without(job: _Job) -> str:
    if job.submit_time is None:
        return "submit time unknown"
    if not job.attempts:
        return "no attempt to run the job is recorded"
    if job.attempts[-1].end is None:
        return "was still running when the log was taken (its last attempt has no end)"
    if job.attempts[-1].start is None:
        return "its last attempt has no start"
    if any(start and end and end < start for start, end, _ in job.attempts):
        return "an attempt ended before it started"
    if not job.attempts[-1].gpus:
        return "no GPUs are recorded"
    return ""


def _run(job: _Job, *, total: bool) -> int:
    """Returns the duration of all attempts with known times, or of the last attempt, in microseconds."""
    attempts = job.attempts if total else job.attempts[-1:]
    spans = [int((end - start).total_seconds()) for start, end, _ in attempts if start and end]
    return sum(spans) * SECOND


def _notes(jobs: list[_Job], *, total: bool) -> tuple[str, ...]:
    restarted = sum(len(job.attempts) > 1 for job in jobs)
    restarts = sum(len(job.attempts) - 1 for job in jobs)
    unknown = sum(not (attempt.start and attempt.end) for job in jobs for attempt in job.attempts)
    runs = "all its attempts took together" if total else "its last attempt took"
    notes = [
        (
            f"a job runs for as long as {runs}; "
            f"{agreeing(restarted, 'job', 'were')} restarted, {times(restarts)} in total"
        )
    ]
    if unknown:
        notes.append(f"{agreeing(unknown, 'attempt', 'have')} no start or no end and are not counted")
    return tuple(notes)
