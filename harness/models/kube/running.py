"""Converts the running and pending pods in the manifests to jobs. A replay starts with these jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from harness.base.units import SECOND
from harness.cluster.kinds.pod_reading import unbound
from harness.cluster.kinds.pods import Pod, places_of_pods
from harness.cluster.model import Cluster
from harness.cluster.standing import leaving
from harness.policy import ENDLESS, Arrival, Job, PodSet

_GRACE_PERIOD = 30 * SECOND
_OF_POD = '"kind": "Pod"'


def running_jobs(cluster: Cluster, at: int = 0) -> list[Arrival]:
    """Returns one job for each pod that is bound to a node of the cluster, sorted by start.

    After these jobs, there is one job for each pod that waits for a node, in the order of the manifests. Pods
    of other schedulers (`schedulerName`) and pods that a scheduling gate holds back are left out. Pods that
    don't fit on their node are also left out, because no kubelet would run them.

    The run times of running pods are unknown. A running pod therefore runs until it is preempted, and then
    returns like any other job. A terminating pod runs until it is gone, for the time that `standing.leaving`
    returns.

    Args:
        cluster: the cluster with the pods, nodes and priority classes.
        at: when the jobs arrive, in microseconds since the origin.
    """
    return pod_jobs(cluster, cluster.pods, at)


def pod_jobs(cluster: Cluster, pods: Iterable[Pod], at: int, first: int = 0) -> list[Arrival]:
    """Returns one job for each of these pods of a cluster. `first` is the number of the first job."""
    stays = cluster.staying
    several = [
        pod
        for pod in pods
        if (pod.node in cluster.nodes or (not pod.node and cluster.schedules(pod) and not pod.held_back))
        and (not pod.terminating or leaving(cluster, pod))
    ]
    if not several:
        return []
    places = places_of_pods(cluster.manifests)
    several.sort(key=lambda pod: (pod.key not in stays, pod.start is None, pod.start or 0))
    found: list[Arrival] = []
    for number, pod in enumerate(several, first):
        manifest = cluster.manifests[places[pod.full_name]]
        if pod.node and pod.key not in stays:
            manifest = unbound(manifest)
        job = _job(cluster, pod, manifest, number, at)
        found.append((job, leaving(cluster, pod), None, None, 0) if pod.terminating else (job, ENDLESS, None))
    return found


def is_pod(job: Job) -> bool:
    """Returns True if a job represents a Pod in the manifests."""
    template = job.pod_sets[0].pod_template
    return template is not None and _OF_POD in template and json.loads(template).get("kind") == "Pod"


def _job(cluster: Cluster, pod: Pod, manifest: Mapping[str, Any], index: int, at: int) -> Job:
    known = cluster.priority_of(pod.priority_class) if pod.priority_class else cluster.default_class
    pod_set = PodSet("main", 1, 1, pod.spec.requests, labels=pod.labels, pod_template=json.dumps(manifest))
    return Job(
        index=index,
        id=pod.key,
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
