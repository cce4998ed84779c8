"""Where runs are kept: each a folder that is written aside and renamed, so that it is whole or absent."""

from __future__ import annotations

import gc
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from harness import tables
from harness.engine import Engine
from harness.engine.engine import Outcome
from harness.errors import HarnessError, PluginError, PolicyError, RunError
from harness.metrics.measurement import Measurement, Window
from harness.parquet import TableWriter, TimeKind, UnwritableError
from harness.plugins import Plugins
from harness.policy import Policy
from harness.recorder import ParquetRecorder
from harness.run import TABLES, Plan, Run
from harness.tenants import Tenants, quotas, tenants
from harness.trace.jobs import Jobs

_OBJECTS_BETWEEN_COLLECTIONS = 50_000


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

    def find(self, plan: Plan, plugins: Plugins) -> Run | None:
        """The run of a plan if it is there, whole, and measured by the metrics that there are now."""
        try:
            run = Run.open(self.path(plan), stored=True)
        except RunError:
            return None
        return run if run.info.get("measured_by") == _measured_by(plugins) else None

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
            with _aside(path) as folder:
                info = _replay_into(folder, plan, plugins, watch, command)
                _replace(path, folder)
        except (OSError, UnwritableError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise RunError(
                f"{path} cannot be written: {reason or error}", hint="choose another folder with -o"
            ) from error
        return Run(path, info)


@contextmanager
def _aside(path: Path) -> Iterator[Path]:
    """A new folder beside a path; whatever is left there in the end is thrown away."""
    try:
        str(path).encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except ValueError as error:  # a null character, or bytes that are no UTF-8
        raise OSError(EINVAL, "no folder can have this name") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _replace(path: Path, whole: Path) -> None:
    """Put a whole run into its place; what was there is thrown away."""
    whole.chmod(0o755)
    with _aside(path) as old:
        with suppress(FileNotFoundError):
            path.rename(old / path.name)
        try:
            whole.rename(path)
        except OSError:
            if not (path / "run.json").is_file():  # else another process was quicker with the same run
                raise


def measure(run: Run, plugins: Plugins, window: Window | None = None) -> list[Measurement]:
    """Every registered metric of a run.

    Args:
        run: the run.
        plugins: who registered metrics.
        window: what to measure; the run's own by default.
    """
    window = window or run.window
    found: list[Measurement] = []
    for spec in plugins.metrics:
        try:
            found += (
                row._replace(value=None if row.value is None else float(row.value))
                for row in spec.compute(run, window)
            )
        except HarnessError:
            raise
        except Exception as error:
            raise PluginError(
                f"metric {spec.name!r} of plugin {spec.owner!r} failed: {type(error).__name__}: {error}",
                hint=f"--debug shows where; --no-plugin {spec.owner} leaves it out",
            ) from error
    return found


def _measured_by(plugins: Plugins) -> dict[str, str]:
    """Metric -> the plugin that computes it, with its version: another set gives other tables."""
    return {spec.name: f"{spec.owner} {spec.version}".strip() for spec in plugins.metrics}


def _replay_into(
    folder: Path,
    plan: Plan,
    plugins: Plugins,
    watch: Callable[[int, int], None] | None,
    command: str | None,
) -> dict[str, Any]:
    """Write the tables and `run.json`; answers what the latter says."""
    began, cpu = time.time(), time.process_time()
    info = _play_into(folder, plan, watch)
    rows = measure(Run(folder, info), plugins)
    writer = TableWriter(folder / "metrics.parquet", tables.METRICS, _kind(plan))
    writer.write(
        pl.DataFrame(rows, schema=list(Measurement._fields), orient="row", infer_schema_length=None).to_dict()
    )
    writer.close()
    info["measured_by"] = _measured_by(plugins)
    info["metrics"] = [row._asdict() for row in rows if row.scope == "all"]
    info["provenance"] = _provenance(plan, command, time.time() - began, time.process_time() - cpu)
    (folder / "run.json").write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")
    assert all((folder / f"{name}.parquet").is_file() for name in TABLES)
    return info


def _play_into(folder: Path, plan: Plan, watch: Callable[[int, int], None] | None) -> dict[str, Any]:
    """Replay, and write the tables of what happened; answers what the run says of itself.

    Nothing of the replay outlives it: metrics read the tables.
    """
    takes_over = plan.policy.running
    jobs = Jobs(
        plan.trace,
        plan.cluster,
        grace_period=plan.grace_period,
        scale_arrivals=plan.scale_arrivals,
        clairvoyant=plan.policy.clairvoyant,
        running=None if takes_over is None else partial(takes_over, plan.cluster),
    )
    of_jobs = tenants(jobs.frame, plan.cluster)
    recorder = ParquetRecorder(
        folder, jobs, _kind(plan), plan.cluster.capacity, of_jobs, on_nodes=bool(plan.cluster.nodes)
    )
    engine = Engine(jobs.chunks(), plan.cluster, recorder, losses=plan.losses, until=plan.until)
    try:
        policy = _made(plan, engine)
        with _seldom_collected():
            outcome = engine.run(policy, name=plan.label, watch=watch)
    except BaseException:
        recorder.abandon()
        raise
    recorder.close(outcome.jobs)
    return _describe(plan, jobs, of_jobs, outcome)


def _kind(plan: Plan) -> TimeKind:
    """How times are written: as in the trace."""
    trace = plan.trace
    return TimeKind(trace.origin, trace.kind == "timestamp", trace.time_zone)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Let the garbage collector run less often: a replay makes millions of objects and hardly any circles.

    With the defaults it takes about a tenth of a long replay's time, and finds nothing.
    """
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _made(plan: Plan, engine: Engine) -> Policy:
    try:
        return plan.policy.factory(plan.cluster, engine.view, plan.options)
    except HarnessError:
        raise
    except Exception as error:
        raise PolicyError(
            f"policy {plan.label} cannot be made: {type(error).__name__}: {error}", hint="--debug shows where"
        ) from error


def _describe(plan: Plan, jobs: Jobs, of_jobs: Tenants, outcome: Outcome) -> dict[str, Any]:
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
            "queues": quotas(cluster),
            "quota_of": dict(of_jobs.quotas),
            "assumed": list(cluster.assumed),
            "warnings": list(plan.warnings),
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
            "half_bound_gangs": [gang._asdict() for gang in outcome.half_bound],
        },
    }


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
