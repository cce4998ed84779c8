"""The rules that Kueue changed without a feature gate, release by release.

A policy chooses its rules once, when it is made. The code of each rule describes what other releases do.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import final

from harness.models.cluster import RULES_BY_RELEASE, Release, state_at


@final
@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """The rules of the newest Kueue that apply in a release.

    Attributes:
        checks_device_claims: claims of devices that Kueue cannot count keep a workload out. In earlier
            releases they had no effect (PR 7226).
        cohorts_end_searches: a search of fair sharing in a queue without cohort ends. In earlier releases the
            scheduler crashed if all candidates together did not suffice (PR 10891).
        counts_unlendable: in the order of fair targets, a node that uses quota that no node could lend counts
            as borrowing (PR 9738).
        exact_transformations: `resources.transformations` multiply fractions of units (PR 12953).
        keeps_transformed_inputs: inputs that a transformation retains count as requested (PR 13986).
        no_candidates_last: a flavor without any workload to preempt comes after all other flavors that may
            serve, whatever a queue prefers (PR 13616).
        own_label_keys: node selectors count if the considered flavor has their keys. In earlier releases they
            counted if any flavor of its resource group had them (PR 12449).
        parks_classes_for_quota_alone: with `SchedulingEquivalenceHashing`, equivalent workloads become
            inadmissible together if quota is the reason. In earlier releases any reason sufficed.
        preference_is_named: the two values of `flavorFungibility.preference` have their own meanings. In
            earlier releases each had the meaning of the other (PR 9464).
        preference_is_read: `flavorFungibility.preference` exists (PR 7316).
        skips_admin_access: devices that are claimed with `adminAccess` need no quota. In earlier releases
            such a claim kept a workload out (PR 13642).
        sticky_preemptors: a head that waits for its preemptions is not overtaken (PR 7157).
        takes_device_constraints: claims may have `constraints` and `config` (PR 12451).
        takes_device_selectors: claims may select devices by expressions (PR 9742).
        waits_for_pods: `waitForPodsReady` is on if the Configuration does not mention it.
        zero_needs_no_quota: a request of 0 of a resource that a queue does not cover does not fail (PR 8241).
    """

    checks_device_claims: bool
    cohorts_end_searches: bool
    counts_unlendable: bool
    exact_transformations: bool
    keeps_transformed_inputs: bool
    no_candidates_last: bool
    own_label_keys: bool
    parks_classes_for_quota_alone: bool
    preference_is_named: bool
    preference_is_read: bool
    skips_admin_access: bool
    sticky_preemptors: bool
    takes_device_constraints: bool
    takes_device_selectors: bool
    waits_for_pods: bool
    zero_needs_no_quota: bool


@cache
def rules_of(release: Release) -> ReleaseRules:
    """Returns the rules of a release."""
    names = (each.name for each in fields(ReleaseRules))
    return ReleaseRules(**{name: state_at(RULES_BY_RELEASE[name], release) == "+" for name in names})
