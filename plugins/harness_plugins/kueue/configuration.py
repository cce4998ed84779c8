"""Kueue's own settings as far as they change decisions: fair sharing's strategies and feature gates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import final

from harness.errors import OptionError
from harness.options import did_you_mean


@final
@dataclass(frozen=True, slots=True)
class Gates:
    """Feature gates, under Kueue's names in Python's spelling, with the defaults of the modelled version."""

    fair_sharing_preempt_within_nominal: bool = True
    fair_sharing_prioritize_non_borrowing: bool = True
    flavor_fungibility: bool = True
    flavor_fungibility_implicit_preference_default: bool = False
    flavor_fungibility_preserve_scan_progress: bool = True
    partial_admission: bool = True
    prioritize_preemptor_workloads: bool = False
    priority_boost: bool = False
    priority_sorting_within_cohort: bool = True
    recompute_assignment_upon_preemption_targets_overlap: bool = True
    reclaimable_pods: bool = True
    scheduling_equivalence_hashing: bool = True


_SPELLING = {"".join(word.title() for word in field.name.split("_")): field.name for field in fields(Gates)}


def gates_from(settings: Mapping[str, bool]) -> Gates:
    """The gates with some of them set, by Kueue's names.

    Raises:
        OptionError: a gate that changes nothing here, or does not exist.
    """
    for name in settings:
        if name not in _SPELLING:
            raise OptionError(f"feature gate {name!r} is not modelled", hint=did_you_mean(name, _SPELLING))
    return Gates(**{_SPELLING[name]: on for name, on in settings.items()})


def parse_gates(text: str) -> Mapping[str, bool]:
    """Gates as Kueue's command line takes them: `PriorityBoost=true,PartialAdmission=false`.

    Raises:
        OptionError: not of this form.
    """
    settings: dict[str, bool] = {}
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"\s*(\w+)\s*=\s*(true|false)\s*", part, re.IGNORECASE | re.ASCII)
        if match is None:
            raise OptionError(
                f"feature gates {text!r} are not understood", hint="for example PriorityBoost=true"
            )
        settings[match[1]] = match[2].lower() == "true"
    return settings
