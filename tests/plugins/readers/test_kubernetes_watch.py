"""Saved watches of a cluster: deleted objects, earlier admissions, versions that come twice or late."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from watched_cluster import Change, WatchedCluster, expected, told

from harness.trace.trace import Trace


def stream(changes: list[Change]) -> str:
    """What `kubectl get --watch --output-watch-events -o json` prints of changes."""
    events = [{"type": change.event, "object": change.manifest} for change in changes]
    return "\n".join(json.dumps(event, indent=4) for event in events)


@pytest.fixture
def read(read_text: Callable) -> Callable[..., Trace]:
    """The trace of saved watches, one after the other in a file."""

    def trace(*changes: list[Change], **options: Any) -> Trace:
        return read_text("\n".join(map(stream, changes)), name="stream.json", **options)

    return trace


@pytest.mark.parametrize("seed", range(6))
def test_a_watch_tells_every_run_of_every_job(read: Callable[..., Trace], seed: int) -> None:
    """Also of jobs that were evicted, deleted, or made anew under the same name: each counts once."""
    cluster = WatchedCluster.of(seed)
    trace = read(*(cluster.of_kind(kind) for kind in ("Workload", "Job", "Pod")))
    assert trace.reader == "kubernetes"
    assert told(trace.frame) == expected(cluster.jobs)
    assert any(len(job.runs) > 1 for job in cluster.jobs)
    assert any(job.name.endswith("#2") for job in cluster.jobs) or seed not in (0, 1)


def test_versions_may_come_twice_and_in_any_order(read: Callable[..., Trace]) -> None:
    """As of watches that overlapped, or were put together in another order."""
    cluster = WatchedCluster.of(3)
    changes = [*cluster.changes, *cluster.changes[100:300]]
    Random(1).shuffle(changes)
    assert told(read(changes).frame) == expected(cluster.jobs)


def test_a_watch_that_began_late_knows_what_was_there(read: Callable[..., Trace]) -> None:
    """It begins with every object as it is then; earlier admissions are those that the objects still tell."""
    cluster = WatchedCluster.of(4)
    middle = 1500
    there: dict[str, Change] = {}
    for change in cluster.changes:
        if change.at <= middle:
            there[change.manifest["metadata"]["uid"]] = change
    began = [change._replace(event="ADDED") for change in there.values() if change.event != "DELETED"]
    later = [change for change in cluster.changes if change.at > middle]
    trace = read([*began, *later])
    found = {(job.name.partition("#")[0], job.submit): job for job in told(trace.frame)}
    for job in expected(cluster.jobs):
        if job.runs[-1][1] > middle:
            assert found[job.name.partition("#")[0], job.submit].runs[-1][:2] == job.runs[-1][:2]
    gone = [change for change in cluster.changes if change.event == "DELETED" and change.at <= middle]
    assert gone
    assert not {change.manifest["metadata"]["uid"] for change in gone} & set(trace.frame["uid"])


def job_alone(status: dict[str, Any], event: str = "ADDED", revision: int = 1, **metadata: Any) -> Change:
    """One version of a Pod that belongs to nothing."""
    about = {"name": "p", "namespace": "team", "uid": "u", "creationTimestamp": "2026-03-01T10:00:00Z"}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**about, "resourceVersion": str(revision), **metadata},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
        "status": status,
    }
    return Change(0, event, manifest)


RUNNING = {"phase": "Running", "startTime": "2026-03-01T10:01:00Z"}


def test_a_pod_that_was_deleted_while_it_ran_ends_when_that_was_asked(read: Callable[..., Trace]) -> None:
    """Its `deletionTimestamp`, where no container says when it ended."""
    gone = job_alone(RUNNING, "DELETED", 2, deletionTimestamp="2026-03-01T10:05:00Z")
    trace = read([job_alone(RUNNING), gone])
    assert told(trace.frame)[0].runs == ((60, 300, ""),)
    assert trace.notes[0].startswith("1 object was deleted while they were watched")


def test_a_pod_that_failed_did_not_run_until_it_was_deleted(
    read: Callable[..., Trace], faults_of_text: Callable
) -> None:
    """It was given up before, or nobody knows when."""
    disrupted = {
        "type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2026-03-01T10:03:00Z"
    }  # fmt: skip
    over = {**RUNNING, "phase": "Failed"}
    late = {"deletionTimestamp": "2026-03-01T10:50:00Z"}
    known = {**over, "conditions": [disrupted]}
    trace = read([job_alone(RUNNING), job_alone(known, revision=2), job_alone(known, "DELETED", 3, **late)])
    assert told(trace.frame)[0].runs == ((60, 180, ""),)
    text = stream([job_alone(RUNNING), job_alone(over, revision=2), job_alone(over, "DELETED", 3, **late)])
    assert faults_of_text(text) == ["holds no job that has ended (1 that failed at an unknown time)"]


def test_what_was_deleted_at_an_unknown_time_is_left_out(faults_of_text: Callable) -> None:
    """No time is made up for it."""
    text = stream([job_alone(RUNNING), job_alone(RUNNING, "DELETED", 2)])
    assert faults_of_text(text) == [
        "holds no job that has ended (1 that were deleted while they ran, at an unknown time)"
    ]


def test_errors_and_bookmarks_of_a_watch_are_no_objects(read: Callable[..., Trace]) -> None:
    """Errors are counted in a note: something may be missing after them."""
    ended = {**RUNNING, "phase": "Succeeded"}
    ended["containerStatuses"] = [{"state": {"terminated": {"finishedAt": "2026-03-01T10:02:00Z"}}}]
    status = {"apiVersion": "v1", "kind": "Status", "code": 410, "reason": "Expired"}
    mark = {"apiVersion": "v1", "kind": "Pod", "metadata": {"resourceVersion": "9"}}
    trace = read([job_alone(ended), Change(0, "BOOKMARK", mark), Change(0, "ERROR", status)])
    assert trace.rows_read == 1
    told = "1 watches ended with an error: objects that existed only after that are missing"
    assert trace.notes[-1] == told


def test_workloads_that_were_made_anew_for_one_job_are_one_job(read: Callable[..., Trace]) -> None:
    """As Kueue does when a Job's pods change; it was submitted with the first of them."""

    def workload(uid: str, created: str, event: str, revision: int, *conditions: tuple[str, str]) -> Change:
        owner = {"kind": "Job", "name": "j", "uid": "uid-j", "apiVersion": "batch/v1"}
        metadata = {
            "name": uid,
            "namespace": "team",
            "uid": uid,
            "creationTimestamp": f"2026-03-01T{created}Z",
        }
        found = [
            {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": f"2026-03-01T{since}Z"}
            for kind, since in conditions
        ]
        template = {"spec": {"containers": [{"name": "m", "resources": {"requests": {"cpu": "1"}}}]}}
        manifest = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {**metadata, "resourceVersion": str(revision), "ownerReferences": [owner]},
            "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 1, "template": template}]},
            "status": {"conditions": found},
        }
        if event == "DELETED":
            manifest["metadata"]["deletionTimestamp"] = "2026-03-01T10:10:00Z"
        return Change(0, event, manifest)

    admitted = ("Admitted", "10:02:00")
    trace = read(
        [
            workload("a", "10:00:00", "ADDED", 1),
            workload("a", "10:00:00", "MODIFIED", 2, admitted),
            workload("a", "10:00:00", "DELETED", 3, admitted),
            workload("b", "10:10:00", "ADDED", 4, ("Admitted", "10:12:00"), ("Finished", "10:30:00")),
        ]
    )
    (job,) = told(trace.frame)
    assert (job.submit, job.runs) == (0, ((120, 600, "deleted"), (720, 1800, "Finished")))
    assert trace.left_out == {"that were replaced by a new object of the same owner, which continues them": 1}
    assert trace.frame["evictions"].to_list() == [1]
