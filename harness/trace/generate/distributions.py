"""Defines the distributions of durations, sizes and priorities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, pi
from typing import Protocol, TypeAlias

import polars as pl

Draw: TypeAlias = Callable[[str], pl.Series]
"""A function that returns a column of numbers in (0, 1) for a purpose. Numbers for different purposes are
independent.
"""

_Z90 = 1.2815515655446004  # the 90th percentile of the normal distribution


class Distribution(Protocol):
    """A distribution of integers, which are microseconds, quantities or counts."""

    def values(self, draw: Draw) -> pl.Series:
        """Returns random values as int64, one for each random number that `draw` returns."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values, with probabilities in proportion to weights."""

    options: Sequence[int]
    weights: Sequence[float]

    def values(self, draw: Draw) -> pl.Series:
        """See `Distribution`."""
        picked = pick(self.weights, draw("choice"))
        return pl.Series(self.options, dtype=pl.Int64).gather(picked)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every integer from `least` to `most`, with equal probability."""

    least: int
    most: int

    def values(self, draw: Draw) -> pl.Series:
        """See `Distribution`."""
        spread = (draw("uniform") * (self.most - self.least + 1)).floor().cast(pl.Int64)
        return (spread + self.least).clip(self.least, self.most)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """A log-normal distribution, defined by its median and 90th percentile, which users can estimate."""

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
    """A Weibull distribution.

    With shape 1, the distribution is exponential and `scale` is its mean. A smaller shape gives it a long
    tail.
    """

    scale: int
    shape: float = 1.0

    def values(self, draw: Draw) -> pl.Series:
        """See `Distribution`."""
        return whole((-draw("weibull").log()).pow(1.0 / self.shape) * float(self.scale))


@dataclass(frozen=True, slots=True)
class Pareto:
    """A Pareto distribution. Values are at least `least`, and P(value > x) decreases as x ** -shape."""

    least: int
    shape: float

    def values(self, draw: Draw) -> pl.Series:
        """See `Distribution`."""
        return whole(draw("pareto").pow(-1.0 / self.shape) * float(self.least))


@dataclass(frozen=True, slots=True)
class Clipped:
    """A distribution whose values are limited to bounds. A value beyond a bound becomes the bound."""

    within: Distribution
    least: int
    most: int

    def values(self, draw: Draw) -> pl.Series:
        """See `Distribution`."""
        return self.within.values(draw).clip(self.least, self.most)


def pick(weights: Sequence[float], numbers: pl.Series) -> pl.Series:
    """Returns a random index into `weights` for each of `numbers`, which are uniform in (0, 1).

    The probability of an index is proportional to its weight. Indices are counted from 0.
    """
    bounds = pl.Series(weights, dtype=pl.Float64).cum_sum()
    places = bounds.search_sorted(numbers * float(bounds[-1]), side="right")
    return places.clip(0, len(weights) - 1)


def whole(values: pl.Series) -> pl.Series:
    """Rounds values to integers that fit into 62 bits."""
    return values.clip(0.0, 2.0**62).round(0).cast(pl.Int64)
