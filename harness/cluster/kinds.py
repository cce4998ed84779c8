"""The table of kinds that a cluster is read from; a new kind is a reader function and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from harness.cluster import core, elastic, kueue, scheduling
from harness.cluster.draft import Draft
from harness.cluster.elastic_rules import check_elastic
from harness.cluster.fields import Fields
from harness.cluster.kueue_configuration import read_kueue_configuration
from harness.cluster.pod_groups import read_pod_group
from harness.cluster.topology import check_topologies, read_topology
from harness.cluster.workloads import read_workload

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind is read.

    Attributes:
        versions: the API versions that are understood.
        read: adds the object to the draft.
        unmodelled: field -> what is assumed instead of it, for the warning when a manifest has it.
    """

    versions: tuple[str, ...]
    read: Callable[[Fields, Draft], None]
    unmodelled: Mapping[str, str] = field(default_factory=lambda: _NOTHING)


KUEUE_CONFIGURATION = "config.kueue.x-k8s.io"
"""The API group of Kueue's own Configuration."""

_KUEUE = ("v1beta1", "v1beta2")
_NO_CHECKS = "admission checks are treated as always ready"
_POD_GROUP = {
    "spec.minResources": "a group is tried whatever the whole cluster has left",
    "spec.scheduleTimeoutSeconds": "a group is placed at one instant, so no pod waits for the others",
}

KINDS: Mapping[tuple[str, str], Kind] = {
    ("", "Node"): Kind(("v1",), core.read_node),
    ("", "Namespace"): Kind(("v1",), core.read_namespace),
    ("harness", "NodePool"): Kind(("v1",), core.read_node_pool),
    ("scheduling.k8s.io", "PriorityClass"): Kind(("v1",), core.read_priority_class),
    ("", "Pod"): Kind(
        ("v1",),
        scheduling.read_running_pod,
        {
            "spec.resourceClaims": "devices are not allocated",
            "spec.schedulingGates": "the pod is taken to be ready",
        },
    ),
    ("policy", "PodDisruptionBudget"): Kind(("v1",), scheduling.read_budget),
    ("scheduling.x-k8s.io", "PodGroup"): Kind(("v1alpha1",), read_pod_group, _POD_GROUP),
    ("scheduling.sigs.k8s.io", "PodGroup"): Kind(("v1alpha1",), read_pod_group, _POD_GROUP),
    ("kubescheduler.config.k8s.io", "KubeSchedulerConfiguration"): Kind(
        ("v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1"), scheduling.read_configuration
    ),
    ("scheduling.sigs.k8s.io", "ElasticQuotaTree"): Kind(
        ("v1beta1",),
        elastic.read_elastic_quota_tree,
    ),
    ("scheduling.x-k8s.io", "ElasticQuota"): Kind(("v1alpha1",), elastic.read_elastic_quota),
    ("scheduling.sigs.k8s.io", "ElasticQuota"): Kind(("v1alpha1",), elastic.read_elastic_quota),
    ("kueue.x-k8s.io", "Topology"): Kind(("v1alpha1", *_KUEUE), read_topology),
    ("kueue.x-k8s.io", "ResourceFlavor"): Kind(
        _KUEUE,
        kueue.read_resource_flavor,
        {
            "spec.resourceWeights": "all resources count alike in a share",
        },
    ),
    ("kueue.x-k8s.io", "ClusterQueue"): Kind(
        _KUEUE,
        kueue.read_cluster_queue,
        {
            "spec.admissionChecks": _NO_CHECKS,
            "spec.admissionChecksStrategy": _NO_CHECKS,
            "spec.concurrentAdmissionPolicy": "a job is admitted to one flavor and stays there",
            "spec.excludeResourcePrefixes": "every requested resource counts",
        },
    ),
    ("kueue.x-k8s.io", "Cohort"): Kind(("v1alpha1", *_KUEUE), kueue.read_cohort),
    ("kueue.x-k8s.io", "LocalQueue"): Kind(
        _KUEUE,
        kueue.read_local_queue,
        {"spec.wallTimePolicy": "the queue has no budget of hours"},
    ),
    ("kueue.x-k8s.io", "WorkloadPriorityClass"): Kind(_KUEUE, kueue.read_workload_priority_class),
    ("kueue.x-k8s.io", "Workload"): Kind(
        _KUEUE,
        read_workload,
        {
            "spec.maximumExecutionTimeSeconds": "no job is stopped because it runs for long",
            "spec.preemptionGates": "the workload may preempt at any time",
            "status.admission.podSetAssignments[].topologyAssignment": (
                "its pods take no room of a topology, and run on any node"
            ),
            "status.admissionChecks": _NO_CHECKS,
            "status.requeueState": "no backoff is waited for",
            "status.unhealthyNodes": "no pod is moved to another node",
        },
    ),
    (KUEUE_CONFIGURATION, "Configuration"): Kind(_KUEUE, read_kueue_configuration),
}

CHECKS: tuple[Callable[[Draft], None], ...] = (
    core.check_core,
    kueue.check_kueue,
    check_topologies,
    scheduling.check_scheduling,
    check_elastic,
)
"""Rules between objects, checked once all of them were read."""
