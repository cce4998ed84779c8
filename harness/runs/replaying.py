"""Carries out a plan: runs the replay, and writes the event tables, the metrics and `run.json`."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import polars as pl

from harness.base.build import versions
from harness.base.collector import leave_modules_alone, seldom_collected
from harness.base.json_text import indented_json
from harness.base.options import durations
from harness.base.tables import schemas
from harness.base.tables.parquet import ShortTable, TableWriter, TimeKind
from harness.cluster.changes.edits import ever
from harness.cluster.content import allocatable, domains
from harness.cluster.model import Cluster
from harness.engine.engine import Outcome
from harness.engine.events import NullRecorder, Recorder
from harness.plugins import Plugins
from harness.plugins.measurement import Measurement
from harness.policy import Arrival
from harness.runs.cache import Lasting
from harness.runs.engines import as_heard, engine_of, made, played_on
from harness.runs.folder import tables_of
from harness.runs.identity import Code, codes_of_metrics
from harness.runs.job_columns import LONG, job_columns
from harness.runs.measuring import measure
from harness.runs.plan import Plan
from harness.runs.questions import running_jobs
from harness.runs.recorded import beyond
from harness.runs.recording.recorder import ParquetRecorder
from harness.runs.refused import refused_pieces
from harness.runs.run import IDLE, ISOLATED, REFUSED, WINDOWS, Keep, Run
from harness.runs.seal import seal_info, seal_tables
from harness.runs.tenants import Tenants, cohorts, quotas, tenants
from harness.trace.job_columns import JobColumns
from harness.trace.jobs import Jobs

_SHORT = 16
_ADDED = (ISOLATED, IDLE, WINDOWS)
"""Keys in `run.json` for metrics that were added later, which are dropped when the run is measured again."""
_PLAYED = ("jobs", "decisions", "stints", "timeline")

_tenants: Lasting[Tenants] = Lasting()


def measured_by(plugins: Plugins) -> dict[str, str | None]:
    """Returns the plugin, version and code checksum for each metric, or None if the code is unknown."""
    found: dict[str, str | None] = {}
    codes = codes_of_metrics(plugins.metrics)
    for spec in plugins.metrics:
        code = codes[spec.name]
        about = (spec.owner, spec.version, code.sha256[:_SHORT])
        found[spec.name] = None if code.unknown else " ".join(filter(None, about))
    return found


def replay_into(
    folder: Path,
    plan: Plan,
    plugins: Plugins,
    watch: Callable[[int, int], None] | None,
    command: str | None,
    keep: Keep = "all",
) -> tuple[dict[str, Any], pl.DataFrame]:
    """Carry out the replay, and return `run.json` and the metrics.

    The tables and `run.json` are written unless nothing is kept. Files that are not kept may exist while the
    run is measured, and are removed at the end.
    """
    began, cpu = time.time(), time.process_time()
    leave_modules_alone()
    info, short = _play_into(folder, plan, watch, keep)
    info["tables"] = seal_tables(folder, _PLAYED) if keep == "all" else {}
    run = Run(folder, info, checked=_PLAYED, short=short)
    if plan.policy.record:
        info["record"]["beyond"] = [each._asdict() for each in beyond(run)]
    about, metrics = _measured(run, plugins)
    info |= about
    if keep != "nothing":
        info["tables"] = _with_metrics(folder, info, metrics)
    info["provenance"] = _provenance(plan, command, time.time() - began, time.process_time() - cpu)
    if keep != "all":
        info["kept"] = keep
        for name in _PLAYED:
            (folder / f"{name}.parquet").unlink(missing_ok=True)
    return (info if keep == "nothing" else _written(folder, info)), metrics


def measure_into(folder: Path, run: Run, plugins: Plugins) -> dict[str, Any]:
    """Rewrites a stored run with new measurements, and returns its `run.json`.

    Raises:
        RunError: a table of the run is damaged.
    """
    info = {key: value for key, value in run.info.items() if key not in ("unmeasured", *_ADDED)}
    info["tables"] = {name: info["tables"][name] for name in _PLAYED}
    for name in _PLAYED:
        shutil.copyfile(run.file(name), folder / f"{name}.parquet")
    about, metrics = _measured(Run(folder, info), plugins)
    return _written(folder, {**info, **about, "tables": _with_metrics(folder, info, metrics)})


def play_again(plan: Plan, watch: Callable[[int, int], None] | None) -> dict[str, Any]:
    """Replays without recording, and returns the entries in `run.json` about the end of the run."""
    heard = as_heard(plan)
    return _ended(plan, _played(heard, _jobs(heard, _prepared(heard)[0]), NullRecorder(), watch))


def told_by(folder: Path, plan: Plan) -> dict[str, Any]:
    """Replay without keeping a table, and return `run.json`. Temporary tables are written to `folder`."""
    return _play_into(folder, plan, None, "nothing")[0]


def add_into(
    folder: Path,
    run: Run,
    rows: Sequence[Measurement],
    about: Mapping[str, Any],
    further: Mapping[str, Mapping[str, pl.Series]],
) -> dict[str, Any]:
    """Rewrites a stored run with additional metrics, and returns its `run.json`.

    `further` contains additional tables by name. They must not have time columns.

    Raises:
        RunError: a table of the run is damaged.
    """
    names = {row.metric for row in rows}
    before = [Measurement(**row) for row in run.metrics.iter_rows(named=True)]
    every = [*(row for row in before if row.metric not in names), *rows]
    for name in tables_of(run.info):
        if name != "metrics" and name not in further:
            shutil.copyfile(run.file(name), folder / f"{name}.parquet")
    for name, columns in further.items():
        writer = TableWriter(folder / f"{name}.parquet", schemas.table(name, (), schemas.VERSION), TimeKind())
        writer.write(columns)
        writer.close()
    tables = {**_with_metrics(folder, run.info, _as_table(every)), **seal_tables(folder, further)}
    return _written(folder, {**run.info, "metrics": _of_all(every), "tables": tables, **about})


def write_windows(
    folder: Path, run: Run, windows: Mapping[str, Sequence[Measurement]], keep: Keep
) -> dict[str, Any]:
    """Rewrites a run with measurements over other windows, and returns its `run.json`.

    Raises:
        RunError: a table of the run is damaged.
    """
    tables = tables_of(run.info) if keep == "all" else ("metrics",)
    for name in tables:
        shutil.copyfile(run.file(name), folder / f"{name}.parquet")
    info = {key: value for key, value in run.info.items() if key not in ("kept", WINDOWS)}
    info["tables"] = {name: info["tables"][name] for name in tables}
    if keep != "all":
        info["kept"] = keep
    if windows:
        info[WINDOWS] = {key: [list(row) for row in rows] for key, rows in sorted(windows.items())}
    return _written(folder, info)


def _measured(run: Run, plugins: Plugins) -> tuple[dict[str, Any], pl.DataFrame]:
    rows, failed = measure(run, plugins.metrics)
    about = {
        "measured_by": measured_by(plugins) | dict.fromkeys(failed),
        **({"unmeasured": failed} if failed else {}),
        "metrics": _of_all(rows),
        REFUSED: refused_pieces(run),
    }
    return about, _as_table(rows)


def _of_all(rows: Sequence[Measurement]) -> list[dict[str, Any]]:
    return [row._asdict() for row in rows if row.scope == "all"]


def _as_table(rows: Sequence[Measurement]) -> pl.DataFrame:
    columns = zip(*rows, strict=True) if rows else repeat(())
    found = dict(zip(Measurement._fields, columns, strict=False))
    return pl.DataFrame([pl.Series(name, found[name], dtype) for name, dtype in schemas.METRICS.items()])


def _with_metrics(folder: Path, info: Mapping[str, Any], metrics: pl.DataFrame) -> dict[str, Any]:
    writer = TableWriter(folder / "metrics.parquet", schemas.METRICS, TimeKind())
    writer.write(metrics.to_dict())
    writer.close()
    return {**info["tables"], **seal_tables(folder, ["metrics"])}


def _written(folder: Path, info: Mapping[str, Any]) -> dict[str, Any]:
    sealed = seal_info(info)
    (folder / "run.json").write_text(indented_json(sealed) + "\n", encoding="utf-8")
    return sealed


def _play_into(
    folder: Path, plan: Plan, watch: Callable[[int, int], None] | None, keep: Keep
) -> tuple[dict[str, Any], dict[str, ShortTable]]:
    asked, plan = plan, as_heard(plan)
    columns, of_jobs = _prepared(plan)
    jobs = _jobs(plan, columns)
    if not jobs.only_of_trace:
        of_jobs = tenants(jobs.frame, ever(plan.cluster), by_elastic_quotas=plan.by_elastic_quotas)
    there = played_on(plan)
    recorder = ParquetRecorder(
        folder,
        jobs,
        _kind(plan),
        plan.cluster.capacity,
        of_jobs,
        on_nodes=bool(there.nodes) or there.nodes_change,
        files=keep == "all",
    )
    try:
        outcome = _played(plan, jobs, recorder, watch)
    except BaseException:
        recorder.abandon()
        raise
    short = recorder.close(outcome.jobs)
    events = [] if plan.policy.record else plan.events  # a record repeats the recorded events
    info = _describe(asked, jobs, of_jobs, outcome, events)
    if jobs.record is not None:
        info["record"] = {"notes": list(jobs.record.notes)}
    return info, short


def _played(plan: Plan, jobs: Jobs, recorder: Recorder, watch: Callable[[int, int], None] | None) -> Outcome:
    engine = engine_of(plan, jobs.chunks(), recorder)
    policy = made(plan, engine.view)
    with seldom_collected:
        return engine.run(policy, name=plan.label, watch=watch)


def jobs_of(plan: Plan, more: Sequence[Arrival] = ()) -> Jobs:
    """Returns the jobs of a replay in order of arrival."""
    return _jobs(plan, _prepared(plan)[0], more)


def _jobs(plan: Plan, columns: JobColumns, more: Sequence[Arrival] = ()) -> Jobs:
    takes_over = None if plan.policy.running is None else partial(_taken_over, plan)
    later = [] if takes_over is None else plan.at_start.arrivals(takes_over, plan.trace.origin)
    return Jobs(
        columns,
        clairvoyant=plan.policy.clairvoyant,
        running=None if takes_over is None else partial(takes_over, plan.cluster),
        later=sorted([*later, *more], key=lambda arrival: arrival[0].submit),
        source=plan.cluster.source,
    )


def _taken_over(plan: Plan, cluster: Cluster, at: int) -> Sequence[Arrival]:
    return plan.work.of(running_jobs(plan.policy, cluster, at))


def _prepared(plan: Plan) -> tuple[JobColumns, Tenants]:
    """Returns the jobs of the trace in columns, and their queues and quotas.

    The columns of a long trace are not cached for other replays.
    """
    trace, cluster = plan.played, plan.cluster
    choices: dict[str, Any] = {
        "grace_period": plan.settings.grace_period,
        "startup": plan.settings.startup,
        "record": plan.policy.record,
        "scale_arrivals": plan.settings.scale_arrivals,
    }
    columns = job_columns(trace, cluster, **choices)

    def behind() -> Tenants:
        return tenants(columns.frame, ever(cluster), by_elastic_quotas=plan.by_elastic_quotas)

    if trace.frame.height > LONG:
        return columns, behind()
    return columns, _tenants.answer(trace, cluster, behind, (choices, plan.by_elastic_quotas))


def _kind(plan: Plan) -> TimeKind:
    trace = plan.trace
    return TimeKind(trace.origin, trace.kind == "timestamp", trace.time_zone)


def _describe(
    plan: Plan, jobs: Jobs, of_jobs: Tenants, outcome: Outcome, changes: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns the content of `run.json`, which is the same text for the same inputs."""
    trace, cluster, policy = plan.trace, plan.cluster, plan.policy
    ours, theirs = plan.code
    return {
        "schema": schemas.VERSION,
        "run": plan.run_name,
        "label": plan.label,
        "trace": {
            "name": plan.trace_name,
            "sha256": trace.sha256,
            "jobs": len(jobs),
            "mean_duration_us": jobs.mean_duration,
            "resources": list(jobs.resources),
            "origin_us": trace.origin,
            "times": trace.kind,
            "left_out": dict(trace.left_out),
            "notes": list(trace.notes),
            "metadata": dict(trace.metadata),
        },
        "cluster": {
            "sha256": cluster.digest,
            "nodes": len(cluster.nodes),
            "capacity": dict(cluster.capacity),
            "content": plan.content,
            "allocatable": allocatable(cluster, jobs.resources),
            **({"domains": found} if (found := domains(cluster)) else {}),
            "queues": quotas(cluster, by_elastic_quotas=plan.by_elastic_quotas),
            "cohorts": cohorts(cluster),
            **({"events": changes} if changes else {}),
            "quota_of": dict(of_jobs.quotas),
            "assumed": list(cluster.assumed),
            "warnings": list(plan.warnings),
        },
        "policy": {
            "name": policy.name,
            "plugin": policy.owner,
            "version": policy.version,
            "options": dict(plan.options),
            **({"durations": times} if (times := durations(policy.options)) else {}),
            "clairvoyant": policy.clairvoyant,
            **({"record": True} if policy.record else {}),
            **({"assumed": list(plan.assumed)} if plan.assumed else {}),
            "code": _told(theirs),
        },
        "harness": {"code": _told(ours)},
        "settings": plan.recorded,
        **plan.work.told,
        **_ended(plan, outcome),
    }


def _ended(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    return {
        "window": [outcome.start, outcome.end],
        "outcome": {
            "jobs": outcome.jobs,
            "cycles": outcome.cycles,
            "half_bound_gangs": [gang._asdict() for gang in outcome.half_bound],
            **({"stopped": outcome.stopped.plain()} if outcome.stopped is not None else {}),
            **({"asleep": list(outcome.asleep)} if outcome.asleep and not plan.policy.record else {}),
        },
    }


def _told(code: Code) -> dict[str, str]:
    return {"sha256": code.sha256, **({"unknown": code.unknown} if code.unknown else {})}


def _provenance(plan: Plan, command: str | None, wall: float, cpu: float) -> dict[str, Any]:
    """Returns all facts that can differ between repetitions of a run."""
    return {
        "command": command,
        "trace": str(plan.trace.path),
        "cluster": plan.cluster.source,
        "cluster_files": list(plan.cluster.files),
        "versions": versions(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "wall_seconds": round(wall, 3),
        "cpu_seconds": round(cpu, 3),
    }
