"""`borrowWithinCohort`: preemption in other queues while the preempting ClusterQueue itself borrows.

Upstream: `IsBorrowingWithinCohortAllowed` and `IsBorrowingWithinCohortForbidden` in
pkg/scheduler/preemption/classical (KEP 1337).
"""

from __future__ import annotations

from harness.models.cluster import ClusterQueue
from harness_plugins.kueue.rules.preemption_policy import EVERY_PRIORITY
from harness_plugins.kueue.state.workload import Workload


def may_borrow(spec: ClusterQueue) -> bool:
    """Returns True if a queue may preempt other queues' workloads although it would borrow."""
    return spec.preemption.borrow_within_cohort != "Never"


def may_preempt_for(spec: ClusterQueue, amount: int, nominal: int, *, fair: bool) -> bool:
    """Returns True if a queue may preempt for an amount of a flavor-resource that the whole tree lacks.

    A queue that would borrow this amount may not preempt, unless it may preempt while borrowing or reclaims
    with fair sharing.
    """
    reclaims = fair and spec.preemption.reclaim_within_cohort != "Never"
    return amount <= nominal or may_borrow(spec) or reclaims


def reclaimed_while_borrowing(spec: ClusterQueue, preemptor: Workload) -> int:
    """Returns the priority below which a queue may preempt other queues' workloads while it borrows.

    Such workloads have a lower priority than the preemptor, and not more than the threshold.
    """
    if not may_borrow(spec):
        return -EVERY_PRIORITY
    if spec.preemption.max_priority_threshold is None:
        return preemptor.priority
    return min(preemptor.priority, spec.preemption.max_priority_threshold + 1)
