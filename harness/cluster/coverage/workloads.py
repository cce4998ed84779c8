"""Coverage of Kueue's Workload."""

from __future__ import annotations

from harness.cluster.coverage.common import OWNERS, metadata
from harness.cluster.coverage.pods import TEMPLATE
from harness.cluster.coverage.verdicts import Coverage, Row, assumed, below, harmless, modelled

_TEMPLATE = "spec.podSets[].template"
_ASSIGNMENT = "status.admission.podSetAssignments[]"
_TOPOLOGY = "spec.podSets[].topologyRequest"
_LAYERS = "podsetSliceRequiredTopologyConstraints[]"
_GATES = "the workload may preempt other workloads at any time, because harness treats its gates as open"

_METADATA: list[Row] = [
    *modelled(
        *(
            f"metadata.annotations{{kueue.x-k8s.io/{name}}}"
            for name in ("priority-boost", "admission-gated-by")
        )
    ),
    *assumed(
        "harness treats the workload as an ordinary one that holds quota for all of its pods",
        *(
            f"metadata.{part}{{kueue.x-k8s.io/{name}}}"
            for part in ("annotations", "labels")
            for name in ("elastic-job", "workload-slice-name", "workload-slice-replacement-for")
        ),
    ),
]

WORKLOAD = Coverage(
    metadata(namespaced=True, counts=("creationTimestamp", "ownerReferences", "uid")),
    OWNERS,
    modelled("metadata.labels{kueue.x-k8s.io/job-uid}"),
    _METADATA,
    modelled("spec.queueName", "spec.active", "spec.priority"),
    modelled("spec.priorityClassName", "spec.priorityClassRef.name"),
    harmless(
        "the number in spec.priority is used instead",
        "spec.priorityClassSource",
        "spec.priorityClassRef.group",
        "spec.priorityClassRef.kind",
    ),
    modelled(*(f"spec.podSets[].{name}" for name in ("name", "count", "minCount"))),
    below(f"{_TEMPLATE}.spec", TEMPLATE),
    modelled(f"{_TEMPLATE}.metadata.labels{{}}"),
    harmless("Kueue has copied the parts of it that count", f"{_TEMPLATE}.metadata"),
    modelled(
        *(
            f"{_TOPOLOGY}.{name}"
            for name in (
                "required",
                "preferred",
                "unconstrained",
                "podSetGroupName",
                "podSetSliceRequiredTopology",
                "podSetSliceSize",
                f"{_LAYERS}.topology",
                f"{_LAYERS}.size",
            )
        )
    ),
    harmless(
        "it numbers the pods, but does not influence where they run",
        *(f"{_TOPOLOGY}.{name}" for name in ("podIndexLabel", "subGroupIndexLabel", "subGroupCount")),
    ),
    modelled("spec.maximumExecutionTimeSeconds"),
    modelled("status.accumulatedPastExecutionTimeSeconds", "status.accumulatedPastExexcutionTimeSeconds"),
    assumed(_GATES, "spec.preemptionGates", "status.preemptionGates"),
    modelled("status.admission.clusterQueue"),
    modelled(*(f"{_ASSIGNMENT}.{name}" for name in ("name", "count", "flavors{}", "resourceUsage{}"))),
    modelled(
        *(
            f"{_ASSIGNMENT}.topologyAssignment.{name}"
            for name in (
                "levels",
                "domains[].values",
                "domains[].count",
                "slices[].domainCount",
                "slices[].podCounts.universal",
                "slices[].podCounts.individual",
                "slices[].valuesPerLevel[].universal",
                *(f"slices[].valuesPerLevel[].individual.{part}" for part in ("prefix", "suffix", "roots")),
            )
        )
    ),
    assumed(
        "the pods of the workload take no capacity of a topology, and may run on any node",
        f"{_ASSIGNMENT}.delayedTopologyRequest",
    ),
    modelled(*(f"status.conditions[].{name}" for name in ("type", "status", "reason", "lastTransitionTime"))),
    harmless(
        "it is meant for people", "status.conditions[].message", "status.conditions[].observedGeneration"
    ),
    modelled("status.reclaimablePods[].name", "status.reclaimablePods[].count"),
    modelled(
        *(
            f"status.admissionChecks[].{name}"
            for name in ("name", "message", "lastTransitionTime", "requeueAfterSeconds")
        )
    ),
    assumed(
        "a replay treats the pending admission checks of a workload that holds quota as ready",
        "status.admissionChecks[].state",
        usual=("Ready", "Retry", "Rejected"),
    ),
    assumed("an admission check changes nothing in the pods", "status.admissionChecks[].podSetUpdates"),
    harmless("Kueue only uses it as a counter", "status.admissionChecks[].retryCount"),
    modelled("status.requeueState.count", "status.requeueState.requeueAt"),
    assumed("Kueue moves no pod of the workload to another node", "status.unhealthyNodes"),
    assumed(
        "Kueue sends no job to another cluster, so all jobs run in this cluster",
        "status.clusterName",
        "status.nominatedClusterNames",
    ),
    harmless(
        "Kueue records the past in it, which does not affect later decisions",
        "status.resourceRequests",
        "status.schedulingStats",
    ),
)
