"""The feature gates of a Kueue release that affect decisions, and the rules that have no gate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import final

from harness.base.errors import OptionError
from harness.base.options import did_you_mean
from harness.models.cluster import GATES, GATES_BY_RELEASE, NEWEST, Release, is_on, why_refused
from harness_plugins.kueue.rules.release_rules import ReleaseRules, rules_of


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
        raise OptionError(refused, hint="remove it, or name the release that runs: --set kueueVersion=v0.17")
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
