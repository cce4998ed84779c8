"""The metrics of a comparison: those that are judged together, and those that a table shows.

Allocated time is not among them, because repeating lost work increases it as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.plugins.measurement import Measurement

GROUPS: Mapping[str, Sequence[str]] = {
    "served": ("goodput.of_allocated", "goodput.of_demand"),
    "waited": (
        "wait.first_start.p50",
        "wait.first_start.p95",
        "delay.mean",
        "slowdown.bounded.mean",
        "starvation",
    ),
    "shared": ("fairness.share_deviation",),
    "disrupted": ("disruption.lost", "disruption.preemptions_per_1000_jobs"),
}
"""Maps each goal of a policy to the headline metrics that measure it."""

HEADLINES = tuple(chain.from_iterable(GROUPS.values()))
"""The family of metrics that get verdicts, no matter which of them a table shows."""

SHOWN = (
    "utilization.capacity.hours",
    "utilization.useful.hours",
    "utilization.useful",
    "goodput.of_allocated",
    "goodput.of_capacity",
    "goodput.of_demand",
    "idle.no_demand",
    "idle.reserved",
    "idle.quota",
    "idle.fragmented",
    "idle.policy",
    "wait.first_start.p50",
    "wait.first_start.p95",
    "wait.never_started",
    "delay.mean",
    "slowdown.bounded.mean",
    "starvation",
    "jobs.unfinished",
    "jobs.rejected",
    "jobs.at_start",
    "fairness.share_deviation",
    "fairness.share_deviation_daily",
    "fairness.jain_share",
    "fairness.jain_share_daily",
    "fairness.gini_share_daily",
    "fairness.jain_users",
    "fairness.gini_users",
    "fairness.sharing_violations",
    "disruption.preemptions",
    "disruption.preemptions_per_1000_jobs",
    "disruption.failures_per_1000_jobs",
    "disruption.lost",
    "disruption.lost_before",
)
"""The metrics that a table shows by default, in this order. Hours are shown only if capacities differ.

Metrics that are measured only on request are shown if the runs have them.
"""

BRIEF = (
    "goodput.of_demand",
    "idle.no_demand",
    "idle.reserved",
    "idle.quota",
    "idle.fragmented",
    "idle.policy",
    "wait.first_start.p95",
    "delay.mean",
    "fairness.share_deviation",
    "fairness.sharing_violations",
    "disruption.preemptions",
    "disruption.lost",
)
"""The metrics that terminals show first, for the resource that the baseline uses most.

Metrics that say nearly the same are left out: hours if there are shares, and additional indices of fairness.
"""

ALARMS = (
    "wait.never_started",
    "jobs.unfinished",
    "jobs.rejected",
    "disruption.failures_per_1000_jobs",
)
"""The metrics that the brief table also shows, unless they are 0 in every run."""


def comes_first(measured: Measurement, values: Sequence[float | None], *, fullest: str) -> bool:
    """Returns True if the brief table shows a metric.

    Args:
        measured: the metric.
        values: the metric's value in each run.
        fullest: the resource that the baseline uses most.
    """
    if measured.metric in ALARMS:
        return any(values)
    return measured.metric in BRIEF and measured.resource in ("", fullest)
