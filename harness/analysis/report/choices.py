"""Choices between two costs, and those that no other beats: the content of a frontier's chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.analysis.comparison.statistics.frontier import undominated


class Axis(NamedTuple):
    """An axis of the chart.

    Attributes:
        title: its title, with the unit.
        shown_as: the format of its numbers, see `axes.written`.
        sign: 1 if less is better, -1 if more is better.
    """

    title: str
    shown_as: str = ""
    sign: int = 1


class Choice(NamedTuple):
    """A point.

    Attributes:
        name: the label beside it.
        x: its place on the horizontal axis.
        y: its place on the vertical axis.
        told: the text under the pointer.
        key: the number of its colour.
    """

    name: str
    x: float
    y: float
    told: str
    key: int


def unbeaten(choices: Sequence[Choice], x: Axis, y: Axis) -> set[int]:
    """The places of the choices that no choice dominates (as good on both axes, and better on one)."""
    return undominated([(x.sign * each.x, y.sign * each.y) for each in choices])
