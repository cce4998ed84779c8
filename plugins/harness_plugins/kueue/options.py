"""Parses the options of both Kueue policies, such as feature gates, delays, strategies and weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeVar

from harness.base.errors import InputError, OptionError
from harness.base.options import boolean
from harness.base.units import parse_duration, parse_quantity
from harness.models.cluster import PERMITTED_STRATEGIES, Release, release_named
from harness_plugins.kueue.previews.minimum_run_time import Guarantees
from harness_plugins.kueue.previews.preemption_rate import Limit
from harness_plugins.kueue.rules.feature_gates import check_names

BY_NAME, BY_NAMESPACE = "name", "namespace/name"
"""How Kueue identifies candidates' LocalQueues: by name in the recorded version, later also by namespace."""

MIN_RUN_TIME, PREEMPTION_RATE = "previewMinRunTime", "previewPreemptionRate"
"""The options for previews. No release of Kueue contains the rules that these options enable."""

_T = TypeVar("_T")


def parse_gates(text: str) -> dict[str, bool]:
    """Parses feature gates as on Kueue's command line: `PriorityBoost=true,PartialAdmission=false`.

    Raises:
        OptionError: the text has a different format, or a gate is not modelled.
    """
    settings = _parse_pairs(text, boolean, "PriorityBoost=true")
    check_names(settings)
    return settings


def parse_release(text: str) -> Release | None:
    """Parses a Kueue release. For an empty text, the result is None.

    Raises:
        OptionError: the release is unknown.
    """
    return release_named(text) if text else None


def parse_check_delays(text: str) -> Mapping[str, int] | int:
    """Parses admission check delays in microseconds: `2m` for all, or `prov=2m,other=30s` by name.

    Raises:
        OptionError: the text has a different format.
        InputError: a value is not a duration.
    """
    if "=" in text:
        return _parse_pairs(text, parse_duration, "2m, or prov=2m,other=30s")
    return parse_duration(text)


def parse_guarantees(text: str) -> Guarantees:
    """Parses minimum run times: `30m` for all, `team-a=1h` by ClusterQueue, `priority:1000=2h` by priority.

    Raises:
        OptionError: the text has a different format.
        InputError: a value is not a duration.
    """
    everybody, named = _parse_with_rest(text, parse_duration, "30m, team-a=1h, or priority:1000=2h")
    queues: dict[str, int] = {}
    priorities: dict[int, int] = {}
    for name, time in named.items():
        kind, colon, number = name.partition(":")
        if not colon:
            queues[name] = time
        elif kind == "priority" and re.fullmatch(r"-?\d+", number):
            priorities[int(number)] = time
        else:
            raise OptionError(f"{name!r} is neither a ClusterQueue nor a priority such as priority:1000")
    return Guarantees(everybody or 0, queues, priorities)


def parse_rate(text: str) -> tuple[Limit | None, Mapping[str, Limit]]:
    """Parses preemption limits: `3/1h` for every ClusterQueue, `team-a=1/10m` for one of them.

    Raises:
        OptionError: the text has a different format.
        InputError: a value is not a duration.
    """
    return _parse_with_rest(text, _parse_limit, "3/1h, or team-a=1/10m")


def _parse_limit(text: str) -> Limit:
    most, slash, window = text.partition("/")
    if not (slash and re.fullmatch(r"\d+", most)):
        raise OptionError(f"{text!r} is not a number per period, such as 3/1h")
    limit = Limit(int(most), parse_duration(window))
    if not limit.window:
        raise OptionError(f"the period of {text!r} must be more than 0")
    return limit


def parse_weights(text: str) -> dict[str, float]:
    """Parses fair-sharing weights by ClusterQueue or Cohort: `team-a=2,team-b=500m`.

    Raises:
        OptionError: the text has a different format, or a weight is negative or too small.
    """
    weights = _parse_pairs(text, parse_quantity, "team-a=2,team-b=500m")
    for name, weight in weights.items():
        if weight < 0 or 0 < weight <= Fraction(1, 10**9):
            raise OptionError(f"the weight of {name} must be either 0 or greater than 1n")
    return {name: float(weight) for name, weight in weights.items()}


def parse_strategies(text: str) -> tuple[str, ...]:
    """Parses one of the lists of preemption strategies that Kueue permits.

    Raises:
        OptionError: the text is not one of these lists.
    """
    strategies = tuple(part.strip() for part in text.split(",") if part.strip())
    if strategies and strategies not in PERMITTED_STRATEGIES:
        raise OptionError(
            f"Kueue does not permit the preemption strategies {text!r}",
            hint="; ".join(",".join(each) for each in PERMITTED_STRATEGIES),
        )
    return strategies


def checked(parse: Callable[[str], object]) -> Callable[[str], str]:
    """Returns an option type that keeps the value as a string, after `parse` has accepted it."""

    def check(text: str) -> str:
        parse(text)
        return text

    return check


def _parse_with_rest(text: str, parse: Callable[[str], _T], example: str) -> tuple[_T | None, dict[str, _T]]:
    """Returns the value without a name, or None if there is no such value, and the values with names."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    plain = [part for part in parts if "=" not in part]
    if len(plain) > 1:
        raise OptionError(f"{text!r} has two values without a name", hint=f"for example {example}")
    pairs = _parse_pairs(",".join(part for part in parts if "=" in part), parse, example)
    return (parse(plain[0]) if plain else None), pairs


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
