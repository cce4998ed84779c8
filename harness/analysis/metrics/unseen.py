"""The blind spots of metrics. A table shows them next to its values, as one clause for each metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

UNSEEN: Mapping[str, str] = {
    "utilization.capacity.hours": "whether any job requested the capacity",
    "utilization.useful.hours": "how much was requested",
    "utilization.useful": "how much was requested",
    "goodput.of_allocated": "idle capacity",
    "goodput.of_capacity": "how much was requested",
    "goodput.of_demand": "how long jobs waited",
    "idle.no_demand": "jobs that wait while nothing is idle",
    "idle.reserved": "whether the reserved resources are worth the wait",
    "idle.quota": "whether the quota is kept free for other jobs, and jobs whose plugin gives no cause",
    "idle.fragmented": "which jobs could move to make these jobs fit",
    "idle.policy": "why the policy lets jobs wait, and jobs that start within the minute",
    "wait.first_start.p50": "the half of the jobs that wait longer, and waits after the first start",
    "wait.first_start.p95": "the last twentieth of the jobs, and waits after the first start",
    "wait.never_started": "how long these jobs have waited",
    "delay.mean": "whether many jobs are slightly late or a few jobs are very late",
    "slowdown.bounded.mean": "long jobs, because short ones dominate it",
    "starvation": "how late these jobs are",
    "jobs.unfinished": "how much of their work is done",
    "jobs.rejected": "why they were refused",
    "jobs.at_start": "how much of their work was done",
    "fairness.share_deviation": "whether holders that are behind catch up later",
    "fairness.share_deviation_daily": "differences that even out within a day",
    "fairness.jain_share": "how far all are below their ideal shares",
    "fairness.jain_share_daily": "how far all are below their ideal shares, and what evens out within a day",
    "fairness.gini_share_daily": "which queues have more, and differences that even out within a day",
    "fairness.jain_users": "how much a user requested",
    "fairness.gini_users": "how much a user requested, and who has more",
    "fairness.sharing_violations": "how much sharing costs a quota, and what other quotas gain",
    "disruption.preemptions": "what each preemption cost",
    "disruption.preemptions_per_1000_jobs": "what each preemption cost, and how long jobs are",
    "disruption.failures_per_1000_jobs": "what each failure cost, and how long jobs are",
    "disruption.lost": "how many jobs lost work",
    "disruption.lost_before": "how many jobs lost work",
}
"""Maps each metric to its blind spot."""


def unseen(metrics: Iterable[str]) -> list[str]:
    """Returns a sentence on the blind spot of each metric that has an entry in `UNSEEN`."""
    return [
        f"{metric} does not see {UNSEEN[metric]}" for metric in dict.fromkeys(metrics) if metric in UNSEEN
    ]
