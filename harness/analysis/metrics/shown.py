"""Describes the metrics that tables show by default, and the headlines among these metrics."""

from __future__ import annotations

from typing import NamedTuple

SERVED, WAITED, SHARED, DISRUPTED = GOALS = ("served", "waited", "shared", "disrupted")
"""The goals of a policy, which headlines measure."""


class Shown(NamedTuple):
    """A metric that tables show by default.

    Attributes:
        unseen: what the metric does not show, as a clause.
        goal: the goal that the metric measures if it is a headline, or else "". Headlines get verdicts.
        brief: whether the brief table for terminals contains the metric.
        alarm: whether the brief table contains the metric unless it is 0 in every run.
        last: whether the metric comes after the other headlines of its goal.
    """

    metric: str
    unseen: str
    goal: str = ""
    brief: bool = False
    alarm: bool = False
    last: bool = False
