"""Selects the fields to record. Traces and events need these fields, and none of the fields has secrets.

Recordings contain only the fields listed here. They contain no environments, commands, images, messages or
contents of volumes, and only the listed annotations, because users put tokens there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.base.json_text import mapping_of
from harness.readers.recordings import STANDING

_METADATA = (
    "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "labels", "ownerReferences",
)  # fmt: skip
_ANNOTATIONS = (
    "kueue.x-k8s.io/", "batch.kubernetes.io/", "controller.kubernetes.io/", "scheduling.",
    "quota.scheduling.",
)  # fmt: skip
"""The prefixes of the annotations to record."""

_QUOTAS = (
    "admissionChecks", "admissionChecksStrategy", "admissionScope", "clusterQueue", "cohort", "cohortName",
    "fairSharing", "flavorFungibility", "max", "min", "namespaceSelector", "parent", "parentName",
    "preemption", "queueingStrategy", "resourceGroups", "root", "stopPolicy",
)  # fmt: skip
"""The fields to record for ClusterQueues, Cohorts, LocalQueues and elastic quotas."""

_NODE = ("taints", "unschedulable")
_AMOUNTS = ("allocatable", "capacity")
_POD = (
    "activeDeadlineSeconds", "affinity", "hostNetwork", "nodeName", "nodeSelector", "overhead",
    "preemptionPolicy", "priority", "priorityClassName", "resourceClaims", "resources", "restartPolicy",
    "runtimeClassName", "schedulerName", "schedulingGates", "schedulingGroup",
    "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints", "workloadRef",
)  # fmt: skip
_CONTAINER = ("name", "resources", "restartPolicy")
_PORT = ("containerPort", "hostIP", "hostPort", "name", "protocol")
_JOB = (
    "activeDeadlineSeconds", "backoffLimit", "completionMode", "completions", "managedBy", "parallelism",
    "suspend", "ttlSecondsAfterFinished",
)  # fmt: skip
_WORKLOAD = (
    "active", "maximumExecutionTimeSeconds", "preemptionGates", "priority", "priorityClassName",
    "priorityClassRef", "priorityClassSource", "queueName",
)  # fmt: skip
_POD_SET = ("count", "minCount", "name", "topologyRequest")
_CONDITION = ("lastTransitionTime", "observedGeneration", "reason", "status", "type")
_STATUS = (
    "accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds", "active", "admission",
    "clusterName", "completionTime", "failed",
    "nominatedNodeName", "phase", "qosClass", "ready", "reclaimablePods", "requeueState", "schedulingStats",
    "startTime", "succeeded",
)  # fmt: skip
_TERMINATED = ("exitCode", "finishedAt", "reason", "signal", "startedAt")

Manifest = Mapping[str, Any]


def kept(manifest: Manifest) -> dict[str, Any]:
    """Returns the parts of an object that a recording keeps."""
    spec, kind = mapping_of(manifest, "spec"), manifest.get("kind")
    status = _status(mapping_of(manifest, "status"))
    if kind in STANDING:
        spec = _only(spec, _NODE if kind == "Node" else _QUOTAS)
        status = _only(mapping_of(manifest, "status"), _AMOUNTS)
    elif kind == "Pod":
        spec = _pod_spec(spec)
    elif kind == "Job":
        spec = {**_only(spec, _JOB), "template": _template(mapping_of(spec, "template"))}
    else:
        pod_sets = [
            {**_only(each, _POD_SET), "template": _template(mapping_of(each, "template"))}
            for each in _list(spec, "podSets")
        ]
        spec = {**_only(spec, _WORKLOAD), "podSets": pod_sets}
    return {
        **_only(manifest, ("apiVersion", "kind")),
        "metadata": _metadata(manifest),
        "spec": spec,
        "status": status,
    }


def _metadata(manifest: Manifest) -> dict[str, Any]:
    metadata = mapping_of(manifest, "metadata")
    annotations = {
        name: value
        for name, value in mapping_of(metadata, "annotations").items()
        if str(name).startswith(_ANNOTATIONS)
    }
    found = _only(metadata, _METADATA)
    return {**found, "annotations": annotations} if annotations else found


def _template(template: Manifest) -> dict[str, Any]:
    return {"metadata": _metadata(template), "spec": _pod_spec(mapping_of(template, "spec"))}


def _pod_spec(spec: Manifest) -> dict[str, Any]:
    found = _only(spec, _POD)
    for name in ("containers", "initContainers"):
        if name in spec:
            found[name] = [_container(each) for each in _list(spec, name)]
    if "volumes" in spec:
        found["volumes"] = [_volume(each) for each in _list(spec, "volumes")]
    return found


def _container(container: Manifest) -> dict[str, Any]:
    found = _only(container, _CONTAINER)
    if "ports" in container:
        found["ports"] = [_only(port, _PORT) for port in _list(container, "ports")]
    return found


def _volume(volume: Manifest) -> dict[str, Any]:
    """Returns the kind of a volume, which may determine where a pod can run."""
    return {name: value if name == "name" else {} for name, value in volume.items()}


def _status(status: Manifest) -> dict[str, Any]:
    found = _only(status, _STATUS)
    if "conditions" in status:
        found["conditions"] = [_only(each, _CONDITION) for each in _list(status, "conditions")]
    if "containerStatuses" in status:
        found["containerStatuses"] = [
            {"state": _ended(mapping_of(each, "state"))} for each in _list(status, "containerStatuses")
        ]
    return found


def _ended(state: Manifest) -> dict[str, Any]:
    return (
        {"terminated": _only(mapping_of(state, "terminated"), _TERMINATED)} if "terminated" in state else {}
    )


def _only(manifest: Manifest, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: manifest[name] for name in names if name in manifest}


def _list(manifest: Manifest, name: str) -> list[Manifest]:
    value = manifest.get(name)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
