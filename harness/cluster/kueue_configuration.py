"""Reads Kueue's own Configuration, as far as it changes which workload is admitted or preempted when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.cluster.draft import Draft
from harness.cluster.fields import Fields
from harness.cluster.model import frozen

TO_FINAL_SHARE = "LessThanOrEqualToFinalShare"
TO_INITIAL_SHARE = "LessThanInitialShare"
STRATEGIES = (TO_FINAL_SHARE, TO_INITIAL_SHARE)
"""Fair sharing's preemption strategies; by default both, in this order."""

PERMITTED_STRATEGIES = ((TO_FINAL_SHARE,), (TO_INITIAL_SHARE,), STRATEGIES)
"""The lists of strategies that Kueue takes."""

GATES: Mapping[str, bool] = frozen(
    {
        "FairSharingPreemptWithinNominal": True,
        "FairSharingPrioritizeNonBorrowing": True,
        "FlavorFungibilityImplicitPreferenceDefault": False,
        "FlavorFungibilityPreserveScanProgress": True,
        "PartialAdmission": True,
        "PrioritizePreemptorWorkloads": False,
        "PriorityBoost": False,
        "PrioritySortingWithinCohort": True,
        "ReclaimablePods": True,
        "RecomputeAssignmentUponPreemptionTargetsOverlap": True,
        "SchedulingEquivalenceHashing": True,
    }
)
"""The feature gates that are modelled, with their defaults."""


@dataclass(frozen=True, slots=True)
class KueueConfiguration:
    """Kueue's Configuration.

    Attributes:
        strategies: fair sharing's preemption strategies; None where fair sharing is off.
        gates: the modelled feature gates that it sets.
        evicted_last: whether a workload that was evicted because its pods were not ready in time queues by
            the time of its eviction.
    """

    strategies: tuple[str, ...] | None = None
    gates: Mapping[str, bool] = field(default_factory=frozen)
    evicted_last: bool = True


def read_kueue_configuration(fields: Fields, draft: Draft) -> None:
    """Kueue's Configuration; there can be one."""
    sharing = fields.child("fairSharing")
    strategies: tuple[str, ...] | None = None
    # v1beta1 has a switch; in v1beta2 the section itself is the switch.
    if "fairSharing" in fields and sharing.boolean(
        "enable", not fields.string("apiVersion").endswith("v1beta1")
    ):
        strategies = sharing.texts("preemptionStrategies") or STRATEGIES
        if strategies not in PERMITTED_STRATEGIES:
            sharing.fault("preemptionStrategies", f"must be {TO_FINAL_SHARE}, {TO_INITIAL_SHARE}, or both so")
            strategies = STRATEGIES
    table = fields.child("featureGates")
    gates = {}
    for name in table:
        on = table.boolean(name)
        if name in GATES:
            gates[name] = on
        else:
            draft.warnings.add("Configuration", "of Kueue", f"feature gate {name} is not modelled")
    ready = fields.child("waitForPodsReady")
    timestamp = ready.child("requeuingStrategy").choice("timestamp", ("Eviction", "Creation"), "Eviction")
    if "waitForPodsReady" in fields and ready.boolean("enable", True):
        draft.warnings.add(
            "Configuration",
            "of Kueue",
            "waitForPodsReady is not modelled: no workload is evicted because its pods are not ready in time",
        )
    for name, effect in _UNMODELLED.items():
        if name in fields:
            draft.warnings.add("Configuration", "of Kueue", f"{name} is not modelled: {effect}")
    for part in (sharing, table, ready, fields):
        part.ignore_rest()
    ready.child("requeuingStrategy").ignore_rest()
    draft.kueue_configurations.append(KueueConfiguration(strategies, frozen(gates), timestamp == "Eviction"))
    if len(draft.kueue_configurations) > 1:
        fields.fault("", "is a second Configuration of Kueue; give one")


_UNMODELLED: Mapping[str, str] = frozen(
    {
        "admissionFairSharing": "jobs are not ordered by the past usage of their LocalQueue",
        "multiKueue": "jobs run in this cluster",
        "resources": "requests count as they are written",
    }
)
"""Sections that change decisions; all others do not."""
