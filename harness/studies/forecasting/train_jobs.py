"""Builds the JobSet that Kubeflow's Trainer creates for a TrainJob. Kueue admits the JobSet's pods.

The source in Kueue is `pkg/controller/jobs/trainjob`. The sources in Kubeflow Trainer 2.3 are
`pkg/runtime/core` and the machine learning policies in `pkg/runtime/framework/plugins`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.base.errors import Fault
from harness.cluster.changes.strategic_merge import Merge
from harness.cluster.yaml.fields import Fields

GROUP = "trainer.kubeflow.org"
RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")
"""The kinds of runtimes. The first kind is the default, and the second kind is namespaced."""

_ANCESTOR = f"{GROUP}/trainjob-ancestor-step"
_TRAINER, _NODE = "trainer", "node"
_SINGLE = (_TRAINER, "dataset-initializer", "model-initializer")
"""The steps whose replicated jobs have only one replica."""

_KUEUE = "kueue.x-k8s.io/manager"
"""Kueue adds a patch with this manager when it starts a job, and removes it when it stops the job."""

_JOB_SET = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}

_OLDER = ("podTemplateOverrides", "podSpecOverrides")

_CONTAINERS = dict.fromkeys(("name", "env", "volumeMounts", "securityContext"))
_PODS = {
    **dict.fromkeys(
        ("serviceAccountName", "volumes", "imagePullSecrets", "securityContext", "nodeSelector", "affinity")
    ),
    **dict.fromkeys(("tolerations", "schedulingGates", "terminationGracePeriodSeconds")),
    "initContainers": _CONTAINERS,
    "containers": _CONTAINERS,
}
_POD_TEMPLATE = {"metadata": None, "spec": _PODS}
_JOBS = {"name": None, "template": {"metadata": None, "spec": {"template": _POD_TEMPLATE}}}
_PATCHED: Mapping[str, Any] = {"replicatedJobs": _JOBS}
"""The fields that a patch of a runtime may have, with their subfields. None allows all subfields."""


def as_job_set(
    job: Mapping[str, Any], beside: Iterable[Mapping[str, Any]], faults: list[Fault]
) -> Mapping[str, Any]:
    """Returns the JobSet of a TrainJob, or the TrainJob itself if its runtime is missing.

    `beside` has objects that may include the job's runtime. Faults are added to `faults`.
    """
    fields = Fields(job, "", faults)
    spec = fields.child("spec")
    kind, name = _reference(spec.child("runtimeRef"))
    space = "" if kind == RUNTIMES[0] else _space(fields)
    for each in beside:
        runtime = Fields(each, f"{kind} {name}", faults)
        if (
            runtime.raw("kind") == kind
            and str(runtime.raw("apiVersion")).startswith(f"{GROUP}/")
            and runtime.child("metadata").raw("name") == name
            and space in ("", _space(runtime))
        ):
            jobs = _replicated_jobs(spec, runtime.child("spec"))
            return {**job, **_JOB_SET, "spec": {"replicatedJobs": jobs}}
    return job


def lacking_runtime(job: Mapping[str, Any]) -> Fault:
    """Returns the fault for a TrainJob whose runtime is missing."""
    kind, name = _reference(Fields(job, "", []).child("spec").child("runtimeRef"))
    command = f"kubectl get {kind.lower()}s -A -o yaml"
    rule = f"there is no {kind} {name!r}, neither next to the job nor in the dump; get it with {command}"
    return Fault("spec.runtimeRef", rule)


def _reference(reference: Fields) -> tuple[str, str]:
    reference.choice("apiGroup", (GROUP,), GROUP)
    return reference.choice("kind", RUNTIMES, RUNTIMES[0]), reference.string("name", required=True)


def _space(fields: Fields) -> str:
    return fields.child("metadata").string("namespace") or "default"


def _replicated_jobs(spec: Fields, runtime: Fields) -> list[Mapping[str, Any]]:
    if "podGroupPolicy" in runtime:
        runtime.fault(
            "podGroupPolicy", "harness does not model the pod groups of this policy; leave the field out"
        )
    for name in _OLDER:
        if name in spec:
            spec.fault(name, "is a field of older Trainers; use runtimePatches instead")
    template = _patched(runtime.child("template"), spec)
    jobs = template.child("spec").items("replicatedJobs")
    policy = runtime.child("mlPolicy") if "mlPolicy" in runtime else None
    trainer = spec.child("trainer")
    counts = _counts(jobs, policy, trainer)
    return [_job(each, count, policy, trainer) for each, count in zip(jobs, counts, strict=True)]


def _patched(template: Fields, spec: Fields) -> Fields:
    current = _plain(template.child("spec"))
    for each in spec.items("runtimePatches"):
        inner = each.child("trainingRuntimeSpec").child("template").child("spec")
        if each.string("manager", required=True) == _KUEUE:
            continue
        _check_patch(inner, _PATCHED)
        merge = Merge(inner.path, spec.faults)
        merged = merge.merged(current, _plain(inner))
        current = current if merged is None else merged
        for new in merge.added:
            if new.of in ("replicatedJobs", "containers", "initContainers"):
                inner.fault(new.said, f"the runtime has no {new.item.get('name')!r} to patch")
    return Fields({"spec": current}, template.where, template.faults, template.path)


def _check_patch(patch: Fields, allowed: Mapping[str, Any]) -> None:
    """Adds a fault for each field of a patch that the API server would drop."""
    for name in patch:
        if name not in allowed:
            patch.fault(name, f"cannot be patched; the allowed fields are {', '.join(allowed)}")
        elif allowed[name] is not None:
            several = isinstance(patch.raw(name), list)
            for each in patch.items(name) if several else (patch.child(name),):
                _check_patch(each, allowed[name])


def _plain(fields: Fields) -> dict[str, Any]:
    return {name: fields.raw(name) for name in fields}


def _ancestor(job: Fields) -> str:
    return job.child("template").child("metadata").child("labels").string(_ANCESTOR)


def _counts(jobs: Sequence[Fields], policy: Fields | None, trainer: Fields) -> list[int]:
    """Returns the number of pods in each replica of each job.

    The number of nodes applies to the first job that trains or, with MPI, to the job `node`.
    """
    steps = [_ancestor(each) for each in jobs]
    counts = []
    for each, step in zip(jobs, steps, strict=True):
        count = each.child("template").child("spec").integer("parallelism", 1)
        if step == _TRAINER and policy is not None:
            count = policy.integer("numNodes", 1)
        counts.append(max(count, 1))
    if "numNodes" in trainer:
        nodes, found = trainer.integer("numNodes", least=0), steps
        if policy is not None and "mpi" in policy:
            found = [_TRAINER if each.string("name") == _NODE else "" for each in jobs]
            nodes = max(nodes - 1, 1) if _launcher_is_node(policy) else nodes
        if _TRAINER in found:
            counts[found.index(_TRAINER)] = nodes
    return counts


def _launcher_is_node(policy: Fields | None) -> bool:
    return policy is not None and policy.child("mpi").boolean("runLauncherAsNode")


def _job(job: Fields, count: int, policy: Fields | None, trainer: Fields) -> Mapping[str, Any]:
    name, step = job.string("name", required=True), _ancestor(job)
    template = job.child("template")
    inner = template.child("spec")
    pods = _plain(inner.child("template"))
    is_node = _launcher_is_node(policy) and name == _NODE
    if "resourcesPerNode" in trainer and ((step == _TRAINER and policy is not None) or is_node):
        pods["spec"] = _with_resources(inner.child("template").child("spec"), trainer)
    spec = {**_plain(inner), "parallelism": count, "completions": count, "template": pods}
    replicas = {"replicas": 1} if step in _SINGLE else {}
    return {**_plain(job), **replicas, "template": {**_plain(template), "spec": spec}}


def _with_resources(pods: Fields, trainer: Fields) -> Mapping[str, Any]:
    """Returns the pods, with the trainer's resources in place of those of the first container `node`."""
    containers, given = pods.items("containers"), trainer.child("resourcesPerNode")
    found = [_plain(each) for each in containers]
    for at, each in enumerate(containers):
        if each.raw("name") == _NODE:
            merge = Merge(given.path, trainer.faults)
            merged = merge.merged(each.raw("resources"), _plain(given)) or {}
            resources = {kind: merged[kind] for kind in ("limits", "requests") if kind in merged}
            found[at] = {**found[at], "resources": resources}
            break
    return {**_plain(pods), "containers": found}
