"""States how a replay treats the fields of Kueue's kinds, except for Workload and Configuration."""

from __future__ import annotations

from harness.cluster.coverage.common import STATUS, metadata, selector, taints, tolerations
from harness.cluster.coverage.verdicts import Coverage, Row, assumed, harmless, modelled

CHECKS = (
    "harness treats every admission check as ready at once; the option "
    "admissionCheckDelay makes checks ready later"
)

_QUOTAS: list[Row] = modelled(
    "spec.resourceGroups[].coveredResources",
    "spec.resourceGroups[].flavors[].name",
    "spec.resourceGroups[].flavors[].resources[].(name|nominalQuota|borrowingLimit|lendingLimit)",
)
_WEIGHT: list[Row] = modelled("spec.fairSharing.weight")

_HELD = "harness treats the queue as if its stopPolicy was Hold, because Kueue admits no more jobs to it"

RESOURCE_FLAVOR = Coverage(
    metadata(),
    modelled("spec.nodeLabels{}"),
    taints("spec.nodeTaints"),
    tolerations("spec.tolerations"),
    modelled("spec.topologyName"),
)

TOPOLOGY = Coverage(metadata(), modelled("spec.levels[].nodeLabel"))

CLUSTER_QUEUE = Coverage(
    metadata(deleted=_HELD),
    STATUS,
    _QUOTAS,
    _WEIGHT,
    selector("spec.namespaceSelector"),
    modelled("spec.cohort", "spec.cohortName"),
    modelled(
        "spec.preemption.(withinClusterQueue|reclaimWithinCohort)",
        "spec.preemption.borrowWithinCohort.(policy|maxPriorityThreshold)",
        "spec.flavorFungibility.(whenCanBorrow|whenCanPreempt|preference)",
        "spec.queueingStrategy",
        "spec.stopPolicy",
        "spec.admissionScope.admissionMode",
    ),
    assumed(CHECKS, "spec.admissionChecks", "spec.admissionChecksStrategy.admissionChecks[].name"),
    modelled("spec.admissionChecksStrategy.admissionChecks[].onFlavors"),
    assumed(
        "Kueue admits a job to one flavor, and the job stays in this flavor", "spec.concurrentAdmissionPolicy"
    ),
)

COHORT = Coverage(metadata(), STATUS, _QUOTAS, _WEIGHT, modelled("spec.parent", "spec.parentName"))

LOCAL_QUEUE = Coverage(
    metadata(namespaced=True, deleted=_HELD),
    STATUS,
    _WEIGHT,
    modelled(
        "spec.clusterQueue",
        "spec.stopPolicy",
        "status.fairSharing.admissionFairSharingStatus.consumedResources{}",
    ),
    harmless(
        "a replay treats the recorded usage as the usage at its start",
        "status.fairSharing.admissionFairSharingStatus.lastUpdate",
    ),
)

WORKLOAD_PRIORITY_CLASS = Coverage(
    metadata(), modelled("value"), harmless("it is meant for people", "description")
)
