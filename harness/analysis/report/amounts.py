"""Amounts as charts and sentences show them: in cores, GiB, or as they are counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.analysis.comparison.figures import PARTS
from harness.base.units import DAY, HOUR, MINUTE, SECOND, Unit, unit_of


def shown_in(resource: str) -> Unit:
    """What sentences and charts tell amounts of a resource in: each counted one has its own name."""
    unit = unit_of(resource)
    if resource in ("cpu", "memory"):
        return unit
    if resource == "ephemeral-storage":
        return unit._replace(name="GiB of disk", hours="GiB·h of disk")
    return unit._replace(name=resource, hours=f"{resource}·h")


def number(value: float) -> str:
    """A figure at a glance: three digits, or the whole part."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"


def percent(value: float) -> str:
    """A ratio for reading."""
    return f"{100 * value:.1f} %"


class Scale(NamedTuple):
    """How an axis shows values of a metric.

    Attributes:
        unit: for its title; empty where numbers say it.
        size: how many of the metric's units one on the axis is.
        shown_as: the format of its numbers; empty for short ones such as 15k.
    """

    unit: str
    size: float
    shown_as: str = ""

    def of(self, values: Iterable[float]) -> list[float]:
        """Values as the axis has them."""
        return [value / self.size for value in values]


def scale_of(unit: str, values: Sequence[float]) -> Scale:
    """How values in a metric's unit are shown: times in what fits the longest, parts in per cent."""
    if unit == "s":
        most = max(map(abs, values), default=0.0)
        for name, size in (("days", DAY), ("hours", HOUR), ("minutes", MINUTE)):
            if most >= 2 * size // SECOND:
                return Scale(name, size // SECOND)
        return Scale("seconds", 1)
    if unit in PARTS:
        return Scale("", 1, ".1~%")
    return Scale("" if unit == "count" else unit, 1)
