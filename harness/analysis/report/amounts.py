"""Formats amounts for charts and sentences: in cores, in GiB, or as counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.analysis.comparison.figures import PARTS
from harness.base.units import DAY, HOUR, MINUTE, SECOND, Unit, unit_of


def shown_in(resource: str) -> Unit:
    """Returns the unit in which sentences and charts show amounts of a resource.

    The unit of a counted resource, such as a device, is the name of the resource.
    """
    unit = unit_of(resource)
    if resource in ("cpu", "memory"):
        return unit
    if resource == "ephemeral-storage":
        return unit._replace(name="GiB of disk", hours="GiB·h of disk")
    return unit._replace(name=resource, hours=f"{resource}·h")


def number(value: float) -> str:
    """Formats a figure with three digits, or as an integer if it is whole or at least 100."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"


def percent(value: float) -> str:
    """Formats a ratio as a percentage."""
    return f"{100 * value:.1f} %"


class Scale(NamedTuple):
    """The scale of an axis for the values of a metric.

    Attributes:
        unit: the unit in the axis title; empty if the numbers already show the unit.
        size: the number of the metric's units in one unit of the axis.
        shown_as: the format of the axis's numbers; empty for short numbers such as 15k.
    """

    unit: str
    size: float
    shown_as: str = ""

    def of(self, values: Iterable[float]) -> list[float]:
        """Converts values into units of the axis."""
        return [value / self.size for value in values]


def scale_of(unit: str, values: Sequence[float]) -> Scale:
    """Chooses the scale for values in a metric's unit.

    Times are in a unit that suits the longest time, and fractions are in per cent.
    """
    if unit == "s":
        most = max(map(abs, values), default=0.0)
        for name, size in (("days", DAY), ("hours", HOUR), ("minutes", MINUTE)):
            if most >= 2 * size // SECOND:
                return Scale(name, size // SECOND)
        return Scale("seconds", 1)
    if unit in PARTS:
        return Scale("", 1, ".1~%")
    return Scale("" if unit == "count" else unit, 1)
