"""The rules that Kueue changed without a feature gate, release by release.

Each is chosen once, when a policy is made. What releases do instead is said where the rule is.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import final

from harness.models.cluster import RULES_BY_RELEASE, Release, state_at


@final
@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """Which rules of the newest Kueue hold in a release.

    Attributes:
        checks_device_claims: claims of devices that Kueue cannot count keep a workload out; before, they
            counted as nothing (PR 7226).
        cohorts_end_searches: a search of fair sharing in a queue without cohort ends; before, the scheduler
            crashed when all candidates together did not suffice (PR 10891).
        counts_unlendable: in the order of fair targets, to take what nobody could lend is to borrow
            (PR 9738).
        exact_transformations: `resources.transformations` multiply fractions of units (PR 12953).
        keeps_transformed_inputs: what a transformation retains counts as it is requested (PR 13986).
        no_candidates_last: a flavor without anybody to preempt comes after all others that could ever do,
            whatever a queue prefers (PR 13616).
        own_label_keys: node selectors count as far as the flavor looked at has their keys; before, as far as
            some flavor of its resource group has them (PR 12449).
        parks_classes_for_quota_alone: with `SchedulingEquivalenceHashing`, equivalent workloads become
            inadmissible together where quota is the reason; before, whatever the reason.
        preference_is_named: the two values of `flavorFungibility.preference` mean what they say; before, each
            meant the other (PR 9464).
        preference_is_read: there is `flavorFungibility.preference` (PR 7316).
        skips_admin_access: devices that are claimed with `adminAccess` need no quota; before, such a claim
            kept a workload out (PR 13642).
        sticky_preemptors: a head that waits for its preemptions is not overtaken (PR 7157).
        takes_device_constraints: claims may have `constraints` and `config` (PR 12451).
        takes_device_selectors: claims may select devices by expressions (PR 9742).
        waits_for_pods: `waitForPodsReady` is on where the Configuration says nothing of it.
        zero_needs_no_quota: a request of 0 of a resource that a queue does not cover does not fail
            (PR 8241).
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
    """The rules of a release."""
    names = (each.name for each in fields(ReleaseRules))
    return ReleaseRules(**{name: state_at(RULES_BY_RELEASE[name], release) == "+" for name in names})
