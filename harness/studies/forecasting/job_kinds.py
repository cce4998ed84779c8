"""Determines the pod sets of the Workloads that Kueue creates for each kind of job.

Source: the `PodSets` of each integration of Kueue (`pkg/controller/jobs`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from harness.base.json_text import mapping_of
from harness.cluster.kinds.kueue_releases import NEWEST, Release
from harness.cluster.kinds.topology import annotated_topology
from harness.cluster.yaml.fields import Fields
from harness.studies.forecasting.ray_heads import SUBMITTER, with_sidecars
from harness.studies.forecasting.spark_applications import spark_pod_sets
from harness.studies.forecasting.train_jobs import GROUP as TRAINER

PodSet = dict[str, Any]
"""An item of a Workload's `spec.podSets`."""

SPARK = "SparkApplication"
"""The kind of job for which Spark creates the pods. These pods differ from the pods of the Workload."""

TRAIN_JOB = "TrainJob"
"""The kind of job that names a runtime and becomes a JobSet; see `train_jobs`."""

CRON_JOB = "CronJob"
"""The kind that creates Jobs from a template; see `job_of`."""

LEAST = "kueue.x-k8s.io/job-min-parallelism"
"""The annotation with the minimum number of pods with which a Job can run if not all pods fit."""

QUEUE = "kueue.x-k8s.io/queue-name"
"""The label with the LocalQueue of a job."""

NO_POD = "so there is no pod that could start"
"""The fault of a job without pods, as the end of a sentence."""

_RAY = "ray.io"

_SUBMITTER = {"spec": {"restartPolicy": "Never", "containers": [SUBMITTER]}}
"""The pod that submits a RayJob if the RayJob has no template for this pod."""


def pod_sets_of(job: Fields, release: Release = NEWEST) -> list[PodSet]:
    """Returns the pod sets that a release of Kueue makes of a job, whose kind must be one of `KINDS`.

    Errors in the manifest are added to the faults of `job`.
    """
    kind = job.string("kind")
    found = list(_OF_KIND[kind][1](job))
    if _OF_KIND[kind][0] == _RAY and not job.faults:
        found[0] = with_sidecars(found[0], job.raw("metadata"), job.raw("spec"), release)
    return [_with_topology(each, job) for each in found]


def job_of(cron_job: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the Job that a CronJob creates next. The queue of the Job is in the template."""
    own, template = mapping_of(cron_job, "metadata"), mapping_of(mapping_of(cron_job, "spec"), "jobTemplate")
    names = {name: own[name] for name in ("name", "namespace") if name in own}
    metadata = {**mapping_of(template, "metadata"), **names}
    spec = mapping_of(template, "spec")
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def copies_of(job: Fields) -> int:
    """Returns the number of equal Workloads that Kueue creates for a job, which may be one per replica."""
    if job.raw("kind") not in _A_WORKLOAD_EACH:
        return 1
    return job.child("spec").integer("replicas", 1, least=0, most=_MOST_COPIES)


def priority_class_of(job: Fields, pod_sets: Iterable[PodSet]) -> str:
    """Returns the PriorityClass of a job that has no WorkloadPriorityClass; "" if there is none.

    Kubeflow's jobs can name a class for all of their pods. Otherwise, the first pod set that names a class
    determines it.
    """
    policy = job.child("spec").child("runPolicy").child("schedulingPolicy").string("priorityClass")
    named = (each["template"].get("spec", {}).get("priorityClassName") for each in pod_sets)
    return policy or next((str(each) for each in named if each), "")


def _of_pod(job: Fields) -> Iterator[PodSet]:
    check_containers(job)
    template = {name: job.raw(name) for name in ("metadata", "spec") if name in job}
    yield {"name": "main", "count": 1, "template": template}


def _of_job(job: Fields) -> Iterator[PodSet]:
    spec = job.child("spec")
    count = _job_pods(spec)
    if not count and not spec.faults:
        spec.fault("", f"parallelism or completions is 0, {NO_POD}")
    found = {"name": "main", "count": count, "template": _template(spec)}
    annotations = job.child("metadata").child("annotations")
    if LEAST in annotations:
        told = str(annotations.raw(LEAST))
        if told.isdecimal() and 0 < int(told) < count:
            found["minCount"] = int(told)
        else:
            rule = "must be a whole number above 0 and less than the number of its pods"
            annotations.fault(LEAST, f"{rule}, {count}, not {told!r}")
    yield found


def _of_job_set(job: Fields) -> Iterator[PodSet]:
    for each in job.child("spec").items("replicatedJobs"):
        inner = each.child("template").child("spec")
        count = each.integer("replicas", 1, least=0) * _job_pods(inner)
        name = each.string("name", required=True)
        yield {"name": name, "count": count, "template": _template(inner)}


def _of_ray_cluster(spec: Fields) -> Iterator[PodSet]:
    yield {"name": "head", "count": 1, "template": _template(spec.child("headGroupSpec"))}
    for each in spec.items("workerGroupSpecs"):
        count = each.integer("replicas", 1, least=0) * max(1, each.integer("numOfHosts", 1, least=0))
        name = each.string("groupName", required=True).lower()
        yield {"name": name, "count": count, "template": _template(each)}


def _of_ray_job(job: Fields) -> Iterator[PodSet]:
    spec = job.child("spec")
    if spec.raw("clusterSelector"):
        spec.fault("clusterSelector", "Kueue does not manage a RayJob that uses an existing RayCluster")
    yield from _of_ray_cluster(spec.child("rayClusterSpec"))
    if spec.string("submissionMode", "K8sJobMode") == "K8sJobMode":
        template = spec.raw("submitterPodTemplate") or _SUBMITTER
        yield {"name": "submitter", "count": 1, "template": template}


def _of_stateful_set(job: Fields) -> Iterator[PodSet]:
    spec = job.child("spec")
    yield {"name": "main", "count": spec.integer("replicas", 1, least=0), "template": _template(spec)}


def _of_deployment(job: Fields) -> Iterator[PodSet]:
    yield {"name": "main", "count": 1, "template": _template(job.child("spec"))}


def _of_leader_worker_set(job: Fields) -> Iterator[PodSet]:
    """Yields the pod sets of a group. Without its own template, the leader uses the workers' template."""
    group = job.child("spec").child("leaderWorkerTemplate")
    size, workers = group.integer("size", 1, least=1), group.child("workerTemplate")
    check_containers(workers)
    template = _as_template(group.raw("workerTemplate"))
    if "leaderTemplate" not in group:
        yield {"name": "main", "count": size, "template": template}
        return
    check_containers(group.child("leaderTemplate"))
    yield {"name": "leader", "count": 1, "template": _as_template(group.raw("leaderTemplate"))}
    yield {"name": "worker", "count": size - 1, "template": template}


def _of_app_wrapper(job: Fields) -> Iterator[PodSet]:
    """Yields the pod sets of an AppWrapper's components, which are found by paths or by a known kind."""
    found: list[PodSet] = []
    for component in job.child("spec").items("components"):
        inner = component.child("template")
        named = component.items("podSets")
        kind = inner.string("kind")
        if not named and kind in _OF_KIND and kind not in _WITHOUT_PODS:
            copies = copies_of(inner)
            found += [{**each, "count": each["count"] * copies} for each in _OF_KIND[kind][1](inner)]
        for each in named:
            path = each.string("path", required=True)
            template = _at_path(component.raw("template"), path)
            if not isinstance(template, Mapping):
                each.fault("path", f"there is no pod template at {path!r}")
                continue
            check_containers(Fields(template, each.where, each.faults, f"{component.path}.{path}"))
            found.append({"count": each.integer("replicas", 1, least=0), "template": dict(template)})
    name = job.child("metadata").string("name") or "main"
    yield from ({**each, "name": f"{name}-{number}"} for number, each in enumerate(found))


def _at_path(template: Any, path: str) -> Any:
    """Returns the value at a path such as `template.spec.groups[0].template`, or None if it is missing."""
    if not _PATH.fullmatch(path):
        return None
    for name, number in _STEP.findall(path.removeprefix("template")):
        if name and isinstance(template, Mapping):
            template = template.get(name)
        elif number and isinstance(template, list) and int(number) < len(template):
            template = template[int(number)]
        else:
            return None
    return template


def _replicas(field: str, *types: str) -> Callable[[Fields], Iterator[PodSet]]:
    """Returns a function that yields pod sets by replica type, in the order in which Kueue lists types."""

    def of(job: Fields) -> Iterator[PodSet]:
        table = job.child("spec").child(field)
        known = {name for name in types if name in table}
        for name in table:
            if name not in known:
                table.fault(name, f"is not a type of replica; the types are {', '.join(types)}")
        for name in types:
            if name in known:
                each = table.child(name)
                count = each.integer("replicas", 1, least=0)
                yield {"name": name.lower(), "count": count, "template": _template(each)}

    return of


_OF_KIND: Mapping[str, tuple[str, Callable[[Fields], Iterator[PodSet]]]] = {
    "Job": ("batch", _of_job),
    "Pod": ("", _of_pod),
    "JobSet": ("jobset.x-k8s.io", _of_job_set),
    "RayJob": (_RAY, _of_ray_job),
    "RayCluster": (_RAY, lambda job: _of_ray_cluster(job.child("spec"))),
    "RayService": (_RAY, lambda job: _of_ray_cluster(job.child("spec").child("rayClusterConfig"))),
    "PyTorchJob": ("kubeflow.org", _replicas("pytorchReplicaSpecs", "Master", "Worker")),
    "TFJob": ("kubeflow.org", _replicas("tfReplicaSpecs", "Chief", "Master", "PS", "Worker", "Evaluator")),
    "XGBoostJob": ("kubeflow.org", _replicas("xgbReplicaSpecs", "Master", "Worker")),
    "PaddleJob": ("kubeflow.org", _replicas("paddleReplicaSpecs", "Master", "Worker")),
    "JAXJob": ("kubeflow.org", _replicas("jaxReplicaSpecs", "Worker")),
    "MPIJob": ("kubeflow.org", _replicas("mpiReplicaSpecs", "Launcher", "Worker")),
    "Deployment": ("apps", _of_deployment),
    "StatefulSet": ("apps", _of_stateful_set),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io", _of_leader_worker_set),
    "AppWrapper": ("workload.codeflare.dev", _of_app_wrapper),
    SPARK: ("sparkoperator.k8s.io", spark_pod_sets),
}
"""Maps each kind to its API group, and to the function that yields its pod sets."""

_A_WORKLOAD_EACH = ("Deployment", "LeaderWorkerSet")
"""The kinds for which Kueue creates one Workload per replica, which is a pod or a group of pods."""

_WITHOUT_PODS = ("AppWrapper", SPARK)
"""The kinds whose pods an AppWrapper must locate by paths."""

_MOST_COPIES = 10_000

_PATH = re.compile(r"template(\.[^.\[\]]+|\[\d{1,9}\])*")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")

WORKLOAD = "Workload"
KINDS: Mapping[str, str] = {
    **{kind: group for kind, (group, _) in _OF_KIND.items()},
    CRON_JOB: "batch",
    TRAIN_JOB: TRAINER,
    WORKLOAD: "kueue.x-k8s.io",
}
"""Maps each kind of job that can be submitted to its API group."""


def _job_pods(spec: Fields) -> int:
    parallelism = spec.integer("parallelism", 1, least=0)
    return min(parallelism, spec.integer("completions", parallelism, least=0))


def _template(fields: Fields) -> dict[str, Any]:
    check_containers(fields.child("template"))
    return _as_template(fields.raw("template"))


def _as_template(found: Any) -> dict[str, Any]:
    return dict(found) if isinstance(found, Mapping) else {}


def check_containers(template: Fields) -> None:
    """Adds a fault if a pod template has no containers."""
    pods = template.child("spec")
    if not pods.raw("containers") and not pods.faults:
        pods.fault("containers", f"there are none, {NO_POD}")


def _with_topology(pod_set: PodSet, job: Fields) -> PodSet:
    """Returns a pod set with the topology that the annotations of its pods request."""
    request = annotated_topology(mapping_of(pod_set["template"], "metadata"), job.faults)
    return {**pod_set, "topologyRequest": request} if request else pod_set
