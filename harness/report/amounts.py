"""Amounts as charts and sentences show them: in cores, GiB, or as they are counted."""

from __future__ import annotations

from typing import NamedTuple

_UNITS = {
    "cpu": ("cores", "core-hours", 1000),
    "memory": ("GiB", "GiB-hours", 2**30),
    "ephemeral-storage": ("GiB of disk", "GiB-hours of disk", 2**30),
}


class Unit(NamedTuple):
    """What a resource is shown in.

    Attributes:
        name: such as `cores`.
        hours: what it comes to over time, such as `core-hours`.
        size: how many of the integers that are computed with it is.
    """

    name: str
    hours: str
    size: int


def unit_of(resource: str) -> Unit:
    """The unit of a resource."""
    return Unit(*_UNITS.get(resource, (resource, f"{resource}-hours", 1)))


def number(value: float) -> str:
    """A figure at a glance: three digits, or the whole part."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"


def percent(value: float) -> str:
    """A ratio for reading."""
    return f"{100 * value:.1f} %"
