"""A fair-sharing search, which takes a candidate only if its preemption brings shares closer together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, final

from harness.models.cluster import Strategy
from harness_plugins.kueue.rules.candidates import borrowers, candidates_in_order
from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares
from harness_plugins.kueue.rules.preemption import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAMATION,
    Incoming,
    Target,
    remove,
)
from harness_plugins.kueue.rules.preemption_policy import allowed_by
from harness_plugins.kueue.rules.target_ordering import Head, Queues, TargetClusterQueueOrdering
from harness_plugins.kueue.state.amounts import Amounts, amounts_besides
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

Refuses: TypeAlias = Callable[[Strategy, int, int], bool]
"""Returns whether a strategy is known to refuse every workload below a cohort.

The arguments are the strategy, the preemptor's side, and the cohort, which is the other side.
"""


def may_allow_any(strategy: Strategy, mine: int, theirs: int) -> bool:
    """Returns False. Without a shortcut, the search must ask the strategy about each workload."""
    return False


@final
class Candidates:
    """The preemption candidates of each queue that are left. They are looked up when they are first needed.

    Attributes:
        within: the workloads of the same queue that its policy allows it to preempt, or None for none.
        reclaim: the workloads of other queues that its policy allows it to preempt, or None for none.
    """

    def __init__(self, cache: Cache, incoming: Incoming, shares: Shares) -> None:
        self._cache = cache
        self._incoming = incoming
        self._shares = shares
        own, workload = incoming.queue, incoming.workload
        self._own = own
        self.within = allowed_by(own.spec.preemption.within_cluster_queue, workload)
        self.reclaim = allowed_by(own.spec.preemption.reclaim_within_cohort, workload) if own.path else None
        self._next: dict[ClusterQueueState, tuple[Workload | None, Iterator[Workload]]] = {}

    def queues(self, cohort: int) -> Iterator[ClusterQueueState]:
        """Yields the queues right below a cohort that can have candidates, in descending order of share.

        The queue of the incoming workload comes first.
        """
        own, at = self._own, self._cache.at
        if own.above == cohort and self.head(own) is not None:
            yield own
        if self.reclaim is not None:
            ranked = (at[node] for _, node in reversed(self._shares.ranking(cohort)))
            usable = (queue for queue in ranked if queue is not None and queue.usable)
            yield from borrowers(self._cache, own, self._incoming.need, usable)

    def head(self, queue: ClusterQueueState) -> Workload | None:
        """Returns the next candidate of a queue, or None if there are no more."""
        if queue not in self._next:
            allowed = self.within if queue is self._own else self.reclaim
            holders, mask = self._cache.holders[queue.node], self._incoming.mask
            left = iter(()) if allowed is None else candidates_in_order(holders, mask, allowed)
            self._next[queue] = next(left, None), left
        return self._next[queue][0]

    def take(self, queue: ClusterQueueState) -> Workload | None:
        """Removes and returns the next candidate of a queue, or returns None if there are no more."""
        head = self.head(queue)
        left = self._next[queue][1]
        self._next[queue] = next(left, None), left
        return head

    def drop(self, queue: ClusterQueueState) -> None:
        """Removes all candidates of a queue."""
        self._next[queue] = None, iter(())


@final
class FairSearch:
    """A search for preemption targets. The incoming workload counts as admitted, and its targets as gone.

    Args:
        refuses: returns True if a strategy is known to refuse all workloads below a cohort.

    Attributes:
        takes_back: whether to take workloads from other queues without comparing shares.
        targets: the targets found so far. Their usage is no longer in the quota tree.
        cells: the flavor-resources that were refunded for the targets, or None if all were refunded.
    """

    def __init__(
        self,
        cache: Cache,
        incoming: Incoming,
        shares: Shares,
        candidates: Candidates,
        refuses: Refuses,
        *,
        takes_back: bool,
    ) -> None:
        self._cache = cache
        self._tree = cache.tree
        self._incoming = incoming
        self._own = incoming.queue
        self._shares = shares
        self._candidates = candidates
        self._refuses = refuses
        self.takes_back = takes_back
        # Only the first refused workload of each queue is tried again.
        self._refused: dict[ClusterQueueState, Workload] = {}
        self._left_out: set[int] = set()  # the cohorts below which the last strategy refused all workloads
        self.targets: list[Target] = []
        self.cells: list[int] | None = None

    def run(self, strategies: tuple[Strategy, ...]) -> bool:
        """Takes targets until the incoming workload fits. Returns True if it fits in the end.

        The first strategy considers all candidates. Each further one considers the workloads that the earlier
        ones refused, at most one of each queue.
        """
        first, *others = strategies
        return self._by_first_strategy(first) or any(map(self._by_further_strategy, others))

    def _by_first_strategy(self, strategy: Strategy) -> bool:
        """Takes the candidates that the first strategy allows; returns whether the incoming workload fits."""

        def leaves_out(cohort: int) -> bool:
            return not self.takes_back and self._refuses_all(strategy, cohort)

        own, candidates = self._own, self._candidates
        ordering = self._ordering(candidates.queues, candidates.head, leaves_out)
        while (queue := ordering.next()) is not None:
            if queue is own or self.takes_back:
                workload = candidates.take(queue)
                reason = IN_CLUSTER_QUEUE if queue is own else IN_COHORT_RECLAMATION
            else:
                workload, reason = self._next_allowed(queue, strategy), IN_COHORT_FAIR_SHARING
            if workload is not None and self._take(workload, reason):
                return True
        return False

    def _by_further_strategy(self, strategy: Strategy) -> bool:
        """Tries the workloads that were refused, at most one from each queue; refuses some of them again."""
        before, self._refused = self._refused, {}
        left_out, self._left_out = self._left_out, set()

        def leaves_out(cohort: int) -> bool:
            if cohort not in left_out:
                return False
            if self._refuses_all(strategy, cohort):
                return True
            self._add_first_below(cohort, before)
            return False

        def queues(cohort: int) -> list[ClusterQueueState]:
            found = [queue for queue in before if queue.above == cohort]
            return sorted(found, key=lambda queue: self._shares.of(queue.node)[1], reverse=True)

        ordering = self._ordering(queues, before.get, leaves_out)
        while (queue := ordering.next()) is not None:
            workload = before.pop(queue)
            mine, theirs = self._own.sides(queue)
            new, old = self._shares.of(mine)[1], self._shares.of(theirs)[1]
            if not strategy.allows(new, old, self._without(queue, workload.usage, theirs)):
                self._refused[queue] = workload
            elif self._take(workload, IN_COHORT_FAIR_SHARING):
                return True
        return False

    def _ordering(
        self, queues: Queues, head: Head, leaves_out: Callable[[int], bool]
    ) -> TargetClusterQueueOrdering:
        return TargetClusterQueueOrdering(self._cache, self._shares, self._own, queues, head, leaves_out)

    def _add_first_below(self, cohort: int, refused: dict[ClusterQueueState, Workload]) -> None:
        """Adds the first candidate of each queue below a cohort."""
        for queue in self._candidates.queues(cohort):
            head = self._candidates.head(queue)
            if head is not None:
                refused.setdefault(queue, head)
        for below in self._cache.cohorts[cohort]:
            self._add_first_below(below, refused)

    def _refuses_all(self, strategy: Strategy, theirs: int) -> bool:
        """Returns True if the strategy is known to refuse all workloads below a cohort."""
        if not self._refuses(strategy, self._own.below[self._tree.parent[theirs]], theirs):
            return False
        self._left_out.add(theirs)
        return True

    def _next_allowed(self, queue: ClusterQueueState, strategy: Strategy) -> Workload | None:
        """Returns the first candidate of a queue that the strategy allows, and refuses earlier ones."""
        refused = None
        mine, theirs = self._own.sides(queue)
        new, old = self._shares.of(mine)[1], self._shares.of(theirs)[1]
        allowed: dict[Amounts, bool] = {}  # the shares depend only on the usage of a workload
        usages = len(self._cache.holders[queue.node].usages)
        while (workload := self._candidates.take(queue)) is not None:
            usage = workload.usage
            if usage not in allowed:
                allowed[usage] = strategy.allows(new, old, self._without(queue, usage, theirs))
            if allowed[usage]:
                break
            refused = refused or workload
            if len(allowed) == usages:
                self._candidates.drop(queue)  # all others are refused, too
        if refused is not None:
            self._refused.setdefault(queue, refused)
        return workload

    def _without(self, queue: ClusterQueueState, usage: Amounts, theirs: int) -> Share:
        """Returns the share that the queue's side would have without a workload that has this usage."""
        if theirs == queue.node:  # the usage above the queue does not matter
            return self._shares.changed(theirs, usage, -1)
        self._tree.refund(queue.node, usage)
        final = self._shares.of(theirs)[1]
        self._tree.charge(queue.node, usage)
        return final

    def _take(self, workload: Workload, reason: str) -> bool:
        """Makes a candidate a target, and returns whether the incoming workload now fits.

        Resources that the incoming workload does not request affect only the shares, and the shares no longer
        matter once the workload fits. These resources are therefore refunded only if the search continues.
        One target is nearly always enough.
        """
        tree, targets, cells = self._tree, self.targets, self._incoming.cells
        remove(tree, workload, cells)
        done = tree.covers(self._own.node, self._incoming.requests) and self._incoming.has_place()
        if done:
            self.cells = cells
            for each in targets:
                tree.charge(each.workload.cluster_queue.node, amounts_besides(each.workload.usage, cells))
        else:
            tree.refund(workload.cluster_queue.node, amounts_besides(workload.usage, cells))
        targets.append(Target(workload, reason))
        return done
