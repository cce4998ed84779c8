"""How durations, sizes and priorities are distributed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, pi
from typing import Protocol, TypeAlias

import polars as pl

Draw: TypeAlias = Callable[[str], pl.Series]
"""Answers a column of numbers in (0, 1) for a purpose; another purpose gives independent ones."""

_Z90 = 1.2815515655446004  # the 90th percentile of the normal distribution


class Distribution(Protocol):
    """What values come from: whole numbers, of microseconds, of amounts or of things."""

    def values(self, draw: Draw) -> pl.Series:
        """One value for each number that `draw` answers, int64."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some values, each as often as its weight says."""

    options: Sequence[int]
    weights: Sequence[float]

    def values(self, draw: Draw) -> pl.Series:
        """See `Distribution`."""
        picked = pick(self.weights, draw("choice"))
        return pl.Series(self.options, dtype=pl.Int64).gather(picked)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every whole number from `least` to `most` equally often."""

    least: int
    most: int

    def values(self, draw: Draw) -> pl.Series:
        """See `Distribution`."""
        spread = (draw("uniform") * (self.most - self.least + 1)).floor().cast(pl.Int64)
        return (spread + self.least).clip(self.least, self.most)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """The logarithm is normal; said by the median and the 90th percentile, which people know."""

    median: int
    p90: int

    def values(self, draw: Draw) -> pl.Series:
        """See `Distribution`."""
        radius, angle = draw("radius"), draw("angle")
        normal = (radius.log() * -2.0).sqrt() * (angle * (2.0 * pi)).cos()
        sigma = log(self.p90 / self.median) / _Z90
        return whole((normal * sigma).exp() * float(self.median))


@dataclass(frozen=True, slots=True)
class Weibull:
    """Of a shape below 1 with a long tail; of shape 1 it is exponential, with `scale` as its mean."""

    scale: int
    shape: float = 1.0

    def values(self, draw: Draw) -> pl.Series:
        """See `Distribution`."""
        return whole((-draw("weibull").log()).pow(1.0 / self.shape) * float(self.scale))


@dataclass(frozen=True, slots=True)
class Pareto:
    """At least `least`; the share of values above x falls with x to the power of `-shape`."""

    least: int
    shape: float

    def values(self, draw: Draw) -> pl.Series:
        """See `Distribution`."""
        return whole(draw("pareto").pow(-1.0 / self.shape) * float(self.least))


@dataclass(frozen=True, slots=True)
class Clipped:
    """Another distribution within bounds; what is beyond is the bound."""

    within: Distribution
    least: int
    most: int

    def values(self, draw: Draw) -> pl.Series:
        """See `Distribution`."""
        return self.within.values(draw).clip(self.least, self.most)


def pick(weights: Sequence[float], numbers: pl.Series) -> pl.Series:
    """Which of some things each number in (0, 1) stands for, from 0."""
    bounds = pl.Series(weights, dtype=pl.Float64).cum_sum()
    places = bounds.search_sorted(numbers * float(bounds[-1]), side="right")
    return places.clip(0, len(weights) - 1)


def whole(values: pl.Series) -> pl.Series:
    """The nearest whole numbers that fit 62 bits."""
    return values.clip(0.0, 2.0**62).round(0).cast(pl.Int64)
