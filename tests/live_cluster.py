"""What a live cluster's API would show of a replay: its jobs as Workloads, Jobs and Pods."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from harness.base.units import SECOND
from harness.runs.run import Run

Manifest = dict[str, Any]
Spans = dict[int, tuple[int, int]]
"""Pod -> when it was last started, and when it ended; microseconds since the origin."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_QUEUE = "kueue.x-k8s.io/queue-name"


class LiveCluster:
    """The objects of a finished replay of a trace with dates; ids of its jobs are namespace and name.

    What a cluster knows of when pods ran differs from job to job, as it does in reality: of some the
    Workload says that they were ready, of others only their Pods or their Job are left.

    Args:
        run: the replay.
        trace: the rows that were replayed, with `uid`, in order of arrival and one row a job.
        kueue: whether jobs have Workloads.
        at: when it is asked, microseconds since the origin; at the end by default. What has not ended by
            then is a Workload that holds quota, or waits for it.
    """

    def __init__(self, run: Run, trace: pl.DataFrame, *, kueue: bool, at: int | None = None) -> None:
        self._origin = int(run.info["trace"]["origin_us"])
        self._kueue = kueue
        happened = run.micros("decisions").collect()
        if at is not None:
            happened = happened.filter(pl.col("time") <= at)
        self._admitted = dict(
            happened.filter(pl.col("action") == "admit").group_by("job_id").agg(pl.col("time").last()).rows()
        )
        evicted = happened.filter(pl.col("action") == "preempt").group_by("job_id").agg(pl.col("time").last())
        for name, time in evicted.rows():
            if time >= self._admitted.get(name, time + 1):
                del self._admitted[name]
        ends = dict(run.micros("jobs").collect().select("job_id", "finish_time").rows())
        if at is not None:
            ends = {name: end if end is not None and end <= at else None for name, end in ends.items()}
        # Without nodes a job starts as a whole, when it is admitted or later; else each pod when it is bound.
        begun = happened.filter(pl.col("action").is_in(["admit", "start", "bind"]))
        self._pods: dict[str, Spans] = {}
        ended = _ends(happened)
        for name, pod, time in begun.select("job_id", "pod_number", "time").iter_rows():
            spans = self._pods.setdefault(name, {})
            spans[pod or 0] = (time, ended.get((name, pod), ends[name]) or 0)  # the last one counts
        self._ends = ends
        self._rows = [row for row in trace.iter_rows(named=True) if at is None or self._created(row) <= at]

    def objects(self) -> list[Manifest]:
        """Workloads, then Jobs, then Pods, each by namespace and name, as kubectl prints them."""
        found: list[Manifest] = []
        for number, row in enumerate(self._rows):
            found += self._of_job(number, row)
        order = ("Workload", "Job", "Pod")
        found.sort(
            key=lambda each: (
                order.index(each["kind"]),
                each["metadata"]["namespace"],
                each["metadata"]["name"],
            )
        )
        return found

    def _of_job(self, number: int, row: dict[str, Any]) -> Iterator[Manifest]:
        name, end = row["job_id"], self._ends[row["job_id"]]
        if end is None:
            yield self._workload(row, self._admitted.get(name), None, None)
            return
        pods = self._pods.get(name, {})
        begins = max((start for start, _ in pods.values()), default=self._admitted.get(name, 0))
        if not self._kueue:
            yield from self._job(row, begins, end, listed=pods)
            return
        which = number % 3
        admitted = self._admitted[name]
        yield self._workload(row, admitted, begins if which == 0 else None, end)
        if which == 1 and pods:
            yield from self._job(row, admitted, end, listed=pods)
        else:
            yield from self._job(row, begins, end, listed={})

    def _workload(
        self, row: dict[str, Any], admitted: int | None, ready: int | None, end: int | None
    ) -> Manifest:
        known = {"QuotaReserved": admitted, "Admitted": admitted, "PodsReady": ready, "Finished": end}
        usage = {"cpu": f"{row['request.cpu'] * row['pods']}m", "memory": row["request.memory"] * row["pods"]}
        part = {"name": "main", "count": row["pods"], "flavors": dict.fromkeys(usage, "f")}
        admission = {
            "clusterQueue": row["namespace"],
            "podSetAssignments": [{**part, "resourceUsage": usage}],
        }
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": f"job-{row['uid']}"}
        return {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {**self._metadata(row, row["uid"]), "ownerReferences": [owner]},
            "spec": {
                "queueName": row["queue"],
                "priority": row["priority"],
                "podSets": [{"name": "main", "count": row["pods"], "template": _template(row)}],
            },
            "status": {
                **({} if admitted is None else {"admission": admission}),
                "conditions": [
                    {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": self._time(since)}
                    for kind, since in known.items()
                    if since is not None
                ],
            },
        }

    def _job(self, row: dict[str, Any], start: int, end: int, *, listed: Spans) -> Iterator[Manifest]:
        """The Job, and the Pods that are still there."""
        labels = {_QUEUE: row["queue"]} if self._kueue or row["gang"] else {}
        uid = f"job-{row['uid']}" if self._kueue else row["uid"]
        begun = {"startTime": self._time(start if self._kueue else self._created(row))}
        yield {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {**self._metadata(row, uid), "labels": labels},
            "spec": {"parallelism": row["pods"], "completions": row["pods"], "template": _template(row)},
            "status": {**begun, "completionTime": self._time(end)},
        }
        for pod, (began, ended) in listed.items():
            name = row["job_id"].partition("/")[2]
            state = {"terminated": {"exitCode": 0, "finishedAt": self._time(ended)}}
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    **self._metadata(row, f"pod-{row['uid']}-{pod}"),
                    "name": f"{name}-{pod}",
                    "ownerReferences": [{"kind": "Job", "name": name, "uid": uid}],
                },
                "spec": {**_template(row)["spec"], "nodeName": "n"},
                "status": {
                    "phase": "Succeeded",
                    "startTime": self._time(began),
                    "containerStatuses": [{"state": state}],
                },
            }

    def _metadata(self, row: dict[str, Any], uid: str) -> Manifest:
        namespace, _, name = row["job_id"].partition("/")
        created = self._time(self._created(row))
        return {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": created}

    def _created(self, row: dict[str, Any]) -> int:
        since: timedelta = row["submit_time"] - _EPOCH
        return since // timedelta(microseconds=1) - self._origin

    def _time(self, since: int) -> str:
        """A time as the API has it: parts of a second are cut off."""
        seconds = (self._origin + since) // SECOND
        return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _template(row: dict[str, Any]) -> Manifest:
    requests = {"cpu": f"{row['request.cpu']}m", "memory": str(row["request.memory"])}
    spec = {
        "containers": [{"name": "main", "resources": {"requests": requests}}],
        "priority": row["priority"],
    }
    return {"metadata": {}, "spec": spec}


def _ends(happened: pl.DataFrame) -> dict[tuple[str, int | None], int]:
    """Job and pod -> when the pod ended, where pods end one by one."""
    ended = happened.filter(pl.col("action") == "finish")
    return {(name, pod): time for name, pod, time in ended.select("job_id", "pod_number", "time").iter_rows()}
