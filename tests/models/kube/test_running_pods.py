"""Pods that run already when a replay begins."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from kube_worlds import World, job, manifest, node

from harness.base.errors import ClusterError
from harness.base.units import SECOND
from harness.cluster.load import cluster_from
from harness.models.kube.running import running_jobs
from harness.policy import ENDLESS


def running(name: str, cpu: int, start: str = "2026-01-01T00:00:00Z", **spec: Any) -> dict[str, Any]:
    """A Pod manifest as kubectl prints it of a pod on n1."""
    found = manifest(name, {"cpu": cpu}, nodeName="n1", **spec)
    return {**found, "status": {"phase": "Running", "startTime": start}}


def replay(objects: list[dict[str, Any]], *jobs: Any, until: int = 100) -> World:
    """A replay that begins with the pods of the manifests."""
    return World(objects, *running_jobs(cluster_from(objects, "test")), *jobs, until=until)


def test_they_hold_their_nodes_before_anything_is_scheduled() -> None:
    """A pod that arrives at the very beginning finds the node taken."""
    world = replay([node("n1"), running("a", 8, priority=5)], job("x", {"cpu": 4}))
    assert world.lines == ["0 bind default/a on n1"]
    assert world.states == {"default/a": "running", "x": "pending"}


def test_what_a_node_has_no_room_for_waits() -> None:
    """Who started last; pods that end already do not count."""
    ends = {**running("gone", 20), "metadata": {"name": "gone", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    fitting = [node("n1"), running("a", 8), running("b", 2), ends]
    assert len(running_jobs(cluster_from(fitting, "test"))) == 2
    world = replay([*fitting, running("c", 10, start="2025-12-31T00:00:00Z")])
    assert world.lines == ["0 bind default/c on n1"]
    assert world.states == {"default/a": "pending", "default/b": "pending", "default/c": "running"}


def test_they_do_not_keep_a_replay_alive() -> None:
    """Nobody knows how long they run, so a replay ends when the work of the trace has ended."""
    objects = [node("n1"), running("a", 8)]
    world = World(objects, *running_jobs(cluster_from(objects, "test")), job("x", {"cpu": 2}, runs=10))
    assert world.lines[-1] == "10 finish x"


def test_they_can_be_preempted_and_come_back_as_any_pod() -> None:
    """The successor waits for room on any node."""
    objects = [node("n1"), node("n2"), running("a", 8, terminationGracePeriodSeconds=5)]
    world = replay(
        objects,
        job("big", {"cpu": 10}, priority=10, at=1, runs=50, nodeSelector={"kubernetes.io/hostname": "n1"}),
    )
    assert world.lines == [
        "0 bind default/a on n1",
        "1 preempt default/a by big on n1",
        "1 nominate big on n1",
        "6 gone default/a",
        "6 bind big on n1",
        "6 bind default/a-r1 on n2",
        "56 finish big",
    ]


def test_pods_of_another_scheduler_hold_resources_and_are_not_scheduled() -> None:
    """One that waits is left alone, one that is preempted does not come back; the profile names ours."""
    other = {"schedulerName": "volcano", "terminationGracePeriodSeconds": 5}
    waits = manifest("b", {"cpu": 1}, schedulerName="volcano")
    objects = [node("n1"), node("n2"), running("a", 8, **other), waits]
    big = job("big", {"cpu": 10}, priority=10, at=1, runs=50, nodeSelector={"kubernetes.io/hostname": "n1"})
    world = replay(objects, big)
    assert world.lines == [
        "0 bind default/a on n1",
        "1 preempt default/a by big on n1",
        "1 nominate big on n1",
        "6 gone default/a",
        "6 bind big on n1",
        "56 finish big",
    ]
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "volcano"}],
    }
    assert "0 bind default/b on n2" in replay([*objects, configuration]).lines


def test_a_pod_that_is_being_resized_holds_what_its_containers_have() -> None:
    """Its manifest says less than the kubelet allocated, so that a second pod of that size has no room."""
    resized = running("a", 2)
    resized["spec"]["containers"][0]["name"] = "c"
    told = [{"name": "c", "allocatedResources": {"cpu": "6"}, "resources": {"requests": {"cpu": "6"}}}]
    resized["status"]["containerStatuses"] = told
    world = replay([node("n1"), resized], job("b", {"cpu": 5}, at=1), job("c", {"cpu": 4}, at=1))
    assert world.lines == ["0 bind default/a on n1", "1 bind c on n1"]


@pytest.mark.parametrize("gate", ["example.com/quota", "kueue.x-k8s.io/admission"])
def test_a_pod_that_a_gate_holds_back_is_not_scheduled(gate: str) -> None:
    """Nobody knows when its controller removes the gate; Kueue's own gates mean nothing without Kueue."""
    waits = manifest("b", {"cpu": 10}, schedulingGates=[{"name": gate}])
    bound = ["0 bind default/b on n1"] if gate.startswith("kueue") else []
    assert replay([node("n1"), waits]).lines == bound


def test_the_latest_start_decides_between_them() -> None:
    """Of two equal victims the one that started last is preempted, as the manifests say."""
    objects = [
        node("n1"),
        running("late", 5, "2026-01-02T00:00:00Z", terminationGracePeriodSeconds=50),
        running("early", 5, "2026-01-01T00:00:00Z", terminationGracePeriodSeconds=50),
    ]
    world = replay(objects, job("p", {"cpu": 5}, priority=1, at=1))
    assert world.about("preempt") == ["1 preempt default/late by p on n1"]


def test_pods_that_have_ended_or_are_leaving_hold_nothing() -> None:
    """What is Succeeded, Failed or terminating is not there any more."""
    over = {**running("over", 5), "status": {"phase": "Succeeded"}}
    leaving = running("leaving", 5)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = cluster_from([node("n1"), over, leaving], "test")
    assert running_jobs(cluster) == []


def test_priority_comes_from_the_class_when_the_pod_does_not_say() -> None:
    """An absent class means the global default."""
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "globalDefault": default,
        }
        for name, value, default in (("high", 1000, False), ("usual", 10, True))
    ]
    objects = [node("n1"), *classes, running("a", 1, priorityClassName="high"), running("b", 1)]
    found = running_jobs(cluster_from(objects, "test"))
    assert [(each.id, each.priority, run) for each, run, _ in found] == [
        ("default/a", 1000, ENDLESS),
        ("default/b", 10, ENDLESS),
    ]


def test_an_unknown_priority_class_is_an_error_that_names_the_pod() -> None:
    """A pod whose class does not exist cannot be ordered."""
    with pytest.raises(ClusterError, match="there is no PriorityClass 'hgih'"):
        cluster_from([node("n1"), running("a", 1, priorityClassName="hgih")], "test")


def test_a_pod_on_a_node_without_a_manifest_is_warned_of() -> None:
    """It is left out, and that is said."""
    cluster = cluster_from([node("n2"), running("a", 1)], "test")
    assert running_jobs(cluster) == []
    assert cluster.warnings == ("Pod default/a: runs on node n1, which no manifest describes",)


@pytest.mark.parametrize("nominated", ["", "n1", "n2"])
def test_a_pod_that_is_terminating_is_gone_in_time_and_room_is_kept_for_who_is_nominated(
    nominated: str,
) -> None:
    """Who preempted it waits for it, and nobody less important takes the room; others are nominated anew."""
    ends = running("ends", 6)
    ends["metadata"] |= {"deletionTimestamp": "2026-01-01T01:00:20Z"}
    preempted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    ends["status"] |= {"conditions": [preempted]}
    waits = manifest("waits", {"cpu": 8}, priority=5)
    waits["status"] = {"phase": "Pending", "nominatedNodeName": nominated}
    objects = [node("n1"), ends, running("stays", 1, priority=9), waits]
    as_of = int(datetime(2026, 1, 1, 1, tzinfo=UTC).timestamp()) * SECOND
    dump = replace(cluster_from(objects, "test"), as_of=as_of)
    world = World(objects, *running_jobs(dump), job("small", {"cpu": 3}, at=1), until=60)
    there = ["0 bind default/ends on n1", "0 bind default/stays on n1"]
    kept = ["20 finish default/ends", "20 bind default/waits on n1"]
    anew = [] if nominated == "n1" else ["0 nominate default/waits on n1"]
    assert world.lines == [*there, *anew, *kept]
