"""Defines the choices in a frontier chart, and finds the choices that no other choice beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.analysis.comparison.statistics.frontier import undominated


class Axis(NamedTuple):
    """An axis of the chart.

    Attributes:
        shown_as: the format of the axis's numbers; see `axes.written`.
        sign: 1 if less is better, -1 if more is better.
    """

    title: str
    shown_as: str = ""
    sign: int = 1


class Choice(NamedTuple):
    """A point of the chart.

    Attributes:
        told: the text of the tooltip.
        key: the number of the point's colour.
    """

    name: str
    x: float
    y: float
    told: str
    key: int


def unbeaten(choices: Sequence[Choice], x: Axis, y: Axis) -> set[int]:
    """Returns the indexes of the choices that no other choice dominates.

    A choice dominates another choice if it is at least as good on both axes and better on at least one.
    """
    return undominated([(x.sign * each.x, y.sign * each.y) for each in choices])
