"""What each factor does by itself: how far a value moves a metric from what its first value gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import fsum
from typing import Any, NamedTuple

from harness.experiments.objectives import Estimate, Judged, Setting, estimate
from harness.experiments.spec import SEED
from harness.metrics.measurement import Measurement


class Effect(NamedTuple):
    """The effect of one value of a factor on a metric.

    Attributes:
        factor: what varies.
        value: what it is set to.
        against: its first value.
        difference: the mean over all settings that differ in nothing else, with its interval between seeds.
        base: the mean at the first value.
        least: the smallest difference among the settings.
        most: the largest one.
        settings: how many pairs of settings there are.
    """

    factor: str
    value: Any
    against: Any
    difference: Estimate
    base: float
    least: float
    most: float
    settings: int


def effects(judged: Judged, measured: Measurement) -> list[Effect]:
    """The main effects of all factors on a metric."""
    values = judged.values(measured)
    return [
        effect
        for factor, levels in judged.experiment.factors.items()
        if factor != SEED and len(levels) > 1
        for effect in _of_factor(judged, factor, values)
    ]


def _of_factor(judged: Judged, factor: str, values: Mapping[int, Mapping[int, float]]) -> Iterator[Effect]:
    """The effects of the values of one factor."""
    levels: dict[Any, dict[tuple[Any, ...], Setting]] = {}
    for setting in judged.settings:
        others = tuple(value for name, value in setting.point.items() if name != factor)
        levels.setdefault(setting.point[factor], {})[others] = setting
    present = [level for level in levels if level is not None]
    for level in present[1:]:
        pairs = [
            (values[levels[present[0]][others].item], values[setting.item])
            for others, setting in levels[level].items()
            if others in levels[present[0]]
        ]
        # Every seed has one mean over all pairs, as what it draws is the same in all of them.
        of_seed: dict[int, list[float]] = {}
        of_pair, bases = [], []
        for base, other in pairs:
            both = [seed for seed in base if seed in other]
            for seed in both:
                of_seed.setdefault(seed, []).append(other[seed] - base[seed])
            if both:
                of_pair.append(fsum(other[seed] - base[seed] for seed in both) / len(both))
                bases.append(fsum(base[seed] for seed in both) / len(both))
        if of_pair:
            means = [fsum(each) / len(each) for each in of_seed.values()]
            base_mean = fsum(bases) / len(bases)
            yield Effect(
                *(factor, level, present[0], estimate(means), base_mean),
                *(min(of_pair), max(of_pair), len(of_pair)),
            )
