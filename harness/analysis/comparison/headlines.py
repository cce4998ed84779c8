"""Lists the metrics that tables show, and the headline metrics among them.

A comparison corrects the p values of all headline metrics together. Each metrics module declares which of its
metrics appear in tables. Allocated time is left out, because it also grows when jobs repeat lost work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from harness.analysis.metrics import (
    disruption,
    fairness,
    finish_time,
    idle,
    job_counts,
    starvation,
    users,
    utilization,
    waiting,
)
from harness.analysis.metrics.shown import GOALS
from harness.plugins.measurement import Measurement

_SHOWN = (
    *utilization.SHOWN, *idle.SHOWN, *waiting.SHOWN, *starvation.SHOWN, *job_counts.SHOWN, *fairness.SHOWN,
    *users.SHOWN, *finish_time.SHOWN, *disruption.SHOWN,
)  # fmt: skip

SHOWN = tuple(each.metric for each in _SHOWN)
"""The metrics that a table shows by default, in this order; hours are shown only if capacities differ.

Metrics that are measured only on request are shown for runs that have them.
"""

GROUPS: Mapping[str, Sequence[str]] = {
    goal: [each.metric for each in sorted(_SHOWN, key=lambda each: each.last) if each.goal == goal]
    for goal in GOALS
}
"""Maps each goal of a policy to the headline metrics that measure it."""

HEADLINES = tuple(chain.from_iterable(GROUPS.values()))
"""The family of metrics that get verdicts, no matter which of them a table shows."""

BRIEF = tuple(each.metric for each in _SHOWN if each.brief)
"""The metrics that terminals show first, for the resource that the baseline uses most.

Nearly redundant metrics are left out, such as hours besides shares, and further indices of fairness.
"""

ALARMS = tuple(each.metric for each in _SHOWN if each.alarm)
"""The metrics that the brief table adds unless they are 0 in every run."""

UNSEEN: Mapping[str, str] = {each.metric: each.unseen for each in _SHOWN}
"""Maps each metric in tables to its blind spot, as a clause that completes "does not show"."""


def unseen(metrics: Iterable[str]) -> list[str]:
    """Returns a sentence for each metric in `UNSEEN` that says what the metric does not show."""
    return [
        f"{metric} does not show {UNSEEN[metric]}" for metric in dict.fromkeys(metrics) if metric in UNSEEN
    ]


def comes_first(measured: Measurement, values: Sequence[float | None], *, fullest: str) -> bool:
    """Returns True if the brief table, which terminals show by default, contains a metric.

    `values` has one value for each run. `fullest` is the resource that the baseline uses most.
    """
    if measured.metric in ALARMS:
        return any(values)
    return measured.metric in BRIEF and measured.resource in ("", fullest)
