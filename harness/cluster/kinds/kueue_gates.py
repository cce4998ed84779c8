"""Kueue's feature gates by release, and the rules that changed without a feature gate.

The gates come from pkg/features/kube_features.go in every release since 0.13, and in the newest recorded
commit.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.base.frozen import Frozen
from harness.cluster.kinds.kueue_releases import NEWEST, RELEASES, Release, state_at

GATES_BY_RELEASE: Mapping[str, str] = Frozen(
    {
        "AllAlpha": "13=F",
        "AllBeta": "13=F",
        "AdmissionCheckValidationRules": "",
        "AdmissionFairSharing": "13=F 15=T",
        "AdmissionGatedBy": "17=F 19=T",
        "AssignQueueLabelsForPods": "17=T",
        "CleanupProvisioningRequestsOnEviction": "17.7=T 18=- 18.3=T",
        "ConcurrentAdmission": "18=F",
        "ConfigurableResourceTransformations": "13=T 14=T! 16=-",
        "CustomMetricLabels": "17=F",
        "DRAExtendedResources": "17=F 18=F! 19=-",
        "DeferRayServiceFinalizationForRedisCleanup": "17.7=T 18=- 18.3=T",
        "DisableWaitForPodsReady": "19=F",
        "DynamicResourceAllocation": "14=F 18=F! 19=-",
        "ElasticJobsViaWorkloadSlices": "13=F 18=T",
        "ElasticJobsViaWorkloadSlicesWithTAS": "17=F",
        "ExposeFlavorsInLocalQueue": "13=T 15=-",
        "FailureRecoveryPolicy": "15=F",
        "FairSharingPreemptWithinNominal": "15.6=T 16=- 16.3=T",
        "FairSharingPrioritizeNonBorrowing": "15.5=T 16=- 16.2=T",
        "FastQuotaReleaseInPodIntegration": "17=F",
        "FinishOrphanedWorkloads": "16.6=T 16.8=F 17=- 17.1=T 17.3=F 18=T",
        "FlavorFungibility": "13=T",
        "FlavorFungibilityImplicitPreferenceDefault": "13=F 16=- 16.4=F 17=-",
        "FlavorFungibilityPreserveScanProgress": "18.5=T 19=- 19.1=T",
        "HierarchicalCohorts": "13=T 17=T! 20=+",
        "KeepQuotaForProvReqRetry": "",
        "KueueDRAIntegration": "18=T",
        "KueueDRAIntegrationConsumableCapacity": "19=F",
        "KueueDRAIntegrationExtendedResource": "18=F 19=T",
        "KueueDRAIntegrationPartitionableDevices": "18=F 19=T",
        "KueueDRARejectWorkloadsWhenDRADisabled": "18=T",
        "LWSImmutableGroupSize": "18.5=T 19=- 19.1=T",
        "LendingLimit": "13=T 17=T! 19=+",
        "LocalQueueDefaulting": "13=T 17=T! 19=-",
        "LocalQueueMetrics": "13=F 17=T",
        "ManagedJobsNamespaceSelector": "13=T! 15=-",
        "ManagedJobsNamespaceSelectorAlwaysRespected": "13=F 15=T 19=T!",
        "MetricForWorkloadCreationLatency": "18=T",
        "MetricsForCohorts": "18=T",
        "MultiKueue": "13=T",
        "MultiKueueAdaptersForCustomJobs": "14=F 15=T",
        "MultiKueueAllowInsecureKubeconfigs": "13.8=F 14=- 14.3=F 19=F! 20=-",
        "MultiKueueBatchJobWithManagedBy": "13=F 15=T 17=T! 19=-",
        "MultiKueueClusterProfile": "15=F",
        "MultiKueueIncrementalDispatcherConfig": "19=T",
        "MultiKueueIncrementalDispatcherRespectConfigOrder": "19=T",
        "MultiKueueKubeConfigPathValidation": "19=F 20=T",
        "MultiKueueManagerQuotaAutomation": "18=F",
        "MultiKueueOrchestratedPreemption": "17=F",
        "MultiKueueRedoAdmissionOnEvictionInWorker": "16=T 18=T! 20=-",
        "MultiKueueRemoteSpecSync": "18.5=T 19=- 19.1=T",
        "MultiKueueWaitForWorkloadAdmitted": "14.8=T 15=- 15.3=T 18=T! 20=-",
        "MultiplePreemptions": "",
        "ObjectRetentionPolicies": "13=T 17=T! 20=-",
        "PartialAdmission": "13=T",
        "PodIntegrationValidateGroupOwner": "18.6=T 19=- 19.2=T",
        "PrioritizePreemptorWorkloads": "18.6=F 19=- 19.2=F",
        "PriorityBoost": "17=F",
        "PrioritySortingWithinCohort": "13=T",
        "PropagateBatchJobLabelsToWorkload": "13.10=T 14=- 14.5=T 17=T! 20=-",
        "ProvisioningACC": "13=T 14=T! 15=-",
        "QueueVisibility": "13=F 14=-",
        "QuotaCheckStrategy": "18=F 19=T",
        "ReclaimablePods": "13=+ 13.9=T 14=+ 14.4=T",
        "RecomputeAssignmentUponPreemptionTargetsOverlap": "18.5=F 19=- 19.1=F 20=T",
        "RejectUpdatesToCQWithInvalidOnFlavors": "16.6=F 17=- 17.1=F",
        "RemoveFinalizersWithStrictPatch": "15.4=T 16=- 16.1=T",
        "SanitizePodSets": "13.8=T 14=- 14.3=T 17=T! 19=-",
        "SchedulerLibraryIntegration": "19=F",
        "SchedulerLongRequeueInterval": "15.6=F 16=- 16.3=F 20=-",
        "SchedulerTimestampPreemptionBuffer": "15.6=F 16=- 16.3=F 20=-",
        "SchedulingEquivalenceHashing": "15.6=T 15.7=F 16=- 16.3=T 16.4=F 18=T",
        "ShortWorkloadNames": "17=F",
        "SkipAncestorCheckForDeletedWorkloads": "18.5=T 19=- 19.1=T",
        "SkipFinalizersForPodsSuspendedByParent": "14.8=T 15=- 15.3=T 18=T! 20=-",
        "SkipReassignmentForPodOwnedWorkloads": "17.8=F 18=- 18.4=F 19=T",
        "SparkApplicationIntegration": "17=F",
        "TASAssignmentsEncodingByHostnamePrefix": "19=T",
        "TASBalancedPlacement": "15=F",
        "TASCacheNodeMatchResults": "17.8=T 18=- 18.4=T",
        "TASCacheTopologyTree": "18.6=F 19=- 19.2=F 20=T",
        "TASCachingRemainingResources": "17.8=T 18=- 18.4=T",
        "TASFailedNodeReplacement": "13=F 14=T",
        "TASFailedNodeReplacementFailFast": "13=F 14=T",
        "TASHandleOverlappingFlavors": "16.9=F 17=- 17.4=F 18=T",
        "TASMultiLayerTopology": "17=F 19=T",
        "TASProfileLeastFreeCapacity": "13=F 17=-",
        "TASProfileMixed": "13=F 15=T",
        "TASProfileMostFreeCapacity": "",
        "TASRecomputeAssignmentWithinSchedulingCycle": "17.6=T 18=- 18.2=T",
        "TASReplaceNodeDueToNotReadyOverFixedTime": "17.8=T 18=- 18.4=T 19=F",
        "TASReplaceNodeOnNodeTaints": "15.5=F 16=- 16.2=F 17=T",
        "TASReplaceNodeOnPodTermination": "13=F 14=T",
        "TASRespectNodeAffinityPreferred": "18=F",
        "TASValidateWorkloadSliceSize": "18.5=T 19=- 19.1=T",
        "TLSOptions": "16=T 20=T!",
        "TopologyAwareScheduling": "13=F 14=T",
        "UnadmittedWorkloadsExplicitStatus": "18.5=F",
        "UnadmittedWorkloadsObservability": "18.5=F 20=T",
        "ValidateRayAndSparkJobUpdates": "18.6=T 19=- 19.2=T",
        "VectorizedResourceRequests": "17.8=T 18=- 18.4=T",
        "VisibilityOnDemand": "13=T",
        "WorkloadIdentifierAnnotations": "17.4=F 18=T",
        "WorkloadPriorityClassDefaulting": "18=F 20=T",
        "WorkloadRequestUseMergePatch": "14=F",
        "WorkloadResourceRequestsSummary": "",
        "WorkloadValidateResourcesAreNonNegative": "18.5=T 19=- 19.1=T",
        "WorkloadValidationForPodSetMetadata": "18.5=T 19=- 19.1=T",
    }
)
"""Maps a gate to its history (see `kueue_releases.state_at`), or "" if the gate is older than all known
releases.

`T` and `F` mean that the gate is on or off by default, and `T!` and `F!` mean that it is locked. `-` means
that the gate doesn't exist yet, and that its behaviour is off. `+` means that the gate no longer exists, and
that its behaviour is always on.
"""

RULES_BY_RELEASE: Mapping[str, str] = Frozen(
    {
        "borrows_at_each_level": "15.8=+ 16=- 16.5=+",
        "checks_device_claims": "15=+",
        "cohorts_end_searches": "18=+",
        "counts_unlendable": "17=+",
        "exact_transformations": "17.7=+ 18=- 18.3=+",
        "keeps_transformed_inputs": "18.5=+ 19=- 19.1=+",
        "no_candidates_last": "18.5=+ 19=- 19.1=+",
        "own_label_keys": "17.6=+ 18=- 18.2=+",
        "parks_classes_for_quota_alone": "18=+",
        "preference_is_named": "16.2=+",
        "preference_is_read": "15=+",
        "recovery_times_out": "16=+",
        "skips_admin_access": "20=+",
        "spares_first_backoff": "15=+",
        "sticky_preemptors": "13.6=+ 14=- 14.1=+",
        "takes_device_constraints": "18.2=+",
        "takes_device_selectors": "18=+",
        "waits_for_pods": "19=+",
        "zero_needs_no_quota": "16=+",
    }
)
"""Maps a rule of the newest Kueue to its history, where `+` marks the first release that has the rule."""

_NEEDED: Mapping[str, tuple[str, ...]] = Frozen(
    {
        "ElasticJobsViaWorkloadSlicesWithTAS": ("ElasticJobsViaWorkloadSlices", "TopologyAwareScheduling"),
        "FlavorFungibilityPreserveScanProgress": ("FlavorFungibility",),
        "KueueDRAIntegrationConsumableCapacity": ("KueueDRAIntegration",),
        "KueueDRAIntegrationExtendedResource": ("KueueDRAIntegration",),
        "KueueDRAIntegrationPartitionableDevices": ("KueueDRAIntegration",),
        "TASBalancedPlacement": ("TopologyAwareScheduling",),
        "TASFailedNodeReplacement": ("TopologyAwareScheduling",),
        "TASFailedNodeReplacementFailFast": ("TopologyAwareScheduling", "TASFailedNodeReplacement"),
        "TASHandleOverlappingFlavors": ("TopologyAwareScheduling",),
        "TASMultiLayerTopology": ("TopologyAwareScheduling",),
        "TASProfileMixed": ("TopologyAwareScheduling",),
        "TASRecomputeAssignmentWithinSchedulingCycle": ("TopologyAwareScheduling",),
        "TASReplaceNodeDueToNotReadyOverFixedTime": ("TopologyAwareScheduling", "TASFailedNodeReplacement"),
        "TASReplaceNodeOnNodeTaints": ("TopologyAwareScheduling",),
        "TASReplaceNodeOnPodTermination": ("TopologyAwareScheduling", "TASFailedNodeReplacement"),
        "TASRespectNodeAffinityPreferred": ("TopologyAwareScheduling",),
        "UnadmittedWorkloadsExplicitStatus": ("UnadmittedWorkloadsObservability",),
    }
)
"""Maps a gate to the gates that it requires in the newest recorded commit.

Older releases don't check these requirements.
"""


def is_on(gate: str, release: Release) -> bool:
    """Returns True if a gate, or the behaviour that replaced it, is on by default in a release."""
    return state_at(GATES_BY_RELEASE[gate], release)[0] in "T+"


def why_refused(settings: Mapping[str, bool], release: Release) -> str:
    """Returns the reason why a release doesn't start with these gate settings, or "" if it starts."""
    for gate, on in settings.items():
        state = state_at(GATES_BY_RELEASE[gate], release)
        if state in "-+":
            return f"Kueue {release} has no feature gate {gate} and would not start with it{_who_has(gate)}"
        if state.endswith("!") and on is not is_on(gate, release):
            locked = "on" if state[0] == "T" else "off"
            return (
                f"feature gate {gate} is locked {locked} in Kueue {release}, which does not start with "
                "another value"
            )
    off: dict[str, None] = {}
    on_in_vain = []
    for gate, needed in _NEEDED.items() if release == NEWEST else ():
        lacking = [each for each in needed if not settings.get(each, is_on(each, release))]
        if lacking and settings.get(gate, is_on(gate, release)):
            on_in_vain.append(gate)
            off.update(dict.fromkeys(lacking))
    if off:
        gates = f"feature gate{'s' * (len(on_in_vain) > 1)} {', '.join(on_in_vain)}"
        return f"Kueue {release} does not start with {gates} on and {', '.join(off)} off"
    return ""


def _who_has(gate: str) -> str:
    having = [each for each in RELEASES if state_at(GATES_BY_RELEASE[gate], each) not in "-+"]
    if not having:
        return ""
    if len(having) == 1:
        return f"; {having[0]} has it"
    return f"; some releases from {having[0]} to {having[-1]} have it"
