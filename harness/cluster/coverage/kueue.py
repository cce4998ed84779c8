"""States how a replay treats the fields of Kueue's kinds and of its Configuration.

Kueue decodes a Configuration strictly, so harness rejects unknown fields in it, too.
"""

from __future__ import annotations

from harness.cluster.coverage.common import OWNERS, STATUS, metadata, selector, taints, tolerations
from harness.cluster.coverage.pods import TEMPLATE
from harness.cluster.coverage.verdicts import Coverage, Row, assumed, below, harmless, modelled, only
from harness.cluster.kinds.kueue_configuration import GATES

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

_CONTROLLER = ("controller", "health", "leaderElection", "metrics", "pprofBindAddress", "tls", "webhook")
"""The fields that the configuration of every controller manager has, in addition to Kueue's own fields."""

_JOBS = "the trace contains the jobs and their queues"
_HERE = "Kueue sends no job to another cluster, so all jobs run in this cluster"
_RUNS = "it influences how Kueue runs, but not what Kueue decides"
_FIRST: list[Row] = [
    *modelled("fairSharing.enable", "waitForPodsReady.enable"),
    *harmless(_JOBS, "integrations.podOptions"),
    *harmless(_RUNS, "queueVisibility"),
]
"""The fields that exist only in v1beta1."""

_SECOND: list[Row] = [
    *modelled("resources.quotaCheckStrategy"),
    *assumed(
        "harness does not know the amounts of devices of these classes, and counts them as zero",
        "resources.deviceClassMappings[].sources",
    ),
    *assumed(_HERE, "multiKueue.clusterProfile"),
    *assumed(_HERE, "multiKueue.incrementalDispatcherConfig.stepSize", usual=(3,)),
    *harmless(_RUNS, "visibilityServer"),
]
"""The fields that exist only in v1beta2."""

CONFIGURATION = Coverage(
    harmless("it names the file", "apiVersion", "kind"),
    modelled("fairSharing.preemptionStrategies"),
    modelled("admissionFairSharing.(usageHalfLifeTime|usageSamplingInterval|resourceWeights{})"),
    modelled(*(f"featureGates{{{gate}}}" for gate in GATES)),
    assumed("the feature gate has its default value in Kueue", "featureGates{}"),
    modelled(
        "waitForPodsReady.(timeout|recoveryTimeout|blockAdmission)",
        "waitForPodsReady.requeuingStrategy.(timestamp|backoffLimitCount|backoffBaseSeconds|backoffMaxSeconds)",
    ),
    modelled(
        "resources.excludeResourcePrefixes",
        "resources.transformations[].(input|strategy|multiplyBy|outputs{})",
        "resources.deviceClassMappings[].(name|deviceClassNames)",
    ),
    assumed(_HERE, "multiKueue.gcInterval", usual=("1m", "1m0s")),
    assumed(_HERE, "multiKueue.origin", usual=("multikueue",)),
    assumed(_HERE, "multiKueue.workerLostTimeout", usual=("15m", "15m0s")),
    assumed(_HERE, "multiKueue.dispatcherName", usual=("kueue.x-k8s.io/multikueue-dispatcher-all-at-once",)),
    assumed(_HERE, "multiKueue.externalFrameworks[].name"),
    harmless(
        _JOBS,
        "manageJobsWithoutQueueName",
        "managedJobsNamespaceSelector",
        "integrations.(frameworks|externalFrameworks|labelKeysToCopy)",
    ),
    harmless(
        "Kueue only deletes finished or deactivated workloads by it, and they no longer matter",
        "objectRetentionPolicies.workloads.(afterFinished|afterDeactivatedByKueue)",
    ),
    harmless(
        _RUNS,
        "namespace",
        "internalCertManagement.(enable|webhookServiceName|webhookSecretName)",
        "clientConnection.(qps|burst)",
        *_CONTROLLER,
    ),
    only(["v1beta1"], _FIRST),
    only(["v1beta2"], _SECOND),
    strict=True,
)

_TEMPLATE = "spec.podSets[].template"
_ASSIGNMENT = "status.admission.podSetAssignments[]"
_TOPOLOGY = "spec.podSets[].topologyRequest"
_SLICES = "(elastic-job|workload-slice-name|workload-slice-replacement-for)"
_GATES = "the workload may preempt other workloads at any time, because harness treats its gates as open"

_METADATA: list[Row] = [
    *modelled("metadata.annotations{kueue.x-k8s.io/(priority-boost|admission-gated-by)}"),
    *assumed(
        "the workload may get any flavor of its queue",
        "metadata.annotations{kueue.x-k8s.io/workload-allowed-resource-flavors}",
    ),
    *assumed(
        "harness treats the workload as an ordinary one that holds quota for all of its pods",
        f"metadata.(annotations|labels){{kueue.x-k8s.io/{_SLICES}}}",
    ),
]

WORKLOAD = Coverage(
    metadata(
        namespaced=True,
        deleted="harness treats the workload as ended, because Kueue stops its job and removes it",
        counts=("creationTimestamp", "ownerReferences", "uid"),
    ),
    OWNERS,
    modelled("metadata.labels{kueue.x-k8s.io/job-uid}"),
    _METADATA,
    modelled("spec.queueName", "spec.active", "spec.priority"),
    modelled("spec.priorityClassName", "spec.priorityClassRef.name"),
    harmless(
        "the number in spec.priority is used instead",
        "spec.priorityClassSource",
        "spec.priorityClassRef.(group|kind)",
    ),
    modelled("spec.podSets[].(name|count|minCount)"),
    below(f"{_TEMPLATE}.spec", TEMPLATE),
    modelled(f"{_TEMPLATE}.metadata.labels{{}}"),
    harmless("Kueue has already copied the relevant parts of it", f"{_TEMPLATE}.metadata"),
    modelled(
        f"{_TOPOLOGY}.(required|preferred|unconstrained|podSetGroupName)",
        f"{_TOPOLOGY}.(podSetSliceRequiredTopology|podSetSliceSize)",
        f"{_TOPOLOGY}.podsetSliceRequiredTopologyConstraints[].(topology|size)",
    ),
    harmless(
        "it numbers the pods, but does not influence where they run",
        f"{_TOPOLOGY}.(podIndexLabel|subGroupIndexLabel|subGroupCount)",
    ),
    modelled("spec.maximumExecutionTimeSeconds"),
    modelled("status.accumulatedPastExecutionTimeSeconds", "status.accumulatedPastExexcutionTimeSeconds"),
    assumed(_GATES, "spec.preemptionGates", "status.preemptionGates"),
    modelled("status.admission.clusterQueue"),
    modelled(f"{_ASSIGNMENT}.(name|count|flavors{{}}|resourceUsage{{}})"),
    modelled(
        f"{_ASSIGNMENT}.topologyAssignment.(levels|domains[].values|domains[].count|slices[].domainCount)",
        f"{_ASSIGNMENT}.topologyAssignment.slices[].podCounts.(universal|individual)",
        f"{_ASSIGNMENT}.topologyAssignment.slices[].valuesPerLevel[].universal",
        f"{_ASSIGNMENT}.topologyAssignment.slices[].valuesPerLevel[].individual.(prefix|suffix|roots)",
    ),
    assumed(
        "the pods of the workload take no capacity of a topology, and may run on any node",
        f"{_ASSIGNMENT}.delayedTopologyRequest",
    ),
    modelled("status.conditions[].(type|status|reason|lastTransitionTime)"),
    harmless("it is meant for people", "status.conditions[].(message|observedGeneration)"),
    modelled("status.reclaimablePods[].(name|count)"),
    modelled("status.admissionChecks[].(name|message|lastTransitionTime|requeueAfterSeconds)"),
    assumed(
        "as soon as a workload holds quota, a replay treats its pending admission checks as ready",
        "status.admissionChecks[].state",
        usual=("Ready", "Retry", "Rejected"),
    ),
    assumed("an admission check changes nothing in the pods", "status.admissionChecks[].podSetUpdates"),
    harmless("Kueue only uses it as a counter", "status.admissionChecks[].retryCount"),
    modelled("status.requeueState.(count|requeueAt)"),
    assumed("Kueue moves no pod of the workload to another node", "status.unhealthyNodes"),
    assumed(
        "Kueue sends no job to another cluster, so all jobs run in this cluster",
        "status.(clusterName|nominatedClusterNames)",
    ),
    harmless(
        "Kueue records past events in it, and does not use them for later decisions",
        "status.(resourceRequests|schedulingStats)",
    ),
)
