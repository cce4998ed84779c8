"""Adds to the head of a Ray cluster what Kueue counts for it beyond its template.

Source: `BuildPodSets` in pkg/controller/jobs/raycluster/common.go, and `addSidecarSubmitterToHeadPodSet` in
pkg/controller/jobs/rayjob/rayjob_controller.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from harness.base.errors import InputError
from harness.base.json_text import mapping_of
from harness.base.units import parse_quantity
from harness.cluster.kinds.kueue_releases import Release, state_at

SUBMITTER: Mapping[str, Any] = {
    "name": "ray-job-submitter",
    "resources": {"requests": {"cpu": "500m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
}
"""The container that submits a RayJob, in a pod of its own or, with `SidecarMode`, in the head."""

_SUBMITTER_COUNTS = "17.7=+ 18=- 18.3=+"
_AUTOSCALER_COUNTS = "19=+"
_CLEANUP_COUNTS = "17.6=+ 18=- 18.2=+"
"""The releases that count the submitter, the autoscaler, and the Job that cleans up Redis."""

_AUTOSCALER = {"requests": {"cpu": "500m", "memory": "512Mi"}}
_CLEANUP = {"cpu": "200m", "memory": "256Mi"}
_FAULT_TOLERANT = "ray.io/ft-enabled"


def with_sidecars(head: dict[str, Any], metadata: Any, spec: Any, release: Release) -> dict[str, Any]:
    """Returns the pod set of a Ray head with the containers and requests that Kueue adds to it.

    `metadata` and `spec` are those of a RayJob, RayCluster or RayService, and `release` is that of Kueue.
    """
    template = head["template"]
    ray = mapping_of(spec, "rayClusterSpec") or mapping_of(spec, "rayClusterConfig") or spec
    told = mapping_of(template, "spec").get("containers")
    containers = list(told) if isinstance(told, list) else []
    annotations = mapping_of(metadata, "annotations")
    tolerant = "gcsFaultToleranceOptions" in ray or str(annotations.get(_FAULT_TOLERANT)).lower() == "true"
    if tolerant and containers and state_at(_CLEANUP_COUNTS, release) == "+":
        containers[0] = _at_least(containers[0], _CLEANUP)
    if ray.get("enableInTreeAutoscaling") is True and state_at(_AUTOSCALER_COUNTS, release) == "+":
        resources = mapping_of(ray, "autoscalerOptions").get("resources") or _AUTOSCALER
        containers.append({"name": "autoscaler", "resources": resources})
    if spec.get("submissionMode") == "SidecarMode" and state_at(_SUBMITTER_COUNTS, release) == "+":
        containers.append(SUBMITTER)
    return {
        **head,
        "template": {**template, "spec": {**mapping_of(template, "spec"), "containers": containers}},
    }


def _at_least(container: Any, least: Mapping[str, str]) -> Any:
    """Returns a container that requests these quantities, or more if it requests more."""
    if not isinstance(container, Mapping):
        return container
    resources = mapping_of(container, "resources")
    requests = {**mapping_of(resources, "requests")}
    for name, amount in least.items():
        with suppress(InputError, TypeError):  # the reader of pod sets reports a faulty quantity
            requests[name] = max(requests.get(name, 0), amount, key=parse_quantity)
    return {**container, "resources": {**resources, "requests": requests}}
