"""`borrowWithinCohort`, which lets a ClusterQueue preempt workloads in other queues while it borrows.

Upstream: `IsBorrowingWithinCohortAllowed` and `IsBorrowingWithinCohortForbidden` in
pkg/scheduler/preemption/classical (KEP 1337).

Borrowing limits are elsewhere, in `harness.models.quota.QuotaTree.available`.
"""

from __future__ import annotations

from harness.models.cluster import ClusterQueue
from harness_plugins.kueue.rules.preemption_policy import EVERY_PRIORITY
from harness_plugins.kueue.state.workload import Workload


def may_borrow(spec: ClusterQueue) -> bool:
    """Returns True if a queue can preempt workloads of other queues even if it has to borrow."""
    return spec.preemption.borrow_within_cohort != "Never"


def may_preempt_for(spec: ClusterQueue, amount: int, nominal: int, *, fair: bool) -> bool:
    """Returns True if a queue may preempt although no quota is free anywhere in its tree.

    A queue that would have to borrow can preempt in only two cases: if its policy allows preemption while
    borrowing, or if the queue reclaims with fair sharing.
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
