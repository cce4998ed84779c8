"""Worlds with planted faults: a record whose capacity was not there, held by jobs that the trace lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

import harness
from harness.analysis.validation import Validation
from harness.base.units import MINUTE, SECOND
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.plugins import load
from harness.runs.outcome import outcome_of
from harness.trace.trace import open_trace
from harness.trace.write import write_trace

PLUGINS = load()
KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUES = {"a": 32, "b": 24, "c": 16}
POOLS = {"x": 5, "y": 4}


def cluster_of(queues: dict[str, int], pools: dict[str, int], node_cpu: int = 8) -> Cluster:
    """ClusterQueues of one cohort with so many cpu, and pools of nodes of 8 cpu with the label `pool`."""
    manifests: list[dict[str, Any]] = []
    if queues:
        manifests.append({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}})
    for name, cpu in queues.items():
        flavor = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
        spec = {
            "cohortName": "all",
            "namespaceSelector": {},
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
        }
        manifests.append(
            {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}
        )
    for name, count in pools.items():
        template = {
            "metadata": {"labels": {"pool": name}},
            "allocatable": {"cpu": str(node_cpu), "memory": "64Gi", "pods": "50"},
        }
        spec = {"count": count, "template": template}
        manifests.append(
            {"apiVersion": "harness/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}
        )
    return cluster_from(manifests, "world")


def jobs_of(count: int, seed: int, days: int, part: float, pools: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Jobs of 1 to 4 cpu at random times that ask for a part of 72 cpu on average."""
    random = Random(seed)
    mean = part * sum(QUEUES.values()) * days * 86_400 / count / 2
    return [
        {
            "job_id": f"j{number:05}",
            "submit_time": int(random.random() * days * 86_400) * SECOND,
            "duration": int(random.expovariate(1 / mean)) * SECOND + MINUTE,
            "queue": random.choices(list(QUEUES), weights=list(QUEUES.values()))[0],
            "request.cpu": 1000 * random.choice([1, 1, 2, 4]),
            "priority": 0,
            "pool": random.choice(pools) if pools else None,
        }
        for number in range(count)
    ]


def held(count: int, queue: str, start: int, length: int, pool: str | None = None) -> list[dict[str, Any]]:
    """Important jobs of one cpu that hold capacity which is not there."""
    row = {"submit_time": start, "duration": length, "queue": queue, "request.cpu": 1000, "priority": 9}
    return [{"job_id": f"p{number}", "pool": pool, **row} for number in range(count)]


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    frame = pl.DataFrame(rows, schema_overrides={"pool": pl.String}).sort("submit_time", maintain_order=True)
    selector = pl.concat_list(pl.struct(key=pl.lit("pool"), value=pl.col("pool")))
    frame.select(
        "job_id",
        pl.col("submit_time", "duration").cast(pl.Duration("us")),
        "queue",
        "request.cpu",
        pl.col("priority").cast(pl.Int32),
        *([selector.alias("node_selector")] if frame["pool"].null_count() == 0 else []),
    ).write_parquet(path)
    return path


def validated(
    folder: Path,
    rows: Sequence[dict[str, Any]],
    cluster: Cluster,
    plugin: str = "kueue-classic",
    unseen: Sequence[dict[str, Any]] = (),
    without: Sequence[str] = (),
    **truth: Any,
) -> Validation:
    """What a replay with unseen jobs says to one without them; `truth` are settings of the former."""
    real = harness.replay(
        write(folder / "real.parquet", [*rows, *unseen]),
        plugin=plugin,
        cluster=cluster,
        output=folder,
        **truth,
    )
    outcome = outcome_of(real, PLUGINS)
    gone = pl.col("job_id").is_in([*(row["job_id"] for row in unseen), *without])
    write_trace(replace(outcome, frame=outcome.frame.filter(~gone)), folder / "record.parquet")
    runs = [
        harness.replay(folder / "record.parquet", plugin=name, cluster=cluster, output=folder)
        for name in ("recorded", plugin)
    ]
    return Validation(open_trace(folder / "record.parquet", PLUGINS), cluster, *runs)
