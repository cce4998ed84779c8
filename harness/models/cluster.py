"""What manifests become: nodes, quotas, flavors, pods and configurations, as a `Cluster` has them."""

from __future__ import annotations

from harness.cluster.containers import Container, saturating_amounts
from harness.cluster.core import HOSTNAME
from harness.cluster.disruption import PodDisruptionBudget
from harness.cluster.elastic import (
    ACK,
    CAPACITY,
    CORE_RESOURCES,
    KOORDINATOR,
    KOORDINATORS,
    QUOTA_NAME_LABEL,
    ElasticQuota,
    QuotaLeaves,
    is_koordinators,
    leaves_of,
    semantics_of,
)
from harness.cluster.kueue_configuration import (
    GATES,
    PERMITTED_STRATEGIES,
    STRATEGIES,
    TO_FINAL_SHARE,
    AdmissionFairSharing,
    KueueConfiguration,
)
from harness.cluster.model import (
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
from harness.cluster.pod_groups import Membership, PodGroup, group_name, membership_of
from harness.cluster.pods import Pod, PodSpec
from harness.cluster.scheduler_configuration import SchedulerConfiguration
from harness.cluster.scheduling_groups import GroupReference, SchedulingGroup
from harness.cluster.selectors import Requirement, Taint, Toleration
from harness.cluster.standing import Standing, leaving, standing_of
from harness.cluster.topology import Topology, TopologyRequest
from harness.cluster.wait_for_pods_ready import WaitForPodsReady
from harness.cluster.workloads import PRIORITY_BOOST, Workload

__all__ = [
    "ACK",
    "CAPACITY",
    "CORE_RESOURCES",
    "GATES",
    "HOSTNAME",
    "KOORDINATOR",
    "KOORDINATORS",
    "PERMITTED_STRATEGIES",
    "PRIORITY_BOOST",
    "QUOTA_NAME_LABEL",
    "STRATEGIES",
    "SYSTEM_PRIORITY_CLASSES",
    "TO_FINAL_SHARE",
    "UNLIMITED",
    "AdmissionFairSharing",
    "Cluster",
    "ClusterQueue",
    "Cohort",
    "Container",
    "ElasticQuota",
    "FlavorFungibility",
    "FlavorQuotas",
    "GroupReference",
    "KueueConfiguration",
    "LocalQueue",
    "Membership",
    "Node",
    "Pod",
    "PodDisruptionBudget",
    "PodGroup",
    "PodSpec",
    "PriorityClass",
    "QuotaLeaves",
    "Requirement",
    "ResourceFlavor",
    "ResourceGroup",
    "ResourceQuota",
    "SchedulerConfiguration",
    "SchedulingGroup",
    "Standing",
    "Taint",
    "Toleration",
    "Topology",
    "TopologyRequest",
    "WaitForPodsReady",
    "Workload",
    "frozen",
    "group_name",
    "is_koordinators",
    "leaves_of",
    "leaving",
    "membership_of",
    "saturating_amounts",
    "semantics_of",
    "standing_of",
    "taint_text",
]
