"""`harness simulate`: what is answered of small worlds, as text, as JSON and by exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import tomllib
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest
from cli_environment import called, clean_environment
from live_dumps import GPU, KUEUE, ago, history, node, pod, queue, workload
from live_dumps import job as batch_job

import harness
from harness.base.errors import ClusterError, InputError, OptionError
from harness.cluster.kinds.elastic import KOORDINATOR
from harness.cluster.load import cluster_from
from harness.plugins import load
from harness.studies.forecasting.new_job import submitted
from harness.studies.simulation.answer import Answer
from harness.studies.simulation.text import text

LIBRARY = load(block=["metrics"])
LABEL = "kueue.x-k8s.io/queue-name"
SCHEMA = json.loads((files("harness.studies.simulation") / "schema.json").read_text(encoding="utf-8"))

Manifest = dict[str, Any]

TARGET = {"type": "DeactivationTarget", "status": "True", "lastTransitionTime": ago(0)}
"""The condition with which Kueue announces that it deactivates a Workload."""


def template(gpus: int, **spec: Any) -> Manifest:
    """A pod template of one container."""
    container = {"name": "c", "resources": {"requests": {GPU: str(gpus)}}}
    return {"spec": {"restartPolicy": "Never", "containers": [container], **spec}}


def job(gpus: int, pods: int = 1, name: str = "mine", **spec: Any) -> Manifest:
    """A Job of the queue `q`."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "d", "labels": {LABEL: "q"}},
        "spec": {"parallelism": pods, "completions": pods, "template": template(gpus, **spec)},
    }


def dump(*work: Manifest, nodes: int = 2, gpus: int = 16, **spec: Any) -> list[Manifest]:
    """A cluster of nodes of 8 GPUs with one queue, and its work."""
    return [*(node(f"n{number}") for number in range(nodes)), *queue(gpus=gpus, **spec), *work]


def asked(items: list[Manifest], *jobs: Manifest, **more: Any) -> list[Answer]:
    """What is answered of jobs."""
    found = harness.simulate(cluster_from(items, "dump"), jobs, plugins=LIBRARY, **more)
    jsonschema.validate(json.loads(json.dumps(found.to_json())), SCHEMA)
    return list(found.answers)


def outcome(answer: Answer) -> tuple[str, str]:
    """The verdict, and what it waits for."""
    return answer.verdict, answer.waits_for


def test_a_job_starts_where_quota_and_nodes_are_free() -> None:
    """With the flavor and the nodes that it gets."""
    (found,) = asked(dump(), job(8, 2))
    assert outcome(found) == ("starts", "")
    assert found.flavors == {"main": {GPU: "f"}}
    assert found.nodes == {"n0": 1, "n1": 1}
    assert found.changes is None
    assert found.why.startswith("admitted on flavor f")


def test_a_job_waits_for_quota_and_the_changes_say_how_much() -> None:
    """Fewer pods, or as much more quota as is short; half of the queue is held."""
    (found,) = asked(dump(workload("a", 8, held=2), gpus=16, nodes=3), job(4, 3))
    assert outcome(found) == ("waits", "quota")
    assert f"short of 4 {GPU}" in found.why
    assert {each.kind: each.text for each in found.changes or ()} == {
        "pods": "2 pods instead of 3",
        "quota": f"4 {GPU} more nominalQuota of flavor f in ClusterQueue q",
    }


def test_a_job_that_has_quota_and_no_node_waits_for_nodes() -> None:
    """Each of two nodes holds a pod of 4, so that none has room for 8."""
    items = dump(workload("a", 4, held=2), workload("b", 4, held=2), gpus=32, nodes=2)
    placed = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-0",
                "namespace": "d",
                "labels": {"batch.kubernetes.io/job-name": name},
                "ownerReferences": [{"kind": "Job", "name": name, "uid": f"Job-{name}", "controller": True}],
            },
            "spec": {**template(4)["spec"], "nodeName": where},
            "status": {"phase": "Running", "startTime": ago(2)},
        }
        for name, where in (("a", "n0"), ("b", "n1"))
    ]
    (found,) = asked([*items, *placed], job(8), plugin="default-preemption")
    assert outcome(found) == ("waits", "nodes")


def test_a_job_that_preempts_waits_for_its_victims() -> None:
    """With the reason and what they lose."""
    items = dump(
        workload("low", 8, pods=2, held=2, priority=-5), preemption={"withinClusterQueue": "LowerPriority"}
    )
    (found,) = asked(items, job(8))
    assert outcome(found) == ("waits", "victims")
    (victim,) = found.victims
    assert (victim.name, victim.reason, victim.pods) == ("d/job-low-1a2b3", "InClusterQueue", 2)
    assert "it preempts job d/job-low-1a2b3" in found.why
    assert "preempted by job d/mine of queue q" in victim.text


def test_a_stopped_queue_is_waited_for() -> None:
    """Somebody beside the scheduler has to let it in; the policy field is what would help."""
    (found,) = asked(dump(stopPolicy="Hold"), job(1))
    assert outcome(found) == ("waits", "checks")
    assert [(each.kind, each.text) for each in found.changes or ()] == [
        ("policy", "stopPolicy: None instead of Hold in ClusterQueue q")
    ]


@pytest.mark.parametrize("name", ["ClusterQueue q", "LocalQueue d/q"])
def test_a_queue_that_is_being_deleted_cannot_be_started_again(name: str) -> None:
    """It has no stopPolicy that could be changed; Kueue's cache calls a ClusterQueue terminating."""
    items = dump()
    (deleted,) = (each for each in items if each["kind"] == name.split()[0])
    deleted["metadata"]["deletionTimestamp"] = ago(1)
    (found,) = asked(items, job(1))
    assert outcome(found) == ("waits", "checks")
    assert found.why.endswith(f"{name} is inactive: its deletion has begun")
    assert found.changes == []


def test_a_queue_that_does_not_admit_the_namespace_never_starts_the_job() -> None:
    """As forecasts say. The labels of a namespace are no admission check."""
    selector = {"matchLabels": {"team": "a"}}
    (found,) = asked(dump(namespaceSelector=selector), job(1))
    assert (found.verdict, found.waits_for) == ("never", "")
    assert found.why == "ClusterQueue q does not admit workloads from namespace d"


@pytest.mark.parametrize("kind", ["ClusterQueue", "LocalQueue"])
@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
def test_a_stopped_queue_is_named_with_its_policy(kind: str, policy: str) -> None:
    """Of a workload that waits in the dump."""
    items = dump(workload("first", 8))
    (stopped,) = (each for each in items if each["kind"] == kind)
    stopped["spec"]["stopPolicy"] = policy
    (found,) = asked(items)
    assert outcome(found) == ("waits", "checks")
    name = "ClusterQueue q" if kind == "ClusterQueue" else "LocalQueue d/q"
    assert found.why.endswith(f"; {name} is inactive: its stopPolicy is {policy}")


@pytest.mark.parametrize("nominated", [True, False])
def test_a_pod_that_waits_for_a_terminating_pod_waits_for_victims(nominated: bool) -> None:
    """Nobody is preempted a second time; the node may be nominated in the dump, or only now.

    If the waiting pod is not more important, its nomination is withdrawn.
    """
    going = pod("going", "n0", 8, started=2, owners=[], deletionTimestamp=ago(-0.1))
    waiting = pod("next", "", 8, owners=[])
    waiting["spec"]["priority"] = 1
    waiting["status"]["nominatedNodeName"] = "n0" if nominated else ""
    (found,) = asked([node("n0"), going, waiting], workloads=["d/next"])
    assert outcome(found) == ("waits", "victims")
    assert found.why.startswith("n0 is being freed for 1 pod")
    waiting["spec"]["priority"] = 0
    (found,) = asked([node("n0"), going, waiting], workloads=["d/next"])
    assert outcome(found) == ("waits", "nodes")


@pytest.mark.parametrize(("counted", "told"), [(None, False), (1, False), (2, True), ("2", False)])
def test_workloads_that_the_dump_lacks_are_told(tmp_path: Path, counted: object, told: bool) -> None:
    """The status of the ClusterQueue counts those that hold quota; the dump may be of one namespace."""
    items = dump(workload("a", 8, held=2), workload("b", 8))
    (cluster_queue,) = (each for each in items if each["kind"] == "ClusterQueue")
    cluster_queue["status"] = {"reservingWorkloads": counted}
    cluster, past = cluster_from(items, "dump"), history(tmp_path, 2)
    starts = harness.forecast(cluster, history=past, futures=1, calibrate=0, workers=1, plugins=LIBRARY)
    for notes in (harness.simulate(cluster, plugins=LIBRARY).notes, starts.notes):
        assert any("status of their ClusterQueues (q: 1 of 2); harness" in note for note in notes) == told


def test_a_workload_whose_job_has_ended_is_not_missing() -> None:
    """The status of the ClusterQueue still counts it, also if a Pod of the dump is terminating."""
    over = {**batch_job("a", 2), "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    going = pod("p", "n0", 1, started=1, owners=[], deletionTimestamp=ago(3))
    items = dump(workload("a", 8, held=2), over, going, workload("b", 8))
    (cluster_queue,) = (each for each in items if each["kind"] == "ClusterQueue")
    cluster_queue["status"] = {"reservingWorkloads": 1}
    found = harness.simulate(cluster_from(items, "dump"), plugins=LIBRARY)
    assert not any("the manifests lack" in each for each in found.notes)
    assert any("Workload d/job-a-1a2b3: counts as finished" in each for each in found.notes)


def test_a_job_keeps_the_quota_that_its_queue_has_no_more() -> None:
    """It waits for a node; with no more pods than have ended already, it would not take part at all."""
    held = workload("held", 8, pods=3, held=0.2)
    held["status"]["reclaimablePods"] = [{"name": "main", "count": 2}]
    agent = pod("agent", "n0", 8, started=2, owners=[])
    items = dump(held, agent, pod("held", "", 8), nodes=1, gpus=4)
    (found,) = asked(items, workloads=["d/job-held-1a2b3"])
    assert outcome(found) == ("waits", "nodes")
    assert "pods" not in {each.kind for each in found.changes or ()}


@pytest.mark.parametrize(
    ("labels", "scheduler", "ours"),
    [
        ({f"{KOORDINATOR}is-parent": "false"}, "koord-scheduler", True),
        ({f"{KOORDINATOR}is-parent": "false"}, "default-scheduler", True),
        ({f"{KOORDINATOR}is-parent": "false"}, "scheduler-plugins-scheduler", False),
        ({}, "scheduler-plugins-scheduler", True),
        ({}, "volcano", False),
    ],
)
def test_the_usual_scheduler_of_elastic_quotas_places_its_pods(
    labels: dict[str, str], scheduler: str, ours: bool
) -> None:
    """Pods name it, and a dump rarely has its configuration; a note names pods of others."""
    quota = flat("d", 8, 8)
    quota["metadata"]["labels"] = labels
    waits = pod("p", "", 4, owners=[])
    waits["spec"]["schedulerName"] = scheduler
    found = harness.simulate(cluster_from([node("n0"), quota, waits], "dump"), plugins=LIBRARY)
    assert [each.verdict for each in found.answers] == (["starts"] if ours else [])
    told = f"wait for a node, but have another scheduler ({scheduler}): 1 (d/p)"
    assert any(told in each for each in found.notes) != ours


def test_a_gated_pod_takes_no_node() -> None:
    """Kueue holds it back until its pod group is whole; a submitted one waits for a node like any other."""
    gated = pod("early", "", 8, owners=[])
    gated["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    (found,) = asked(dump(gated, nodes=1), job(8))
    assert outcome(found) == ("starts", "")
    notes = harness.simulate(cluster_from(dump(gated), "dump"), plugins=LIBRARY).notes
    assert any("wait for a node, but have scheduling gates: 1 (d/early)" in each for each in notes)
    with pytest.raises(InputError) as error:
        asked(dump(gated), workloads=["d/early"])
    assert error.value.hint == "kueue-classic does not take it over, because it has scheduling gates"
    gated["metadata"]["name"] = "mine"
    (found,) = asked(dump(nodes=1), gated)
    assert outcome(found) == ("starts", "")


@pytest.mark.parametrize(("reason", "status"), [("AdmissionCheckNotFound", "False"), ("Ready", "True")])
def test_a_queue_that_kueue_keeps_inactive_is_waited_for(reason: str, status: str) -> None:
    """Its status says so because of its admission checks. Without checks, this status is out of date."""
    checks = {"admissionChecks": [{"name": "c"}]}
    items = dump(admissionChecksStrategy=checks)
    (cluster_queue,) = (each for each in items if each["kind"] == "ClusterQueue")
    told = "Can't admit new workloads: references missing AdmissionCheck(s): c."
    active = {"type": "Active", "status": status, "reason": reason, "message": told}
    cluster_queue["status"] = {"conditions": [active]}
    (found,) = asked(items, job(1))
    if status == "True":
        assert outcome(found) == ("starts", "")
        return
    assert outcome(found) == ("waits", "checks")
    assert found.why.endswith(f"; ClusterQueue q is inactive: {told[:-1]}")
    assert found.changes == []
    cluster_queue["spec"]["stopPolicy"] = "Hold"  # Kueue names the stop before the checks
    (found,) = asked(items, job(1))
    assert found.why.endswith("; ClusterQueue q is inactive: its stopPolicy is Hold")
    assert found.changes == []
    del cluster_queue["spec"]["stopPolicy"]
    del cluster_queue["spec"]["admissionChecksStrategy"]
    (found,) = asked(items, job(1))
    assert outcome(found) == ("starts", "")


def test_who_waits_for_quota_is_told_who_must_leave_already() -> None:
    """Its eviction began before the dump, so the scheduler preempts nobody, and more quota is not needed."""
    going = workload("going", 8, held=2)
    condition = {"type": "Evicted", "status": "True", "reason": "Preempted", "lastTransitionTime": ago(0)}
    going["status"]["conditions"].append(condition)
    (found,) = asked(dump(going, gpus=8), job(8))
    assert outcome(found) == ("waits", "quota")
    assert found.why.endswith(
        "; d/job-going-1a2b3 still holds quota until the pods are gone, after an eviction"
    )
    (found,) = asked(dump(workload("stays", 8, held=2), gpus=8), job(8))
    assert "after an eviction" not in found.why


@pytest.mark.parametrize(("priority", "waits_for"), [(1, "victims"), (-1, "quota")])
def test_who_is_next_when_others_have_left_waits_for_them(priority: int, waits_for: str) -> None:
    """The other borrows from another branch of the tree of cohorts, and is queued again when it has left."""
    going = workload("going", 8, held=2)
    condition = {"type": "Evicted", "status": "True", "reason": "Preempted", "lastTransitionTime": ago(0)}
    going["status"]["conditions"].append(condition)
    waiting = workload("next", 8, priority=priority)
    waiting["spec"]["queueName"] = "r"
    own = {"resourceGroups": queue(gpus=8)[1]["spec"]["resourceGroups"]}
    tree = [
        {"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": name}, "spec": spec}
        for name, spec in (("all", own), ("b", {"parentName": "all"}), ("c", {"parentName": "all"}))
    ]
    queues = [*queue(gpus=0, cohort="b"), *queue("r", gpus=0, cohort="c")[1:]]
    (found,) = asked([going, waiting, *tree, *queues], workloads=["d/job-next-1a2b3"], changes=False)
    assert found.waits_for == waits_for
    assert "d/job-going-1a2b3 still holds quota" in found.why


def evicted(name: str, reason: str, **status: Any) -> Manifest:
    """A Workload of 8 GPUs that was evicted an hour ago, holds nothing now, and is older than others."""
    found = workload(name, 8, created=20)
    condition = {"type": "Evicted", "status": "True", "reason": reason, "lastTransitionTime": ago(1)}
    found["status"] = {"conditions": [condition], **status}
    return found


@pytest.mark.parametrize("reason", ["PodsReadyTimeout", "AdmissionCheck"])
@pytest.mark.parametrize(("hours", "said"), [(1, "checks"), (-1, "")])
def test_a_workload_in_a_backoff_is_told_until_when(reason: str, hours: int, said: str) -> None:
    """It is not queued before, so it neither starts nor stands before others of its queue."""
    away = evicted("away", reason, requeueState={"count": 1, "requeueAt": ago(-hours)})
    items = dump(away, workload("run", 8, held=0), queueingStrategy="StrictFIFO")
    (found,) = asked(items)
    assert found.waits_for == said
    if said:
        until = f"Kueue queues it again at {ago(-1)}, as its status.requeueState.requeueAt says"
        assert f"it is in a backoff after its eviction ({reason}), and {until}" in found.why
    assert outcome(asked(items, job(8))[0]) == (("starts", "") if said else ("waits", "quota"))


def reserved(state: str, *, message: str = "", **fields: Any) -> Manifest:
    """A Workload of 8 GPUs that has reserved quota but waits for one of its admission checks."""
    found = workload("held", 8, held=1, **fields)
    conditions = found["status"]["conditions"]
    found["status"]["conditions"] = [each for each in conditions if each["type"] != "Admitted"]
    checks = [{"name": "budget", "state": "Ready"}, {"name": "prov", "state": state, "message": message}]
    found["status"]["admissionChecks"] = checks
    return found


@pytest.mark.parametrize(
    ("state", "verdict", "after"),
    [
        ("Pending", ("waits", "checks"), ""),
        (
            "Retry",
            ("waits", "checks"),
            "; Kueue evicts it, and queues it again when it has released its quota",
        ),
        ("Rejected", ("never", ""), "; Kueue evicts and deactivates it"),
    ],
)
def test_a_workload_that_has_only_reserved_quota_waits_for_its_checks(
    state: str, verdict: tuple[str, str], after: str
) -> None:
    """Nothing of the cluster makes a check ready, so no change is tried."""
    name = "d/job-held-1a2b3"
    items = dump(reserved(state, message="no capacity yet"))
    (found,) = asked(items, workloads=[name])
    assert (found.name, outcome(found)) == (name, verdict)
    assert found.why == f"it has reserved quota, but admission check prov is {state} (no capacity yet){after}"
    assert (found.flavors, found.nodes) == ({} if after else {"main": {GPU: "f"}}, {})
    assert (found.changes, found.tried) == ([], {})
    assert [outcome(each) for each in asked(items)] == [verdict]


def test_a_workload_that_waits_for_checks_holds_its_quota_for_others() -> None:
    """It does not start in the cycles of another job, which gets what is left."""
    (found,) = asked(dump(reserved("Pending"), gpus=8), job(8))
    assert outcome(found) == ("waits", "quota")
    (beside,) = asked(dump(reserved("Pending"), gpus=16), job(8))
    assert (outcome(beside), beside.moves) == (("starts", ""), [])


def test_a_workload_whose_checks_are_ready_starts() -> None:
    """As does one that was admitted before a check changed."""
    assert asked(dump(reserved("Ready"))) == []
    admitted = reserved("Pending")
    admitted["status"]["conditions"].append({"type": "Admitted", "status": "True"})
    assert asked(dump(admitted)) == []


def test_a_workload_that_waits_for_checks_loses_its_quota_to_others_as_any_does() -> None:
    """To a job of a higher priority, or where its queue is stopped."""
    low = reserved("Pending", priority=-5)
    (found,) = asked(dump(low, gpus=8, preemption={"withinClusterQueue": "LowerPriority"}), job(8))
    assert [each.name for each in found.victims] == ["d/job-held-1a2b3"]
    (stopped,) = asked(dump(low, stopPolicy="Hold"))
    assert outcome(stopped) == ("waits", "checks")
    assert stopped.why.endswith("; ClusterQueue q is inactive: its stopPolicy is Hold")
    assert not stopped.flavors


def test_a_job_waits_for_its_turn_behind_a_strict_queue() -> None:
    """The first of a StrictFIFO queue holds back the others."""
    items = dump(workload("run", 8, held=1), workload("big", 8, pods=2), queueingStrategy="StrictFIFO")
    (found,) = asked(items, job(1))
    assert outcome(found) == ("waits", "turn")
    tried = "job d/job-big-1a2b3 of the same queue, which was tried before it, waits"
    assert found.why.startswith(f"the scheduler did not try it at this time; {tried}")
    texts = [each.text for each in found.changes or () if each.kind == "policy"]
    assert texts == ["queueingStrategy: BestEffortFIFO instead of StrictFIFO in ClusterQueue q"]


@pytest.mark.parametrize("owner", ["a", "other"])
def test_a_job_that_is_in_the_dump_already_is_noted(owner: str) -> None:
    """The answer is about a second job, which comes after the first one."""
    items = dump(workload(owner, 16), gpus=16)
    found = harness.simulate(cluster_from(items, "dump"), [job(16, name="a")], plugins=LIBRARY)
    there = "Job d/a is in the dump already, as Workload d/job-a-1a2b3, so the answer is about a second job"
    assert any(each.startswith(there) for each in found.notes) == (owner == "a")


@pytest.mark.parametrize("ready", [False, True])
def test_block_admission_holds_jobs_back_while_pods_are_not_ready(ready: bool) -> None:
    """The pods of the dump do not become ready at the time of the question."""
    waits = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "waitForPodsReady": {"timeout": "10m", "blockAdmission": True},
    }
    starts = workload("a", 8, held=0.05, ready=0.05)
    starts["status"]["conditions"][-1] |= {"status": str(ready), "reason": "WaitForStart"}
    (mine,) = asked([waits, *dump(starts)], job(4))
    assert mine.verdict == ("starts" if ready else "waits")
    assert ready or "it waits for job d/job-a-1a2b3; pods of admitted workloads are not ready" in mine.why


def test_a_job_waits_for_its_turn_behind_a_job_of_another_local_queue() -> None:
    """The head of a StrictFIFO ClusterQueue holds back the jobs of all its LocalQueues."""
    other = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "spec": {"clusterQueue": "q"}}
    other["metadata"] = {"name": "second", "namespace": "d"}
    mine = job(1)
    mine["metadata"]["labels"][LABEL] = "second"
    items = dump(workload("run", 8, held=1), workload("big", 8, pods=2), other, queueingStrategy="StrictFIFO")
    (found,) = asked(items, mine)
    assert outcome(found) == ("waits", "turn")
    assert "job d/job-big-1a2b3 of the same ClusterQueue, which was tried before it, waits" in found.why


def test_a_job_that_can_never_start_says_why_and_what_would_help() -> None:
    """It asks for more than the queue can ever give."""
    (found,) = asked(dump(gpus=8, nodes=4), job(8, 3))
    assert found.verdict == "never"
    assert "can ever give it" in found.why
    assert {each.kind for each in found.changes or ()} == {"pods", "quota"}


CORDONED = {
    "unschedulable": True,
    "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
}
NOT_READY = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}


@pytest.mark.parametrize("away", [CORDONED, NOT_READY])
@pytest.mark.parametrize("queued", [True, False])
def test_a_job_that_fits_only_on_nodes_that_are_away_waits_for_them(
    away: dict[str, Any], queued: bool
) -> None:
    """A cordoned node may return, and so may one that is not ready. A job that is too large never starts."""
    items = [node("small", 4), {**node("large"), "spec": away}, *(queue() if queued else [])]
    (found,) = asked(items, job(8), changes=False)
    assert outcome(found) == ("waits", "nodes")
    assert "0/2 nodes could run the pod even when empty: 1 Insufficient" in found.why
    assert found.why.endswith("; it may fit when large can run pods again")
    (found,) = asked(items, job(9), changes=False)
    assert outcome(found) == ("never", "")
    assert "can run pods again" not in found.why


def test_a_submitted_job_is_younger_than_one_that_was_evicted() -> None:
    """Kueue queues a job whose pods were not ready in time by its eviction, which is before the dump."""
    evicted = workload("old", 8, created=10)
    condition = {
        "type": "Evicted",
        "status": "True",
        "reason": "PodsReadyTimeout",
        "lastTransitionTime": ago(1),
    }
    evicted["status"] = {"conditions": [condition]}
    items = dump(workload("run", 8, held=0.5), evicted, gpus=16, queueingStrategy="StrictFIFO")
    (found,) = asked(items, job(8))
    assert outcome(found) == ("waits", "quota")
    assert [(each.name, each.what) for each in found.moves] == [("d/job-old-1a2b3", "starts")]


def test_jobs_are_asked_in_order_or_each_alone() -> None:
    """The second of two finds the first; alone it finds an empty cluster."""
    two = job(8, 2), job(8, 2, "other")
    assert [each.verdict for each in asked(dump(), *two)] == ["starts", "waits"]
    assert [each.verdict for each in asked(dump(), *two, each=True)] == ["starts", "starts"]


def test_without_a_job_all_that_wait_are_told_of() -> None:
    """In their order; no changes are looked for."""
    items = dump(
        workload("run", 8, held=1), workload("first", 8, created=5), workload("second", 8, created=4)
    )
    found = asked(items)
    assert [(each.name, each.verdict) for each in found] == [
        ("d/job-first-1a2b3", "starts"),
        ("d/job-second-1a2b3", "waits"),
    ]
    assert all(each.changes is None for each in found)


def test_without_a_job_the_text_has_the_reason_of_each() -> None:
    """After the names of the jobs that it keeps out."""
    items = dump(workload("run", 16, held=1), workload("first", 8, created=5), gpus=16)
    said = text(harness.simulate(cluster_from(items, "dump"), plugins=LIBRARY), None)
    assert "0 of 1 waiting job would start now" in said
    assert "\nd/job-first-1a2b3: waits (PreemptionNoCandidates); short of 8" in said


def test_a_waiting_workload_is_asked_about_by_its_name() -> None:
    """With the changes that help it; the others stay in the queue."""
    items = dump(
        workload("run", 16, held=1), workload("first", 8, created=5), workload("second", 8, created=4)
    )
    first, second = "d/job-first-1a2b3", "d/job-second-1a2b3"
    (found,) = asked(items, workloads=[first])
    assert (found.name, outcome(found)) == (first, ("waits", "quota"))
    assert [each.kind for each in found.changes or ()] == ["quota"]
    assert found.no_change == ""
    (behind,) = asked(items, workloads=[second], changes=True)
    assert behind.changes == []
    assert [each.name for each in asked(items, workloads=[second, first])] == [first, second]
    with pytest.raises(InputError, match="no Workload or Pod d/job-secon-1a2b3 waits") as error:
        asked(items, workloads=["d/job-secon-1a2b3"])
    assert error.value.hint == f"did you mean '{second}'?"
    with pytest.raises(InputError) as error:
        asked(items, workloads=["d/job-run-1a2b3"])
    assert error.value.hint == "it holds quota or a node, or has ended"


def test_a_workload_without_pods_neither_waits_nor_holds_quota() -> None:
    """All pod sets have the count 0. If another pod set has pods, the Workload waits."""
    some, none = workload("some", 8), workload("none", 8)
    none["spec"]["podSets"][0]["count"] = 0
    some["spec"]["podSets"].append({**none["spec"]["podSets"][0], "name": "other"})
    items = dump(none, some, gpus=16)
    said = "Workloads of the manifests that have no pods to run: 1 (d/job-none-1a2b3); they are left out"
    found = harness.simulate(cluster_from(items, "dump"), plugins=LIBRARY)
    assert said in found.notes
    assert [(each.name, each.verdict) for each in found.answers] == [("d/job-some-1a2b3", "starts")]
    with pytest.raises(InputError) as error:
        asked(items, workloads=["d/job-none-1a2b3"])
    assert error.value.hint == said
    none["metadata"]["name"] = "mine"
    with pytest.raises(ClusterError, match="podSets: it has no pods"):
        asked(items, none)


def test_a_question_is_about_submitted_jobs_or_about_waiting_workloads() -> None:
    """Not about both."""
    items = dump(workload("first", 8, created=5), gpus=16)
    first = "d/job-first-1a2b3"
    with pytest.raises(OptionError, match="either about jobs to submit or about workloads that wait"):
        asked(items, job(1), workloads=[first])


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ({"spec": {"active": False}}, "it is deactivated: spec.active is false"),
        ({"status": {"conditions": [TARGET]}}, "or its condition DeactivationTarget is True"),
        ({"spec": {"queueName": "none"}}, "that wait in a LocalQueue that is not in the manifests: 1 ("),
    ],
)
def test_a_workload_that_takes_no_part_says_why(field: dict[str, Any], why: str) -> None:
    """Kueue does not queue it, whatever quota is free; it neither holds quota nor has it ended."""
    items = dump(
        workload("run", 16, held=1), workload("first", 8, created=5), workload("other", 8, created=4)
    )
    for item in items:
        if item["metadata"]["name"] == "job-first-1a2b3":
            for part, changed in field.items():
                item[part] |= changed
    with pytest.raises(InputError) as error:
        asked(items, workloads=["d/job-first-1a2b3"])
    assert why in (error.value.hint or "")
    with pytest.raises(InputError) as error:
        harness.forecast(cluster_from(items, "dump"), workloads=["d/job-first-1a2b3"], futures=1)
    assert why in (error.value.hint or "")


def test_a_workload_in_a_namespace_without_its_local_queue_waits_for_ever() -> None:
    """As in Kueue, although a ClusterQueue has the name; a note says so, and nobody waits behind it."""
    lost = workload("lost", 8, created=5)
    lost["metadata"]["namespace"] = "other"
    said = text(harness.simulate(cluster_from(dump(lost), "dump"), plugins=LIBRARY), None)
    assert "0 of 0 waiting jobs would start now" in said
    assert "wait in a LocalQueue that is not in the manifests: 1 (other/job-lost-1a2b3 in q)" in said
    (found,) = asked([each for each in dump(lost) if each["kind"] != "LocalQueue"])
    assert outcome(found) == ("starts", "")


def test_a_submitted_job_names_a_local_queue_of_its_namespace() -> None:
    """The ClusterQueue of that name is none, unless the manifests have no LocalQueue at all."""
    mine = job(1)
    mine["metadata"]["namespace"] = "other"
    with pytest.raises(InputError, match="no LocalQueue 'q' in namespace other") as error:
        asked(dump(), mine)
    assert error.value.hint == "these namespaces have it: d"
    (found,) = asked([each for each in dump() if each["kind"] != "LocalQueue"], mine)
    assert outcome(found) == ("starts", "")


def test_the_quota_that_is_missing_can_be_more_than_the_request() -> None:
    """The queue's quota was reduced while its jobs ran, so they hold more than it has."""
    (found,) = asked(dump(workload("run", 8, pods=2, held=1), nodes=3, gpus=8), job(8))
    assert [each.text for each in found.changes or () if each.kind == "quota"] == [
        f"16 {GPU} more nominalQuota of flavor f in ClusterQueue q"
    ]


def test_a_job_that_no_single_change_helps_says_what_was_tried() -> None:
    """The quota that it lacks would go to the job before it; only tried kinds of change are named."""
    items = dump(workload("run", 16, held=1), workload("first", 8, created=5))
    (found,) = asked(items, job(8))
    assert found.changes == []
    assert found.no_change == (
        "no single change lets it start; harness tried 2 changes: more quota, up to the whole request and "
        "what exceeds the quotas (1); a higher priority, up to the highest known (1)"
    )
    assert found.to_json()["noChange"] == found.no_change
    simulation = harness.simulate(cluster_from(items, "dump"), job(8), plugins=LIBRARY)
    assert f"mine: {found.no_change}" in text(simulation, None)


def test_others_that_move_in_the_same_cycles_are_told_of() -> None:
    """One that waits in the dump starts beside the job."""
    (found,) = asked(dump(workload("first", 8)), job(8))
    assert [(each.name, each.what) for each in found.moves] == [("d/job-first-1a2b3", "starts")]


def test_the_dump_stays_as_it_is() -> None:
    """Neither its objects nor its manifests change."""
    cluster = cluster_from(dump(workload("a", 8, held=1), workload("b", 8)), "dump")
    before = cluster.digest, json.dumps(cluster.manifests)
    harness.simulate(cluster, [job(8, 2)], plugins=LIBRARY)
    assert (cluster.digest, json.dumps(cluster.manifests)) == before


def replicas(**each: tuple[int, int]) -> Manifest:
    """Replica types, each with so many replicas of pods of so many GPUs."""
    return {name: {"replicas": count, "template": template(gpus)} for name, (count, gpus) in each.items()}


KINDS: list[tuple[Manifest, dict[str, int]]] = [
    (
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "spec": {
                "replicatedJobs": [
                    {"name": "driver", "template": {"spec": {"template": template(0)}}},
                    {
                        "name": "workers",
                        "replicas": 2,
                        "template": {"spec": {"parallelism": 4, "completions": 3, "template": template(1)}},
                    },
                ]
            },
        },
        {"driver": 1, "workers": 6},
    ),
    (
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "spec": {"pytorchReplicaSpecs": replicas(Worker=(3, 2), Master=(1, 1))},
        },
        {"master": 1, "worker": 3},
    ),
    (
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "spec": {"mpiReplicaSpecs": replicas(Worker=(2, 4), Launcher=(1, 0))},
        },
        {"launcher": 1, "worker": 2},
    ),
    (
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayJob",
            "spec": {
                "rayClusterSpec": {
                    "headGroupSpec": {"template": template(0)},
                    "workerGroupSpecs": [
                        {"groupName": "Big", "replicas": 2, "numOfHosts": 2, "template": template(2)}
                    ],
                },
                "submitterPodTemplate": template(0),
                "shutdownAfterJobFinishes": True,
            },
        },
        {"head": 1, "big": 4, "submitter": 1},
    ),
    (
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "spec": {
                "headGroupSpec": {"template": template(1)},
                "workerGroupSpecs": [{"groupName": "w", "template": template(1)}],
            },
        },
        {"head": 1, "w": 1},
    ),
]


@pytest.mark.parametrize(("manifest", "pods"), KINDS, ids=[each["kind"] for each, _ in KINDS])
def test_a_job_has_the_pod_sets_that_kueue_makes_of_it(manifest: Manifest, pods: dict[str, int]) -> None:
    """Of each kind, in Kueue's order and with its counts."""
    named = {**manifest, "metadata": {"name": "mine", "namespace": "d", "labels": {LABEL: "q"}}}
    (found,) = asked(dump(), named)
    assert found.verdict == "starts"
    assert found.pods == sum(pods.values())
    assert list(found.flavors) == list(pods)


def test_the_nodes_of_all_pods_are_told_if_no_queue_admits_them() -> None:
    """Each pod of a job without a queue is placed alone."""
    mine = job(8, 2)
    del mine["metadata"]["labels"]
    (found,) = asked(dump(), mine)
    assert (found.verdict, found.why) == ("starts", "bound to n0, n1")


def test_the_topology_that_annotations_of_pods_ask_for_counts() -> None:
    """A required level that no topology has keeps a job out."""
    asks = job(1)
    asks["spec"]["template"]["metadata"] = {
        "annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}
    }
    (found,) = asked(dump(), asks)
    assert found.verdict != "starts"


def racks(pods: int, **request: Any) -> list[Manifest]:
    """A dump of two racks of one node each, and a waiting Workload with a topology request."""
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    topology = {
        "apiVersion": KUEUE,
        "kind": "Topology",
        "metadata": {"name": "t"},
        "spec": {"levels": levels},
    }
    waiting = workload("w", 1, pods=pods)
    waiting["spec"]["podSets"][0]["topologyRequest"] = request
    found = dump(topology, waiting)
    for each in found:
        if each["kind"] == "Node":
            name = each["metadata"]["name"]
            each["metadata"]["labels"] = {"rack": f"r-{name}", "kubernetes.io/hostname": name}
        elif each["kind"] == "ResourceFlavor":
            each["spec"] = {"topologyName": "t"}
    return found


def test_racks_that_are_too_small_are_never_large_enough_unless_nodes_return() -> None:
    """A rack has 8 GPUs. A cordoned node may return."""
    (found,) = asked(racks(9, required="rack"))
    assert found.verdict == "never"
    assert "f has no place for it even when empty" in found.why
    items = racks(8, required="rack")
    assert outcome(asked(items)[0]) == ("starts", "")
    for each in items[:2]:
        each["spec"] = {"unschedulable": True}
    assert outcome(asked(items)[0]) == ("waits", "nodes")


def test_pods_without_a_domain_are_said_to_have_none() -> None:
    """Kueue admits a Workload whose slices have more pods than it."""
    slices = {"podSetSliceRequiredTopology": "rack", "podSetSliceSize": 4}
    found = harness.simulate(
        cluster_from(racks(2, **slices), "dump"), plugins=LIBRARY, workloads=["d/job-w-1a2b3"]
    )
    assert "domains of pod set main: none" in text(found, None)


@pytest.mark.parametrize(
    ("asks", "said"),
    [
        ({"required-topology": "rack", "preferred-topology": "rack"}, "a pod set can have only one"),
        ({"unconstrained-topology": True}, "which must be text"),
        ({"slice-required-topology": "rack"}, "must have both or neither of"),
        ({"slice-required-topology": "rack", "slice-size": "3"}, "requests slices of 3 pods, but has 2 pods"),
    ],
)
def test_a_topology_request_that_the_webhook_refuses_is_refused(asks: Manifest, said: str) -> None:
    """With Kueue's rule, unless Kueue does not read such requests."""
    mine = job(1, 2)
    annotations = {f"kueue.x-k8s.io/podset-{name}": value for name, value in asks.items()}
    mine["spec"]["template"]["metadata"] = {"annotations": annotations}
    with pytest.raises(ClusterError, match=f"pod set main: .*{said}.*; Kueue's webhook refuses such a job"):
        asked(dump(), mine)
    gates = {"TopologyAwareScheduling": False}
    without = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "featureGates": gates}
    assert submitted(cluster_from([without, *dump()], "dump"), mine, "mine").workloads


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"apiVersion": "batch.volcano.sh/v1alpha1"}, "Job of apiVersion batch.volcano.sh/v1alpha1"),
        ({"kind": "DaemonSet"}, "kind 'DaemonSet' is not one of Job, Pod, JobSet"),
        ({"spec": {}}, "spec.template.spec.containers: there are none"),
    ],
)
def test_what_is_no_job_is_refused_with_exit_code_2(
    changed: Manifest, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the place and what is asked for."""
    path, file = tmp_path / "dump.json", tmp_path / "job.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": dump()}))
    file.write_text(json.dumps({**job(1), **changed}))
    assert called(["simulate", "--cluster", str(path), str(file)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("jobs", "code"), [([], 0), ([job(8)], 0), ([job(8, 2), job(8)], 3), ([job(8), job(8, 9)], 4)]
)
def test_the_exit_code_is_the_largest_of_the_jobs(
    jobs: list[Manifest], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 starts now, 3 does not, 4 can never; without a job 0, whatever waits."""
    path, file = tmp_path / "dump.json", tmp_path / "jobs.json"
    waits = workload("waits", 8, pods=3) if not jobs else workload("runs", 0, held=1)
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": dump(waits)}))
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}))
    args = ["simulate", "--cluster", str(path), *([str(file)] if jobs else []), "--json"]
    assert called(args) == code
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, SCHEMA)
    assert document["exit_code"] == code


def test_the_text_says_who_is_preempted_and_what_would_help(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In tables that fit a terminal, with a hint where rows are left out."""
    path, file = tmp_path / "dump.json", tmp_path / "job.json"
    items = dump(
        *(workload(f"low{number:02}", 1, held=2, priority=-5) for number in range(30)),
        gpus=30,
        nodes=8,
        preemption={"withinClusterQueue": "LowerPriority"},
    )
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    file.write_text(json.dumps(job(1, 24)))
    assert called(["simulate", "--cluster", str(path), str(file)]) == 3
    out = capsys.readouterr().out
    assert out.startswith("0 of 1 submitted job would start now, at 2026-01-05T")
    assert "… and 4 more (--all shows them)" in out
    helpful = "mine would start with any one of these; harness found no smaller change of the same kind"
    assert helpful in " ".join(out.split())


def test_each_without_a_job_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """There is nothing to ask each of."""
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": dump()}))
    assert called(["simulate", "--cluster", str(path), "--each"]) == 2
    assert "--each needs jobs to submit" in capsys.readouterr().err


def test_a_named_workload_sets_the_exit_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """As a submitted job does."""
    path = tmp_path / "dump.json"
    items = dump(workload("run", 16, held=1), workload("first", 8))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert called(["simulate", "--cluster", str(path), "--for", "d/job-first-1a2b3"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("0 of 1 waiting job would start now")
    assert "8 nvidia.com/gpu more nominalQuota" in out


def test_notes_say_what_to_ask_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """How to learn what would help, and that quota is the hardware where there are no nodes."""
    path, patch = tmp_path / "dump.json", tmp_path / "more.yaml"
    items = [*queue(gpus=4), workload("r", 4, held=2), workload("w", 4)]
    path.write_text(json.dumps({"kind": "List", "items": items}))
    patch.write_text(json.dumps(queue(gpus=5)[1]))
    called(["simulate", "--cluster", str(path)])
    told = capsys.readouterr().err
    assert "note: --changes searches for changes that would let these jobs start" in told
    assert "hardware" not in told
    called(["simulate", "--cluster", str(path), "--patch", str(patch), "--changes"])
    told = capsys.readouterr().err
    assert "note: --changes" not in told
    assert "a patch that adds quota also adds hardware" in told


def test_the_largest_gang_is_told_by_queue_and_flavor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Now and with preemption; one pod more would not start."""
    low = workload("low", 1, pods=6, held=2, priority=-5)
    items = dump(low, gpus=16, nodes=4, preemption={"withinClusterQueue": "LowerPriority"})
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    asks = ["--largest", f"{GPU}=1..64", "--shape", f"{GPU}=2"]
    assert called(["simulate", "--cluster", str(path), *asks, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["largest"]
    assert (row["queue"], row["flavor"]) == ("q", None)
    assert (row["now"]["pods"], row["now"]["amount"]) == (5, "10")
    assert (row["preempting"]["pods"], row["preempting"]["victims"]) == (8, 1)
    assert [each.verdict for each in asked(items, job(2, 5))] == ["starts"]
    assert [each.verdict for each in asked(items, job(2, 6))] == ["waits"]
    without = [each for each in items if each["kind"] != "ResourceFlavor"]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": without}))
    assert called(["simulate", "--cluster", str(path), *asks, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["largest"]
    assert (row["now"]["pods"], row["preempting"]["pods"]) == (0, 0)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--largest", "cpu=1..2"], "--largest and --shape must be given together"),
        (["--largest", "cpu", "--shape", "cpu=1"], "'cpu' is not understood"),
        (["--largest", "cpu=1..2", "--shape", "memory=1"], "a pod requests no cpu"),
        (["--largest", "cpu=5..2", "--shape", "cpu=1"], "must give gangs of 1 to"),
        (["--largest", "cpu=1..2", "--shape", "cpu=1", "--queue", "r"], "there is no queue 'r'"),
        (["--largest", "foo=1..2", "--shape", "foo=1"], "no node and no quota has any foo"),
        (["--queue", "q"], "--queue requires --largest"),
        (["--at", "1h"], "--at names a time in a replay, but there is no trace"),
    ],
)
def test_options_that_make_no_question_are_refused(
    args: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what is missing."""
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": dump()}))
    assert called(["simulate", "--cluster", str(path), *args]) == 2
    assert said in capsys.readouterr().err


def test_a_dump_with_a_time_is_refused() -> None:
    """It is one instant; nothing that it says of later is left out in silence."""
    named = next(each for each in dump() if each["kind"] == "ClusterQueue")
    metadata = {"name": named["metadata"]["name"], "annotations": {"harness/from": "1d"}}
    later = {"kind": "ClusterQueue", "metadata": metadata}
    cluster = cluster_from(dump(), "the dump").patched([later])
    with pytest.raises(OptionError, match="a dump shows a single moment, but a patch or manifest has a time"):
        harness.simulate(cluster)


def test_an_instant_of_a_replay_is_asked_about(tmp_path: Path) -> None:
    """Who waits then is who waits in the replay that is cut there; a job is submitted at that instant."""
    hour = timedelta(hours=1)
    rows = [
        {"job_id": f"j{number}", "submit_time": number * hour, "duration": 10 * hour, "queue": "q"}
        for number in range(4)
    ]
    frame = pl.DataFrame([{**row, "namespace": "d", f"request.{GPU}": 6} for row in rows])
    path = tmp_path / "t.parquet"
    frame.write_parquet(path)
    cluster = cluster_from(dump(), "dump")
    run = harness.replay(
        path, cluster=cluster, plugin="kueue-classic", until="3h", output=tmp_path, plugins=LIBRARY
    )
    waiting = run.jobs.filter(pl.col("start_time").is_null())["job_id"].to_list()
    more: dict[str, Any] = {"trace": path, "at": "3h", "plugin": "kueue-classic", "plugins": LIBRARY}
    found = harness.simulate(cluster, **more)
    assert [(each.name, each.verdict) for each in found.answers] == [(name, "waits") for name in waiting]
    assert waiting
    (small,) = harness.simulate(cluster, job(2), **more).answers
    (large,) = harness.simulate(cluster, job(8), **more).answers
    assert (small.verdict, large.verdict) == ("starts", "waits")
    late = harness.simulate(cluster, **{**more, "at": "30h"})
    assert not late.answers
    assert "the replay ended 9h00m before that time, so no job of the trace runs or waits then" in late.notes
    assert not any("over" in note for note in harness.simulate(cluster, **more).notes)


def test_a_job_without_a_queue_is_its_pods() -> None:
    """Under kube-scheduler each pod is placed, and the job starts when all of them are."""
    plain = job(8, 2)
    (found,) = asked(dump(), plain, plugin="default-preemption")
    assert (found.verdict, found.pods, found.nodes) == ("starts", 2, {"n0": 1, "n1": 1})
    (found,) = asked(dump(), job(8, 3), plugin="default-preemption")
    assert outcome(found) == ("waits", "nodes")
    assert found.name == "d/mine"


def test_a_borrowing_limit_says_how_much_more_of_it_would_help() -> None:
    """Or as much more nominal quota; the patch is that change."""
    limited = [{"name": GPU, "nominalQuota": 4, "borrowingLimit": 1}]
    groups = [{"coveredResources": [GPU], "flavors": [{"name": "f", "resources": limited}]}]
    lending = queue("r", gpus=8, cohort="c")[1:]
    items = dump(*lending, cohort="c", resourceGroups=groups)
    (found,) = asked(items, job(8))
    changes = {each.text: each for each in found.changes or () if each.kind == "quota"}
    more = f"3 {GPU} more borrowingLimit of flavor f in ClusterQueue q"
    assert list(changes) == [f"3 {GPU} more nominalQuota of flavor f in ClusterQueue q", more]
    patched = cluster_from(items, "dump").patched(changes[more].patch)
    (after,) = harness.simulate(patched, [job(8)], plugins=LIBRARY).answers
    assert outcome(after) == ("starts", "")


def tree(whole: int, own: int) -> Manifest:
    """An ElasticQuotaTree with GPUs for all, and for the quota `team`."""
    quota = {"cpu": "100", "memory": "1Ti"}
    top, leaf = {**quota, GPU: whole}, {**quota, GPU: own}
    root = {
        "name": "root",
        "min": top,
        "max": top,
        "children": [{"name": "team", "namespaces": ["d"], "min": leaf, "max": leaf}],
    }
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": {"name": "tree", "namespace": "kube-system"},
        "spec": {"root": root},
    }


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}, **template(4)}


def test_an_elastic_quota_says_how_much_more_of_it_would_help() -> None:
    """Of the pod's own quota, as that of the tree is large enough; the patch is that change."""
    items = [node("n0"), node("n1"), tree(16, 2)]
    (found,) = asked(items, POD, plugin="elasticquota")
    assert outcome(found) == ("never", "") or outcome(found) == ("waits", "quota")
    (change,) = found.changes or ()
    assert change.text == f"2 {GPU} more max of elastic quota team"
    patched = cluster_from(items, "dump").patched(change.patch)
    (after,) = harness.simulate(patched, [POD], plugin="elasticquota", plugins=LIBRARY).answers
    assert outcome(after) == ("starts", "")


def flat(space: str, least: int, most: int) -> Manifest:
    """The ElasticQuota of a namespace."""
    core = {"cpu": "100", "memory": "1Ti"}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "own", "namespace": space},
        "spec": {"min": {**core, GPU: least}, "max": {**core, GPU: most}},
    }


@pytest.mark.parametrize(("most", "changes"), [(6, [f"4 {GPU} more min of elastic quota d"]), (4, [])])
def test_a_change_of_an_elastic_quota_keeps_the_rules_of_quotas(most: int, changes: list[str]) -> None:
    """All quotas together use no more than their `min`; no `min` exceeds its `max`."""
    other = {"metadata": {"name": "x", "namespace": "e"}, "status": {"phase": "Running", "startTime": ago(3)}}
    held = {**POD, **other, "spec": {**template(4)["spec"], "nodeName": "n0", "priority": 100}}
    items = [node("n0"), node("n1"), flat("d", 2, most), flat("e", 2, 4), held]
    (found,) = asked(items, POD, plugin="elasticquota")
    assert [each.text for each in found.changes or ()] == changes


def test_elastic_quotas_of_a_dump_decide_unless_another_scheduler_is_named() -> None:
    """They are there, so the scheduler of the cluster reads them; kube-scheduler does not."""
    items = [node("n0"), flat("d", 0, 0)]
    (found,) = asked(items, POD)
    assert outcome(found) == ("never", "")
    assert "quota d would use more" in found.why
    (found,) = asked(items, POD, plugin="default-preemption")
    assert outcome(found) == ("starts", "")
    whole = harness.simulate(cluster_from([node("n0"), tree(0, 0)], "dump"), [POD], plugins=LIBRARY)
    assert (whole.plugin, whole.answers[0].verdict) == ("auto", "never")


def test_asking_in_python_refuses_what_is_no_argument() -> None:
    """With what it takes."""
    with pytest.raises(harness.OptionError, match="jobs"):
        harness.simulate(cluster_from(dump(), "dump"), 7)  # type: ignore[arg-type]
    with pytest.raises(harness.InputError, match="kind None is not one of"):
        harness.simulate(cluster_from(dump(), "dump"), [{}], plugins=LIBRARY)


def test_kubectl_finds_the_command_by_its_name() -> None:
    """A program `kubectl-harness` on the PATH is what `kubectl harness` calls."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    scripts = project["project"]["scripts"]
    assert scripts["kubectl-harness"] == scripts["harness"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on the PATH")
def test_kubectl_itself_calls_it(tmp_path: Path) -> None:
    """By the name of the program, with the arguments and the exit code of `harness simulate`."""
    scripts = sysconfig.get_path("scripts")
    if not (Path(scripts) / "kubectl-harness").is_file():
        pytest.skip("the package is not installed, so there is no kubectl-harness")
    path, file = tmp_path / "dump.json", tmp_path / "job.json"
    there = dump(workload("runs", 8, held=1))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": there}))
    file.write_text(json.dumps(job(8, 2)))
    environment = {**clean_environment(), "PATH": f"{scripts}:{os.environ['PATH']}"}
    command = ["kubectl", "harness", "simulate", "--cluster", str(path), str(file), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == 3, ran.stderr
    assert json.loads(ran.stdout)["answers"][0]["waitsFor"] == "quota"


def test_notes_name_what_the_answer_does_not_take_into_account() -> None:
    """A check may keep a job from starting, and a flavor that is not in the dump keeps its queue inactive."""
    check = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "AdmissionCheck",
        "metadata": {"name": "budget"},
        "spec": {"controllerName": "example.com/budget"},
    }
    checked = cluster_from([*dump(workload("w", 4), admissionChecks=["budget"]), check], "dump")
    lacking = [each for each in dump(workload("w", 4)) if each["kind"] != "ResourceFlavor"]
    for where, part in (
        (checked, "harness treats every admission check as ready at once"),
        (cluster_from(lacking, "dump"), "so Kueue keeps the queue inactive"),
    ):
        asked_now = harness.simulate(where, plugins=LIBRARY)
        assert any(part in note for note in asked_now.notes)


PVC = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]}


@pytest.mark.parametrize("each", [False, True])
def test_notes_name_the_fields_of_a_job_that_are_not_modelled(each: bool) -> None:
    """As they do for the objects of a dump, with the place in the Workload that Kueue makes of the job."""
    jobs = [job(1), job(1, name="other", nodeSelectors={"a": "b"}, **PVC)]
    found = harness.simulate(cluster_from(dump(), "dump"), jobs, plugins=LIBRARY, each=each)
    of_pods = "Workload d/{}: spec.podSets[].template.spec.".format
    told = [note.removeprefix(of_pods("other")) for note in found.notes if note.startswith(of_pods("other"))]
    first, second = told
    assert first == "nodeSelectors is not modelled: no such field is known; did you mean 'nodeSelector'?"
    assert second.startswith("volumes[].persistentVolumeClaim is not modelled: the volume does not bind")
    assert not [note for note in found.notes if note.startswith("Workload d/mine")]


def test_notes_name_the_fields_of_pods_that_are_not_modelled() -> None:
    """Of a job without a queue."""
    found = harness.simulate(
        cluster_from([node("n0")], "dump"),
        [{**job(1, 2, **PVC), "metadata": {"name": "mine", "namespace": "d"}}],
        plugins=LIBRARY,
    )
    assert [note for note in found.notes if "persistentVolumeClaim is not modelled" in note]
