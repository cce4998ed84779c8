"""Defines how a module of metrics says which of its metrics tables show, and which of them are headlines."""

from __future__ import annotations

from typing import NamedTuple

SERVED, WAITED, SHARED, DISRUPTED = GOALS = ("served", "waited", "shared", "disrupted")
"""The goals of a policy, which headlines measure."""


class Shown(NamedTuple):
    """A metric that tables show by default.

    Attributes:
        metric: the metric's name.
        unseen: what the metric does not see, as a clause to read together with its values.
        goal: the goal that the metric measures if it is a headline, which gets verdicts; otherwise "".
        brief: whether terminals show the metric first.
        alarm: whether terminals also show it first unless it is 0 in every run.
        last: whether it comes after the other headlines of its goal.
    """

    metric: str
    unseen: str
    goal: str = ""
    brief: bool = False
    alarm: bool = False
    last: bool = False
