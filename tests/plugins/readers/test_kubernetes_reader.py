"""A live cluster's objects: Workloads of both versions, Jobs, Pods, and what cannot be known of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cluster.load import load_cluster
from harness.plugins import Plugins
from harness.trace.schema import entries
from harness.trace.trace import Trace, open_trace

T0, T1, T2 = "2025-03-01T10:00:00Z", "2025-03-01T10:05:00Z", "2025-03-01T11:05:30Z"


def template(**spec: Any) -> dict[str, Any]:
    """A pod template as a live cluster has it, with what the API server fills in."""
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}}
    filled_in = {"schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 45}
    containers = [{"name": "main", "image": "train", "resources": resources}]
    return {"metadata": {"labels": {"app": "train"}}, "spec": {"containers": containers, **filled_in, **spec}}


def condition(kind: str, since: str, status: str = "True") -> dict[str, Any]:
    """A condition of an object."""
    return {"type": kind, "status": status, "reason": kind, "message": "", "lastTransitionTime": since}


def metadata(name: str, **more: Any) -> dict[str, Any]:
    """An object's metadata."""
    return {"name": name, "namespace": "team", "uid": f"uid-{name}", "creationTimestamp": T0, **more}


def workload(
    name: str = "w", version: str = "v1beta1", conditions: Any = None, **spec: Any
) -> dict[str, Any]:
    """A Workload of two pod sets that was admitted and has finished."""
    priority: dict[str, Any] = {"priorityClassName": "high", "priorityClassSource": "kueue.x-k8s.io/x"}
    if version == "v1beta2":
        priority = {"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "X", "name": "high"}}
    pod_sets = [
        {"name": "head", "count": 1, "template": template()},
        {"name": "workers", "count": 4, "minCount": 2, "template": template(nodeSelector={"pool": "gpu"})},
        {"name": "none", "count": 0, "template": template()},
    ]
    done = [condition("QuotaReserved", T0), condition("Admitted", T1), condition("Finished", T2)]
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": "Workload",
        "metadata": metadata(name),
        "spec": {"queueName": "lq", "priority": 100, "active": True, "podSets": pod_sets, **priority, **spec},
        "status": {"conditions": done if conditions is None else conditions},
    }


def job(name: str = "j", labels: dict[str, str] | None = None, **status: Any) -> dict[str, Any]:
    """A Job that ran three pods at once."""
    ended = {"startTime": T1, "completionTime": T2, "conditions": [condition("Complete", T2)], "succeeded": 5}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(name, labels=labels or {}),
        "spec": {"parallelism": 3, "completions": 5, "template": template()},
        "status": status or ended,
    }


def pod(name: str = "p", owner: tuple[str, str] | None = None, phase: str = "Succeeded") -> dict[str, Any]:
    """A Pod whose last container ended."""
    owners = [{"kind": owner[0], "name": "o", "uid": owner[1]}] if owner else []
    states = [{"state": {"terminated": {"exitCode": 0, "finishedAt": end}}} for end in (T1, T2)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, ownerReferences=owners, labels={"app": "train"}),
        "spec": template(nodeName="n1", priority=7, priorityClassName="low")["spec"],
        "status": {"phase": phase, "startTime": T1, "containerStatuses": states},
    }


@pytest.fixture
def read(read_text: Callable) -> Callable[..., Trace]:
    """The trace of a list of objects."""

    def trace(*items: dict[str, Any], **options: Any) -> Trace:
        answer = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
        return read_text(json.dumps(answer, indent=4), name="answer.json", **options)

    return trace


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_workload_has_a_row_for_each_pod_set(read: Callable[..., Trace], version: str) -> None:
    """That has pods; submitted when it was created, it runs to its end."""
    trace = read(workload(version=version))
    assert trace.reader == "kubernetes"
    names = ("job_id", "queue", "namespace", "pod_set", "pods", "min_pods", "priority", "uid")
    assert trace.frame.select(names).rows() == [
        ("team/w", "lq", "team", "head", 1, 1, 100, "uid-w"),
        ("team/w", "lq", "team", "workers", 4, 2, 100, "uid-w"),
    ]
    first, second = trace.frame.to_dicts()
    assert first["submit_time"] == datetime(2025, 3, 1, 10, tzinfo=UTC)
    assert first["recorded_start"] == datetime(2025, 3, 1, 10, 5, tzinfo=UTC)
    assert first["duration"] == timedelta(hours=1, seconds=30)
    assert (first["request.cpu"], first["request.memory"], first["request.nvidia.com/gpu"]) == (500, 2**30, 1)
    assert first["grace_period"] == timedelta(seconds=45)
    assert entries(first["labels"]) == (("app", "train"),)
    assert (entries(first["node_selector"]), entries(second["node_selector"])) == ((), (("pool", "gpu"),))
    assert "pod_template" not in trace.frame.columns
    assert read(workload(version=version), priority="class").frame["priority_class"].to_list() == ["high"] * 2


def test_topology_requests_are_kept(read: Callable[..., Trace]) -> None:
    """A Workload has them as fields; a Job has them as annotations of its pods, which Kueue reads."""
    host, prefix = "kubernetes.io/hostname", "kueue.x-k8s.io/podset-"
    slices = {"podSetSliceRequiredTopology": host, "podSetSliceSize": 2, "podSetGroupName": "g"}
    asked = workload()
    for pods, request in zip(
        asked["spec"]["podSets"], ({"unconstrained": True}, {"required": "rack", **slices}), strict=False
    ):
        pods["topologyRequest"] = request
    one, two = read(asked).frame.to_dicts()
    names = ("required", "slice", "slice_size", "group", "unconstrained")
    assert [one.get(f"topology_{name}") for name in names] == [None, None, None, None, True]
    assert [two.get(f"topology_{name}") for name in names] == ["rack", host, 2, "g", None]
    asked["spec"]["podSets"][1]["topologyRequest"]["podSetSliceSize"] = 99
    trace = read(asked)
    (_, two) = trace.frame.to_dicts()
    assert [two.get(f"topology_{name}") for name in names] == ["rack", None, None, "g", None]
    assert "1 job requests slices of more pods than there are; these slices are left out" in trace.notes
    plain = job()
    plain["spec"]["template"]["metadata"]["annotations"] = {f"{prefix}preferred-topology": "rack"}
    frame = read(plain).frame
    assert frame["topology_preferred"].to_list() == ["rack"]
    assert not {f"topology_{name}" for name in names} & set(frame.columns)


def test_yaml_and_several_documents_give_the_same_trace(
    read: Callable[..., Trace], read_text: Callable
) -> None:
    """As kubectl prints either; gzip, lists and objects by themselves change nothing."""
    expected = read(workload(), job(), pod())
    items = {"apiVersion": "v1", "items": [workload(), job(), pod()], "kind": "List", "metadata": {}}
    as_yaml = yaml.safe_dump(items)
    apart = "\n".join(json.dumps(item) for item in (workload(), job())) + f"\n---\n{yaml.safe_dump(pod())}"
    for text in (as_yaml, gzip.compress(as_yaml.encode()), apart):
        trace = read_text(text, name="answer")
        assert (trace.reader, trace.rows_read) == ("kubernetes", 3)
        assert trace.frame.equals(expected.frame)


def spans(
    *times: tuple[str, str | None], uid: str = "uid-j", phase: str = "Succeeded"
) -> list[dict[str, Any]]:
    """Pods of a Job that ran at these times of ten o'clock."""
    pods = []
    for number, (start, end) in enumerate(times):
        made = pod(f"{phase}-{number}", ("Job", uid), phase)
        made["status"]["startTime"] = f"2025-03-01T10:{start}Z"
        ended = {"terminated": {"finishedAt": f"2025-03-01T10:{end}Z"}} if end else {}
        made["status"]["containerStatuses"] = [{"state": ended}]
        pods.append(made)
    return pods


def owned(conditions: list[dict[str, Any]]) -> dict[str, Any]:
    """A Workload of five pods made for the Job `j`."""
    made = workload(conditions=conditions)
    made["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "uid": "uid-j"}]
    return made


ADMITTED = [condition("Admitted", "2025-03-01T10:01:00Z"), condition("Finished", "2025-03-01T10:50:00Z")]
READY = condition("PodsReady", "2025-03-01T10:10:00Z")
FIVE = [("12:00", None), ("13:00", None), ("13:30", None), ("14:00", None), ("15:00", None)]
ONE = owned([*ADMITTED, READY])
ONE["spec"]["podSets"] = ONE["spec"]["podSets"][:1]
ALONE = spans(("02:00", "49:59"))
AT_11 = {"startTime": "2025-03-01T10:11:00Z"}


@pytest.mark.parametrize(
    ("objects", "minute", "how"),
    [
        ([owned([*ADMITTED, READY]), job(**AT_11), *spans(*FIVE)], 10, "its pods were ready"),
        ([ONE, job(**AT_11), *ALONE], 10, "its pods were ready"),
        ([owned(ADMITTED), job(**AT_11), *spans(*FIVE)], 15, "its pods started"),
        ([owned(ADMITTED), job(**AT_11)], 11, "its Job started"),
        ([owned(ADMITTED)], 1, "it was admitted"),
        ([owned([*ADMITTED, {**READY, "status": "False"}])], 1, "it was admitted"),
        ([owned([*ADMITTED, {**READY, "lastTransitionTime": T0}])], 1, "it was admitted"),
        ([owned(ADMITTED), job(startTime=T0)], 1, "it was admitted"),
        (
            [owned(ADMITTED), job(**AT_11), *spans(*FIVE, phase="Failed"), *spans(*FIVE[:1] * 5)],
            12,
            "its pods started",
        ),
    ],
)
def test_a_workload_runs_since_its_pods_do(
    read: Callable[..., Trace], objects: list[dict[str, Any]], minute: int, how: str
) -> None:
    """By the best that is known of its last admission, whatever it waited for then; a note says what."""
    trace = read(*objects)
    assert trace.frame["recorded_start"][0] == datetime(2025, 3, 1, 10, minute, tzinfo=UTC)
    assert trace.frame["duration"][0] == timedelta(minutes=50 - minute)
    assert f"the run of a job begins when {how} (1 job)" in trace.notes


def test_a_job_set_runs_since_the_pods_of_its_jobs_do(read: Callable[..., Trace]) -> None:
    """The Workload is made for the JobSet, which no list has to hold."""
    made = owned(ADMITTED)
    made["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "s", "uid": "uid-s"}]
    child = job(**AT_11)
    child["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "s", "uid": "uid-s"}]
    trace = read(made, child, *spans(*FIVE))
    assert trace.frame["duration"][0] == timedelta(minutes=35)
    assert trace.left_out == {"that belong to a Job or Workload in the list": 6}


def test_a_job_runs_since_its_pods_do(read: Callable[..., Trace]) -> None:
    """It is created, and started, while they still wait for nodes."""
    ended = {"startTime": T0, "completionTime": "2025-03-01T10:50:00Z"}
    three = [("12:00", "20:00"), ("13:00", "50:00"), ("14:00", "50:00")]
    gang = {"kueue.x-k8s.io/queue-name": "lq"}

    def run(made: dict[str, Any], *pods: dict[str, Any]) -> tuple[int, int]:
        row = read(made, *pods).frame.to_dicts()[0]
        return row["recorded_start"].minute, row["duration"] // timedelta(minutes=1)

    alone = job(**ended)
    alone["spec"] |= {"completions": 3}
    assert run(alone) == (0, 50)
    assert run(alone, *spans(*three)) == (12, 37)  # as long as the longest of them
    assert run(job(labels=gang, **ended), *spans(*three)) == (14, 36)  # since all of them run
    assert run(job(**ended), *spans(*three, ("20:00", "50:00"), ("21:00", "50:00"))) == (14, 36)  # in rounds
    assert run(alone, *spans(*three[:2]), *spans(("30:00", None))) == (30, 20)


def test_evictions_of_a_workload_are_counted(read: Callable[..., Trace]) -> None:
    """What it had done before it was evicted is no part of its run, unless it is asked for."""
    evicted = workload()
    counts = [{"reason": "Preempted", "underlyingCause": cause, "count": 2} for cause in ("", "InCohort")]
    evicted["status"] |= {
        "schedulingStats": {"evictions": counts},
        "accumulatedPastExecutionTimeSeconds": 600,
    }
    trace = read(evicted, job())
    assert trace.frame["evictions"].to_list() == [4, 4, None]
    assert trace.frame["duration"][0] == timedelta(hours=1, seconds=30)
    assert any("(1 job had been evicted)" in note for note in trace.notes)
    assert read(evicted, attempts="total").frame["duration"][0] == timedelta(hours=1, minutes=10, seconds=30)
    status = evicted["status"]
    status["accumulatedPastExexcutionTimeSeconds"] = status.pop("accumulatedPastExecutionTimeSeconds")
    assert read(evicted, attempts="total").frame["duration"][0] == timedelta(hours=1, minutes=10, seconds=30)


def test_a_workload_that_was_admitted_again_had_been_evicted(read: Callable[..., Trace]) -> None:
    """Its condition says so, if it has no schedulingStats with the number of evictions."""
    again = workload()
    again["status"]["conditions"].append({**condition("Evicted", T1), "status": "False"})
    notes = read(again, workload("other")).notes
    assert any("(1 job had been evicted)" in note for note in notes)


def revoked(reason: str, *evictions: int, past: int | None = None, **more: Any) -> dict[str, Any]:
    """A Workload that was admitted, was not any more at 10:30, and finished at 10:30 or later."""
    over = [
        {**condition("Admitted", "2025-03-01T10:30:00Z", "False"), "reason": reason},
        condition("Finished", "2025-03-01T10:30:00Z" if reason == "Finished" else T2),
        *([condition("Evicted", "2025-03-01T10:30:00Z")] if evictions else []),
        *more.pop("conditions", []),
    ]
    made = workload("r", conditions=over)
    if evictions:
        stats = [{"reason": "Preempted", "underlyingCause": "", "count": count} for count in evictions]
        made["status"]["schedulingStats"] = {"evictions": stats}
    if past is not None:
        made["status"]["accumulatedPastExecutionTimeSeconds"] = past
    return made


@pytest.mark.parametrize(
    ("made", "minutes", "total"),
    [
        (revoked("NoReservation", 1, past=1200), 20, 20),
        (revoked("NoReservation", 1, 1, past=1200), None, None),
        (revoked("NoReservation", 1), None, None),
        (revoked("Finished", past=600), 10, 10),
        (revoked("Finished", 1, past=600), None, None),
        (revoked("Finished", 1, past=1500, conditions=[READY]), 20, 25),
    ],
)
def test_an_admission_that_was_revoked_began_as_much_earlier_as_it_took(
    read: Callable[..., Trace], made: dict[str, Any], minutes: int | None, total: int | None
) -> None:
    """Where there was no other: Kueue keeps its end, and how long all took together."""
    for attempts, expected in (("last", minutes), ("total", total)):
        trace = read(pod(), made, attempts=attempts)
        found = [
            row["duration"] // timedelta(minutes=1) for row in trace.frame.to_dicts() if row["uid"] == "uid-r"
        ]
        assert found == ([] if expected is None else [expected] * 2)
        reason = {"that were admitted once, at an unknown time": 1}
        assert trace.left_out == ({} if found else reason)


def test_what_was_evicted_and_waits_had_started(read: Callable[..., Trace]) -> None:
    """It is left out, and not as what never started; one that Kueue evicted before it was admitted is."""
    gone = [condition("Evicted", T1), condition("Admitted", T1, "False")]
    trace = read(pod(), workload("a", conditions=gone), workload("b", conditions=gone[:1]))
    assert trace.left_out == {
        "that were evicted and wait to run again": 1,
        "that never started, as far as the cluster knows": 1,
    }


def test_what_has_not_ended_is_left_out_and_counted(read: Callable[..., Trace]) -> None:
    """Nobody knows how long it would run."""
    waiting = workload("waiting", conditions=[condition("QuotaReserved", T0, "False")])
    running = workload("running", conditions=[condition("Admitted", T1)])
    trace = read(
        workload(),
        waiting,
        running,
        job("started", startTime=T1),
        pod("runs", phase="Running"),
        job("new", x=1),
    )
    assert trace.left_out == {
        "that never started, as far as the cluster knows": 2,
        "that have not ended, so their run times are unknown": 3,
    }
    assert trace.frame["job_id"].unique().to_list() == ["team/w"]


def test_a_list_without_an_ended_job_says_what_there_is(faults_of_text: Callable) -> None:
    """Instead of an empty trace."""
    answer = json.dumps({"apiVersion": "v1", "kind": "List", "items": [job(startTime=T1)]})
    assert faults_of_text(answer) == [
        "holds no job that has ended (1 that have not ended, so their run times are unknown)"
    ]


def test_a_job_is_as_many_pods_as_run_at_once(read: Callable[..., Trace]) -> None:
    """Its namespace is the queue, unless Kueue's label names one; with it the job is admitted as a whole."""
    failed = {"startTime": T1, "conditions": [condition("Failed", T2)]}
    queued = job("k", {"kueue.x-k8s.io/queue-name": "lq"}, **failed)
    trace = read(job(), queued)
    assert trace.frame.select("job_id", "queue", "pods", "gang").rows() == [
        ("team/j", "team", 3, False),
        ("team/k", "lq", 3, True),
    ]
    assert trace.frame["duration"].to_list() == [timedelta(hours=1, seconds=30)] * 2


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({"parallelism": 0}, 0),
        ({"parallelism": 0, "completions": 3}, 0),
        ({"parallelism": 0, "completions": 3, "completionMode": "Indexed"}, 0),
        ({"parallelism": 2, "completions": 0}, 0),
        ({"parallelism": None, "completions": 0}, 0),
        ({}, 1),
        ({"parallelism": None, "completions": None}, 1),
        ({"parallelism": None, "completions": 3, "completionMode": "Indexed"}, 1),
        ({"parallelism": 2}, 2),
        ({"parallelism": 5, "completions": 3}, 3),
    ],
)
def test_a_job_that_asks_for_no_pods_is_none(
    read: Callable[..., Trace], spec: dict[str, Any], pods: int
) -> None:
    """One whose parallelism is not said has one; none where it, or the pods that have to end, are 0."""
    other = job("other")
    other["spec"] = {"template": template(), **spec}
    trace = read(job(), other)
    assert trace.frame["pods"].to_list() == [3, pods][: 1 + bool(pods)]
    assert trace.left_out == ({} if pods else {"that request no pods": 1})


def test_a_pod_runs_until_its_last_container_ends(read: Callable[..., Trace]) -> None:
    """Where it ran does not bind it in the replay."""
    (row,) = read(pod()).frame.to_dicts()
    assert (row["duration"], row["priority"], row["queue"]) == (timedelta(hours=1, seconds=30), 7, "team")
    assert "pod_template" not in row


def failed(conditions: list[dict[str, Any]], *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A Pod that failed, of which containers may say no end."""
    made = pod("f", phase="Failed")
    made["spec"] |= spec
    made["status"] = {"phase": "Failed", "startTime": T1, "conditions": conditions}
    made["status"]["containerStatuses"] = [{"name": "main", "state": state} for state in containers]
    return made


DISRUPTED = condition("DisruptionTarget", "2025-03-01T10:20:00Z")
NOT_READY = condition("Ready", "2025-03-01T10:15:00Z", "False")
ENDED = {"terminated": {"finishedAt": "2025-03-01T10:10:00Z"}}
PROBED = {"containers": [{"name": "main", "readinessProbe": {"exec": {}}}]}


@pytest.mark.parametrize(
    ("made", "minutes"),
    [
        (failed([DISRUPTED]), 15),
        (failed([NOT_READY]), 10),
        (failed([DISRUPTED, NOT_READY]), 15),
        (failed([DISRUPTED, NOT_READY], {"running": {"startedAt": T1}}), 15),
        (failed([DISRUPTED], ENDED, {"running": {"startedAt": T1}}), 15),
        (failed([DISRUPTED, NOT_READY], ENDED), 5),
        (failed([NOT_READY], **PROBED), None),
        (failed([condition("Ready", T1, "False")]), None),
        (failed([{**DISRUPTED, "status": "False"}, {**NOT_READY, "status": "True"}]), None),
        (failed([]), None),
    ],
)
def test_a_pod_that_failed_without_an_end_ended_when_it_was_given_up(
    read: Callable[..., Trace], made: dict[str, Any], minutes: int | None
) -> None:
    """By its kubelet, or with its node; where nothing says when, that is the reason."""
    trace = read(pod(), made)
    found = [row["duration"] // timedelta(minutes=1) for row in trace.frame.to_dicts()[1:]]
    assert found == ([] if minutes is None else [minutes])
    assert trace.left_out == ({} if found else {"that failed at an unknown time": 1})


def test_every_piece_of_work_counts_once(read: Callable[..., Trace]) -> None:
    """A Workload stands for its Job, a Job for its Pods; pods of every node are no work."""
    queued = workload()
    queued["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "uid": "uid-j"}]
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    trace = read(
        queued,
        job(),
        job("alone"),
        pod("of-job", ("Job", "uid-j")),
        pod("of-other", ("Job", "uid-alone")),
        pod("agent", ("DaemonSet", "uid-d")),
        config,
    )
    assert trace.frame["job_id"].unique(maintain_order=True).to_list() == ["team/w", "team/alone"]
    assert trace.left_out == {
        "that have a Workload in the list": 1,
        "that belong to a Job or Workload in the list": 2,
        "of a DaemonSet, which every node has": 1,
        "of kind ConfigMap, which is not a Workload, Job or Pod": 1,
    }
    assert trace.rows_read == 7


def test_a_history_fits_the_manifests_of_its_cluster(
    read: Callable[..., Trace], readers: Plugins, tmp_path: Path
) -> None:
    """Both as kubectl printed them: LocalQueues are found by namespace and name."""
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "cq"}}
    local = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "lq", "namespace": "team"},
        "spec": {"clusterQueue": "cq"},
    }
    groups = [
        {
            "coveredResources": ["cpu", "memory", "nvidia.com/gpu"],
            "flavors": [
                {
                    "name": "all",
                    "resources": [
                        {"name": "cpu", "nominalQuota": "9"},
                        {"name": "memory", "nominalQuota": "9Gi"},
                        {"name": "nvidia.com/gpu", "nominalQuota": "9"},
                    ],
                }
            ],
        }
    ]
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "all"}}
    items = [flavor, {**queue, "spec": {"namespaceSelector": {}, "resourceGroups": groups}}, local]
    manifests = tmp_path / "cluster.json"
    manifests.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    history = read(workload())
    cluster = load_cluster(manifests)
    assert open_trace(history.path, readers, cluster=cluster).frame.equals(history.frame)
    found = cluster.cluster_queue_of("team", history.frame["queue"][0])
    assert found is not None
    assert found.name == "cq"


def test_faults_name_the_object_and_the_field(faults_of_text: Callable) -> None:
    """All of them at once."""
    wrong = workload("bad", priority="much")
    wrong["spec"]["podSets"][0]["count"] = 2**40
    late = job(startTime="yesterday")
    answer = json.dumps({"apiVersion": "v1", "kind": "List", "items": [wrong, late]})
    first = "document 1 (line 1), item"
    assert faults_of_text(answer) == [
        f"{first} 1 (Workload): spec.priority: must be a whole number, not 'much'",
        f"{first} 1 (Workload): spec.podSets[0].count: {2**40} is out of range (0 to 2147483647)",
        f"{first} 2 (Job): status.startTime: 'yesterday' is not a time such as 2025-01-31T08:00:00Z",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"apiVersion": "v1"',
            "document 1 (line 1), line 2: not valid YAML: did not find expected ',' or '}'",
        ),
        ("[1]", "document 1 (line 1): must be a Kubernetes object, not [1]"),
        ("a: 1\n---\nb", "document 2 (line 2): must be a Kubernetes object, not 'b'"),
        ('{"kind": "List", "items": 3}', "document 1 (line 1): items: must be a list, not 3"),
        ('{"kind": "List", "items": [3]}', "document 1 (line 1), item 1: must be a Kubernetes object, not 3"),
        ("{}\n{}", "document 1 (line 1): is not a Kubernetes object: it lacks apiVersion or kind"),
        (
            '{"kind": "List"}\nkind',
            "document 2 (line 2): 'kind' follows a JSON object; separate documents with a '---' line",
        ),
        ("[" * 100_000, "document 1 (line 1), line 1: nested more than 100 levels deep"),
        (b'{"kind":\n"\xff"}', "line 2: is not UTF-8 text"),
    ],
)
def test_what_is_no_answer_of_a_cluster_is_refused(
    faults_of_text: Callable, text: str | bytes, message: str
) -> None:
    """With document and line."""
    assert message in faults_of_text(text, reader="kubernetes")


def test_a_table_of_kubectl_is_recognized(faults_of_text: Callable) -> None:
    """It lacks nearly everything, and -o yaml brings it."""
    (found,) = faults_of_text("NAMESPACE   NAME   QUEUE   AGE\nd           a      q       3d\n")
    assert found.endswith("; add -o yaml to kubectl get")
