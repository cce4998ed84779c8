"""The rules that Kueue changed between releases without a feature gate.

A policy looks up its rules once, when it is created. The code that applies a rule describes what other
releases do.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import final

from harness.models.cluster import RULES_BY_RELEASE, Release, state_at


@final
@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """The rules of the newest Kueue release, and whether each of them applies in a given release.

    Attributes:
        checks_device_claims: device claims that Kueue cannot count prevent the admission of a workload. In
            earlier releases, such claims had no effect (PR 7226).
        cohorts_end_searches: a fair-sharing search in a queue without a cohort ends after the last candidate.
            In earlier releases, the scheduler crashed if all candidates together were not enough (PR 10891).
        counts_unlendable: when fair sharing orders targets, a ClusterQueue or Cohort counts as borrowing even
            if nothing could lend the quota that it uses (PR 9738).
        exact_transformations: `resources.transformations` also multiply fractions of units (PR 12953).
        keeps_transformed_inputs: inputs that a transformation retains count as requested (PR 13986).
        no_candidates_last: flavors without any workload to preempt come after all other usable flavors,
            whatever the queue prefers (PR 13616).
        own_label_keys: node selectors are considered if the flavor in question has their keys. In earlier
            releases, they were considered if any flavor of its resource group had them (PR 12449).
        parks_classes_for_quota_alone: with `SchedulingEquivalenceHashing`, equivalent workloads become
            inadmissible together only if quota is the reason. In earlier releases, any reason was enough.
        preference_is_named: each value of `flavorFungibility.preference` has the meaning that its name
            suggests. In earlier releases, the two values were swapped (PR 9464).
        preference_is_read: `flavorFungibility.preference` exists (PR 7316).
        skips_admin_access: devices that are claimed with `adminAccess` need no quota. In earlier releases,
            such a claim prevented the admission of a workload (PR 13642).
        sticky_preemptors: a head that waits for its preemptions stays first in its queue (PR 7157).
        takes_device_constraints: claims can have `constraints` and `config` (PR 12451).
        takes_device_selectors: claims can select devices with expressions (PR 9742).
        waits_for_pods: `waitForPodsReady` is on if the Configuration does not mention it.
        zero_needs_no_quota: a request for 0 of a resource that the queue does not cover does not fail (PR
            8241).
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
