"""Refuses jobs that Kueue's webhooks, or the schema of its Workloads, refuse."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.base.errors import Fault
from harness.base.json_text import mapping_of
from harness.base.text import counted
from harness.cluster.kinds.kueue_controller import controller_release
from harness.cluster.kinds.kueue_differences import is_on_in
from harness.cluster.kinds.kueue_releases import state_at
from harness.cluster.kinds.topology import PODSET
from harness.cluster.kinds.workloads import Workload
from harness.cluster.model import Cluster
from harness.cluster.yaml.fields import Fields

_PLACES = "TopologyAwareScheduling"
"""The feature gate with which Kueue reads topology requests."""

_SLICES = "ElasticJobsViaWorkloadSlices"
"""The feature gate of elastic jobs, which may change their number of pods while they run."""

_ELASTIC = "kueue.x-k8s.io/elastic-job"

_MOST_POD_SETS = "13=8 18=10 19=18"
"""How many pod sets a Workload may have, by release. Upstream: `MaxItems` of `podSets`."""

_RAY_CLUSTERS = {"RayJob": ("rayClusterSpec",), "RayService": ("rayClusterConfig",), "RayCluster": ()}
"""Maps each kind of Ray to the path of the cluster in its `spec`."""


def check_job(
    cluster: Cluster, job: Fields, pod_sets: Sequence[Mapping[str, Any]], workload: Workload
) -> None:
    """Adds a fault to `job` for each rule that the job breaks. Kueue would never start such a job.

    Args:
        cluster: the cluster, which shows the release and the gates of Kueue.
        job: the manifest of a job with a queue.
        pod_sets: the manifests of the pod sets that Kueue makes of the job.
        workload: the Workload that Kueue makes of the job.
    """
    most = int(state_at(_MOST_POD_SETS, controller_release(cluster.kueue_controller)))
    if len(workload.pod_sets) > most:
        what = f"makes {len(workload.pod_sets)} pod sets, but a Workload of this release of Kueue has at most"
        job.faults.append(Fault("spec", f"{what} {most}"))
    if job.raw("kind") in _RAY_CLUSTERS:
        _check_ray(job, elastic=is_on_in(cluster, _SLICES))
    if is_on_in(cluster, _PLACES):
        _check_topologies(pod_sets, workload, job.faults)


def _check_ray(job: Fields, *, elastic: bool) -> None:
    """Adds the faults of a Ray job. `elastic` says whether jobs can be elastic.

    Upstream: `validateCreate` in pkg/controller/jobs/rayjob/rayjob_webhook.go and `ValidateCreate` in
    pkg/controller/jobs/raycluster/common.go.
    """
    spec = job.child("spec")
    if job.raw("kind") == "RayJob" and not spec.boolean("shutdownAfterJobFinishes"):
        spec.fault("shutdownAfterJobFinishes", "must be true; otherwise, Kueue's webhook refuses the RayJob")
    for name in _RAY_CLUSTERS[str(job.raw("kind"))]:
        spec = spec.child(name)
    annotations = mapping_of(job.raw("metadata"), "annotations")
    if spec.boolean("enableInTreeAutoscaling") and not (elastic and annotations.get(_ELASTIC) == "true"):
        what = f"Kueue's webhook refuses it without the gate {_SLICES} and the annotation {_ELASTIC}: true"
        spec.fault("enableInTreeAutoscaling", what)
    for group in spec.items("workerGroupSpecs"):
        if group.raw("groupName") == "head":
            group.fault("groupName", "Kueue's webhook refuses head, which is the name of the head's pod set")


def _check_topologies(pod_sets: Sequence[Mapping[str, Any]], workload: Workload, faults: list[Fault]) -> None:
    """Adds a fault for each pod set of a job whose topology request Kueue's webhook refuses.

    Upstream: pkg/controller/jobframework/tas_validation.go.
    """
    for made, found in zip(pod_sets, workload.pod_sets, strict=True):
        annotations = mapping_of(mapping_of(made["template"], "metadata"), "annotations")
        if not any(str(name).startswith(PODSET) for name in annotations):
            continue
        from harness.trace.topology import wrong_annotations  # It imports polars, which takes long.

        wrong = wrong_annotations(json.dumps({"metadata": {"annotations": annotations}}, default=str))
        size = max((layer.size for layer in found.topology.slices), default=0) if found.topology else 0
        if not wrong and size > found.count:
            wrong = f"requests slices of {size:,} pods, but has {counted(found.count, 'pod')}"
        if wrong:
            faults.append(Fault(f"pod set {found.name}", f"{wrong}; Kueue's webhook refuses such a job"))
