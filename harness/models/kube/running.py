"""Pods of the manifests that run already, or wait, as jobs with which a replay begins."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from harness.cluster.model import Cluster
from harness.cluster.pods import Pod
from harness.errors import ClusterError, Fault
from harness.policy import ENDLESS, Arrival, Job, PodSet
from harness.units import SECOND, format_amount

_GRACE_PERIOD = 30 * SECOND


def running_jobs(cluster: Cluster, at: int = 0) -> list[Arrival]:
    """One job for each pod that is bound to a node of the cluster, in the order in which they started.

    Then one for each pod that waits for a node, in the order of the manifests, but for those that another
    scheduler is to place (`schedulerName`). They run until they are
    preempted, for nobody knows how long; then they come back as any other job. A pod that is terminating
    already is taken to be gone.

    Args:
        cluster: its pods, nodes and priority classes.
        at: when they arrive, microseconds since the origin.

    Raises:
        ClusterError: pods are bound to a node that has less than they request together.
    """
    manifests = {
        (_name(item), _namespace(item)): item for item in cluster.manifests if item.get("kind") == "Pod"
    }
    pods = [
        pod
        for pod in cluster.pods
        if (pod.node in cluster.nodes or (not pod.node and cluster.schedules(pod))) and not pod.terminating
    ]
    _check_room(cluster, pods)
    pods.sort(key=lambda pod: (not pod.node, pod.start is None, pod.start or 0))
    return [
        (_job(cluster, pod, manifests[pod.name, pod.namespace], number, at), ENDLESS, None)
        for number, pod in enumerate(pods)
    ]


def _check_room(cluster: Cluster, pods: Iterable[Pod]) -> None:
    """That nodes have what the pods request that are bound to them: no kubelet would run the others."""
    requested: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        if pod.node:
            requested[pod.node].update({**pod.spec.requests, "pods": 1})
    faults = []
    for name, amounts in sorted(requested.items()):
        allocatable = cluster.nodes[name].allocatable
        for resource, amount in sorted(amounts.items()):
            most = allocatable.get(resource, amount if resource == "pods" else 0)
            if amount > most:
                asked, there = (format_amount(resource, each) for each in (amount, most))
                what = f"the pods that are bound to it request {asked} of {resource}, and it has {there}"
                faults.append(Fault(f"Node {name}", what))
    if faults:
        hint = "correct its allocatable, or leave out pods that do not run; --at-start empty leaves out all"
        raise ClusterError(cluster.source or "the cluster", faults, hint=hint)


def _job(cluster: Cluster, pod: Pod, manifest: Mapping[str, Any], index: int, at: int) -> Job:
    known = cluster.priority_of(pod.priority_class) if pod.priority_class else cluster.default_class
    pod_set = PodSet("main", 1, 1, pod.spec.requests, labels=pod.labels, pod_template=json.dumps(manifest))
    return Job(
        index=index,
        id=f"{pod.namespace}/{pod.name}",
        submit=at,
        queue=pod.namespace,
        namespace=pod.namespace,
        user="",
        priority=pod.priority if pod.priority is not None else known.value if known else 0,
        priority_class=pod.priority_class,
        preempts=pod.preempts if pod.preempts is not None else known.preempts if known else True,
        gang=False,
        grace_period=_GRACE_PERIOD if pod.grace_period is None else pod.grace_period,
        uid="",
        pod_sets=(pod_set,),
        pods=1,
    )


def _name(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"]["name"])


def _namespace(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"].get("namespace") or "default")
