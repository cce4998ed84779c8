"""A recording becomes a trace and a table of events, and a replay of both gives the starts of the record."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cli_environment import called
from watched_cluster import BEGIN, Manifest, Story, WatchedCluster

pytest.importorskip("lightkube", reason="recording needs lightkube: pip install 'harness-replay[live]'")

from harness.base.units import SECOND
from harness.cluster.load import cluster_from
from harness.cluster.manifests import dump_yaml
from harness.runs.run import Run

KUEUE = "kueue.x-k8s.io/v1beta2"


def quotas(cpu: int) -> list[dict[str, Any]]:
    """The resource groups of a queue with so many cores."""
    resources = [{"name": "cpu", "nominalQuota": cpu}]
    return [{"coveredResources": ["cpu"], "flavors": [{"name": "any", "resources": resources}]}]


QUEUE: Manifest = {
    "apiVersion": KUEUE,
    "kind": "ClusterQueue",
    "metadata": {"name": "q", "uid": "q"},
    "spec": {"namespaceSelector": {}, "resourceGroups": quotas(8)},
}
LOCAL: Manifest = {
    "apiVersion": KUEUE,
    "kind": "LocalQueue",
    "metadata": {"name": "lq", "namespace": "team"},
    "spec": {"clusterQueue": "q"},
}
FLAVOR: Manifest = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "any"}}


def node(name: str) -> Manifest:
    """A node of four cores."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "pods": "110"}},
    }


def at(seconds: int) -> str:
    """A time of the story, as manifests have it."""
    return (BEGIN + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


JOBS = (
    # name, created, started, ended, cores
    ("a", 0, 0, 200, 4),
    ("b", 0, 0, 100, 4),
    ("c", 205, 241, 341, 4),
    ("d", 260, 341, 391, 4),
    ("e", 520, 520, 620, 2),
    ("f", 530, 620, 720, 4),
)
"""Pods with their times in seconds, as a cluster with these events would have run them."""


def versions(name: str, created: int, started: int, ended: int, cores: int) -> Iterator[tuple[int, Manifest]]:
    """A pod that waits, runs and ends."""
    container = {"name": "main", "resources": {"requests": {"cpu": str(cores)}}}
    labels = {"kueue.x-k8s.io/queue-name": "lq"}
    made: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "creationTimestamp": at(created),
            "labels": labels,
        },
        "spec": {"containers": [container]},
        "status": {"phase": "Pending"},
    }
    yield created, made
    ready = {"phase": "Running", "startTime": at(started)}
    yield started, {**made, "status": ready}
    over = {"terminated": {"exitCode": 0, "finishedAt": at(ended)}}
    yield ended, {**made, "status": {**ready, "phase": "Succeeded", "containerStatuses": [{"state": over}]}}


@pytest.fixture
def story() -> WatchedCluster:
    """Two nodes and a quota: a cordon, a node that is away and returns smaller, a taint, and half a quota."""
    one, two = node("n1"), node("n2")
    cordon = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    broken = [{"key": "disk", "value": "slow", "effect": "NoSchedule"}]
    small = {**one, "metadata": {**one["metadata"], "uid": "n1-again"}}
    small["status"] = {"allocatable": {"cpu": "2", "pods": "110"}}
    steps: list[tuple[int, str, Manifest]] = [
        (0, "ADDED", QUEUE),
        (0, "ADDED", one),
        (0, "ADDED", two),
        (90, "MODIFIED", {**two, "spec": {"unschedulable": True}}),
        (91, "MODIFIED", {**two, "spec": {"unschedulable": True, "taints": cordon}}),
        (240, "MODIFIED", {**two, "spec": {"taints": cordon}}),
        (241, "MODIFIED", two),
        (203, "DELETED", one),
        (500, "ADDED", small),
        (510, "MODIFIED", {**QUEUE, "spec": {**QUEUE["spec"], "resourceGroups": quotas(4)}}),
        (700, "MODIFIED", {**two, "spec": {"taints": broken}}),
    ]
    for job in JOBS:
        first, *others = versions(*job)
        steps += [(first[0], "ADDED", first[1]), *((when, "MODIFIED", pod) for when, pod in others)]
    said = Story()
    for when, event, manifest in sorted(steps, key=lambda step: step[0]):
        said.happens(when, event, manifest)
    return said.cluster


EXPECTED = [
    # from, until, kind, name, field, value
    (0, None, "ClusterQueue", "q", "quota[any/cpu]", "8"),
    (0, None, "Node", "n1", "resize", "cpu=4"),
    (90, 240, "Node", "n2", "cordon", ""),
    (203, 500, "Node", "n1", "remove", ""),
    (500, None, "Node", "n1", "resize", "cpu=2"),
    (510, None, "ClusterQueue", "q", "quota[any/cpu]", "4"),
    (700, None, "Node", "n2", "taint", "disk=slow:NoSchedule"),
]


def test_a_recording_gives_a_trace_and_events_and_a_replay_of_both_gives_its_starts(
    recorded: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table has each change at its second. Jobs wait for the cordoned node, the lost one, and quota.

    Without the events nobody would wait at all.
    """
    folder = recorded()
    trace, table, world = (tmp_path / name for name in ("march.parquet", "march.csv", "world.yaml"))
    assert called(["trace", "convert", str(folder), str(trace)]) == 0
    assert called(["cluster", "events", str(folder), "-o", str(table)]) == 0
    with table.open(encoding="utf-8") as file:
        found = [tuple(row.values()) for row in csv.DictReader(file)]
    dated = [(at(begin), "" if end is None else at(end), *rest) for begin, end, *rest in EXPECTED]
    assert [tuple(cell.replace("+00:00", "Z") for cell in row) for row in found] == dated
    today = cluster_from([FLAVOR, QUEUE, LOCAL, node("n1"), node("n2")], "the test")
    world.write_text(dump_yaml(today.manifests))
    line = ["replay", str(trace), "--cluster", str(world), "-p", "kueue-classic", "-q"]
    starts = {}
    for name, more in (("with", ["--events", str(table)]), ("without", [])):
        assert called([*line, *more, "-o", str(tmp_path / name)]) == 0
        (made,) = (tmp_path / name).glob("*/*")
        jobs = Run.open(made).micros("jobs").select("job_id", "start_time").collect()
        starts[name] = {job.partition("/")[2]: start // SECOND for job, start in jobs.iter_rows()}
    capsys.readouterr()
    assert starts["with"] == {name: started for name, _, started, *_ in JOBS}
    assert starts["without"] == {"a": 0, "b": 0, "c": 205, "d": 260, "e": 520, "f": 530}
