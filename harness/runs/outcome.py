"""Creates a trace from a run. The events of the run become recorded times for later comparisons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from harness.base.errors import RunError
from harness.base.grouping import grouped
from harness.base.options import option_text
from harness.base.units import moment_at
from harness.plugins import Plugins
from harness.runs.older import require_holding
from harness.runs.run import Run
from harness.trace.calibration import Calibration
from harness.trace.recorded import END, RUNS, START, STATE, runs_text
from harness.trace.schema import ordered
from harness.trace.trace import Trace, open_trace

_OURS = (START, END, RUNS, STATE, "recorded_restarts", "recorded_preemptions")


class _Span(NamedTuple):
    """One run of a job, in microseconds since the origin. `end` is None if the job was still running."""

    start: int
    end: int | None
    state: str
    preempted: bool


def outcome_of(run: Run, plugins: Plugins, trace: Path | None = None) -> Trace:
    """Returns the replayed trace, with the starts and ends of jobs in the replay as recorded times.

    Each recorded time span of a job begins with the job's first progress, and ends when the job releases its
    resources. Time spans without progress are omitted. Jobs from the manifests are omitted too, because they
    are not part of the trace.

    `run` has all its tables. By default, `trace` is the path at which the run found the trace.

    Raises:
        RunError: the file is not the replayed trace, arrivals were scaled, or the run has schema 2.
        TraceError: the trace can't be read.
    """
    require_holding(run.info)
    opened = open_trace(trace or Path(run.info["provenance"]["trace"]), plugins)
    if opened.sha256 != run.info["trace"]["sha256"]:
        raise RunError(
            f"{opened.path} is not the trace of run {run.info['run']}: their contents differ",
            hint="--trace FILE names the file that was replayed",
        )
    settings = run.info["settings"]
    if settings["scale_arrivals"] != "1":
        raise RunError(f"run {run.info['run']} scaled arrivals, so its jobs differ from the trace's jobs")
    steps = {key: text for key, text in settings.get("calibration", {}).items() if key != "scale_cluster"}
    opened = Calibration.parse(**steps).of_trace(opened)
    return replace(opened, frame=_recorded(opened, run), notes=(*opened.notes, _note(run)))


def _note(run: Run) -> str:
    policy, cluster = run.info["policy"], run.info["cluster"]
    durations = policy.get("durations", ())
    options = "".join(
        f" {key}={option_text(value, duration=key in durations)}" for key, value in policy["options"].items()
    )
    of = f"{policy['name']}{options} on cluster {cluster['sha256'][:12]}"
    return f"the recorded times are from a replay of {of}"


def _recorded(trace: Trace, run: Run) -> pl.DataFrame:
    spans = _spans(run)
    jobs = run.micros("jobs").select("job_id", "state").collect()
    found: dict[str, list[Any]] = {name: [] for name in ("job_id", *_OURS)}
    for place, (name, state) in enumerate(jobs.iter_rows()):
        runs = spans.get(place, [])
        first, last = (runs[0].start, runs[-1].end) if runs else (None, None)
        found["job_id"].append(name)
        found[START].append(first)
        found[END].append(last)
        found[RUNS].append(runs_text(_cell(each, trace) for each in runs) if len(runs) > 1 else None)
        found[STATE].append(state)
        found["recorded_restarts"].append(max(0, len(runs) - 1))
        found["recorded_preemptions"].append(sum(each.preempted for each in runs))
    table = pl.DataFrame(found, schema_overrides={START: pl.Int64, END: pl.Int64, RUNS: pl.String})
    kind: Any = trace.frame.schema["submit_time"]
    table = table.with_columns((pl.col(START, END) + trace.origin).cast(kind))
    rows = trace.frame.drop([name for name in _OURS if name in trace.frame.columns])
    joined = rows.join(table, on="job_id", how="left", maintain_order="left")
    return joined.select(ordered(joined.columns))


def _cell(span: _Span, trace: Trace) -> dict[str, Any]:
    return {
        "start": _time(span.start, trace),
        "end": None if span.end is None else _time(span.end, trace),
        "state": span.state,
        **({"preempted": True} if span.preempted else {}),
    }


def _time(time: int, trace: Trace) -> str | int:
    time += trace.origin
    return time if trace.kind == "duration" else moment_at(time).isoformat()


def _spans(run: Run) -> dict[int, list[_Span]]:
    """Returns, for the row of each job, the runs in which the job made progress."""
    progress = run.micros("stints").filter(pl.col("state") == "progress").select("job", "start")
    jobs = run.micros("jobs").with_row_index("job").filter(pl.col("start_time").is_not_null())
    firsts = jobs.select(pl.col("job").cast(pl.Int32), pl.col("start_time").alias("start"))
    # A job that was evicted at the moment of its start has started, but it made no progress.
    every = pl.concat([firsts, progress]).unique().sort("job", "start").collect()
    starts = grouped((job, start) for job, start in every.iter_rows())
    wanted = (pl.col("holding") != 0) | pl.col("action").is_in(["preempt", "evict"])
    decisions = run.micros("decisions").filter(wanted & pl.col("job").is_not_null())
    found: dict[int, list[_Span]] = {}
    held: dict[int, int] = {}
    why: dict[int, tuple[str, bool]] = {}
    for job, time, action, holding, reason in (
        decisions.select("job", "time", "action", "holding", "reason").collect().iter_rows()
    ):
        if holding == 1:
            held[job] = time
            why.pop(job, None)
        elif action in ("preempt", "evict"):
            why.setdefault(job, (reason or action, action == "preempt"))
        if holding == -1:
            state, preempted = why.get(job, ("FINISHED" if action == "finish" else "", False))
            _add(found, starts, job, _Span(held.pop(job), time, state, preempted))
    for job, since in held.items():
        _add(found, starts, job, _Span(since, None, "", preempted=False))
    return found


def _add(found: dict[int, list[_Span]], starts: dict[int, list[int]], job: int, held: _Span) -> None:
    """Add the run of a job for a span in which the job held resources.

    The run begins with the first progress within the span.
    """
    begun = [start for start in starts.get(job, ()) if start >= held.start]
    begun = [start for start in begun if held.end is None or start <= held.end]
    if begun:
        found.setdefault(job, []).append(held._replace(start=begun[0]))
