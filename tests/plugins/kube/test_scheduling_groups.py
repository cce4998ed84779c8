"""Gangs of kube-scheduler's own that manifests describe: who is in one, and what it waits for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.load import cluster_from
from harness.models.kube.running import running_jobs
from harness.policy import Arrival, PodSet
from harness.testing import Decisions, Script, replayed
from harness_plugins.kube.policy import OPTIONS, fits_no_node
from harness_plugins.kube_scheduler import kube_scheduler

BOTH = pytest.mark.parametrize("spelling", ["workloadRef", "schedulingGroup"])


def node(name: str, cpu: int = 2) -> dict[str, Any]:
    """A Node."""
    allocatable = {"cpu": f"{cpu}m", "pods": 10}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": allocatable},
    }


def group(spelling: str, **policy: Any) -> dict[str, Any]:
    """The group `workers`, listed by the Workload `train` or a PodGroup of its own."""
    kind, version = ("Workload", "v1alpha1") if spelling == "workloadRef" else ("PodGroup", "v1alpha2")
    listed = {"podGroups": [{"name": "workers", "policy": policy}]}
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "train" if kind == "Workload" else "workers"},
        "spec": listed if kind == "Workload" else {"schedulingPolicy": policy},
    }


def reference(spelling: str, name: str = "workers", **more: str) -> dict[str, Any]:
    """How a pod's spec names the group."""
    if spelling == "workloadRef":
        return {spelling: {"name": "train", "podGroup": name, **more}}
    return {spelling: {"podGroupName": name}}


def pods(count: int, spec: dict[str, Any], cpu: int = 2) -> tuple[PodSet, ...]:
    """Pods of a trace with a template."""
    return (PodSet("main", count, count, {"cpu": cpu}, pod_template=json.dumps(spec)),)


class Begun(Script):
    """Jobs of a trace, after pods of the manifests."""

    def __init__(self, first: list[Arrival]) -> None:
        super().__init__()
        self._arrivals += first


def replay(jobs: Script, *manifests: dict[str, Any], **given: Any) -> Decisions:
    """A replay with gangs of kube-scheduler's own."""
    options = resolve(OPTIONS, {"gangScheduling": True} | given, owner="default-preemption")
    return replayed(kube_scheduler, jobs, cluster_from(manifests, "test"), options=options)


def bound(happened: Decisions) -> list[tuple[float, str | None]]:
    """When which pod was bound."""
    return [(row.time / SECOND, row.pod) for row in happened.of("bind")]


def told(happened: Decisions) -> list[tuple[float, str, str]]:
    """When it was said of which job what its gang waits for."""
    rows = [row for row in happened.of("refuse") if row.detail and "message" in row.detail]
    return [(row.time / SECOND, row.job, row.detail["message"]) for row in rows]


@BOTH
def test_jobs_whose_pods_name_one_group_are_one_gang(spelling: str) -> None:
    """None of them is tried before minCount pods exist, and all are bound at one instant."""
    jobs = Script()
    for number in range(3):
        jobs.job(f"w{number}", at=number, seconds=9, pod_sets=pods(1, reference(spelling)))
    jobs.job("other", at=2, cpu=2, seconds=1)
    happened = replay(jobs, node("n1", 8), group(spelling, gang={"minCount": 3}))
    assert bound(happened) == [(2, "w0"), (2, "w1"), (2, "w2"), (2, "other")]
    name = (
        "PodGroup default/workers"
        if spelling == "schedulingGroup"
        else "Workload default/train, pod group workers"
    )
    assert told(happened) == [
        (
            number,
            f"w{job}",
            f"{name}: {number + 1} of the 3 required pods arrived; the gang waits for the others",
        )
        for number, job in ((0, 0), (1, 0), (1, 1))
    ]
    off = replay(jobs, node("n1", 8), group(spelling, gang={"minCount": 3}), gangScheduling=False)
    assert bound(off) == [(0, "w0"), (1, "w1"), (2, "w2"), (2, "other")]


@BOTH
def test_pods_of_a_group_with_the_policy_basic_are_placed_one_by_one(spelling: str) -> None:
    """Even those of a gang of the trace: the group that they name decides."""
    jobs = Script().job("long", cpu=2, seconds=20).job("w", at=1, pod_sets=pods(2, reference(spelling)))
    happened = replay(jobs, node("n1"), node("n2"), group(spelling, basic={}))
    assert bound(happened) == [(0, "long"), (1, "w-0"), (20, "w-1")]
    assert told(happened) == []


def test_pods_with_other_replica_keys_are_other_gangs() -> None:
    """Two pods of one key are enough for these two."""
    jobs = Script()
    for number, key in enumerate("0110"):
        jobs.job(
            f"w{number}",
            at=number,
            seconds=9,
            pod_sets=pods(1, reference("workloadRef", podGroupReplicaKey=key)),
        )
    happened = replay(jobs, node("n1", 8), group("workloadRef", gang={"minCount": 2}))
    assert bound(happened) == [(2, "w1"), (2, "w2"), (3, "w0"), (3, "w3")]
    assert told(happened)[0][2].startswith(
        "Workload default/train, pod group workers, replica 0: 1 of the 2 required pods"
    )


def test_a_group_of_another_namespace_is_another_one() -> None:
    """The group is looked up where the pod is."""
    elsewhere = group("schedulingGroup", gang={"minCount": 1})
    elsewhere["metadata"]["namespace"] = "team"
    jobs = Script().job("w", pod_sets=pods(1, reference("schedulingGroup")))
    assert replay(jobs, node("n1"), elsewhere).starts() == {}


@BOTH
def test_jobs_that_name_a_group_that_is_not_there_are_rejected(spelling: str) -> None:
    """In reality they are pending until somebody makes it; nobody does during a replay."""
    jobs = Script().job("w", pod_sets=pods(1, reference(spelling, "drivers"))).job("other", at=1, cpu=2)
    happened = replay(jobs, node("n1"), group(spelling, gang={"minCount": 1}))
    (row,) = happened.of("reject")
    group_of = {
        "workloadRef": "Workload default/train, pod group drivers",
        "schedulingGroup": "PodGroup default/drivers",
    }
    assert (row.job, row.reason) == (
        "w",
        f"{group_of[spelling]} does not exist, and the pods that refer to it wait for it",
    )
    assert happened.starts() == {"other": 1}
    off = replay(jobs, node("n1"), group(spelling, gang={"minCount": 1}), gangScheduling=False)
    assert off.starts() == {"w": 0, "other": 1}


def test_the_group_that_is_not_there_is_named_before_the_replay() -> None:
    """Among the jobs that can never start, where the option is on."""
    cluster = cluster_from([node("n1")], "test")
    job = Script().job("w", pod_sets=pods(1, reference("workloadRef")))["w"]
    on, off = (resolve(OPTIONS, {"gangScheduling": is_on}, owner="x") for is_on in (True, False))
    never = fits_no_node(cluster, on)(job)
    assert never is not None
    assert never.where == "Workload default/train, pod group workers"
    assert fits_no_node(cluster, off)(job) is None


def test_fewer_pods_than_min_count_wait_for_ever() -> None:
    """The replay ends without them, and says what they wait for."""
    jobs = Script().job("w", pod_sets=pods(2, reference("schedulingGroup"), cpu=1)).job("other", at=1, cpu=2)
    happened = replay(jobs, node("n1"), group("schedulingGroup", gang={"minCount": 3}))
    assert happened.starts() == {"other": 1}
    (said,) = told(happened)
    assert said[2] == (
        "PodGroup default/workers: 2 of the 3 required pods arrived; the gang waits for the others"
    )


def test_pods_with_a_place_say_for_how_many_they_wait() -> None:
    """Of three pods one has a place and two are waited for; after five minutes it gives it up."""
    jobs = Script().job("long", cpu=2, seconds=1000)
    jobs.job("w", at=1, seconds=5, gang=False, pod_sets=pods(3, reference("schedulingGroup")))
    happened = replay(jobs, node("n1"), node("n2"), group("schedulingGroup", gang={"minCount": 2}))
    assert [(time, said.removeprefix("PodGroup default/workers: ")) for time, _, said in told(happened)] == [
        (1, "1 of the 2 required pods got a place; the gang waits for the others"),
        (301, "1 of the 2 required pods had a place for 5 minutes and gave it up"),
    ]
    # When the two that were bound have ended, the third one is alone, and too few.
    assert [time for time, _ in bound(happened)] == [0, 1000, 1000]


def test_pods_of_the_manifests_are_in_groups_too() -> None:
    """One that runs counts as bound, and one that waits is bound with the job of the trace that comes."""

    def pod(name: str, **spec: Any) -> dict[str, Any]:
        containers = [{"name": "c", "resources": {"requests": {"cpu": "2m"}}}]
        spec = {**spec, **reference("schedulingGroup"), "containers": containers}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}

    objects = [node("n1", 8), group("schedulingGroup", gang={"minCount": 3})]
    objects += [pod("runs", nodeName="n1"), pod("waits")]
    first = running_jobs(cluster_from(objects, "test"))
    happened = replay(Begun(first).job("w", at=7, pod_sets=pods(1, reference("schedulingGroup"))), *objects)
    assert bound(happened) == [(0, "default/runs"), (7, "default/waits"), (7, "w")]
