"""Computes main effects: how a metric changes between a factor's first value and each other value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

from harness.analysis.comparison.missing import Lack
from harness.plugins.measurement import Measurement
from harness.studies.experiments.objectives import (
    Estimate,
    Judged,
    OverSeeds,
    Setting,
    estimate,
    plain_mean,
    value_text,
)
from harness.studies.experiments.specification import SEED

_PAIRS = "pairs of items"


class Effect(NamedTuple):
    """The effect of one value of a factor on a metric.

    Attributes:
        against: the first value of the factor.
        difference: the mean over all pairs of settings that differ only in this factor, with its interval
            over seeds.
        base: the mean at the first value, without an interval.
        least: the smallest difference among the settings.
        most: the largest difference.
        settings: the number of pairs in which both settings have a value.
        lack: the number of pairs of items with the same seed in which at least one item has no value.
    """

    factor: str
    value: Any
    against: Any
    difference: Estimate
    base: Estimate
    least: float
    most: float
    settings: int
    lack: Lack


def effects(judged: Judged, measured: Measurement) -> list[Effect]:
    """Returns the main effects of all factors on a metric."""
    values = judged.values(measured)
    return [
        effect
        for factor, levels in judged.experiment.factors.items()
        if factor != SEED and len(levels) > 1
        for effect in _of_factor(judged, factor, values)
    ]


def unpaired(judged: Judged) -> str:
    """Returns a sentence about factors and values whose effect is unknown; "" if there are none.

    The effect is unknown if no two settings differ only in this factor.
    """
    names: list[str] = []
    for factor in judged.experiment.factors:
        pairs = _paired(judged, factor) if factor != SEED else {}
        lonely = [level for level, some in pairs.items() if not some]
        every = len(lonely) == len(pairs)
        names += [factor] if lonely and every else [f"{factor}={value_text(level)}" for level in lonely]
    if not names:
        return ""
    what = "no setting has the factor's first value and otherwise the same values"
    return f"the effect of {', '.join(names)} is unknown: {what}"


def _of_factor(judged: Judged, factor: str, values: Mapping[int, OverSeeds]) -> Iterator[Effect]:
    for level, pairs in _paired(judged, factor).items():
        found = _difference([(values[first.item], values[other.item]) for first, other in pairs])
        if found is not None:
            yield Effect(factor, level, pairs[0][0].point[factor], *found)


def _paired(judged: Judged, factor: str) -> dict[Any, list[tuple[Setting, Setting]]]:
    """Maps each value of a factor to pairs of settings that differ only in it; one has the first value."""
    levels: dict[Any, dict[tuple[Any, ...], Setting]] = {}
    for setting in judged.settings:
        others = tuple(value for name, value in setting.point.items() if name != factor)
        levels.setdefault(setting.point[factor], {})[others] = setting
    # If points are drawn at random, the first item may have another value.
    order = {value_text(value): at for at, value in enumerate(judged.experiment.factors[factor])}
    present = sorted(
        (level for level in levels if level is not None), key=lambda level: order[value_text(level)]
    )
    return {
        level: [
            (levels[present[0]][others], setting)
            for others, setting in levels[level].items()
            if others in levels[present[0]]
        ]
        for level in present[1:]
    }


def _difference(
    pairs: Sequence[tuple[OverSeeds, OverSeeds]],
) -> tuple[Estimate, Estimate, float, float, int, Lack] | None:
    """Returns the figures of an effect, or None if no pair of settings has both values."""
    # The mean over all pairs is computed for each seed, because all pairs share a seed's draw.
    of_seed: dict[int, list[float]] = {}
    of_pair, bases = [], []
    absent = items = 0
    least, positive = False, True
    for base, other in pairs:
        there = []
        for seed in (seed for seed in base.values if seed in other.values):
            before, after = base.values[seed], other.values[seed]
            items += 1
            if before is None or after is None:
                absent += 1
            else:
                of_seed.setdefault(seed, []).append(after - before)
                there.append((before, after))
                positive = positive and before >= 0 and after >= 0
        if there:
            of_pair.append(fsum(after - before for before, after in there) / len(there))
            bases.append(fsum(before for before, _ in there) / len(there))
            least = least or base.at_least
    if not of_pair:
        return None
    lack = Lack(absent, items, _PAIRS)
    means = [fsum(each) / len(each) for each in of_seed.values()]
    difference, base_mean = estimate(means)._replace(partly=lack.partly), plain_mean(bases, at_least=least)
    if positive and difference.low is not None:  # A positive value can't decrease by more than itself.
        difference = difference._replace(low=max(difference.low, min(difference.value, -base_mean.value)))
    return difference, base_mean, min(of_pair), max(of_pair), len(of_pair), lack
