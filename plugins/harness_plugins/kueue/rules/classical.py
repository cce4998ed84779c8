"""Classic preemption, which reclaims quota by hierarchy, then by priority, then within the queue.

Upstream: pkg/scheduler/preemption/classical and `classicalPreemptions` in preemption.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import NamedTuple, final

from harness.models.quota import QuotaTree
from harness_plugins.kueue.rules.candidates import borrowers, candidates_of, has_candidate
from harness_plugins.kueue.rules.preemption import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_RECLAIM_WHILE_BORROWING,
    IN_COHORT_RECLAMATION,
    Incoming,
    Target,
    fill_back,
    fits,
    remove,
    restore,
    within_nominal,
)
from harness_plugins.kueue.rules.preemption_policy import (
    EVERY_PRIORITY,
    Allowed,
    allowed_by,
    may_borrow,
    reclaimed_while_borrowing,
)
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.holders import Holders
from harness_plugins.kueue.state.workload import Rank, Workload


class Source(NamedTuple):
    """A queue with candidates, which are protected as soon as one of the guards is within its nominal quota.

    The guards are the queue itself and the cohorts above it, up to but not including the lowest cohort that
    the queue shares with the preemptor's queue.
    """

    holders: Holders
    guards: tuple[int, ...]


class Phase(NamedTuple):
    """The queues whose candidates are considered together in one order.

    Candidates with a priority below `while_borrowing` get the reason `InCohortReclaimWhileBorrowing`.
    """

    sources: list[Source]
    allowed: Allowed
    while_borrowing: int = -EVERY_PRIORITY


@final
class ClassicPreemption:
    """Chooses preemption targets by the classic rules."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def find_targets(self, incoming: Incoming) -> list[Target]:
        """Returns the workloads to preempt."""
        tree, queue = self._cache.tree, incoming.queue
        preemption = queue.spec.preemption
        preemptor = incoming.workload
        own = allowed_by(preemption.within_cluster_queue, preemptor)
        same = []
        holders = self._cache.holders[queue.node]
        if own is not None and has_candidate(holders, incoming.mask, own):
            same = [Phase([Source(holders, ())], own)]
        borrows = may_borrow(queue.spec)
        # Only preemption within the queue can free the queue's nominal quota. Without candidates there, an
        # attempt that doesn't borrow fails. Kueue tries it anyway. With many queues, this would take long.
        must_borrow = not same and bool(over_nominal(tree, incoming))
        reclaim = allowed_by(preemption.reclaim_within_cohort, preemptor)
        hierarchy: list[Source] = []  # queues over which the preemptor has a hierarchical advantage
        priority: list[Source] = []
        if reclaim is not None and queue.path:
            usable = borrows or not must_borrow
            for advantage, source in sources_of(self._cache, incoming, reclaim, priority_usable=usable):
                (hierarchy if advantage else priority).append(source)
        if not (same or hierarchy or priority):
            return []

        if must_borrow or not (hierarchy or priority) or not (borrows or _under_nominal(tree, incoming)):
            attempts = [True]
        elif borrows or hierarchy:
            attempts = [True, False]
        else:
            attempts = [False, True]

        for borrowing in attempts:
            phases = []
            if reclaim is not None and hierarchy:
                phases.append(Phase(hierarchy, reclaim))
            if reclaim is not None and priority:
                phases.append(by_priority(priority, reclaim, incoming, borrowing=borrowing))
            targets = _attempt(tree, incoming, phases + same, borrowing=borrowing)
            if targets:
                return targets
        return []


def over_nominal(tree: QuotaTree, incoming: Incoming) -> list[int]:
    """Returns the flavor-resources for which the incoming workload would exceed the queue's own quota."""
    first, usage, nominal = incoming.queue.node * tree.width, tree.usage, tree.nominal
    return [
        cell for cell, amount in incoming.requests if usage[first + cell] + amount > nominal[first + cell]
    ]


def sources_of(
    cache: Cache, incoming: Incoming, allowed: Allowed, *, priority_usable: bool
) -> Iterator[tuple[bool, Source]]:
    """Yields the queues to reclaim from, and whether the preemptor has a hierarchical advantage over each.

    At each level on the way up, the quota that is free locally reduces the request. The advantage begins one
    level above the first node whose own quota covers the rest of the request. Queues without an advantage are
    omitted if the search could not use them.
    """
    tree, queue = cache.tree, incoming.queue
    advantage, left, below = False, list(incoming.requests), queue.node
    for cohort in queue.path:
        advantage = advantage or not any(tree.borrows(below, cell, amount) for cell, amount in left)
        if advantage or priority_usable:
            for source in _below(cache, incoming, allowed, cohort, below, ()):
                yield advantage, source
        if cohort != queue.root:
            left = [(cell, max(0, amount - tree.local_available(below, cell))) for cell, amount in left]
        below = cohort


def _below(
    cache: Cache, incoming: Incoming, allowed: Allowed, cohort: int, skipped: int, guards: tuple[int, ...]
) -> Iterator[Source]:
    """Yields the queues below a cohort that exceed their own quota and have at least one candidate."""
    for below in cache.cohorts[cohort]:
        if below != skipped and not within_nominal(cache.tree, below, incoming.need):
            yield from _below(cache, incoming, allowed, below, skipped, (below, *guards))
    for queue in borrowers(cache, incoming.queue, incoming.need, cache.members[cohort]):
        holders = cache.holders[queue.node]
        if has_candidate(holders, incoming.mask, allowed):
            yield Source(holders, (queue.node, *guards))


def _under_nominal(tree: QuotaTree, incoming: Incoming) -> bool:
    """Returns True if the queue now uses less than its nominal quota of every needed resource."""
    first = incoming.queue.node * tree.width
    return all(tree.usage[first + cell] < tree.nominal[first + cell] for cell in incoming.need)


def by_priority(sources: list[Source], allowed: Allowed, incoming: Incoming, *, borrowing: bool) -> Phase:
    """Returns the phase for queues over which the preemptor has no hierarchical advantage.

    While the preemptor borrows, `borrowWithinCohort` limits the candidates to workloads that have a lower
    priority and are not above the threshold. Otherwise, the preemptor can preempt any of them. The reason
    depends on the priority of the candidate.
    """
    below = reclaimed_while_borrowing(incoming.queue.spec, incoming.workload)
    limited = Allowed(below) if borrowing and below < allowed.below else allowed
    return Phase(sources, limited, below)


def _attempt(tree: QuotaTree, incoming: Incoming, phases: list[Phase], *, borrowing: bool) -> list[Target]:
    """Takes candidates one by one until the incoming workload fits, and then restores the tree."""
    node, need, cells = incoming.queue.node, incoming.need, incoming.cells
    targets: list[Target] = []
    for evicted in (True, False):
        for phase in phases:
            protected: set[int] = set()
            for _, at, workload in _in_order(phase, incoming.mask, protected, evicted=evicted):
                guards = phase.sources[at].guards
                if any(within_nominal(tree, guard, need) for guard in guards):
                    protected.add(at)  # stays protected for this attempt, because usage only falls
                    continue
                reason = IN_CLUSTER_QUEUE if not guards else IN_COHORT_RECLAMATION
                if guards and workload.priority < phase.while_borrowing:
                    reason = IN_COHORT_RECLAIM_WHILE_BORROWING
                remove(tree, workload, cells)
                targets.append(Target(workload, reason))
                if fits(tree, node, incoming.requests, borrowing=borrowing) and incoming.has_place():
                    fill_back(tree, incoming, targets, borrowing=borrowing, cells=cells)
                    restore(tree, targets, cells)
                    return targets
    restore(tree, targets, cells)
    return []


def _in_order(
    phase: Phase, mask: int, protected: set[int], *, evicted: bool
) -> Iterator[tuple[Rank, int, Workload]]:
    """Yields the candidates of a phase, each with its rank and the index of its source.

    The candidates are merged lazily, because most searches end after the first few. The usage of LocalQueues
    orders candidates within a queue, but not across queues. As soon as the caller adds a source to
    `protected`, its candidates are skipped.
    """

    def of_source(at: int, holders: Holders) -> Iterator[tuple[Rank, int, Workload]]:
        for workload in candidates_of(holders, mask, phase.allowed, evicted=evicted):
            if at in protected:
                return
            yield workload.rank, at, workload

    holding = [(at, each.holders) for at, each in enumerate(phase.sources)]
    return merge(*[of_source(*each) for each in holding if each[1].evicted or not evicted])
