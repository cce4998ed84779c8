"""Provides the data of a `Cluster`, such as nodes, quotas, flavors, pods and configurations."""

from harness.base.pod_set import TopologyRequest
from harness.cluster.changes.edits import Instant, ever
from harness.cluster.kinds.containers import Container, saturating_amounts
from harness.cluster.kinds.core import HOSTNAME
from harness.cluster.kinds.device_claims import ALL as ALL_DEVICES
from harness.cluster.kinds.device_claims import ClaimTemplate, DeviceRequest
from harness.cluster.kinds.disruption import PodDisruptionBudget
from harness.cluster.kinds.elastic import (
    ACK,
    CAPACITY,
    CORE_RESOURCES,
    KOORDINATOR,
    KOORDINATORS,
    QUOTA_NAME_LABEL,
    ElasticQuota,
    QuotaLeaves,
    has_free_min,
    is_koordinators,
    leaves_of,
    semantics_of,
)
from harness.cluster.kinds.kueue_configuration import GATES, AdmissionFairSharing, KueueConfiguration
from harness.cluster.kinds.kueue_controller import controller_release
from harness.cluster.kinds.kueue_gates import GATES_BY_RELEASE, RULES_BY_RELEASE, is_on, why_refused
from harness.cluster.kinds.kueue_releases import (
    NEWEST,
    RELEASES,
    Release,
    nearest_release,
    release_named,
    state_at,
)
from harness.cluster.kinds.kueue_requests import Counting
from harness.cluster.kinds.pod_groups import Membership, PodGroup, group_name, membership_of
from harness.cluster.kinds.pods import NodeSelectorTerm, Pod, PodSpec
from harness.cluster.kinds.preemption_strategies import (
    DEFAULT_STRATEGIES,
    PERMITTED_STRATEGIES,
    PERMITTED_TEXT,
    Strategy,
    strategies_of,
)
from harness.cluster.kinds.request_defaults import LimitRange, limits_by_namespace
from harness.cluster.kinds.scheduler_configuration import (
    DEVICE_POLICIES,
    DevicePlacement,
    SchedulerConfiguration,
)
from harness.cluster.kinds.scheduling_groups import GroupReference, SchedulingGroup
from harness.cluster.kinds.selectors import Requirement, Taint, Toleration
from harness.cluster.kinds.topology import Topology
from harness.cluster.kinds.wait_for_pods_ready import WaitForPodsReady
from harness.cluster.kinds.workloads import PRIORITY_BOOST, REJECTED, RETRY, Workload
from harness.cluster.model import (
    DELETION,
    NO_TOPOLOGY,
    SYSTEM_PRIORITY_CLASSES,
    UNLIMITED,
    Cluster,
    ClusterQueue,
    Cohort,
    FlavorFungibility,
    FlavorQuotas,
    LocalQueue,
    Node,
    PriorityClass,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    frozen,
)
from harness.cluster.node_kinds import taint_text
from harness.cluster.standing import Standing, leaving, standing_of

__all__ = [
    "ACK", "ALL_DEVICES", "CAPACITY", "CORE_RESOURCES", "DEFAULT_STRATEGIES", "DELETION", "DEVICE_POLICIES",
    "GATES", "GATES_BY_RELEASE", "HOSTNAME", "KOORDINATOR", "KOORDINATORS", "NEWEST", "NO_TOPOLOGY",
    "PERMITTED_STRATEGIES", "PERMITTED_TEXT", "PRIORITY_BOOST", "QUOTA_NAME_LABEL", "REJECTED", "RELEASES",
    "RETRY", "RULES_BY_RELEASE", "SYSTEM_PRIORITY_CLASSES", "UNLIMITED", "AdmissionFairSharing",
    "ClaimTemplate", "Cluster", "ClusterQueue", "Cohort", "Container", "Counting", "DevicePlacement",
    "DeviceRequest", "ElasticQuota", "FlavorFungibility", "FlavorQuotas", "GroupReference", "Instant",
    "KueueConfiguration", "LimitRange", "LocalQueue", "Membership", "Node", "NodeSelectorTerm", "Pod",
    "PodDisruptionBudget", "PodGroup", "PodSpec", "PriorityClass", "QuotaLeaves", "Release", "Requirement",
    "ResourceFlavor", "ResourceGroup", "ResourceQuota", "SchedulerConfiguration", "SchedulingGroup",
    "Standing", "Strategy", "Taint", "Toleration", "Topology", "TopologyRequest", "WaitForPodsReady",
    "Workload", "controller_release", "ever", "frozen", "group_name", "has_free_min", "is_koordinators",
    "is_on", "leaves_of", "leaving", "limits_by_namespace", "membership_of", "nearest_release",
    "release_named", "saturating_amounts", "semantics_of", "standing_of", "state_at", "strategies_of",
    "taint_text", "why_refused",
]  # fmt: skip
