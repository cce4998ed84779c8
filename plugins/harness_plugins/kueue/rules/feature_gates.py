"""The feature gates of a Kueue release that affect decisions, and the rules that have no gate.

A policy looks up its rules once, when it is created. The code that applies a rule describes what other
releases do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import final

from harness.base.errors import OptionError
from harness.base.options import did_you_mean
from harness.models.cluster import (
    GATES,
    GATES_BY_RELEASE,
    NEWEST,
    RULES_BY_RELEASE,
    Release,
    is_on,
    state_at,
    why_refused,
)


@final
@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """The rules of the newest Kueue release, and whether each of them applies in a given release.

    Attributes:
        borrows_at_each_level: with `FairSharingPrioritizeNonBorrowing`, the ClusterQueues and Cohorts below a
            cohort are compared by whether they would borrow from it. In earlier releases, workloads were
            compared by whether they borrow, at every cohort (PR 10149).
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
        recovery_times_out: lost pods must be ready again within `timeout` if the Configuration does not
            mention `recoveryTimeout`, and 0s is no time limit. In earlier releases, they have no time limit
            if it is not mentioned, and with 0s the workload is evicted at once (PR 8493).
        skips_admin_access: devices that are claimed with `adminAccess` need no quota. In earlier releases,
            such a claim prevented the admission of a workload (PR 13642).
        spares_first_backoff: `backoffMaxSeconds` does not limit the first backoff, and 0 is no maximum. In
            earlier releases, it limited every backoff (PR 7147).
        sticky_preemptors: a head that waits for its preemptions stays first in its queue (PR 7157).
        takes_device_constraints: claims can have `constraints` and `config` (PR 12451).
        takes_device_selectors: claims can select devices with expressions (PR 9742).
        waits_for_pods: `waitForPodsReady` is on if the Configuration does not mention it.
        zero_needs_no_quota: a request for 0 of a resource that the queue does not cover does not fail (PR
            8241).
    """

    borrows_at_each_level: bool
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
    recovery_times_out: bool
    skips_admin_access: bool
    spares_first_backoff: bool
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


@final
@dataclass(frozen=True, slots=True)
class Gates:
    """Kueue's feature gates, with their names in snake case.

    Attributes:
        rules: the rules of the release that have no gate.
        always_reclaims: whether a queue that can reclaim from any workload always gets its quota back. False
            if previews are on.
    """

    release: Release
    rules: ReleaseRules
    admission_fair_sharing: bool
    admission_gated_by: bool
    disable_wait_for_pods_ready: bool
    dynamic_resource_allocation: bool
    fair_sharing_preempt_within_nominal: bool
    fair_sharing_prioritize_non_borrowing: bool
    flavor_fungibility: bool
    flavor_fungibility_implicit_preference_default: bool
    flavor_fungibility_preserve_scan_progress: bool
    hierarchical_cohorts: bool
    kueue_dra_integration: bool
    kueue_dra_reject_workloads_when_dra_disabled: bool
    lending_limit: bool
    partial_admission: bool
    prioritize_preemptor_workloads: bool
    priority_boost: bool
    priority_sorting_within_cohort: bool
    quota_check_strategy: bool
    reclaimable_pods: bool
    recompute_assignment_upon_preemption_targets_overlap: bool
    scheduler_timestamp_preemption_buffer: bool
    scheduling_equivalence_hashing: bool
    tas_failed_node_replacement: bool
    tas_failed_node_replacement_fail_fast: bool
    tas_handle_overlapping_flavors: bool
    tas_profile_mixed: bool
    tas_recompute_assignment_within_scheduling_cycle: bool
    tas_replace_node_due_to_not_ready_over_fixed_time: bool
    tas_replace_node_on_node_taints: bool
    tas_replace_node_on_pod_termination: bool
    topology_aware_scheduling: bool
    always_reclaims: bool = field(default=True)


def gates_from(
    settings: Mapping[str, bool], release: Release = NEWEST, others: Mapping[str, bool] | None = None
) -> Gates:
    """Returns the gates of a release, with defaults for gates that are not set.

    Args:
        settings: the gates that are set, by their Kueue names.
        release: the Kueue release.
        others: gates that are set but have no effect in the model. If the release refuses such a gate, this
            is an error, too.

    Raises:
        OptionError: a gate is not modelled, or this release of Kueue refuses to start with the gate.
    """
    check_names(settings)
    refused = why_refused({**settings, **(others or {})}, release)
    if refused:
        hint = "change featureGates, or name the release that runs, as in --set kueueVersion=v0.17"
        raise OptionError(refused, hint=hint)
    on = {name: is_on(name, release) for name in GATES} | dict(settings)
    return Gates(release, rules_of(release), **{_in_python(name): value for name, value in on.items()})


def check_names(settings: Mapping[str, bool]) -> None:
    """Checks that all gates are modelled in at least one release.

    Raises:
        OptionError: a gate is not modelled, or no Kueue release has it.
    """
    for name in settings:
        if name not in GATES:
            what = "is not modelled" if name in GATES_BY_RELEASE else "exists in no release of Kueue"
            raise OptionError(f"feature gate {name!r} {what}", hint=did_you_mean(name, GATES))


@cache
def _in_python(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])|(?<=[A-Z])([A-Z])(?=[a-z])", r"_\1\2", name).lower()
