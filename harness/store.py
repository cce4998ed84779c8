"""Where runs are kept: each a folder that is written aside and renamed, so that it is whole or absent."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from harness import tables
from harness.cluster.model import Cluster
from harness.engine import Engine
from harness.engine.engine import Outcome
from harness.errors import RunError
from harness.metrics.measurement import Measurement, Window
from harness.parquet import TableWriter, TimeKind
from harness.plugins import Plugins
from harness.recorder import ParquetRecorder
from harness.run import TABLES, Plan, Run
from harness.trace.jobs import Jobs


class Store:
    """Runs under one folder, as `<root>/<trace>/<run>`.

    Args:
        root: the folder; made when the first run is kept.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, plan: Plan) -> Path:
        """Where a plan's run is kept."""
        return self.root / plan.trace_name / plan.run_name

    def find(self, plan: Plan) -> Run | None:
        """The run of a plan if it is there and whole."""
        path = self.path(plan)
        try:
            return Run.open(path, stored=True) if path.is_dir() else None
        except RunError:
            return None

    def record(
        self,
        plan: Plan,
        plugins: Plugins,
        *,
        watch: Callable[[int, int], None] | None = None,
        command: str | None = None,
    ) -> Run:
        """Replay a plan and keep the run; a run of the same name is replaced.

        Raises:
            RunError: the folder cannot be written.
            HarnessError: whatever stopped the replay; nothing is left behind.
        """
        path = self.path(plan)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = Path(tempfile.mkdtemp(prefix=f".{plan.run_name}.", dir=path.parent))
        except OSError as error:
            raise RunError(
                f"{path} cannot be written: {error.strerror}", hint="choose another folder with -o"
            ) from error
        try:
            info = _replay_into(partial, plan, plugins, watch, command)
            if path.exists():
                shutil.rmtree(path)
            partial.chmod(0o755)
            partial.rename(path)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return Run(path, info)


def measure(run: Run, plugins: Plugins, window: Window | None = None) -> list[Measurement]:
    """Every registered metric of a run.

    Args:
        run: the run.
        plugins: who registered metrics.
        window: what to measure; the run's own by default.
    """
    window = window or run.window
    return [row for spec in plugins.metrics for row in spec.compute(run, window)]


def _replay_into(
    folder: Path,
    plan: Plan,
    plugins: Plugins,
    watch: Callable[[int, int], None] | None,
    command: str | None,
) -> dict[str, Any]:
    """Write the tables and `run.json`; answers what the latter says."""
    began, cpu = time.time(), time.process_time()
    jobs = Jobs(
        plan.trace,
        plan.cluster,
        grace_period=plan.grace_period,
        scale_arrivals=plan.scale_arrivals,
        clairvoyant=plan.policy.clairvoyant,
    )
    trace = plan.trace
    kind = TimeKind(trace.origin, trace.kind == "timestamp", trace.time_zone)
    recorder = ParquetRecorder(folder, jobs, kind, plan.cluster.capacity, on_nodes=bool(plan.cluster.nodes))
    engine = Engine(jobs.chunks(), plan.cluster, recorder, losses=plan.losses, until=plan.until)
    try:
        policy = plan.policy.factory(plan.cluster, engine.view, plan.options)
        outcome = engine.run(policy, name=plan.label, watch=watch)
    except BaseException:
        recorder.abandon()
        raise
    recorder.close(outcome.jobs)
    info = _describe(plan, jobs, outcome)
    rows = measure(Run(folder, info), plugins)
    writer = TableWriter(folder / "metrics.parquet", tables.METRICS, kind)
    writer.write(
        pl.DataFrame(rows, schema=list(Measurement._fields), orient="row", infer_schema_length=None).to_dict()
    )
    writer.close()
    info["metrics"] = [row._asdict() for row in rows if row.scope == "all"]
    info["provenance"] = _provenance(plan, command, time.time() - began, time.process_time() - cpu)
    (folder / "run.json").write_text(json.dumps(info, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert all((folder / f"{name}.parquet").is_file() for name in TABLES)
    return info


def _describe(plan: Plan, jobs: Jobs, outcome: Outcome) -> dict[str, Any]:
    """What a run says of itself; the same inputs give the same text."""
    trace, cluster, policy = plan.trace, plan.cluster, plan.policy
    return {
        "schema": tables.VERSION,
        "run": plan.run_name,
        "label": plan.label,
        "trace": {
            "name": plan.trace_name,
            "sha256": trace.sha256,
            "jobs": len(jobs),
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
            "queues": _queues(cluster),
            "assumed": list(cluster.assumed),
            "warnings": list(cluster.warnings),
        },
        "policy": {
            "name": policy.name,
            "plugin": policy.owner,
            "version": policy.version,
            "options": dict(plan.options),
            "clairvoyant": policy.clairvoyant,
        },
        "settings": plan.settings,
        "window": [outcome.start, outcome.end],
        "outcome": {
            "jobs": outcome.jobs,
            "cycles": outcome.cycles,
            "half_bound_gangs": list(outcome.half_bound),
        },
    }


def _queues(cluster: Cluster) -> dict[str, Any]:
    queues = {}
    for queue in cluster.cluster_queues.values():
        nominal: dict[str, int] = {}
        for group in queue.resource_groups:
            for flavor in group.flavors:
                for resource, quota in flavor.resources.items():
                    nominal[resource] = nominal.get(resource, 0) + quota.nominal
        queues[queue.name] = {"cohort": queue.cohort, "weight": str(queue.weight), "nominal": nominal}
    return queues


def _provenance(plan: Plan, command: str | None, wall: float, cpu: float) -> dict[str, Any]:
    """What may differ between repeats of one run, all in one place."""
    return {
        "command": command,
        "trace": str(plan.trace.path),
        "cluster": plan.cluster.source,
        "versions": {
            "harness": version("harness-replay"),
            "python": platform.python_version(),
            "polars": pl.__version__,
            "pyarrow": pa.__version__,
        },
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "wall_seconds": round(wall, 3),
        "cpu_seconds": round(cpu, 3),
    }
