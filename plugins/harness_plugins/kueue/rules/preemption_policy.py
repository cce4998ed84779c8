"""The workloads that the preemption policies of a ClusterQueue allow it to preempt.

Upstream: `SatisfiesPreemptionPolicy` in pkg/scheduler/preemption/common/preemption_policy.go.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.base.units import MINUTE
from harness_plugins.kueue.state.workload import Workload

EVERY_PRIORITY = 1 << 62
"""A number that is larger than any priority."""


BUFFERED = "LowerOrNewerEqualPriority, by more than 5m"
"""`LowerOrNewerEqualPriority` when the gate SchedulerTimestampPreemptionBuffer is on. See `allowed_by`."""

_BUFFER = 5 * MINUTE


class Allowed(NamedTuple):
    """The workloads that can be preempted, which are those with a priority below `below`.

    Workloads with the priority `below - 1` must also be newer than `newer_than`, unless `newer_than` is None.
    """

    below: int
    newer_than: int | None = None


ANY = Allowed(EVERY_PRIORITY)
"""Allows the preemption of all workloads."""


def allowed_by(policy: str, preemptor: Workload) -> Allowed | None:
    """Returns the workloads that a policy of the preemptor's queue lets it preempt, or None for `Never`.

    Args:
        policy: `withinClusterQueue` for workloads of the same queue, `reclaimWithinCohort` for those of other
            queues.
        preemptor: the incoming workload.
    """
    match policy:
        case "Any":
            return ANY
        case "LowerPriority":
            return Allowed(preemptor.priority)
        case "LowerOrNewerEqualPriority":
            return Allowed(preemptor.priority + 1, preemptor.timestamp)
        case _ if policy == BUFFERED:
            return Allowed(preemptor.priority + 1, preemptor.timestamp + _BUFFER)
    return None
