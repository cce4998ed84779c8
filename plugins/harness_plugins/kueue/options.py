"""How the options of both policies are written: feature gates, delays of checks, strategies, weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeVar

from harness.base.errors import InputError, OptionError
from harness.base.options import boolean
from harness.base.units import parse_duration, parse_quantity
from harness.models.cluster import PERMITTED_STRATEGIES, Release, release_named
from harness_plugins.kueue.rules.feature_gates import check_names

BY_NAME, BY_NAMESPACE = "name", "namespace/name"
"""What tells LocalQueues apart among candidates for preemption, at this commit of Kueue and later on."""

_T = TypeVar("_T")


def parse_gates(text: str) -> dict[str, bool]:
    """Gates as Kueue's command line takes them: `PriorityBoost=true,PartialAdmission=false`.

    Raises:
        OptionError: not of this form, or a gate that is not modelled.
    """
    settings = _parse_pairs(text, boolean, "PriorityBoost=true")
    check_names(settings)
    return settings


def parse_release(text: str) -> Release | None:
    """A release of Kueue; None where none is named.

    Raises:
        OptionError: no release that is known.
    """
    return release_named(text) if text else None


def parse_check_delays(text: str) -> Mapping[str, int] | int:
    """How long admission checks take: `2m` for each, or `prov=2m,other=30s` for some; microseconds.

    Raises:
        OptionError: not of this form.
        InputError: not a duration.
    """
    if "=" in text:
        return _parse_pairs(text, parse_duration, "2m, or prov=2m,other=30s")
    return parse_duration(text)


def parse_weights(text: str) -> dict[str, float]:
    """Fair-sharing weights by ClusterQueue or Cohort: `team-a=2,team-b=500m`.

    Raises:
        OptionError: not of this form, or a weight below zero.
    """
    weights = _parse_pairs(text, parse_quantity, "team-a=2,team-b=500m")
    for name, weight in weights.items():
        if weight < 0 or 0 < weight <= Fraction(1, 10**9):
            raise OptionError(f"the weight of {name} must be 0, or more than 1n")
    return {name: float(weight) for name, weight in weights.items()}


def parse_strategies(text: str) -> tuple[str, ...]:
    """One of the lists of preemption strategies that Kueue permits.

    Raises:
        OptionError: not one of them.
    """
    strategies = tuple(part.strip() for part in text.split(",") if part.strip())
    if strategies and strategies not in PERMITTED_STRATEGIES:
        raise OptionError(
            f"preemption strategies {text!r} are not permitted",
            hint="; ".join(",".join(each) for each in PERMITTED_STRATEGIES),
        )
    return strategies


def checked(parse: Callable[[str], object]) -> Callable[[str], str]:
    """The type of an option that stays text, after making sure that `parse` understands it."""

    def check(text: str) -> str:
        parse(text)
        return text

    return check


def _parse_pairs(text: str, parse: Callable[[str], _T], example: str) -> dict[str, _T]:
    found: dict[str, _T] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals) or name in found:
            raise OptionError(f"{text!r} is not understood", hint=f"for example {example}")
        try:
            found[name] = parse(value)
        except InputError as error:
            raise OptionError(f"{part!r} is not understood: {error}") from error
    return found
