"""The table of kinds that a cluster is read from; a new kind is a reader function and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.cluster import core, elastic, kueue, scheduling
from harness.cluster.coverage import configuration as configuration_fields
from harness.cluster.coverage import core as core_fields
from harness.cluster.coverage import elastic as elastic_fields
from harness.cluster.coverage import kueue as kueue_fields
from harness.cluster.coverage import pods as pod_fields
from harness.cluster.coverage import scheduling as scheduling_fields
from harness.cluster.coverage import workloads as workload_fields
from harness.cluster.coverage.verdicts import Coverage
from harness.cluster.draft import Draft
from harness.cluster.elastic_rules import check_elastic
from harness.cluster.fields import Fields
from harness.cluster.kueue_configuration import read_kueue_configuration
from harness.cluster.pod_groups import read_pod_group
from harness.cluster.topology import check_topologies, read_topology
from harness.cluster.workloads import read_workload


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind is read.

    Attributes:
        versions: the API versions that are understood.
        read: adds the object to the draft.
        coverage: what is said of each of its fields.
    """

    versions: tuple[str, ...]
    read: Callable[[Fields, Draft], None]
    coverage: Coverage


KUEUE_CONFIGURATION = "config.kueue.x-k8s.io"
"""The API group of Kueue's own Configuration."""

_KUEUE = ("v1beta1", "v1beta2")

KINDS: Mapping[tuple[str, str], Kind] = {
    ("", "Node"): Kind(("v1",), core.read_node, core_fields.NODE),
    ("", "Namespace"): Kind(("v1",), core.read_namespace, core_fields.NAMESPACE),
    ("harness", "NodePool"): Kind(("v1",), core.read_node_pool, core_fields.NODE_POOL),
    ("scheduling.k8s.io", "PriorityClass"): Kind(
        ("v1",), core.read_priority_class, core_fields.PRIORITY_CLASS
    ),
    ("", "Pod"): Kind(("v1",), scheduling.read_running_pod, pod_fields.POD),
    ("policy", "PodDisruptionBudget"): Kind(("v1",), scheduling.read_budget, core_fields.DISRUPTION_BUDGET),
    ("scheduling.x-k8s.io", "PodGroup"): Kind(("v1alpha1",), read_pod_group, scheduling_fields.POD_GROUP),
    ("scheduling.sigs.k8s.io", "PodGroup"): Kind(("v1alpha1",), read_pod_group, scheduling_fields.POD_GROUP),
    ("kubescheduler.config.k8s.io", "KubeSchedulerConfiguration"): Kind(
        ("v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1"),
        scheduling.read_configuration,
        scheduling_fields.SCHEDULER_CONFIGURATION,
    ),
    ("scheduling.sigs.k8s.io", "ElasticQuotaTree"): Kind(
        ("v1beta1",), elastic.read_elastic_quota_tree, elastic_fields.ELASTIC_QUOTA_TREE
    ),
    ("scheduling.x-k8s.io", "ElasticQuota"): Kind(
        ("v1alpha1",), elastic.read_elastic_quota, elastic_fields.ELASTIC_QUOTA
    ),
    ("scheduling.sigs.k8s.io", "ElasticQuota"): Kind(
        ("v1alpha1",), elastic.read_elastic_quota, elastic_fields.ELASTIC_QUOTA
    ),
    ("kueue.x-k8s.io", "Topology"): Kind(("v1alpha1", *_KUEUE), read_topology, kueue_fields.TOPOLOGY),
    ("kueue.x-k8s.io", "ResourceFlavor"): Kind(
        _KUEUE, kueue.read_resource_flavor, kueue_fields.RESOURCE_FLAVOR
    ),
    ("kueue.x-k8s.io", "ClusterQueue"): Kind(_KUEUE, kueue.read_cluster_queue, kueue_fields.CLUSTER_QUEUE),
    ("kueue.x-k8s.io", "Cohort"): Kind(("v1alpha1", *_KUEUE), kueue.read_cohort, kueue_fields.COHORT),
    ("kueue.x-k8s.io", "LocalQueue"): Kind(_KUEUE, kueue.read_local_queue, kueue_fields.LOCAL_QUEUE),
    ("kueue.x-k8s.io", "WorkloadPriorityClass"): Kind(
        _KUEUE, kueue.read_workload_priority_class, kueue_fields.WORKLOAD_PRIORITY_CLASS
    ),
    ("kueue.x-k8s.io", "Workload"): Kind(_KUEUE, read_workload, workload_fields.WORKLOAD),
    ("config.kueue.x-k8s.io", "Configuration"): Kind(
        _KUEUE, read_kueue_configuration, configuration_fields.CONFIGURATION
    ),
}

CHECKS: tuple[Callable[[Draft], None], ...] = (
    core.check_core,
    kueue.check_kueue,
    check_topologies,
    scheduling.check_scheduling,
    check_elastic,
)
"""Rules between objects, checked once all of them were read."""
