"""The job that may be submitted, as what a cluster would have of it: a Workload in a queue, else its Pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import ClusterError, Fault, InputError
from harness.base.options import did_you_mean
from harness.cluster.kinds.workloads import DEADLINE, workload_from
from harness.cluster.load import cluster_from, unpacked
from harness.cluster.yaml.documents import read_documents
from harness.cluster.yaml.fields import Fields
from harness.cluster.yaml.sources import text_of

if TYPE_CHECKING:
    from harness.cluster.model import Cluster

QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
LONGEST = "kueue.x-k8s.io/max-exec-time-seconds"
"""Labels of a Job that Kueue makes its Workload of."""
LEAST = "kueue.x-k8s.io/job-min-parallelism"
"""The annotation of a Job with how many pods it may begin where not all fit."""

_NO_POD = "so there is no pod that could start"
_KINDS = ("Job", "Pod", "Workload")


def read_job(path: Path) -> Mapping[str, Any]:
    """The manifest of one Job, Pod or Workload.

    Raises:
        ClusterError: the file cannot be read, or is not one such object.
    """
    faults: list[Fault] = []
    documents, _ = read_documents(text_of(path), faults)
    found = [each for document in documents for each in unpacked(document, faults)]
    if not faults and len(found) != 1:
        faults.append(Fault("", f"holds {len(found)} objects; one Job, Pod or Workload is asked for"))
    if not faults and found[0].content.get("kind") not in _KINDS:
        kind = found[0].content.get("kind")
        faults.append(Fault(found[0].where, f"kind {kind!r} is not one of {', '.join(_KINDS)}"))
    if faults:
        raise ClusterError(str(path), faults)
    content: Mapping[str, Any] = found[0].content
    return content


def submitted(cluster: Cluster, job: Mapping[str, Any], source: str) -> Cluster:
    """A cluster in which one job more waits, the youngest of all.

    Where the job names a queue it is a Workload, as Kueue makes one of it; else each of its pods waits.

    Raises:
        ClusterError: the manifest is faulty.
        InputError: its queue does not exist.
    """
    metadata = dict(_map(job.get("metadata")))
    name = str(metadata.get("name") or metadata.get("generateName") or "submitted").rstrip("-")
    namespace = str(metadata.get("namespace") or "default")
    there = {each.key for each in cluster.workloads} | {
        f"{each.namespace}/{each.name}" for each in cluster.pods
    }
    while f"{namespace}/{name}" in there:
        name += "-submitted"
    named = {"name": name, "namespace": namespace, "uid": "~submitted"}
    labels = _map(metadata.get("labels"))
    faults: list[Fault] = []
    _check_containers(job, faults)
    if faults:
        raise ClusterError(source, faults)
    if job.get("kind") == "Workload":
        document = {**job, "metadata": {**metadata, **named}, "status": {}}
    elif labels.get(QUEUE):
        document = _workload_of(cluster, job, {**metadata, **named}, labels, faults)
    else:
        return _with_pods(cluster, job, named, labels)
    workload = replace(workload_from(Fields(document, "", faults), {}), created=None)
    if faults:
        raise ClusterError(source, faults)
    queue = workload.queue
    if cluster.cluster_queue_of(namespace, queue) is None:
        known = [name for space, name in cluster.local_queues if space == namespace] or list(
            cluster.cluster_queues
        )
        raise InputError(
            f"{source}: there is no LocalQueue {queue!r} in namespace {namespace}",
            hint=did_you_mean(queue, known),
        )
    latest = max((each.created or 0 for each in cluster.workloads), default=0)
    return replace(cluster, workloads=(*cluster.workloads, replace(workload, created=latest + 1)))


def _check_containers(job: Mapping[str, Any], faults: list[Fault]) -> None:
    """That every pod of a job has something to run, else there is no pod that could start."""
    fields = Fields(job, "", faults)
    spec = fields.child("spec")
    if job.get("kind") == "Workload":
        templates = [each.child("template") for each in spec.items("podSets")]
        if not templates and not faults:
            spec.fault("podSets", f"there are none, {_NO_POD}")
    else:
        templates = [fields if job.get("kind") == "Pod" else spec.child("template")]
    for template in templates:
        pods = template.child("spec")
        if not pods.raw("containers") and not faults:
            pods.fault("containers", f"there are none, {_NO_POD}")


def _workload_of(
    cluster: Cluster,
    job: Mapping[str, Any],
    metadata: Mapping[str, Any],
    labels: Mapping[str, Any],
    faults: list[Fault],
) -> dict[str, Any]:
    """The Workload that Kueue makes of a Job or Pod."""
    spec = _map(job.get("spec"))
    template = (
        {"metadata": metadata, "spec": spec} if job.get("kind") == "Pod" else _map(spec.get("template"))
    )
    pod_set = {"name": "main", "template": dict(template), **_counts(job, spec, metadata, faults)}
    pods = _map(template.get("spec"))
    named, general = str(labels.get(PRIORITY) or ""), str(pods.get("priorityClassName") or "")
    own = cluster.workload_priority_classes.get(named) if named else None
    found = own or (cluster.priority_of(general) if general else cluster.default_class)
    if (named and own is None) or (general and found is None):
        raise InputError(
            f"there is no {'WorkloadPriorityClass' if named else 'PriorityClass'} {named or general!r}",
            hint=did_you_mean(
                named or general,
                list(cluster.workload_priority_classes if named else cluster.priority_classes),
            ),
        )
    limits = list(_limits(spec, labels, faults))
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": dict(metadata),
        "spec": {
            "queueName": labels[QUEUE],
            "priority": 0 if found is None else found.value,
            **({"maximumExecutionTimeSeconds": min(limits)} if limits else {}),
            "podSets": [pod_set],
        },
    }


def _counts(
    job: Mapping[str, Any], spec: Mapping[str, Any], metadata: Mapping[str, Any], faults: list[Fault]
) -> dict[str, int]:
    """How many pods there are, and the least that it may begin with, by Kueue's rules for a Job."""
    if job.get("kind") == "Pod":
        return {"count": 1}
    fields = Fields(spec, "", faults, "spec")
    parallelism = fields.integer("parallelism", 1, least=0)
    count = min(parallelism, fields.integer("completions", parallelism, least=0))
    if not count and not faults:
        faults.append(Fault("", f"spec: parallelism or completions is 0, {_NO_POD}"))
    annotations = _map(metadata.get("annotations"))
    if LEAST not in annotations:
        return {"count": count}
    told = str(annotations[LEAST])
    if not told.isdecimal() or not 0 < int(told) < count:
        what = f"must be a whole number above 0 and less than the number of its pods, {count}, not {told!r}"
        faults.append(Fault("", f"metadata.annotations.{LEAST}: {what}"))
        return {"count": count}
    return {"count": count, "minCount": int(told)}


def _limits(spec: Mapping[str, Any], labels: Mapping[str, Any], faults: list[Fault]) -> Iterator[int]:
    """How long the job may run, seconds, by whoever says so; labels are texts."""
    told = str(labels.get(LONGEST, ""))
    if told.isdecimal():
        yield int(told)
    elif LONGEST in labels:
        faults.append(Fault("", f"metadata.labels.{LONGEST}: must be a whole number, not {told!r}"))
    if spec.get(DEADLINE) is not None:
        yield Fields(spec, "", faults, "spec").integer(DEADLINE, 1, least=1)


def _with_pods(
    cluster: Cluster, job: Mapping[str, Any], named: Mapping[str, Any], labels: Mapping[str, Any]
) -> Cluster:
    """A cluster in which the pods of a job wait."""
    if job.get("kind") != "Pod":
        raise InputError(
            f"{named['namespace']}/{named['name']} names no queue (label {QUEUE})",
            hint="add the label, or give a Pod",
        )
    spec = {key: value for key, value in _map(job.get("spec")).items() if key != "nodeName"}
    pod = {**job, "metadata": {**named, "labels": dict(labels)}, "spec": spec, "status": {}}
    return cluster_from([*cluster.manifests, pod], cluster.source)


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
