"""Random worlds of Kueue's topologies whose nodes fail and return, checked from outside."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import harness
from harness.cluster.load import cluster_from
from harness.plugins import load
from harness.testing.checks import check_run
from harness.trace.trace import open_trace

KUEUE = "kueue.x-k8s.io/v1beta2"
HOST = "kubernetes.io/hostname"
WORLDS = 6


def manifests(random: Random) -> list[dict[str, Any]]:
    """Some nodes of two racks, a queue that may preempt within itself, and what becomes of the nodes."""
    names = [f"n{number}" for number in range(random.randint(4, 6))]
    found: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"rack": random.choice("rs"), HOST: name}},
            "status": {"allocatable": {"cpu": random.randint(2, 6), "pods": 9}},
        }
        for name in names
    ]
    levels = {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": HOST}]}
    cpu = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": random.randint(6, 30)}]}]
    queue = {
        "namespaceSelector": {},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": cpu}],
    }
    for kind, name, spec in (("Topology", "t", levels), ("ResourceFlavor", "f", {"topologyName": "t"})):
        found.append({"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, "spec": spec})
    found.append({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": queue})
    for _ in range(random.randint(1, 8)):
        since = random.randint(1, 60)
        times = {"harness/from": f"{since}s", "harness/until": f"{since + random.randint(1, 30)}s"}
        what: dict[str, Any] = random.choice(
            (
                {"$patch": "delete"},
                {"$patch": "delete"},
                {"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}},
                {"spec": {"unschedulable": True}},
                {"status": {"allocatable": {"cpu": 1}}},
            )
        )
        metadata = {"name": random.choice(names), "annotations": times}
        found.append({"apiVersion": "v1", "kind": "Node", "metadata": metadata, **what})
    return found


def trace(random: Random, file: Path) -> Path:
    """Gangs and jobs of independent pods that ask for a rack, rather for one, or for none."""
    rows = [
        {
            "job_id": f"j{number}",
            "submit_time": random.randint(0, 40),
            "duration": random.randint(1, 40),
            "queue": "q",
            "pods": random.randint(1, 4),
            "gang": random.random() < 0.7,
            "priority": random.choice((0, 0, 5)),
            "grace_period": random.choice((0, 0, 3)),
            "request.cpu": random.choice((500, 1000, 2000)),
            "topology_required": random.choice((None, None, "rack")),
        }
        for number in range(random.randint(3, 14))
    ]
    table = pl.DataFrame(rows, schema_overrides={"topology_required": pl.String}).sort("submit_time")
    times = [
        pl.duration(seconds=pl.col(name)).alias(name) for name in ("submit_time", "duration", "grace_period")
    ]
    table.with_columns(*times, pl.col("pods", "priority").cast(pl.Int32)).write_parquet(file)
    return file


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
def test_nothing_is_held_beyond_what_is_there(plugin: str, tmp_path: Path) -> None:
    """And what the tables say follows from the decisions, whatever became of the nodes."""
    plugins = load(block=["metrics"])
    told = 0
    for seed in range(WORLDS):
        random = Random(seed)
        where = cluster_from(manifests(random), "the world")
        file = trace(random, tmp_path / f"{seed}.parquet")
        run = harness.replay(
            file, plugin=plugin, cluster=where, output=tmp_path / "results", until="10m", plugins=plugins
        )
        assert [str(each) for each in check_run(run, where, open_trace(file, plugins))] == [], seed
        told += run.decisions["action"].is_in(["mark", "replace"]).sum()
    assert told > WORLDS / 2
