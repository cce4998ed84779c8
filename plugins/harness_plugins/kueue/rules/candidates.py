"""The preemption candidates of a ClusterQueue, and their order.

Upstream: `CandidatesOrdering` in pkg/scheduler/preemption/common/ordering.go. `Holders` already
keeps the candidates in this order, except for the usage of LocalQueues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cmp_to_key
from itertools import chain

from harness_plugins.kueue.rules.preemption_policy import Allowed
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.holders import Holders
from harness_plugins.kueue.state.workload import Workload


def has_candidate(holders: Holders, mask: int, allowed: Allowed) -> bool:
    """Returns True if at least one workload in the queue can be preempted and uses a needed resource."""
    return next(candidates_in_order(holders, mask, allowed), None) is not None


def candidates_in_order(holders: Holders, mask: int, allowed: Allowed) -> Iterator[Workload]:
    """Yields the preemptible workloads that use a needed resource. Evicted workloads come first."""
    rest = candidates_of(holders, mask, allowed, evicted=False)
    return chain(candidates_of(holders, mask, allowed, evicted=True), rest) if holders.evicted else rest


def candidates_of(holders: Holders, mask: int, allowed: Allowed, *, evicted: bool) -> Iterator[Workload]:
    """Yields, in order, the workloads that use a needed resource and can be preempted under a policy.

    Args:
        holders: the workloads that hold quota in a queue. If the queue orders them by usage, workloads of the
            LocalQueue with the highest usage come first. If two LocalQueues have the same identity, the order
            of their workloads does not change.
        mask: the flavor-resources that are needed.
        allowed: the workloads that the policy allows the queue to preempt.
        evicted: True to yield only workloads that are already evicted, False to yield only other workloads.
    """
    workloads = holders.workloads
    if evicted:
        workloads = workloads[: holders.evicted]
    elif holders.evicted:
        workloads = workloads[holders.evicted :]
    found = preemptible(workloads, mask, allowed)
    return iter(_most_used_first(list(found))) if holders.queue.spec.by_usage else found


def preemptible(workloads: list[Workload], mask: int, allowed: Allowed) -> Iterator[Workload]:
    """Yields the workloads that use a needed resource and can be preempted under a policy.

    The workloads are in candidate order. Either all or none of them are evicted.
    """
    below, newer_than = allowed
    for workload in workloads:
        if workload.priority >= below:
            return
        if not workload.uses & mask:
            continue
        if newer_than is not None and workload.priority == below - 1 and workload.timestamp <= newer_than:
            continue
        yield workload


def _most_used_first(found: list[Workload]) -> list[Workload]:
    """Sorts candidates by the usage of their LocalQueues, highest first. Equal ones keep their order."""
    # The comparison can be inconsistent, because workloads of namesakes keep their order. In that case, the
    # result is arbitrary in Kueue, whereas here it follows from the given order.
    return sorted(found, key=cmp_to_key(_compared))


def _compared(left: Workload, right: Workload) -> int:
    one, other = left.local_queue, right.local_queue
    if one is not None and other is not None and one.label != other.label and one.usage != other.usage:
        return -1 if one.usage > other.usage else 1
    return -1 if left.rank < right.rank else 1


def borrowers(
    cache: Cache, own: ClusterQueueState, need: tuple[int, ...], queues: Iterable[ClusterQueueState]
) -> Iterator[ClusterQueueState]:
    """Yields the queues other than `own` that use more than their nominal quota of a needed resource."""
    width, usage, nominal = cache.tree.width, cache.tree.usage, cache.tree.nominal
    for queue in queues:
        first = queue.node * width
        for cell in need:
            if usage[first + cell] > nominal[first + cell] and queue is not own:
                yield queue
                break
