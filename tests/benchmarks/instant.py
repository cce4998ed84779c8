"""`harness simulate`: jobs in a dump of 1,000 running and 1,000 waiting Workloads or Pods on 200 nodes.

`python -m benchmarks.instant` (in `tests/`) prints the CPU-seconds of reading and answering one job, imports
apart, and those of each further job.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from harness.base.collector import collect_seldom
from harness.cluster.load import load_cluster
from harness.plugins import load
from harness.studies.simulation.asking import Question
from harness.studies.simulation.text import text

GPU, KUEUE = "nvidia.com/gpu", "kueue.x-k8s.io/v1beta1"
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
QUEUES, FLAVORS = 10, ("a100", "h100")
KUEUES, POLICIES = (
    ("kueue-classic", "fairsharing"),
    ("kueue-classic", "fairsharing", "default-preemption", "elasticquota"),
)
PRIORITIES = {"low": 10, "mid": 100, "high": 1000}

Manifest = dict[str, Any]


def dump(workloads: int, policy: str = POLICIES[0], seed: int = 1) -> Iterator[Manifest]:
    """So many Workloads or Pods that run and as many that wait, with nodes, classes, and queues or quotas."""
    nodes = max(2, workloads // 5)
    for number in range(nodes):
        named = {"name": f"node-{number:03}", "labels": {"gpu": FLAVORS[number % 2]}}
        there = {"cpu": "96", "memory": "768Gi", GPU: "8", "pods": "110"}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": named, "status": {"allocatable": there}}
    chance = random.Random(seed)
    if policy not in KUEUES:
        yield from of_pods(workloads, nodes, chance, quotas=policy == "elasticquota")
        return
    for name in FLAVORS:
        yield kueue("ResourceFlavor", name, spec={"nodeLabels": {"gpu": name}})
    for name, value in PRIORITIES.items():
        yield kueue("WorkloadPriorityClass", name, value=value)
    share = max(8, workloads * 8 // 100)
    for number in range(QUEUES):
        quotas = [("cpu", 12 * share), ("memory", f"{96 * share}Gi"), (GPU, share)]
        resources = [{"name": name, "nominalQuota": amount} for name, amount in quotas]
        flavors = [{"name": name, "resources": resources} for name in FLAVORS]
        group = {"coveredResources": [name for name, _ in quotas], "flavors": flavors}
        preemption = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
        spec = {"cohort": f"c{number % 2}", "namespaceSelector": {}, "preemption": preemption}
        yield kueue("ClusterQueue", f"team-{number}", spec={**spec, "resourceGroups": [group]})
        yield kueue("LocalQueue", "q", f"team-{number}", spec={"clusterQueue": f"team-{number}"})
    for number in range(workloads):
        flavor, gpus = FLAVORS[number // QUEUES % 2], chance.choice([1, 1, 1, 2])
        yield workload(number, gpus, 1, chance, flavor)
    for number in range(workloads, 2 * workloads):
        yield workload(number, chance.choice([1, 2, 4, 8]), chance.choice([1, 2, 4, 8]), chance)


def of_pods(workloads: int, nodes: int, chance: random.Random, *, quotas: bool) -> Iterator[Manifest]:
    """Pods on nodes and Pods that wait, with their classes, and a tree of quotas if asked for."""
    for name, value in PRIORITIES.items():
        metadata = {"name": name}
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": metadata,
            "value": value,
        }
    if quotas:
        share = -(-nodes // QUEUES)
        least, most = (
            {"cpu": 96 * number, "memory": f"{768 * number}Gi", GPU: 8 * number}
            for number in (share, share * QUEUES)
        )
        teams = [f"team-{number}" for number in range(QUEUES)]
        leaves = [{"name": name, "namespaces": [name], "min": least, "max": most} for name in teams]
        root = {"name": "root", "min": most, "max": most, "children": leaves}
        about = {"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree"}
        yield {**about, "metadata": {"name": "tree", "namespace": "kube-system"}, "spec": {"root": root}}
    for number in range(2 * workloads):
        runs = number < workloads
        early = number < 2 * nodes  # of the five on a node only these two may have 2, so that all have room
        gpus = chance.choice(([1, 1, 1, 2] if early else [1]) if runs else [1, 2, 4, 8])
        asks = {"cpu": str(4 * gpus), "memory": f"{32 * gpus}Gi", GPU: str(gpus)}
        container = {"name": "main", "image": "train:1", "resources": {"requests": asks, "limits": asks}}
        name = chance.choice(["low", "mid"])
        since = (NOON - timedelta(hours=chance.uniform(0.1, 48))).strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata = {
            "name": f"pod-{number}",
            "namespace": f"team-{number % QUEUES}",
            "uid": f"uid-{number:05}",
        }
        spec = {"containers": [container], "priorityClassName": name, "priority": PRIORITIES[name]}
        status = {"phase": "Pending"}
        if runs:
            spec["nodeName"] = f"node-{number % nodes:03}"
            status = {"phase": "Running", "startTime": since}
        metadata["creationTimestamp"] = since
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def kueue(kind: str, name: str, namespace: str = "", **fields: Any) -> Manifest:
    """An object of Kueue's."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": KUEUE, "kind": kind, "metadata": metadata, **fields}


def workload(number: int, gpus: int, pods: int, chance: random.Random, flavor: str = "") -> Manifest:
    """One that runs in a flavor, or waits."""
    asks = {"cpu": str(4 * gpus), "memory": f"{32 * gpus}Gi", GPU: str(gpus)}
    hours, name = chance.uniform(0.1, 48), chance.choice(["low", "mid"])
    since = (NOON - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    container = {"name": "main", "image": "train:1", "resources": {"requests": asks, "limits": asks}}
    pod_set = {"name": "main", "count": pods, "template": {"spec": {"containers": [container]}}}
    made = kueue("Workload", f"job-{number}", f"team-{number % QUEUES}")
    made["metadata"] |= {"uid": f"uid-{number:05}", "creationTimestamp": since}
    made["spec"] = {"queueName": "q", "priority": PRIORITIES[name], "podSets": [pod_set]}
    made["spec"]["priorityClassName"] = name
    if flavor:
        given = {"name": "main", "count": 1, "flavors": dict.fromkeys(asks, flavor), "resourceUsage": asks}
        admission = {"clusterQueue": f"team-{number % QUEUES}", "podSetAssignments": [given]}
        kinds = ("QuotaReserved", "Admitted", "PodsReady")
        conditions = [{"type": kind, "status": "True", "lastTransitionTime": since} for kind in kinds]
        made["status"] = {"admission": admission, "conditions": conditions}
    return made


def job(number: int = 0, policy: str = POLICIES[0], gpus: int = 8, pods: int = 4) -> Manifest:
    """A job that is submitted, of the lowest class."""
    container = {"name": "main", "resources": {"requests": {"cpu": 4 * gpus, GPU: gpus}}}
    labels = {"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/priority-class": "low"}
    spec: Manifest = {"containers": [container]}
    if policy not in KUEUES:
        labels, spec["priorityClassName"] = {}, "low"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"mine-{number}", "namespace": f"team-{number % QUEUES}", "labels": labels},
        "spec": {"parallelism": pods, "completions": pods, "template": {"spec": spec}},
    }


def cpu() -> float:
    """CPU-seconds of the process, and of copies of it that are over."""
    return sum(os.times()[:4])


class Instant:
    """One job, and twenty jobs in order, with changes and without."""

    params = ([1, 20], [True, False], POLICIES)
    param_names = ("jobs", "changes", "policy")
    unit = "CPU-s"
    timeout = 600

    def setup(self, jobs: int, changes: bool, policy: str, workloads: int = 1000) -> None:
        """The dump as a file; all modules are imported by a small question."""
        self.library = load(block=["metrics"])
        folder = Path(tempfile.mkdtemp())
        self.path = folder / "dump.json"
        for count in (10, workloads):
            self.path.write_text(
                json.dumps({"apiVersion": "v1", "kind": "List", "items": [*dump(count, policy)]})
            )
            if count == 10:
                self.track_cpu(1, True, policy)

    def track_cpu(self, jobs: int, changes: bool, policy: str) -> float:
        """Reading included."""
        begun = cpu()
        question = Question(self.library, load_cluster(self.path), policy)
        text(question.answered([job(number, policy) for number in range(jobs)], changes=changes), 100)
        return cpu() - begun


if __name__ == "__main__":
    collect_seldom()  # as the command line does
    few, many = Instant.params[0]
    for policy in sys.argv[1:] or POLICIES:
        benchmark = Instant()
        benchmark.setup(many, True, policy)
        for changes in (True, False):
            one, all_of_them = (benchmark.track_cpu(jobs, changes, policy) for jobs in (few, many))
            further = 1000 * (all_of_them - one) / (many - few)
            asked = f"{policy}, {'with' if changes else 'without'} changes"
            print(f"{asked}: {one:.2f} CPU-s for one job, {further:.0f} ms for each further one")
