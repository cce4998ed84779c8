"""Writes the dump for docs/live-dump.md, with 30 nodes and 300 Workloads. You can compute its answers.

    python scripts/team_dump.py [FOLDER]

The script writes dump.json with the cluster and its Workloads. Next to it, the script writes c-plus-8.yaml
and b-plus-8.yaml (patches of quotas), urgent.yaml (a Job) and coming.parquet (the jobs of the next two days).
Nodes have 8 GPUs each, and three teams have their own nodes: `a` has 15, `b` has 10 and `c` has 5. The quota
of `c` covers only 3 nodes. Every job runs for 6 h.

- Team `a`: 15 jobs with 8 GPUs run and end 1h00, 1h20, 1h40... from now. 6 jobs wait.
- Team `b`: two jobs with 4 GPUs run on each node. The first of them end 0h30, 0h40... from now, and the
  others 3h00, 3h10... from now. 5 jobs with 8 GPUs wait.
- Team `c`: 3 jobs with 8 GPUs run and end 2h00, 3h00 and 4h00 from now. 4 jobs wait.
- In the two weeks before, 247 jobs of `a` and `c` ended.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import yaml
from busy_dump import GPU, stamp, workload

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
RUN_TIME = timedelta(hours=6)
NODES = {"a": 15, "b": 10, "c": 5}
QUOTAS = {"a": 120, "b": 80, "c": 24}
WAITING = {"a": 6, "b": 5, "c": 4}
ENDED = {"a": 160, "c": 87}

KUEUE = "kueue.x-k8s.io/v1beta2"


def left(minutes: int) -> datetime:
    """Returns the start time of a job that has this many minutes left."""
    return NOW + timedelta(minutes=minutes) - RUN_TIME


RUNNING: dict[str, list[list[int]]] = {
    "a": [[60 + 20 * node] for node in range(15)],
    "b": [[30 + 10 * node, 180 + 10 * node] for node in range(10)],
    "c": [[120 + 60 * node] for node in range(3)],
}
"""For each team, the minutes that each job on each of its first nodes has left."""


def manifests() -> Iterator[dict[str, Any]]:
    """Yields the cluster and its Workloads in the format of `kubectl get -o json`."""
    yield from _cluster()
    for team in NODES:
        yield from _running(team)
        for number in range(WAITING[team]):
            yield workload(f"{team}-waits-{number}", team, 8, NOW - timedelta(minutes=90 - 10 * number))
        for number in range(ENDED.get(team, 0)):
            began = NOW - RUN_TIME - timedelta(days=14) * number / ENDED[team]
            yield _ended(workload(f"{team}-ended-{number}", team, 8, began, began, f"pool-{team}"))


def _cluster() -> Iterator[dict[str, Any]]:
    yield {"apiVersion": "config.kueue.x-k8s.io/v1beta1", "kind": "Configuration"}  # without waitForPodsReady
    about = {"name": "prod"}
    yield {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": about, "value": 1000}
    for team, nodes in NODES.items():
        yield {
            "apiVersion": KUEUE,
            "kind": "ResourceFlavor",
            "metadata": {"name": f"pool-{team}"},
            "spec": {"nodeLabels": {"pool": team}},
        }
        quotas = [{"name": f"pool-{team}", "resources": [{"name": GPU, "nominalQuota": str(QUOTAS[team])}]}]
        yield {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": team},
            "spec": {
                "namespaceSelector": {},
                "queueingStrategy": "StrictFIFO",
                "preemption": {"withinClusterQueue": "LowerPriority"},
                "resourceGroups": [{"coveredResources": [GPU], "flavors": quotas}],
            },
        }
        yield {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": team, "namespace": "default"},
            "spec": {"clusterQueue": team},
        }
        for number in range(nodes):
            yield {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": f"{team}-{number}", "labels": {"pool": team}},
                "status": {"allocatable": {GPU: "8", "cpu": "96", "memory": "1Ti", "pods": "110"}},
            }


def _running(team: str) -> Iterator[dict[str, Any]]:
    for node, several in enumerate(RUNNING[team]):
        for place, minutes in enumerate(several):
            name, since = f"{team}-runs-{node}-{place}", left(minutes)
            found = workload(name, team, 8 // len(several), since, since, f"pool-{team}")
            yield found
            (pod_set,) = found["spec"]["podSets"]
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-0",
                    "namespace": "default",
                    "creationTimestamp": stamp(since),
                    "annotations": {"kueue.x-k8s.io/workload": name},
                },
                "spec": {**pod_set["template"]["spec"], "nodeName": f"{team}-{node}"},
                "status": {"phase": "Running", "startTime": stamp(since)},
            }


def _ended(found: dict[str, Any]) -> dict[str, Any]:
    """Returns a job that ran for its full time after its admission."""
    began = datetime.fromisoformat(found["metadata"]["creationTimestamp"])
    found["status"]["conditions"].append(
        {
            "type": "Finished",
            "status": "True",
            "reason": "Succeeded",
            "lastTransitionTime": stamp(began + RUN_TIME),
        }
    )
    return found


def patch(team: str, gpus: int) -> dict[str, Any]:
    """Returns a patch that gives a team this many GPUs."""
    flavors = [{"name": f"pool-{team}", "resources": [{"name": GPU, "nominalQuota": gpus}]}]
    spec = {"resourceGroups": [{"flavors": flavors}]}
    return {"kind": "ClusterQueue", "metadata": {"name": team}, "spec": spec}


def urgent() -> dict[str, Any]:
    """Returns a Job of team `c` with the priority class `prod`."""
    container = {
        "name": "main",
        "image": "train",
        "resources": {"requests": {GPU: "8"}, "limits": {GPU: "8"}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "urgent",
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": "c", "kueue.x-k8s.io/priority-class": "prod"},
        },
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def coming() -> pl.DataFrame:
    """Returns twelve jobs of team `c`, one every 4 h from the time of the dump."""
    numbers = range(12)
    return pl.DataFrame(
        {
            "job_id": [f"c-comes-{number}" for number in numbers],
            "submit_time": [NOW + timedelta(hours=4 * number) for number in numbers],
            "duration": [RUN_TIME for _ in numbers],
            "queue": ["c" for _ in numbers],
            f"request.{GPU}": [8 for _ in numbers],
        }
    )


def write(folder: Path) -> None:
    """Writes all files."""
    items = {"apiVersion": "v1", "kind": "List", "items": list(manifests())}
    (folder / "dump.json").write_text(json.dumps(items) + "\n")
    for name, document in (
        ("c-plus-8", patch("c", QUOTAS["c"] + 8)),
        ("b-plus-8", patch("b", QUOTAS["b"] + 8)),
        ("urgent", urgent()),
    ):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    coming().write_parquet(folder / "coming.parquet")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path())
    write(parser.parse_args().folder)
