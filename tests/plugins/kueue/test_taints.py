"""NoExecute taints under Kueue with nodes: pods that do not tolerate them go; their jobs keep their quota."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kueue_worlds import Happened, Jobs, Manifest, cluster, configuration, node, pod_set, queue

from harness import Cluster
from harness.cluster.changes.over_time import unrolled

BROKEN = [{"key": "broken", "effect": "NoExecute"}]


def tainted(name: str, begin: int, until: int | None = None, taints: Any = BROKEN) -> Manifest:
    """A patch that taints a node for a while."""
    annotations = {"harness/from": f"{begin}s"}
    if until is not None:
        annotations["harness/until"] = f"{until}s"
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints}}


def gone(name: str, begin: int, until: int) -> Manifest:
    """A patch that takes a node away for a while."""
    found = tainted(name, begin, until)
    del found["spec"]
    return found | {"$patch": "delete"}


def over_time(*manifests: Manifest) -> Cluster:
    return unrolled(cluster(*manifests), None)


def tolerates(seconds: int | None) -> dict[str, Any]:
    toleration = {"key": "broken", "operator": "Exists", "effect": "NoExecute"}
    if seconds is not None:
        toleration["tolerationSeconds"] = seconds
    return {"tolerations": json.dumps([toleration])}


def test_a_pod_goes_alone_and_is_bound_again_while_its_job_keeps_its_quota() -> None:
    """The other pod of the gang stays, and loses its progress with it; nobody else gets the quota."""
    where = over_time(queue("q", cpu=4), node("n1", 2), node("n2", 2), node("n3", 2), tainted("n2", 10))
    jobs = Jobs().add("gang", "q", pod_sets=(pod_set("main", 2, 2),), grace=5, seconds=30)
    jobs.add("next", "q", 2, at=1, seconds=5)
    happened = Happened(where, jobs)
    assert happened.lines("admit", "evict", "gone", "bind", "finish") == [
        "0 admit gang",
        "0 bind gang",
        "0 bind gang",
        "10 evict gang: DeletionByTaintManager",
        "15 gone gang",
        "15 bind gang",
        "45 finish gang",
        "45 admit next",
        "45 bind next",
        "50 finish next",
    ]


@pytest.mark.parametrize(("seconds", "evicted"), [(None, []), (5, ["15"]), (20, ["30"]), (50, [])])
def test_a_toleration_for_a_time_is_respected(seconds: int | None, evicted: list[str]) -> None:
    """The taint is there from 10 s to 40 s; who tolerates it for longer, or for ever, stays."""
    where = over_time(queue("q", cpu=4), node("n1", 2), tainted("n1", 10, 40))
    jobs = Jobs().add("a", "q", pod_sets=(pod_set("main", 1, 2, **tolerates(seconds)),), seconds=60)
    lines = Happened(where, jobs, until=39).lines("evict")
    assert [line.split()[0] for line in lines[:1]] == evicted


def test_a_pod_that_is_bound_where_the_taint_is_stays_as_long_as_it_tolerates_it() -> None:
    """Again and again, as its job's controller makes it anew; nobody else takes its place."""
    node_with = node("n1", 2) | {"spec": {"taints": BROKEN}}
    jobs = Jobs().add("a", "q", pod_sets=(pod_set("main", 1, 2, **tolerates(20)),), seconds=60, grace=0)
    happened = Happened(cluster(queue("q", cpu=4), node_with), jobs, until=50)
    assert happened.lines("bind", "evict") == [
        "0 bind a",
        "20 evict a: DeletionByTaintManager",
        "20 bind a",
        "40 evict a: DeletionByTaintManager",
        "40 bind a",
    ]


def test_a_pod_that_goes_by_a_taint_goes_with_its_job_where_that_is_preempted() -> None:
    """It is told to go at 10 s and has 30 s; its job is preempted at 12 s and is gone as a whole at 42 s."""
    policies = {"withinClusterQueue": "LowerPriority"}
    where = over_time(queue("q", cpu=4, preemption=policies), node("n1", 2), node("n2", 2), tainted("n2", 10))
    jobs = Jobs().add("low", "q", pod_sets=(pod_set("main", 2, 2),), grace=30, seconds=80)
    jobs.add("high", "q", 2, at=12, priority=5, seconds=5)
    happened = Happened(where, jobs, evictionLatency="0s", until=50)
    assert happened.lines("evict", "preempt", "gone", "finish") == [
        "10 evict low: DeletionByTaintManager",
        "12 preempt low by high: InClusterQueue",
        "42 gone low",
        "42 gone low",
        "47 finish high",
    ]


@pytest.mark.parametrize("change", [gone("n1", 10, 20), tainted("n1", 10, 20)])
def test_pods_that_are_lost_have_the_recovery_time_out_to_come_back(change: Manifest) -> None:
    """The node is back after 10 s: 5 s are too short for that, and 15 s are enough."""
    lines = {}
    for seconds in (5, 15):
        waits = {
            "timeout": "60s",
            "recoveryTimeout": f"{seconds}s",
            "requeuingStrategy": {"backoffBaseSeconds": 1},
        }
        where = over_time(configuration(waitForPodsReady=waits), queue("q", cpu=4), node("n1", 2), change)
        jobs = Jobs().add("a", "q", 2, seconds=30, grace=0, startup=0)
        lines[seconds] = Happened(where, jobs).lines("evict")[1:]
    assert lines == {5: ["15 evict a: PodsReadyTimeout"], 15: []}


@pytest.mark.parametrize(
    ("release", "evicted"), [("v0.15.8", ["10 evict a: PodsReadyTimeout"]), ("v0.16.0", [])]
)
def test_before_0_16_a_recovery_timeout_of_zero_evicts_at_the_loss(release: str, evicted: list[str]) -> None:
    """Only `recoveryTimeout`s above 0 reach the workload controller since PR 8493."""
    waits = {"timeout": "60s", "recoveryTimeout": "0s", "requeuingStrategy": {"backoffBaseSeconds": 1}}
    world = configuration(waitForPodsReady=waits), queue("q", cpu=4), node("n1", 2), gone("n1", 10, 20)
    jobs = Jobs().add("a", "q", 2, seconds=30, grace=0, startup=0)
    assert Happened(over_time(*world), jobs, kueueVersion=release).lines("evict")[1:] == evicted
