"""Which metrics a comparison is about: those that are judged together, and those that a table shows.

What is allocated is none of them: work that is thrown away and done again allocates more.
"""

from __future__ import annotations

HEADLINES = (
    "goodput.of_allocated",
    "goodput.of_demand",
    "wait.first_start.p50",
    "wait.first_start.p95",
    "delay.mean",
    "slowdown.bounded.mean",
    "fairness.share_deviation",
    "disruption.lost",
    "disruption.preemptions_per_1000_jobs",
    "starvation",
)
"""The family of metrics that verdicts are about, whatever a table shows."""

SHOWN = (
    "utilization.capacity.hours",
    "utilization.useful.hours",
    "goodput.of_allocated",
    "goodput.of_capacity",
    "goodput.of_demand",
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
    "fairness.sharing_violations",
    "disruption.preemptions",
    "disruption.preemptions_per_1000_jobs",
    "disruption.lost",
    "disruption.lost_before",
)
"""What a table shows unless others are asked for, in this order; hours only of differing capacities.

What is measured on request is shown of runs that have it.
"""

BRIEF = (
    "utilization.capacity.hours",
    "goodput.of_capacity",
    "wait.first_start.p95",
    "delay.mean",
    "fairness.share_deviation",
    "fairness.sharing_violations",
    "disruption.preemptions",
    "disruption.lost",
)
"""Those of them that terminals show first, of the resource that the baseline uses most of."""

ALARMS = ("wait.never_started", "jobs.unfinished", "jobs.rejected")
"""What is among them where it is not 0 in every run."""
