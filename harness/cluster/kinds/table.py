"""Lists all kinds that harness reads, including the kinds that plugins add."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from harness.cluster.coverage import core as core_fields
from harness.cluster.coverage import kueue as kueue_fields
from harness.cluster.coverage import pods as pod_fields
from harness.cluster.coverage import scheduling as scheduling_fields
from harness.cluster.draft import Draft
from harness.cluster.kinds import core, kueue
from harness.cluster.kinds.device_claims import read_claim_template
from harness.cluster.kinds.disruption import check_disruption_budgets, read_disruption_budget
from harness.cluster.kinds.kind import Kind
from harness.cluster.kinds.kueue_configuration import read_kueue_configuration
from harness.cluster.kinds.pod_groups import read_pod_group
from harness.cluster.kinds.pod_reading import check_pods, read_running_pod
from harness.cluster.kinds.queues_missing import check_queues
from harness.cluster.kinds.request_defaults import add_request_defaults, read_limit_range, read_runtime_class
from harness.cluster.kinds.scheduler_configuration import read_scheduler_configuration
from harness.cluster.kinds.scheduling_groups import (
    check_scheduling_groups,
    read_scheduling_pod_group,
    read_scheduling_workload,
)
from harness.cluster.kinds.topology import check_topologies, read_topology
from harness.cluster.kinds.workload_reading import read_workload
from harness.plugins.loading import installed_kinds

KUEUE_CONFIGURATION = "config.kueue.x-k8s.io"
"""The API group of Kueue's Configuration."""

_KUEUE = ("v1beta1", "v1beta2")
_SCHEDULING_WORKLOAD = ("v1alpha1", "v1alpha2", "v1alpha3", "v1beta1")

OURS: Mapping[tuple[str, str], Kind] = {
    ("", "Node"): Kind(("v1",), core.read_node, core_fields.NODE),
    ("", "Namespace"): Kind(("v1",), core.read_namespace, core_fields.NAMESPACE),
    ("harness", "NodePool"): Kind(("v1",), core.read_node_pool, core_fields.NODE_POOL),
    ("scheduling.k8s.io", "PriorityClass"): Kind(
        ("v1",), core.read_priority_class, core_fields.PRIORITY_CLASS
    ),
    ("", "Pod"): Kind(("v1",), read_running_pod, pod_fields.POD),
    ("policy", "PodDisruptionBudget"): Kind(("v1",), read_disruption_budget, core_fields.DISRUPTION_BUDGET),
    ("", "LimitRange"): Kind(("v1",), read_limit_range, core_fields.LIMIT_RANGE),
    ("node.k8s.io", "RuntimeClass"): Kind(("v1",), read_runtime_class, core_fields.RUNTIME_CLASS),
    ("scheduling.x-k8s.io", "PodGroup"): Kind(("v1alpha1",), read_pod_group, scheduling_fields.POD_GROUP),
    ("scheduling.sigs.k8s.io", "PodGroup"): Kind(("v1alpha1",), read_pod_group, scheduling_fields.POD_GROUP),
    ("scheduling.k8s.io", "Workload"): Kind(
        _SCHEDULING_WORKLOAD, read_scheduling_workload, scheduling_fields.SCHEDULING_WORKLOAD
    ),
    ("scheduling.k8s.io", "PodGroup"): Kind(
        _SCHEDULING_WORKLOAD[1:], read_scheduling_pod_group, scheduling_fields.SCHEDULING_POD_GROUP
    ),
    ("kubescheduler.config.k8s.io", "KubeSchedulerConfiguration"): Kind(
        ("v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1"),
        read_scheduler_configuration,
        scheduling_fields.SCHEDULER_CONFIGURATION,
    ),
    ("componentconfig", "KubeSchedulerConfiguration"): Kind(  # the API group up to Kubernetes 1.12
        ("v1alpha1",), read_scheduler_configuration, scheduling_fields.SCHEDULER_CONFIGURATION
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
    ("resource.k8s.io", "ResourceClaimTemplate"): Kind(
        ("v1beta1", "v1beta2", "v1"), read_claim_template, core_fields.CLAIM_TEMPLATE
    ),
    ("kueue.x-k8s.io", "Workload"): Kind(_KUEUE, read_workload, kueue_fields.WORKLOAD),
    ("config.kueue.x-k8s.io", "Configuration"): Kind(
        _KUEUE, read_kueue_configuration, kueue_fields.CONFIGURATION
    ),
}

CHECKS: tuple[Callable[[Draft], None], ...] = (
    add_request_defaults, core.check_core, kueue.check_kueue, check_queues, check_topologies, check_pods,
    check_disruption_budgets, check_scheduling_groups,
)  # fmt: skip
"""The rules between objects of built-in kinds. They are checked after all objects are read, and before the
rules of plugins.
"""


class Kinds(Mapping[tuple[str, str], Kind]):
    """Maps an API group and a kind to the description of the kind.

    `brought` are the kinds that plugins add. By default, these are the kinds of the installed plugins, which
    are loaded when a manifest has a kind that isn't built in. The kinds are included even if a replay doesn't
    use the plugins, so a manifest always has the same meaning.
    """

    def __init__(self, brought: Mapping[tuple[str, str], Kind] | None = None) -> None:
        self._brought = brought

    def __getitem__(self, key: tuple[str, str]) -> Kind:
        found = OURS.get(key)
        return self._of_plugins[key] if found is None else found

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return chain(OURS, self._of_plugins)

    def __len__(self) -> int:
        return len(OURS) + len(self._of_plugins)

    @property
    def _of_plugins(self) -> Mapping[tuple[str, str], Kind]:
        return installed_kinds() if self._brought is None else self._brought


KINDS = Kinds()
"""The built-in kinds and the kinds of installed plugins."""
