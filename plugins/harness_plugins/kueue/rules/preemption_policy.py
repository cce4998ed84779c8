"""The workloads that the preemption policies of a ClusterQueue allow it to preempt.

Upstream: `SatisfiesPreemptionPolicy` in pkg/scheduler/preemption/common/preemption_policy.go. For
`borrowWithinCohort`: `IsBorrowingWithinCohortAllowed` and `IsBorrowingWithinCohortForbidden` in
pkg/scheduler/preemption/classical (KEP 1337). Borrowing limits are elsewhere, in
`harness.models.quota.QuotaTree.available`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from harness.base.units import MINUTE
from harness.models.cluster import ClusterQueue
from harness_plugins.kueue.state.workload import Workload

EVERY_PRIORITY: Final = 1 << 62
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


ANY: Final = Allowed(EVERY_PRIORITY)
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


def may_borrow(spec: ClusterQueue) -> bool:
    """Returns True if a queue can preempt workloads of other queues even if it has to borrow."""
    return spec.preemption.borrow_within_cohort != "Never"


def may_preempt_for(spec: ClusterQueue, amount: int, nominal: int, *, fair: bool) -> bool:
    """Returns True if a queue may preempt although no quota is free anywhere in its tree.

    A queue that would have to borrow can preempt in only two cases: if its policy allows preemption while
    borrowing, or if the queue reclaims with fair sharing (upstream's canPreemptWhileBorrowing).
    """
    reclaims = fair and spec.preemption.reclaim_within_cohort != "Never"
    return amount <= nominal or may_borrow(spec) or reclaims


def reclaimed_while_borrowing(spec: ClusterQueue, preemptor: Workload) -> int:
    """Returns the priority below which other queues' workloads can be preempted while this queue borrows.

    These workloads have a lower priority than the preemptor, and a priority up to `maxPriorityThreshold`.
    """
    if not may_borrow(spec):
        return -EVERY_PRIORITY
    if spec.preemption.max_priority_threshold is None:
        return preemptor.priority
    return min(preemptor.priority, spec.preemption.max_priority_threshold + 1)
