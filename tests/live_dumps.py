"""Dumps of small live clusters on nodes, as `kubectl get -o json` prints them: Workloads, Jobs and Pods."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

Manifest = dict[str, Any]

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
"""When the dumps were made."""

GPU = "nvidia.com/gpu"
KUEUE = "kueue.x-k8s.io/v1beta1"


def ago(hours: float) -> str:
    """A time before the dump was made, as manifests have it."""
    return (NOON - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def node(name: str, gpus: int = 8) -> Manifest:
    """A node of 96 cores and some GPUs."""
    amounts = {"cpu": "96", GPU: str(gpus), "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": amounts},
    }


def queue(name: str = "q", gpus: int = 16, **spec: Any) -> list[Manifest]:
    """A ClusterQueue with GPUs of flavor `f`, and the LocalQueue `d/NAME`."""
    quotas = [{"name": "f", "resources": [{"name": GPU, "nominalQuota": gpus}]}]
    group = {"coveredResources": [GPU], "flavors": quotas}
    return [
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}},
        {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, "resourceGroups": [group], **spec},
        },
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": "d"},
            "spec": {"clusterQueue": name},
        },
    ]


def owner(kind: str, name: str, uid: str = "") -> list[Manifest]:
    """A list of one owner reference."""
    return [{"kind": kind, "name": name, "uid": uid or f"{kind}-{name}", "controller": True}]


def workload(
    name: str, gpus: int, *, pods: int = 1, held: float | None = None, created: float = 10, **fields: Any
) -> Manifest:
    """The Workload of a Job of that name.

    Args:
        name: of the Job.
        gpus: of each pod.
        pods: how many.
        held: for how many hours it has been admitted; None while it waits.
        created: how many hours ago it was created.
        fields: `priority`; `ready`, since how many hours its pods are ready; `owners`; `labels`; `active`.
    """
    conditions: list[Manifest] = []
    status: Manifest = {}
    if held is not None:
        usage = {GPU: str(gpus * pods)}
        given = {"name": "main", "count": pods, "flavors": {GPU: "f"}, "resourceUsage": usage}
        status["admission"] = {"clusterQueue": "q", "podSetAssignments": [given]}
        conditions += [_condition("QuotaReserved", held), _condition("Admitted", held)]
    if "ready" in fields:
        conditions.append(_condition("PodsReady", fields["ready"]))
    template = {"spec": {"containers": [_container(gpus)]}}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {
            "name": f"job-{name}-1a2b3",
            "namespace": "d",
            "uid": f"w-{name}",
            "creationTimestamp": ago(created),
            "labels": fields.get("labels", {}),
            "ownerReferences": fields.get("owners", owner("Job", name)),
        },
        "spec": {
            "queueName": "q",
            "priority": fields.get("priority", 0),
            "podSets": [{"name": "main", "count": pods, "template": template}],
        },
        "status": {**status, "conditions": conditions},
    }


def job(name: str, started: float | None, owners: Iterable[Manifest] = ()) -> Manifest:
    """A Job that started so many hours ago; None for one that is suspended."""
    status = {} if started is None else {"startTime": ago(started)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "d",
            "uid": f"Job-{name}",
            "creationTimestamp": ago(10),
            "ownerReferences": list(owners),
        },
        "status": status,
    }


def pod(name: str, on: str, gpus: int, *, started: float | None = None, **metadata: Any) -> Manifest:
    """A Pod on a node, "" for one that waits, since so many hours; `owners` are its owner references."""
    owners = metadata.pop("owners", owner("Job", name))
    spec: Manifest = {"containers": [_container(gpus)], **({"nodeName": on} if on else {})}
    status = {"phase": "Running" if on else "Pending"}
    if on and started is not None:
        status["startTime"] = ago(started)
    named = {"name": name, "namespace": "d", "uid": f"p-{name}", "creationTimestamp": ago(started or 10)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**named, "ownerReferences": owners, **metadata},
        "spec": spec,
        "status": status,
    }


def running(name: str, gpus: int, *nodes: str, hours: float = 9, **fields: Any) -> list[Manifest]:
    """A Workload, its Job and its Pods, one on each of these nodes, that have run for so many hours."""
    pods = [
        pod(f"{name}-{number}", each, gpus, started=hours, owners=owner("Job", name))
        for number, each in enumerate(nodes)
    ]
    admitted = workload(name, gpus, pods=len(nodes), held=hours, **fields)
    return [admitted, job(name, hours), *pods]


def _condition(kind: str, hours: float) -> Manifest:
    return {"type": kind, "status": "True", "lastTransitionTime": ago(hours)}


def _container(gpus: int) -> Manifest:
    return {"name": "c", "resources": {"requests": {GPU: str(gpus)}, "limits": {GPU: str(gpus)}}}


def written(folder: Path, *objects: Manifest | list[Manifest]) -> str:
    """Write a dump; answers the name of its file."""
    items = [each for some in objects for each in (some if isinstance(some, list) else [some])]
    path = folder / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return str(path)


def trace(folder: Path, **columns: Any) -> str:
    """Write a trace of one job of 1 GPU and 1 h in queue `q`, submitted when the dump was made."""
    row: Mapping[str, Any] = {
        "job_id": "late",
        "submit_time": NOON,
        "duration": timedelta(hours=1),
        "queue": "q",
        "namespace": "d",
        "priority": 0,
        f"request.{GPU}": 1,
        **columns,
    }
    path = folder / "trace.parquet"
    pl.DataFrame([row]).write_parquet(path)
    return str(path)


def history(folder: Path, hours: float, jobs: int = 40) -> str:
    """Write a history of jobs of 4 GPUs in queue `q` that ran for so many hours, one every night."""
    days = [NOON + timedelta(hours=11) - timedelta(days=2 + number) for number in range(jobs)]
    frame = pl.DataFrame(
        {
            "job_id": [f"past-{number}" for number in range(jobs)],
            "submit_time": days,
            "duration": [timedelta(hours=hours)] * jobs,
            "queue": ["q"] * jobs,
            "namespace": ["d"] * jobs,
            f"request.{GPU}": [4] * jobs,
        }
    )
    path = folder / "history.parquet"
    frame.sort("submit_time").write_parquet(path)
    return str(path)
