"""Reads the parts of Kueue's Configuration that affect admissions and preemptions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace

from harness.base.options import did_you_mean
from harness.base.units import MINUTE
from harness.base.values import Value, fixed
from harness.cluster.draft import Draft
from harness.cluster.kinds.kueue_gates import GATES_BY_RELEASE
from harness.cluster.kinds.kueue_requests import Counting, read_counting
from harness.cluster.kinds.preemption_strategies import (
    DEFAULT_STRATEGIES,
    PERMITTED_STRATEGIES,
    PERMITTED_TEXT,
)
from harness.cluster.kinds.wait_for_pods_ready import (
    WaitForPodsReady,
    read_duration,
    read_wait_for_pods_ready,
)
from harness.cluster.model import NEWER, frozen
from harness.cluster.yaml.fields import Fields, shown

GATES = (
    "AdmissionFairSharing", "AdmissionGatedBy", "DisableWaitForPodsReady", "DynamicResourceAllocation",
    "FairSharingPreemptWithinNominal", "FairSharingPrioritizeNonBorrowing", "FlavorFungibility",
    "FlavorFungibilityImplicitPreferenceDefault", "FlavorFungibilityPreserveScanProgress",
    "HierarchicalCohorts", "KueueDRAIntegration", "KueueDRARejectWorkloadsWhenDRADisabled", "LendingLimit",
    "PartialAdmission", "PrioritizePreemptorWorkloads", "PriorityBoost", "PrioritySortingWithinCohort",
    "QuotaCheckStrategy", "ReclaimablePods", "RecomputeAssignmentUponPreemptionTargetsOverlap",
    "SchedulerTimestampPreemptionBuffer", "SchedulingEquivalenceHashing", "TASFailedNodeReplacement",
    "TASFailedNodeReplacementFailFast", "TASHandleOverlappingFlavors", "TASProfileMixed",
    "TASRecomputeAssignmentWithinSchedulingCycle", "TASReplaceNodeDueToNotReadyOverFixedTime",
    "TASReplaceNodeOnNodeTaints", "TASReplaceNodeOnPodTermination", "TopologyAwareScheduling",
)  # fmt: skip
"""The modelled feature gates, including those that exist only in older releases."""


_SAMPLING_INTERVAL = 5 * MINUTE  # the default time between two samples, as in Kueue


@fixed()
class AdmissionFairSharing(Value):
    """Settings of admission fair sharing, which orders the jobs of some ClusterQueues by past usage.

    Attributes:
        half_life: the time, in microseconds, after which past usage counts half. If it is 0, past usage never
            counts.
        sampling_interval: the time between two samples of the usage, in microseconds.
        resource_weights: the weight of one unit of each resource. Resources that aren't listed have the
            weight 1.
    """

    half_life: int
    sampling_interval: int
    resource_weights: Mapping[str, float] = field(default_factory=frozen)


@fixed()
class KueueConfiguration(Value):
    """Kueue's Configuration, with Kueue's defaults.

    Attributes:
        strategies: the preemption strategies of fair sharing, or None if fair sharing is off.
        admission: the settings of admission fair sharing, or None if it is off.
        gates: the modelled feature gates that the Configuration sets.
        counting: the rules by which requests count against quotas.
        other_gates: the unmodelled gates that the Configuration sets, which are not part of a run's identity.
        evicted_last: concerns a workload that was evicted because its pods were not ready in time. If True,
            the time of its eviction determines its position in the queue. If False, its creation time does.
        pods_ready: how Kueue treats workloads whose pods are not ready in time, unless the feature gate
            `DisableWaitForPodsReady` is on. It is None if Kueue does not watch pods.
        pods_ready_given: whether the Configuration sets `pods_ready`. If not, the default that Kueue has
            since 0.19 applies.
    """

    strategies: tuple[str, ...] | None = None
    admission: AdmissionFairSharing | None = field(default=None, metadata=NEWER)
    gates: Mapping[str, bool] = field(default_factory=frozen)
    evicted_last: bool = True
    pods_ready: WaitForPodsReady | None = field(default_factory=WaitForPodsReady, metadata=NEWER)
    pods_ready_given: bool = field(default=False, metadata=NEWER)
    counting: Counting = field(default_factory=Counting, metadata=NEWER)
    other_gates: Mapping[str, bool] = field(default_factory=frozen, compare=False)


def read_kueue_configuration(fields: Fields, draft: Draft) -> None:
    """Read Kueue's Configuration. A second Configuration is a fault."""
    sharing = fields.child("fairSharing")
    strategies: tuple[str, ...] | None = None
    # v1beta1 has a field that enables fair sharing. In v1beta2, fair sharing is enabled if the section is
    # present.
    older = fields.string("apiVersion").endswith("v1beta1")
    if "fairSharing" in fields and sharing.boolean("enable", not older):
        strategies = sharing.texts("preemptionStrategies") or DEFAULT_STRATEGIES
        if strategies not in PERMITTED_STRATEGIES:
            sharing.fault("preemptionStrategies", f"must be {PERMITTED_TEXT}")
            strategies = DEFAULT_STRATEGIES
    admission = None
    if "admissionFairSharing" in fields:
        admission = _admission_fair_sharing(fields.child("admissionFairSharing"))
        if not admission.half_life:
            draft.warnings.add(
                "Configuration",
                "of Kueue",
                "admissionFairSharing.usageHalfLifeTime is 0, which is also the default, so all usage "
                "counts as 0 and does not influence the order of jobs",
            )
    table = fields.child("featureGates")
    gates: dict[str, bool] = {}
    others: dict[str, bool] = {}
    for name in table:
        on = table.boolean(name)
        if name in GATES_BY_RELEASE:
            (gates if name in GATES else others)[name] = on
        else:
            hint = did_you_mean(name, GATES_BY_RELEASE)
            table.fault(name, f"is not a feature gate of Kueue, which refuses unknown gates; {hint}")
    pods_ready, evicted_last = read_wait_for_pods_ready(fields, older=older)
    draft.kueue_configurations.append(
        KueueConfiguration(
            strategies,
            admission,
            frozen(gates),
            evicted_last,
            pods_ready,
            pods_ready_given="waitForPodsReady" in fields,
            counting=read_counting(fields.child("resources")),
            other_gates=frozen(others),
        )
    )
    if len(draft.kueue_configurations) > 1:
        fields.fault("", "is a second Configuration of Kueue; give only one")


def with_gates(
    configuration: KueueConfiguration | None, gates: Mapping[str, bool]
) -> KueueConfiguration | None:
    """Returns a Configuration with the feature gates that the controller's command line sets."""
    if not gates:
        return configuration
    found = configuration or KueueConfiguration()
    modelled = {name: on for name, on in gates.items() if name in GATES}
    others = {name: on for name, on in gates.items() if name in GATES_BY_RELEASE and name not in GATES}
    return replace(
        found, gates=frozen({**found.gates, **modelled}), other_gates=frozen({**found.other_gates, **others})
    )


def _admission_fair_sharing(fields: Fields) -> AdmissionFairSharing:
    """Read the section with Kueue's defaults. A sampling interval of 0 means the default."""
    interval = read_duration(fields, "usageSamplingInterval")
    return AdmissionFairSharing(
        read_duration(fields, "usageHalfLifeTime") or 0,
        interval or _SAMPLING_INTERVAL,
        _resource_weights(fields.child("resourceWeights")),
    )


def _resource_weights(table: Fields) -> Mapping[str, float]:
    weights = {}
    for name in table:
        value = table.raw(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            table.fault(name, f"must be a number, not {shown(value)}")
        elif not 0 <= value < math.inf:
            table.fault(name, f"must be a number >= 0, not {shown(value)}")
        else:
            weights[name] = float(value)
    return frozen(weights)
