"""Kueue's feature gates, as far as they change decisions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from harness.base.errors import OptionError
from harness.base.options import did_you_mean
from harness.models.cluster import GATES, KNOWN_GATES


@final
@dataclass(frozen=True, slots=True)
class Gates:
    """Kueue's feature gates in Python's spelling."""

    admission_fair_sharing: bool
    admission_gated_by: bool
    disable_wait_for_pods_ready: bool
    fair_sharing_preempt_within_nominal: bool
    fair_sharing_prioritize_non_borrowing: bool
    flavor_fungibility_implicit_preference_default: bool
    flavor_fungibility_preserve_scan_progress: bool
    partial_admission: bool
    prioritize_preemptor_workloads: bool
    priority_boost: bool
    priority_sorting_within_cohort: bool
    reclaimable_pods: bool
    recompute_assignment_upon_preemption_targets_overlap: bool
    scheduling_equivalence_hashing: bool
    tas_handle_overlapping_flavors: bool
    tas_profile_mixed: bool
    tas_recompute_assignment_within_scheduling_cycle: bool


def gates_from(settings: Mapping[str, bool]) -> Gates:
    """All gates: those that are set, by Kueue's names, and the defaults of the others.

    Raises:
        OptionError: a gate that is not modelled, or that Kueue does not have.
    """
    for name in settings:
        if name not in GATES:
            what = "is not modelled" if name in KNOWN_GATES else "is none of Kueue's"
            raise OptionError(f"feature gate {name!r} {what}", hint=did_you_mean(name, GATES))
    return Gates(**{_in_python(name): on for name, on in {**GATES, **settings}.items()})


def _in_python(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])|(?<=[A-Z])([A-Z])(?=[a-z])", r"_\1\2", name).lower()
