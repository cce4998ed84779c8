"""Converts the job to submit into the form that a cluster would show: a Workload in a queue, or Pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.base.errors import ClusterError, Fault, InputError
from harness.base.json_text import mapping_of
from harness.base.options import did_you_mean
from harness.cluster.coverage.kueue import WORKLOAD as COVERAGE
from harness.cluster.draft import Warnings, unmodelled
from harness.cluster.kinds.kueue_controller import controller_release
from harness.cluster.kinds.kueue_differences import is_on_in
from harness.cluster.kinds.kueue_releases import state_at
from harness.cluster.kinds.managed_jobs import managed_jobs
from harness.cluster.kinds.queues_missing import REMEDY
from harness.cluster.kinds.request_defaults import RequestDefaults
from harness.cluster.kinds.workloads import DEADLINE, workload_from
from harness.cluster.load import cluster_from, unpacked
from harness.cluster.model import Cluster
from harness.cluster.yaml.documents import Document, read_documents
from harness.cluster.yaml.fields import Fields, shown
from harness.cluster.yaml.sources import text_of
from harness.studies.forecasting.job_kinds import (
    CRON_JOB,
    KINDS,
    NO_POD,
    QUEUE,
    SPARK,
    TRAIN_JOB,
    WORKLOAD,
    PodSet,
    check_containers,
    copies_of,
    job_of,
    pod_sets_of,
    priority_class_of,
)
from harness.studies.forecasting.train_jobs import RUNTIMES, as_job_set, lacking_runtime
from harness.studies.forecasting.webhooks import check_job

_DEFAULT_QUEUE = "default"
"""The LocalQueue that Kueue gives to a job without a queue, if the job's namespace has it."""

_ONLY_WHERE_MANAGED = "18.5=+ 19=- 19.1=+"
"""The releases that give the default LocalQueue only to jobs of namespaces that Kueue manages.

Upstream: `ApplyDefaultLocalQueue` in pkg/controller/jobframework/defaults.go.
"""

_IGNORES_UNMANAGED = "ManagedJobsNamespaceSelectorAlwaysRespected"
"""The feature gate with which Kueue ignores jobs of other namespaces, even if they have a queue."""

PRIORITY = "kueue.x-k8s.io/priority-class"
_DEFAULT_CLASS = "default"
"""The WorkloadPriorityClass that Kueue gives to a job without one, since 0.20.

Upstream: `ApplyDefaultWorkloadPriorityClass` in pkg/controller/jobframework/defaults.go.
"""

_GIVES_DEFAULT_CLASS = "WorkloadPriorityClassDefaulting"
"""The feature gate of this rule."""

NO_QUEUE = (
    f"Kueue schedules a job with a queue (label {QUEUE}) of a kind in integrations.frameworks of its "
    "Configuration, and kube-scheduler schedules other jobs"
)
"""The hint about a job that a scheduler does not schedule."""

_SHARED = ("kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/prebuilt-workload-name")
"""The labels of objects that share a Workload with other objects, or name one that exists already."""

LONGEST = "kueue.x-k8s.io/max-exec-time-seconds"
"""The label with the maximum execution time, which Kueue copies from a job to its Workload."""

_READ_WITH_PODS = frozenset(
    f"{name}.k8s.io" for name in ("scheduling", "scheduling.x", "scheduling.sigs", "kubescheduler.config")
)
"""The API groups of objects that are read together with Pods, such as priority classes and schedulers."""

_BESIDE = ("ConfigMap", "Secret", "Service", "ServiceAccount")
"""The kinds of objects that a file of jobs may also contain. They have no effect on scheduling."""

_SET_LATER = ("nodeName", "schedulingGates")
"""The fields of a pod's `spec` that say how far its scheduling has come. A submitted pod waits for a node."""

_OF_PODS = ("Deployment", "Pod", "StatefulSet")
"""The kinds for which Kueue makes Workloads of Pods that an API server has created."""

Job = Mapping[str, Any]


def read_job(path: Path) -> Job:
    """Reads the manifest of one job of a kind that can be submitted.

    Raises:
        ClusterError: the file can't be read, or does not contain exactly one such job.
    """
    found = with_runtimes([(each, str(path)) for each in read_jobs(path)])
    if len(found) != 1:
        what = f"contains {len(found)} jobs; a forecast accepts one, and harness simulate accepts several"
        raise ClusterError(str(path), [Fault("", what)])
    return found[0][0]


def read_jobs(path: Path) -> list[Job]:
    """Reads the manifests of jobs, and of runtimes of TrainJobs, from a file.

    Objects that jobs often come with, and that no scheduler reads, are left out.

    Raises:
        ClusterError: the file can't be read, has no manifest, or has an object of another kind.
    """
    faults: list[Fault] = []
    documents, _ = read_documents(text_of(path), faults)
    every = [each for document in documents for each in unpacked(document, faults)]
    found = [each for each in every if each.content.get("kind") not in _BESIDE]
    if not found and not faults:
        faults.append(Fault("", f"contains no job; a job is one of {', '.join(KINDS)}"))
    for each in found:
        if each.content.get("kind") not in RUNTIMES:
            _check_kind(each, faults)
    if faults:
        raise ClusterError(str(path), faults)
    return [each.content for each in found]


def with_runtimes(objects: Sequence[tuple[Job, str]]) -> list[tuple[Job, str]]:
    """Returns the jobs among some objects, without the runtimes of TrainJobs.

    If the objects include the runtime of a TrainJob, the JobSet of the TrainJob takes its place.

    The manifests of jobs and runtimes each come with their origin, for messages.

    Raises:
        ClusterError: a runtime or its job is faulty, or there are only runtimes.
    """
    runtimes = [job for job, _ in objects if job.get("kind") in RUNTIMES]
    found: list[tuple[Job, str]] = []
    for job, source in objects:
        faults: list[Fault] = []
        if job.get("kind") == TRAIN_JOB:
            job = as_job_set(job, runtimes, faults)
        if faults:
            raise ClusterError(source, faults)
        if job.get("kind") not in RUNTIMES:
            found.append((job, source))
    if runtimes and not found:
        raise ClusterError(objects[0][1], [Fault("", f"contains no job; a job is one of {', '.join(KINDS)}")])
    return found


def _check_kind(job: Document, faults: list[Fault]) -> None:
    kind, version = job.content.get("kind"), job.content.get("apiVersion")
    if not isinstance(kind, str) or kind not in KINDS:
        faults.append(Fault(job.where, f"kind {shown(kind)} is not one of {', '.join(KINDS)}"))
    elif isinstance(version, str) and version.rpartition("/")[0] != KINDS[kind]:
        known = KINDS[kind] or "v1"
        faults.append(Fault(job.where, f"{kind} of apiVersion {version} is not supported, but {known} is"))


def submitted(cluster: Cluster, job: Job, source: str, *, queued: bool = True) -> Cluster:
    """Returns a cluster in which one more job waits. This job is younger than all other jobs.

    If the job has a queue and Kueue admits jobs of its kind, the cluster gets the Workload that Kueue would
    create, or one Workload for each replica. Otherwise, each pod of the job waits separately. A job without a
    queue gets the LocalQueue `default` of its namespace, if there is one and Kueue manages jobs of this
    namespace.

    The original cluster is not changed. The result also has warnings about fields of the job that harness
    does not model. The kind of the job must be one of `KINDS`. `queued` says whether Kueue admits jobs.

    Raises:
        ClusterError: the manifest is faulty, or Kueue suspends the job and never starts it.
        InputError: the queue or the priority class of the job does not exist.
    """
    faults: list[Fault] = []
    _check_kind(Document("", job), faults)
    if faults:
        raise ClusterError(source, faults)
    if job["kind"] == CRON_JOB:
        job = job_of(job)
    if job["kind"] == TRAIN_JOB:
        job = as_job_set(job, cluster.manifests, faults)
    if job["kind"] == TRAIN_JOB and not faults:
        faults.append(lacking_runtime(job))
    if faults:
        raise ClusterError(source, faults)
    fields = Fields(job, "", faults)
    pod_sets: list[PodSet] = []
    copies = 1
    if job.get("kind") == WORKLOAD:
        items = list(fields.child("spec").items("podSets"))
        for each in items:
            check_containers(each.child("template"))
        if not sum(each.integer("count", 1) for each in items) and not faults:
            fields.child("spec").fault("podSets", f"it has no pods, {NO_POD}")
    else:
        pod_sets = pod_sets_of(fields, controller_release(cluster.kueue_controller))
        copies = copies_of(fields)
        if not copies * sum(each["count"] for each in pod_sets) and not faults:
            faults.append(Fault("spec", f"it has no pods, {NO_POD}"))
    if faults:
        raise ClusterError(source, faults)
    metadata = dict(mapping_of(job, "metadata"))
    labels, namespace = mapping_of(metadata, "labels"), str(metadata.get("namespace") or "default")
    if queued and job["kind"] != WORKLOAD:
        labels = {**labels, QUEUE: _queue_given(cluster, job["kind"], namespace, labels, source)}
    before = sum(each.uid.startswith(_UID) for each in cluster.workloads)
    names = _names(cluster, metadata, namespace, copies)
    named = [
        {"name": name, "namespace": namespace, "uid": f"{_UID}-{number}" if number else _UID}
        for number, name in enumerate(names, before)
    ]
    if job.get("kind") == WORKLOAD:
        documents = [{**job, "metadata": {**metadata, **each}, "status": {}} for each in named]
    elif queued and labels.get(QUEUE):
        if shared := next((each for each in _SHARED if labels.get(each)), None):
            rule = "Kueue makes no Workload of this object alone; submit the Workload itself"
            raise ClusterError(source, [Fault(f"metadata.labels.{shared}", rule)])
        documents = [_workload_of(cluster, fields, pod_sets, {**metadata, **each}, labels) for each in named]
    elif job["kind"] == SPARK:
        rule = (
            "harness models only the Workload that Kueue makes for this job, not the pods that Spark makes; "
            f"name a queue ({QUEUE})"
        )
        raise ClusterError(source, [Fault("metadata.labels", rule)])
    else:
        whole = {**named[0], "name": _name(cluster, metadata, namespace)}
        return _with_pods(cluster, pod_sets * copies, whole, labels, source)
    defaults = RequestDefaults(cluster.runtime_classes, cluster.limit_ranges)
    workloads = [
        replace(workload_from(Fields(each, "", faults), {}), created=None)
        for each in (defaults.workload(each, limits_first=job["kind"] in _OF_PODS) for each in documents)
    ]
    if not faults and job["kind"] != WORKLOAD:
        check_job(cluster, fields, pod_sets, workloads[0])
    if faults:
        raise ClusterError(source, faults)
    queue = workloads[0].queue
    if cluster.queue_of_object(namespace, queue) is None:
        if (local := cluster.local_queues.get((namespace, queue))) is not None:
            missing = f"LocalQueue {namespace}/{queue} names ClusterQueue {local.cluster_queue!r}"
            raise InputError(f"{source}: {missing}, which the manifests do not contain", hint=REMEDY)
        own = [name for space, name in cluster.local_queues if space == namespace]
        known = own if cluster.local_queues else [*cluster.cluster_queues]
        others = sorted(space for space, name in cluster.local_queues if name == queue)
        hint = f"these namespaces have it: {', '.join(others)}" if others else did_you_mean(queue, known)
        raise InputError(f"{source}: there is no LocalQueue {queue!r} in namespace {namespace}", hint=hint)
    latest = max(1 + max((each.created or 0 for each in cluster.workloads), default=0), cluster.as_of or 0)
    youngest = (replace(each, created=latest) for each in workloads)
    warnings = *cluster.warnings, *_unmodelled(documents)
    return replace(cluster, workloads=(*cluster.workloads, *youngest), warnings=warnings)


def _unmodelled(workloads: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Returns warnings about the fields of submitted Workloads that harness does not model."""
    warnings = Warnings()
    for each in workloads:
        version = str(each.get("apiVersion")).rpartition("/")[2]
        name = f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for found in COVERAGE.of(version).findings(each):
            if not found.wanted:
                warnings.add(WORKLOAD, name, unmodelled(found))
    return warnings.sentences()


def _queue_given(cluster: Cluster, kind: str, namespace: str, labels: Mapping[str, Any], source: str) -> str:
    """Returns the name of the LocalQueue in which Kueue puts a job, or "" if Kueue leaves the job alone."""
    managed = managed_jobs(cluster)
    named = str(labels.get(QUEUE) or "")
    given = named or (_DEFAULT_QUEUE if (namespace, _DEFAULT_QUEUE) in cluster.local_queues else "")
    if not managed.manages_kind(kind, KINDS[kind]):
        return ""
    if managed.namespaces.matches(cluster.namespace_labels(namespace)):
        if not given and managed.suspends_without_queue(kind, KINDS[kind]):
            rule = (
                "Kueue suspends this job, and never starts it, because it has no queue and "
                f"manageJobsWithoutQueueName is true; name a queue ({QUEUE})"
            )
            raise ClusterError(source, [Fault("metadata.labels", rule)])
        return given
    if not given:
        return ""
    if kind == "Pod":
        return ""
    if not is_on_in(cluster, _IGNORES_UNMANAGED):
        return given
    if not named and state_at(_ONLY_WHERE_MANAGED, controller_release(cluster.kueue_controller)) == "+":
        return ""
    rule = (
        f"Kueue suspends this job of queue {given!r}, and never starts it, because "
        f"managedJobsNamespaceSelector does not select the namespace {namespace}"
    )
    raise ClusterError(source, [Fault("metadata.namespace", rule)])


_UID = "~submitted"
"""The prefix of the UIDs of submitted objects.

Jobs from the same second are in order of their UIDs.
"""


def _name(cluster: Cluster, metadata: Mapping[str, Any], namespace: str) -> str:
    """Returns the name of a job, with a suffix if an object of the cluster already has the name."""
    name = str(metadata.get("name") or metadata.get("generateName") or "submitted").rstrip("-")
    there = {each.key for each in cluster.workloads} | {
        f"{each.namespace}/{each.name}" for each in cluster.pods
    }
    while f"{namespace}/{name}" in there:
        name += "-submitted"
    return name


def _names(cluster: Cluster, metadata: Mapping[str, Any], namespace: str, copies: int) -> list[str]:
    name = _name(cluster, metadata, namespace)
    if copies == 1:
        return [name]
    there = {each.key for each in cluster.workloads}
    while any(f"{namespace}/{name}-{number}" in there for number in range(copies)):
        name += "-submitted"
    return [f"{name}-{number}" for number in range(copies)]


def _workload_of(
    cluster: Cluster,
    job: Fields,
    pod_sets: list[PodSet],
    metadata: Mapping[str, Any],
    labels: Mapping[str, Any],
) -> dict[str, Any]:
    named, general = str(labels.get(PRIORITY) or ""), priority_class_of(job, pod_sets)
    if not named and _DEFAULT_CLASS in cluster.workload_priority_classes:
        named = _DEFAULT_CLASS if is_on_in(cluster, _GIVES_DEFAULT_CLASS) else ""
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
    limits = list(_limits(job, labels))
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": WORKLOAD,
        "metadata": dict(metadata),
        "spec": {
            "queueName": labels[QUEUE],
            "priority": 0 if found is None else found.value,
            **({"maximumExecutionTimeSeconds": min(limits)} if limits else {}),
            "podSets": pod_sets,
        },
    }


def _limits(job: Fields, labels: Mapping[str, Any]) -> Iterator[int]:
    told = str(labels.get(LONGEST, ""))
    if told.isdecimal():
        yield int(told)
    elif LONGEST in labels:
        job.fault(f"metadata.labels.{LONGEST}", f"must be a whole number, not {told!r}")
    spec = job.child("spec")
    if job.raw("kind") in ("Job", "Pod") and DEADLINE in spec:
        yield spec.integer(DEADLINE, 1, least=1)


def _with_pods(
    cluster: Cluster, pod_sets: list[PodSet], named: Mapping[str, Any], labels: Mapping[str, Any], source: str
) -> Cluster:
    pods: list[dict[str, Any]] = []
    several = sum(each["count"] for each in pod_sets) > 1
    defaults = RequestDefaults(cluster.runtime_classes, cluster.limit_ranges)
    for pod_set in pod_sets:
        template = pod_set["template"]
        own = mapping_of(template, "metadata")
        spec = {key: value for key, value in mapping_of(template, "spec").items() if key not in _SET_LATER}
        spec = defaults.pod(spec, named["namespace"], limits_first=True)
        for _ in range(pod_set["count"]):
            number = f"-{len(pods)}" if several else ""
            metadata = {
                "name": f"{named['name']}{number}",
                "namespace": named["namespace"],
                "uid": f"{named['uid']}{number}",
                "labels": {**mapping_of(own, "labels")} if several else dict(labels),
                "annotations": {**mapping_of(own, "annotations")},
            }
            head = {"apiVersion": "v1", "kind": "Pod"}
            pods.append({**head, "metadata": metadata, "spec": spec, "status": {}})
    beside = [
        each
        for each in cluster.manifests
        if str(each.get("apiVersion")).rpartition("/")[0] in _READ_WITH_PODS
    ]
    read = cluster_from([*beside, *pods], source)
    return replace(
        cluster,
        pods=(*cluster.pods, *read.pods),
        manifests=(*cluster.manifests, *pods),
        warnings=(*cluster.warnings, *(each for each in read.warnings if each.startswith("Pod "))),
    )
