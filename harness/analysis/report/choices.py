"""Choices between two costs, and which of them no other beats: what a chart of a frontier shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.analysis.comparison.statistics.frontier import undominated


class Axis(NamedTuple):
    """What an axis shows.

    Attributes:
        title: with its unit.
        shown_as: how its numbers are written, as `axes.written` has it.
        sign: 1 where less is better, -1 where more is.
    """

    title: str
    shown_as: str = ""
    sign: int = 1


class Choice(NamedTuple):
    """A point.

    Attributes:
        name: what stands beside it.
        x: its place.
        y: its place.
        told: what is shown under the pointer.
        key: the number of its colour.
    """

    name: str
    x: float
    y: float
    told: str
    key: int


def unbeaten(choices: Sequence[Choice], x: Axis, y: Axis) -> set[int]:
    """The places of the choices that no other is as good as in both, and better than in one."""
    return undominated([(x.sign * each.x, y.sign * each.y) for each in choices])
