"""History that reproduces itself: what a cluster tells of a replay gives, replayed, the same replay."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from live_cluster import LiveCluster

import harness
from harness.base.units import SECOND
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.runs.run import Run

KUEUE = "kueue.x-k8s.io/v1beta2"
GI = 2**30
_MANY = 100


def trace_of(count: int, seed: int) -> pl.DataFrame:
    """Jobs of three namespaces, submitted at different whole seconds, that run for whole seconds."""
    random = Random(seed)
    begin = datetime(2026, 3, 1, 12, tzinfo=UTC)
    width = len(str(count))
    submit, rows = 0, []
    for number in range(count):
        submit += random.randint(1, 40)
        namespace = random.choice(["team-a", "team-b", "team-c"])
        pods = random.choice([1, 1, 1, 2, 3])
        rows.append(
            {
                "job_id": f"{namespace}/job-{number:0{width}}",
                "submit_time": begin + timedelta(seconds=submit),
                "duration": timedelta(seconds=random.choice([20, 90, 300, 1500])),
                "queue": "main",
                "namespace": namespace,
                "request.cpu": random.choice([500, 1000, 3000]),
                "request.memory": random.choice([1, 2]) * GI,
                "pods": pods,
                "gang": pods > 1,
                "priority": random.choice([0, 0, 5, 9]),
                "grace_period": timedelta(seconds=30),
                "uid": f"{number + 1:0{width}}",
            }
        )
    return pl.DataFrame(rows).cast({"pods": pl.Int32, "priority": pl.Int32})


def cluster_of(*, nodes: bool) -> Cluster:
    """Three queues of one cohort that take back from each other, over 32 cores."""
    flavor: dict[str, Any] = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}}
    manifests = [flavor]
    for name, cpu in (("team-a", 16), ("team-b", 12), ("team-c", 4)):
        quotas = [{"name": "cpu", "nominalQuota": cpu}, {"name": "memory", "nominalQuota": f"{cpu}Gi"}]
        spec = {
            "cohortName": "all",
            "namespaceSelector": {},
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "resourceGroups": [
                {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "f", "resources": quotas}]}
            ],
        }
        manifests.append(
            {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}
        )
        door = {"name": "main", "namespace": name}
        to = {"clusterQueue": name}
        manifests.append({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": door, "spec": to})
    if nodes:
        template = {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "20"}}
        pool = {"count": 8, "template": template}
        manifests.append(
            {"apiVersion": "harness/v1", "kind": "NodePool", "metadata": {"name": "n"}, "spec": pool}
        )
    return cluster_from(manifests, "loop")


def replayed(path: Path, plugin: str, cluster: Cluster, folder: Path) -> Run:
    """A run with the tables of what happened."""
    return harness.replay(path, plugin=plugin, cluster=cluster, output=folder)


def close(folder: Path, plugin: str, *, nodes: bool, count: int, seed: int = 1) -> tuple[Run, Run]:
    """A replay, and the replay of what a cluster would tell of it."""
    cluster = cluster_of(nodes=nodes)
    trace = trace_of(count, seed)
    if plugin == "default-preemption":
        # Pods that do not need each other, of some jobs, and where there are many of all: gangs that are
        # placed pod by pod block each other for ever, and a history has only what has ended.
        alone = pl.lit(count > _MANY) | (pl.col("uid").cast(pl.Int64) % 2 == 0)
        trace = trace.with_columns(gang=pl.col("gang") & ~alone)
    trace.write_parquet(folder / "first.parquet")
    first = replayed(folder / "first.parquet", plugin, cluster, folder / "runs")
    objects = LiveCluster(first, trace, kueue=plugin != "default-preemption").objects()
    answer = {"apiVersion": "v1", "kind": "List", "items": objects}
    (folder / "history.json").write_text(json.dumps(answer))
    return first, replayed(folder / "history.json", plugin, cluster, folder / "runs")


def same(first: Run, again: Run) -> None:
    """Waits agree to the second, and of every resource all hours exactly."""
    columns = ("job_id", "submit_time", "start_time", "finish_time", "preemptions", "state")
    once, twice = (
        run.micros("jobs").collect().select(*columns, "request.cpu", "request.memory")
        for run in (first, again)
    )
    assert first.info["trace"]["origin_us"] == again.info["trace"]["origin_us"]
    assert twice.rows() == once.rows()
    of_all = pl.col("metric").str.starts_with("utilization."), pl.col("scope") == "all"  # Pods name no queue
    hours = [run.metrics.filter(*of_all).sort("metric", "resource") for run in (first, again)]
    assert hours[1].equals(hours[0])


CASES = [
    (plugin, nodes)
    for plugin, worlds in (
        ("kueue-classic", (False, True)),
        ("fairsharing", (False, True)),
        ("default-preemption", (True,)),
    )
    for nodes in worlds
]


@pytest.mark.parametrize(
    ("plugin", "nodes"),
    [pytest.param(*each, marks=pytest.mark.nightly if each[0] == "fairsharing" else ()) for each in CASES],
)
def test_the_history_of_a_replay_replays_it(tmp_path: Path, plugin: str, nodes: bool) -> None:
    """Also where jobs were preempted, or waited for nodes or the rest of their gang after their admission."""
    first, again = close(tmp_path, plugin, nodes=nodes, count=70)
    assert first.jobs["preemptions"].sum() > 0
    assert first.jobs["state"].unique().to_list() == ["finished"]
    same(first, again)


@pytest.mark.parametrize(("plugin", "nodes"), [("kueue-classic", False), ("fairsharing", True)])
def test_a_dump_in_the_middle_replays_what_has_ended(tmp_path: Path, plugin: str, nodes: bool) -> None:
    """One answer of a cluster is trace and cluster: what still ran or waited comes when it was created."""
    cluster = cluster_of(nodes=nodes)
    trace = trace_of(70, seed=3)
    trace.write_parquet(tmp_path / "first.parquet")
    first = replayed(tmp_path / "first.parquet", plugin, cluster, tmp_path / "runs")
    jobs = first.micros("jobs").collect()
    end = jobs["finish_time"].sort()[jobs.height // 2]
    middle = -(-end // SECOND) * SECOND
    objects = LiveCluster(first, trace, kueue=True, at=middle).objects()
    items = [*cluster.manifests, *objects]
    (tmp_path / "dump.json").write_text("\n".join(json.dumps(item) for item in items))
    again = harness.replay(
        tmp_path / "dump.json",
        plugin=plugin,
        cluster=tmp_path / "dump.json",
        output=tmp_path / "runs",
        unfinished="limit",
    )
    assert again.info["settings"]["at_start"] == "empty"
    ended = jobs.filter(pl.col("finish_time") <= middle)
    columns = ("job_id", "submit_time", "start_time", "finish_time", "preemptions")
    found = again.micros("jobs").collect()
    assert found.height == jobs.filter(pl.col("submit_time") <= end).height
    assert found.height > ended.height + 5
    assert found.filter(pl.col("state") == "finished").select(columns).rows() == ended.select(columns).rows()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("plugin", "nodes"), CASES)
def test_the_history_of_2000_jobs_replays_it(tmp_path: Path, plugin: str, nodes: bool, seed: int) -> None:
    """As above."""
    first, again = close(tmp_path, plugin, nodes=nodes, count=2000, seed=seed)
    assert first.jobs["state"].unique().to_list() == ["finished"]
    same(first, again)
