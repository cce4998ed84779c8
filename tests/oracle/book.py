"""Where the oracle writes down what it finds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

from oracle.statistics import Sample, Value, shape_of

Key: TypeAlias = tuple[str, str, str]
"""Metric, scope and resource."""


class Book:
    """Values by metric, scope and resource; nothing is said twice."""

    def __init__(self) -> None:
        self.values: dict[Key, Value] = {}

    def say(
        self,
        metric: str,
        number: Fraction | int | None,
        scope: str = "all",
        resource: str = "",
        *,
        at_least: bool | None = False,
    ) -> None:
        key = metric, scope, resource
        assert key not in self.values, key
        self.values[key] = Value(None if number is None else Fraction(number), at_least)

    def ratio(
        self,
        metric: str,
        part: Fraction | int,
        whole: Fraction | int | None,
        scope: str = "all",
        resource: str = "",
    ) -> None:
        """A part of a whole; null where there is no whole."""
        self.say(metric, Fraction(part) / whole if whole else None, scope, resource)

    def spread(
        self, metric: str, samples: Sequence[Sample], shapes: Iterable[str], scope: str = "all", unit: int = 1
    ) -> None:
        """Some statistics of what jobs bring."""
        for shape in shapes:
            value = shape_of(samples, shape)
            number = None if value.number is None else value.number / unit
            self.say(f"{metric}.{shape}", number, scope, at_least=value.at_least)
