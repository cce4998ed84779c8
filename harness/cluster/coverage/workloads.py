"""States how a replay treats the fields of Kueue's Workload."""

from __future__ import annotations

from harness.cluster.coverage.common import OWNERS, metadata
from harness.cluster.coverage.pods import TEMPLATE
from harness.cluster.coverage.verdicts import Coverage, Row, assumed, below, harmless, modelled

_TEMPLATE = "spec.podSets[].template"
_ASSIGNMENT = "status.admission.podSetAssignments[]"
_TOPOLOGY = "spec.podSets[].topologyRequest"
_SLICES = "(elastic-job|workload-slice-name|workload-slice-replacement-for)"
_GATES = "the workload may preempt other workloads at any time, because harness treats its gates as open"

_METADATA: list[Row] = [
    *modelled("metadata.annotations{kueue.x-k8s.io/(priority-boost|admission-gated-by)}"),
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
