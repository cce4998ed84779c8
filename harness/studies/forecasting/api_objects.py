"""Builds the Workloads, Jobs and Pods that an API server would show for jobs at a given time.

The objects are JSON values. If Kueue manages a job, the job has a Workload, a Job and the Job's Pods. Any
other job has only Pods. Times in the API are whole seconds, so fractions of a second are rounded down.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.base.json_text import mapping_of
from harness.base.units import SECOND, date_text, format_amount, format_amounts
from harness.cluster.kinds.pod_reading import template_of
from harness.policy import Job, PodSet

Manifest = dict[str, Any]

WORK = ("Workload", "Job", "Pod")
"""The kinds of objects that represent jobs."""

_SCORED = ("cpu", "memory")
_PREEMPTED_BY_SCHEDULER = "PreemptionByScheduler"


class Quota(NamedTuple):
    """The quota of a Workload.

    Attributes:
        queue: the ClusterQueue of the Workload.
        flavors: for each pod set, the flavor of each resource.
        counts: the number of pods of each pod set.
        reserved, admitted: the times of the reservation and the admission, in microseconds since 1970.
    """

    queue: str
    flavors: Mapping[str, Mapping[str, str]]
    counts: Sequence[int]
    reserved: int
    admitted: int


class Eviction(NamedTuple):
    """The last eviction of a Workload. All times are in microseconds since 1970.

    Attributes:
        reason: the scheduler's reason for the eviction. If the Workload was preempted, this is the name of
            the preemption rule.
        gone: when the Workload's quota became free; None if the Workload still holds quota.
    """

    time: int
    reason: str
    preempted: bool
    gone: int | None = None

    @property
    def deactivated(self) -> bool:
        """True if Kueue deactivated the Workload, which then does not return to its queue."""
        return self.reason.startswith("Deactivated")


class ShownPod(NamedTuple):
    """A Pod of a job. All times are in microseconds since 1970.

    Attributes:
        name: the name of the Pod, without the namespace.
        node: the node on which the Pod runs; "" if the Pod waits.
        since: when the Pod started to run.
        ready: when the Pod became ready; None if it is not ready.
        told: when the Pod's eviction began; None if the Pod is not being evicted.
        nominated: the node on which a preemption frees capacity for the Pod; "" if there is none.
    """

    number: int
    name: str
    node: str = ""
    since: int = 0
    ready: int | None = None
    told: int | None = None
    nominated: str = ""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The state of a job. All times are in microseconds since 1970.

    Attributes:
        created: when the job was submitted.
        queued: whether Kueue manages the job, which then consists of a Workload and a Job.
        quota: the quota of the job's Workload; None if the Workload has no quota.
        eviction: the job's last eviction; None if the job was never evicted.
        leaving: whether the job is being evicted and still holds quota.
        ready: when all of the job's pods became ready; None if some pods are not ready.
        waited_for: whether the Workload has a condition about the readiness of pods (`waitForPodsReady`).
        time_outs: how often the job's pods were not ready in time.
        requeue_at: when the job returns to its queue after a time-out; None if there was no time-out.
        away: whether the job is out of its queue now.
        active: whether the Workload is active, which means that it was not deactivated.
        began: when the Job started; None if the Job is suspended or the pods wait.
        ended: the numbers of the pods that have ended while other pods of the job have not.
    """

    job: Job
    created: int
    queued: bool
    quota: Quota | None = None
    eviction: Eviction | None = None
    leaving: bool = False
    ready: int | None = None
    waited_for: bool = False
    time_outs: int = 0
    requeue_at: int | None = None
    away: bool = False
    active: bool = True
    began: int | None = None
    pods: Sequence[ShownPod] = ()
    ended: Collection[int] = ()

    @property
    def name(self) -> str:
        """The name of the job without its namespace."""
        return name_in(self.job.namespace, self.job.id)

    @property
    def key(self) -> str:
        """The namespace and the name of the job."""
        return f"{self.job.namespace}/{self.name}"


def name_in(namespace: str, name: str) -> str:
    """Returns the name of a job or pod without its namespace."""
    return name.removeprefix(f"{namespace}/")


def objects_of(several: Iterable[Shown]) -> list[Manifest]:
    """Returns all objects of some jobs, sorted by kind, namespace and name."""
    found = [each for shown in several for each in _objects(shown)]
    names = ("namespace", "name")
    return sorted(found, key=lambda each: (each["kind"], *(each["metadata"][name] for name in names)))


def _objects(shown: Shown) -> Iterator[Manifest]:
    owner: Manifest = {}
    if shown.queued:
        uid = f"job-{shown.job.uid}"
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": shown.name, "uid": uid}
        yield _workload(shown, owner)
        yield _job(shown, owner)
    for pod in shown.pods:
        yield _pod(shown, pod, owner)


# --- Kueue ------------------------------------------------------------------------------------------------


def _workload(shown: Shown, owner: Manifest) -> Manifest:
    job = shown.job
    status: Manifest = {"conditions": list(_conditions(shown))}
    if shown.quota is not None:
        status["admission"] = _admission(job, shown.quota)
    if shown.ended:
        over = Counter(job.pod_set_of(pod).name for pod in shown.ended)
        status["reclaimablePods"] = [{"name": name, "count": count} for name, count in sorted(over.items())]
    if shown.time_outs:
        status["requeueState"] = {"count": shown.time_outs}
        if shown.requeue_at is not None:
            status["requeueState"]["requeueAt"] = date_text(shown.requeue_at)
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {**_metadata(shown, shown.name, job.uid), "ownerReferences": [owner]},
        "spec": {
            "active": shown.active,
            "queueName": job.queue,
            "priority": job.priority,
            "podSets": [_pod_set(each, job) for each in job.pod_sets],
        },
        "status": status,
    }


def _conditions(shown: Shown) -> Iterator[Manifest]:
    quota, evicted = shown.quota, shown.eviction
    if quota is not None:
        yield _condition("QuotaReserved", True, "QuotaReserved", quota.reserved)
        yield _condition("Admitted", True, "Admitted", quota.admitted)
    elif evicted is not None:
        since = evicted.time if evicted.gone is None else evicted.gone
        yield _condition("QuotaReserved", False, "Pending", since)
        yield _condition("Admitted", False, "NoReservation", since)
    else:
        yield _condition("QuotaReserved", False, "Pending", shown.created)
    if evicted is not None:
        again = quota is not None and not shown.leaving
        since, reason = evicted.time, "Preempted" if evicted.preempted else evicted.reason
        if again:
            assert quota is not None
            since, reason = quota.reserved, "QuotaReserved"
        yield _condition("Evicted", not again, reason, since)
        if evicted.preempted:
            yield _condition("Preempted", not again, "QuotaReserved" if again else evicted.reason, since)
        if quota is None:
            requeued = evicted.reason if shown.away else "BackoffFinished"
            yield _condition("Requeued", not shown.away, requeued, evicted.time)
    if shown.waited_for and quota is not None:
        if shown.ready is not None:
            yield _condition("PodsReady", True, "Started", shown.ready)
        else:
            yield _condition("PodsReady", False, "WaitForStart", quota.reserved)


def _admission(job: Job, quota: Quota) -> Manifest:
    assignments = []
    for each, count in zip(job.pod_sets, quota.counts, strict=True):
        flavors = quota.flavors.get(each.name, {})
        usage = {
            resource: format_amount(resource, each.requests.get(resource, 0) * count) for resource in flavors
        }
        given = {"name": each.name, "count": count, "flavors": dict(flavors), "resourceUsage": usage}
        assignments.append(given)
    return {"clusterQueue": quota.queue, "podSetAssignments": assignments}


def _job(shown: Shown, owner: Manifest) -> Manifest:
    job, holds = shown.job, shown.quota is not None and not shown.leaving
    status: Manifest = {}
    if holds and shown.quota is not None and shown.began is not None:
        status = {"startTime": date_text(shown.began), "active": sum(shown.quota.counts)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            **_metadata(shown, owner["name"], owner["uid"]),
            "labels": {"kueue.x-k8s.io/queue-name": job.queue},
        },
        "spec": {
            "parallelism": job.pods,
            "completions": job.pods,
            "suspend": not holds,
            "template": _template(job.pod_sets[0], job),
        },
        "status": status,
    }


# --- Pods -------------------------------------------------------------------------------------------------


def _pod(shown: Shown, pod: ShownPod, owner: Manifest) -> Manifest:
    job = shown.job
    pod_set = job.pod_set_of(pod.number)
    template = _template(pod_set, job)
    metadata = {**_metadata(shown, pod.name, f"pod-{job.uid}-{pod.number}"), **template["metadata"]}
    spec: Manifest = {**template["spec"]}
    status: Manifest = {"phase": "Pending"}
    if owner:
        metadata["ownerReferences"] = [{**owner, "controller": True}]
        labels = {
            "kueue.x-k8s.io/podset": pod_set.name,
            "batch.kubernetes.io/job-name": owner["name"],
            "batch.kubernetes.io/controller-uid": owner["uid"],
        }
        metadata["labels"] = {**metadata.get("labels", {}), **labels}
        metadata["annotations"] = {"kueue.x-k8s.io/workload": owner["name"]}
    if pod.node:
        spec["nodeName"] = pod.node
        conditions = [_condition("PodScheduled", True, "", pod.since)]
        if pod.told is None and pod.ready is not None:
            conditions.append(_condition("Ready", True, "", pod.ready))
        if pod.told is not None:
            metadata["deletionTimestamp"] = date_text(pod.told + job.grace_period)
            metadata["deletionGracePeriodSeconds"] = job.grace_period // SECOND
            if not owner:
                conditions.append(_condition("DisruptionTarget", True, _PREEMPTED_BY_SCHEDULER, pod.told))
        status = {"phase": "Running", "startTime": date_text(pod.since), "conditions": conditions}
    elif pod.nominated:
        status["nominatedNodeName"] = pod.nominated
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


# --- parts ------------------------------------------------------------------------------------------------


def _metadata(shown: Shown, name: str, uid: str) -> Manifest:
    return {
        "name": name,
        "namespace": shown.job.namespace,
        "uid": uid,
        "creationTimestamp": date_text(shown.created),
    }


def _condition(kind: str, status: bool, reason: str, since: int) -> Manifest:
    return {"type": kind, "status": str(status), "reason": reason, "lastTransitionTime": date_text(since)}


def _pod_set(pod_set: PodSet, job: Job) -> Manifest:
    least = {"minCount": pod_set.min_count} if pod_set.min_count < pod_set.count else {}
    template = _template(pod_set, job, kueue=True)
    return {"name": pod_set.name, "count": pod_set.count, **least, "template": template}


def _template(pod_set: PodSet, job: Job, *, kueue: bool = False) -> Manifest:
    """Returns the template of pods.

    In a Workload, the template has no priority yet. Requests of 0 are included only where they matter. Kueue
    reads all of them. For kube-scheduler, 0 cpu or memory differs from no request, because it scores a pod
    without a request by a default request.
    """
    spec = template_of(pod_set, [], job.id)
    if not _requests_anything(spec):
        requests = {
            name: format_amount(name, amount)
            for name, amount in pod_set.requests.items()
            if amount or kueue or name not in _SCORED
        }
        limits = format_amounts(pod_set.limits)
        first, *others = spec.get("containers") or [{"name": "main"}]
        resources = {"requests": requests, **({"limits": limits} if limits else {})}
        spec["containers"] = [{**first, "resources": resources}, *others]
    spec |= {"terminationGracePeriodSeconds": job.grace_period // SECOND, "restartPolicy": "Never"}
    if not kueue:
        spec["priority"] = job.priority
        if not job.preempts:
            spec["preemptionPolicy"] = "Never"
    labels = {**_labels(pod_set.pod_template), **pod_set.labels}
    return {"metadata": {"labels": labels} if labels else {}, "spec": spec}


def _requests_anything(spec: Mapping[str, Any]) -> bool:
    """Returns True if a template contains requests, which then replace the job's requests."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    asked = [spec, *(each for each in containers if isinstance(each, Mapping))]
    return any((each.get("resources") or {}).get("requests") for each in asked)


def _labels(template: str | None) -> Mapping[str, str]:
    """Returns the labels of a template in a trace. A template that is just a `spec` has no labels."""
    found = json.loads(template) if template else {}
    whole = isinstance(found, Mapping) and "spec" in found
    return mapping_of(mapping_of(found, "metadata"), "labels") if whole else {}
