"""A cluster over an hour: every version of its Workloads, Jobs and Pods, and what really happened."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

Manifest = dict[str, Any]

BEGIN = datetime(2026, 3, 1, 10, tzinfo=UTC)
HOUR = 3600
KEPT_AFTER_END = 420
"""Seconds for which a finished Job stays (`ttlSecondsAfterFinished`)."""

SECRET = "hunter2-do-not-record"
"""Stands in environments and annotations of everything."""

PATHS = {
    "Workload": "/apis/kueue.x-k8s.io/v1beta2/{}workloads",
    "Job": "/apis/batch/v1/{}jobs",
    "Pod": "/api/v1/{}pods",
    "ClusterQueue": "/apis/kueue.x-k8s.io/v1beta2/clusterqueues",
    "Node": "/api/v1/nodes",
}
VERSIONS = {
    **dict.fromkeys(("Workload", "ClusterQueue"), "kueue.x-k8s.io/v1beta2"),
    "Job": "batch/v1",
    "Pod": "v1",
    "Node": "v1",
}
WORK = ("Workload", "Job", "Pod")
"""Kinds of which a trace is made; those of quotas and nodes are there where something happens to them."""


class Change(NamedTuple):
    """One version of an object: at which second since the beginning, and what a watch says of it."""

    at: int
    event: str
    manifest: Manifest

    @property
    def revision(self) -> int:
        return int(self.manifest["metadata"]["resourceVersion"])


class Happened(NamedTuple):
    """What really happened to a job that ended: seconds since the beginning."""

    name: str
    submit: int
    runs: tuple[tuple[int, int, str], ...]
    queue: str
    pods: int


@dataclass
class WatchedCluster:
    """What happens in it.

    Attributes:
        changes: all versions, in the order in which the API server made them.
        jobs: what became of those that ended within the hour.
    """

    changes: list[Change] = field(default_factory=list)
    jobs: list[Happened] = field(default_factory=list)

    @classmethod
    def of(cls, seed: int, jobs: int = 30) -> WatchedCluster:
        """An hour of so many jobs."""
        cluster = cls()
        script = _Script(Random(seed))
        for number in range(jobs):
            script.job(number, cluster.jobs)
        steps = sorted(script.steps, key=lambda step: step[0])
        for revision, (at, event, manifest) in enumerate(steps, start=1000):
            if at < HOUR:
                made = json.loads(json.dumps(manifest))
                made["metadata"]["resourceVersion"] = str(revision)
                cluster.changes.append(Change(at, event, made))
        return cluster

    def of_kind(self, kind: str) -> list[Change]:
        """The changes of objects of one kind."""
        return [change for change in self.changes if change.manifest["kind"] == kind]


class Story:
    """Writes down versions of objects; each has the resource version after the one before."""

    def __init__(self) -> None:
        self.cluster = WatchedCluster()

    def happens(self, at: int, event: str, manifest: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """An object after some parts of it became others, by path such as `spec.stopPolicy`."""
        made = deepcopy(manifest)
        for path, value in changes.items():
            *way, last = path.split("__")
            inner = made
            for step in way:
                inner = inner.setdefault(step, {})
            inner[last] = value
        made["metadata"]["resourceVersion"] = str(1000 + len(self.cluster.changes))
        self.cluster.changes.append(Change(at, event, made))
        return made


def told(frame: Any) -> list[Happened]:
    """The rows of a trace in the same form, in order of names."""
    found = []
    for row in frame.sort("job_id").iter_rows(named=True):
        texts = json.loads(row.get("recorded_runs") or "null")
        runs = [
            (_since(datetime.fromisoformat(run["start"])), _since(datetime.fromisoformat(run["end"])))
            for run in texts or ()
        ] or [(_since(row["recorded_start"]), _since(row["recorded_end"]))]
        states = [run["state"] for run in texts or ({"state": ""},)]
        spans = tuple((*run, state) for run, state in zip(runs, states, strict=True))
        found.append(Happened(row["job_id"], _since(row["submit_time"]), spans, row["queue"], row["pods"]))
    return found


def expected(jobs: list[Happened]) -> list[Happened]:
    """What a trace says of jobs: of a single run not how it ended."""
    plain = [job if len(job.runs) > 1 else job._replace(runs=((*job.runs[0][:2], ""),)) for job in jobs]
    return sorted(plain, key=lambda job: job.name)


def _since(time: datetime) -> int:
    return int((time - BEGIN).total_seconds())


def _time(at: int) -> str:
    return (BEGIN + timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Script:
    """Writes down what happens, object by object."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.steps: list[tuple[int, str, Manifest]] = []
        self._uids = 0

    def job(self, number: int, happened: list[Happened]) -> None:
        """A Job with Kueue's label and its Workload; or one without; or a Pod alone."""
        random = self.random
        created = random.randrange(0, HOUR - 600)
        kind = random.choices(("queued", "plain", "pod"), (6, 2, 1))[0]
        if kind == "pod":
            self._pod_alone(number, created, happened)
            return
        pods = random.choice((1, 2, 4))
        times = self._times(created)
        self._job(f"job-{number}", created, pods, times, queued=kind == "queued", happened=happened)
        over = times[-1][2] + KEPT_AFTER_END
        if random.random() < 0.2 and over < HOUR - 300:  # deleted, and made anew under the same name
            again = self._times(over + 60)
            name = f"job-{number}"
            self._job(name, over + 60, pods, again, queued=kind == "queued", happened=happened, place=2)

    def _times(self, created: int) -> list[tuple[int, int, int, str]]:
        """Runs of a job: when it is admitted, ready, and when and how its run ends."""
        random, at = self.random, created
        runs = []
        while True:
            admitted = at + random.randrange(3, 120)
            ready = admitted + random.randrange(2, 30)
            end = ready + random.randrange(60, 500)
            why = random.choices(("Preempted", "Succeeded", "deleted"), (2, 6, 1))[0]
            runs.append((admitted, ready, end, why))
            if why != "Preempted":
                return runs
            at = end + random.randrange(70, 200)

    def _job(
        self,
        name: str,
        created: int,
        pods: int,
        runs: list[tuple[int, int, int, str]],
        *,
        queued: bool,
        happened: list[Happened],
        place: int = 1,
    ) -> None:
        labels = {"kueue.x-k8s.io/queue-name": "lq"} if queued else {}
        job = self._object("Job", name, created, labels=labels)
        job["spec"] = {"parallelism": pods, "completions": pods, "suspend": True, "template": _template()}
        suspended = _condition("Suspended", created, reason="JobSuspended")
        job["status"] = {"conditions": [suspended]}
        workload = self._object("Workload", f"job-{name}", created, owner=job)
        workload["spec"] = {
            "queueName": "lq",
            "priority": 10,
            "podSets": [{"name": "main", "count": pods, "template": _template()}],
        }
        workload["status"] = {}
        self._step(created, "ADDED", job)
        if queued:
            self._step(created, "ADDED", workload)
        spans = []
        for round_number, (admitted, ready, end, why) in enumerate(runs):
            admission = [_condition("QuotaReserved", admitted), _condition("Admitted", admitted)]
            if queued:
                _set(workload, admission)
                self._step(admitted, "MODIFIED", workload)
            _set(job, [_condition("Suspended", admitted, "False", "JobResumed")])
            job["status"]["startTime"] = _time(admitted)
            job["spec"]["suspend"] = False
            self._step(admitted, "MODIFIED", job)
            members = [
                self._object("Pod", f"{name}-{round_number}-{each}", admitted, owner=job)
                for each in range(pods)
            ]
            for pod in members:
                pod["spec"] = _template()["spec"]
                pod["status"] = {"phase": "Pending"}
                self._step(admitted, "ADDED", pod)
                pod["spec"]["nodeName"] = "n"
                pod["status"] = {"phase": "Running", "startTime": _time(ready)}
                self._step(ready, "MODIFIED", pod)
            if queued:
                _set(workload, [_condition("PodsReady", ready)])
                self._step(ready, "MODIFIED", workload)
            self._end(end, why, job, workload if queued else None, members)
            if queued:
                spans.append((ready, end + 5 if why == "Preempted" else end, why))
            else:
                spans.append((ready, end, "suspended" if why == "Preempted" else why))
        over = runs[-1][2]
        if over < HOUR:
            if not queued and spans[-1][2] == "Succeeded":
                spans[-1] = (*spans[-1][:2], "")
            key = f"team/job-{name}" if queued else f"team/{name}"
            called = key if place == 1 else f"{key}#{place}"
            happened.append(Happened(called, created, tuple(spans), "lq" if queued else "team", pods))

    def _end(
        self, end: int, why: str, job: Manifest, workload: Manifest | None, members: list[Manifest]
    ) -> None:
        """A run ends: well, or because it is preempted, or everything is deleted."""
        if why == "Succeeded":
            for pod in members:
                ended = {"terminated": {"exitCode": 0, "finishedAt": _time(end), "message": SECRET}}
                pod["status"] = {
                    **pod["status"], "phase": "Succeeded", "containerStatuses": [{"state": ended}],
                }  # fmt: skip
                self._step(end, "MODIFIED", pod)
            job["status"]["completionTime"] = _time(end)
            _set(job, [_condition("Complete", end)])
            self._step(end, "MODIFIED", job)
            if workload is not None:
                _set(workload, [_condition("Finished", end, reason="Succeeded")])
                self._step(end, "MODIFIED", workload)
            for each in (*members, job, workload):
                if each is not None:
                    self._step(end + KEPT_AFTER_END, "DELETED", each)
            return
        preempted = why == "Preempted"
        if preempted and workload is not None:
            _set(workload, [_condition("Evicted", end, reason="Preempted")])
            self._step(end, "MODIFIED", workload)
        for pod in members:
            pod["metadata"] |= {"deletionTimestamp": _time(end), "deletionGracePeriodSeconds": 0}
            self._step(end, "DELETED", pod)
        if preempted:
            del job["status"]["startTime"]
            job["spec"]["suspend"] = True
            _set(job, [_condition("Suspended", end, reason="JobSuspended")])
            self._step(end, "MODIFIED", job)
        if preempted and workload is not None:
            gone = [_condition(kind, end + 5, "False", "Pending") for kind in ("QuotaReserved", "Admitted")]
            _set(workload, [*gone, _condition("PodsReady", end + 5, "False")])
            self._step(end + 5, "MODIFIED", workload)
        if not preempted:
            for each in (job, workload):
                if each is not None:
                    each["metadata"]["deletionTimestamp"] = _time(end)
                    self._step(end, "DELETED", each)

    def _pod_alone(self, number: int, created: int, happened: list[Happened]) -> None:
        start, end = created + 10, created + 200
        pod = self._object("Pod", f"pod-{number}", created)
        pod["spec"], pod["status"] = _template()["spec"], {"phase": "Pending"}
        self._step(created, "ADDED", pod)
        pod["status"] = {"phase": "Running", "startTime": _time(start)}
        self._step(start, "MODIFIED", pod)
        pod["metadata"] |= {"deletionTimestamp": _time(end + 30), "deletionGracePeriodSeconds": 30}
        self._step(end, "MODIFIED", pod)
        state = {"terminated": {"exitCode": 143, "finishedAt": _time(end)}}
        pod["status"] = {**pod["status"], "phase": "Failed", "containerStatuses": [{"state": state}]}
        self._step(end + 1, "DELETED", pod)
        happened.append(Happened(f"team/pod-{number}", created, ((start, end, "Failed"),), "team", 1))

    def _object(
        self,
        kind: str,
        name: str,
        created: int,
        *,
        owner: Manifest | None = None,
        labels: dict[str, str] | None = None,
    ) -> Manifest:
        self._uids += 1
        metadata: Manifest = {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{self._uids:05}",
            "creationTimestamp": _time(created),
            "labels": labels or {},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET},
            "managedFields": [{"manager": SECRET}],
        }
        if owner is not None:
            about = {"kind": owner["kind"], "name": owner["metadata"]["name"], "controller": True}
            uid = {"uid": owner["metadata"]["uid"], "apiVersion": owner["apiVersion"]}
            metadata["ownerReferences"] = [{**about, **uid}]
        return {"apiVersion": VERSIONS[kind], "kind": kind, "metadata": metadata}

    def _step(self, at: int, event: str, manifest: Manifest) -> None:
        self.steps.append((at, event, json.loads(json.dumps(manifest))))


def _set(manifest: Manifest, conditions: list[Manifest]) -> None:
    """Put conditions in place of those of the same types, as controllers do."""
    kept = {each["type"]: each for each in manifest["status"].get("conditions", [])}
    kept |= {each["type"]: each for each in conditions}
    manifest["status"]["conditions"] = list(kept.values())


def _condition(kind: str, at: int, status: str = "True", reason: str = "") -> Manifest:
    return {
        "type": kind,
        "status": status,
        "reason": reason or kind,
        "message": SECRET,
        "lastTransitionTime": _time(at),
    }


def _template() -> Manifest:
    container = {
        "name": "main",
        "image": "train",
        "command": ["train", SECRET],
        "env": [{"name": "TOKEN", "value": SECRET}],
        "resources": {"requests": {"cpu": "2", "memory": "1Gi"}},
    }
    return {"metadata": {}, "spec": {"containers": [container], "priority": 5}}
