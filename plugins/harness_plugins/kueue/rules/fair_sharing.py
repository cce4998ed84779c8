"""Fair-sharing preemption: from the largest share first, as long as that makes shares more equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import NamedTuple, final

from harness.models.cluster import TO_FINAL_SHARE
from harness_plugins.kueue.rules.candidates import candidates_in_order, has_candidate
from harness_plugins.kueue.rules.dominant_resource_share import NOTHING, Share, Shares
from harness_plugins.kueue.rules.fair_search import Candidates, FairSearch
from harness_plugins.kueue.rules.preemption import (
    BY_SHARES,
    FORBIDDEN,
    NOBODY,
    TOO_LITTLE,
    Compared,
    Incoming,
    Obstacle,
    Target,
    fill_back,
    put_back,
    remove,
    within_nominal,
)
from harness_plugins.kueue.rules.preemption_policy import ANY, Allowed, allowed_by
from harness_plugins.kueue.rules.strategy import less_than_initial_share, less_than_or_equal_to_final_share
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

_SHARE = itemgetter(0)


class Outcome(NamedTuple):
    """The outcome of a search for targets.

    Attributes:
        targets: the workloads to preempt; empty if that cannot help.
        queues: the queues that may have had candidates.
        share: of the incoming's queue, with the incoming.
        takes_back: whether the incoming took without comparing shares.
        taken: the workloads that were taken in vain.
        alone: whether the target is the only one that was taken.
    """

    targets: list[Target]
    queues: list[ClusterQueueState]
    share: Share
    takes_back: bool
    taken: list[Target]
    alone: bool


@final
class FairSharing:
    """Chooses targets by shares.

    Args:
        cache: the holders of quota.
        shares: the shares of all nodes.
        strategies: one or two of `LessThanOrEqualToFinalShare` and `LessThanInitialShare`.
        within_nominal: whether a queue that stays within its nominal quota reclaims its own quota without
            comparing shares (the gate FairSharingPreemptWithinNominal).
        crashed: is called for workloads whose search continues after the last candidate of a queue without
            cohort. None if the search ends there (since PR 10891).

    Attributes:
        shares, strategies, crashed: as given.
    """

    def __init__(
        self,
        cache: Cache,
        shares: Shares,
        strategies: tuple[str, ...],
        *,
        within_nominal: bool,
        crashed: Callable[[Workload], None] | None = None,
    ) -> None:
        self.crashed = crashed
        self._cache = cache
        self.shares = shares
        self._within_nominal = within_nominal
        self.strategies = strategies

    def find_targets(self, incoming: Incoming) -> list[Target]:
        """Chooses the targets."""
        return self.search(incoming).targets

    def search(self, incoming: Incoming) -> Outcome:
        """Chooses the targets, and returns the outcome of the search. The cache is left as it was."""
        cache, own, workload = self._cache, incoming.queue, incoming.workload
        preemption = own.spec.preemption
        within = allowed_by(preemption.within_cluster_queue, workload)
        reclaim = allowed_by(preemption.reclaim_within_cohort, workload) if own.path else None
        candidates = Candidates(cache, incoming, within, reclaim)
        queues = [own] if candidates.head(own) is not None else []
        if reclaim is not None:
            queues += _borrowers(cache, own, incoming.need)
        if not queues:
            return Outcome([], [], NOTHING, takes_back=False, taken=[], alone=False)
        tree = cache.tree
        tree.charge(own.node, incoming.requests)
        share, takes_back = self.shares.of(own.node)[1], self.takes_back(incoming)
        search = FairSearch(cache, incoming, self.shares, candidates)
        done = search.run(queues, self.strategies, takes_back=takes_back)
        if self.crashed is not None and not (done or own.path):
            self.crashed(workload)
        tree.refund(own.node, incoming.requests)
        targets = search.targets
        alone = done and len(targets) == 1
        if done:
            fill_back(tree, incoming, targets, borrowing=True, cells=search.cells)
        search.put_back()
        return Outcome(targets if done else [], queues, share, takes_back, [] if done else targets, alone)

    def obstacle(self, incoming: Incoming) -> Obstacle:
        """Why there are no targets: the other workloads, and the shares that protect them."""
        cache, own, workload = self._cache, incoming.queue, incoming.workload
        mask, preemption, holders = incoming.mask, own.spec.preemption, cache.holders
        within = allowed_by(preemption.within_cluster_queue, workload)
        reclaim = allowed_by(preemption.reclaim_within_cohort, workload) if own.path else None
        mine = within is not None and has_candidate(holders[own.node], mask, within)
        others = _borrowers(cache, own, incoming.need) if own.path else []
        theirs = reclaim is not None and any(
            has_candidate(holders[each.node], mask, reclaim) for each in others
        )
        if not (mine or theirs):
            fields = {}
            if has_candidate(holders[own.node], mask, ANY):
                fields["withinClusterQueue"] = preemption.within_cluster_queue
            if any(has_candidate(holders[each.node], mask, ANY) for each in others):
                fields["reclaimWithinCohort"] = preemption.reclaim_within_cohort
            return Obstacle(FORBIDDEN if fields else NOBODY, fields)
        if reclaim is None or not theirs:
            return Obstacle(TOO_LITTLE)
        ranked = self._ranked(own, others)
        cache.tree.charge(own.node, incoming.requests)
        takes_back = self.takes_back(incoming)
        all_have_less = len(own.path) == 1 and ranked[0][0] < self.shares.of(own.node)[1]
        search: FairSearch | None = None
        taken: tuple[Workload, ...] = ()
        if mine or takes_back or not all_have_less:  # else nobody would be taken
            search = FairSearch(cache, incoming, self.shares, Candidates(cache, incoming, within, reclaim))
            search.run([own, *others] if mine else others, self.strategies, takes_back=takes_back)
            taken = tuple(target.workload for target in search.targets)
        cache.tree.refund(own.node, incoming.requests)
        if taken:
            ranked = self._ranked(own, others)
        compared = None if takes_back else self._compared(incoming, ranked, reclaim, taken)
        if search is not None:
            search.put_back()
        return Obstacle(BY_SHARES if compared else TOO_LITTLE, compared=compared, taken=taken)

    def _ranked(
        self, own: ClusterQueueState, queues: Sequence[ClusterQueueState]
    ) -> list[tuple[Share, ClusterQueueState]]:
        """Other queues with the shares of their sides, the largest first."""
        of = self.shares.of
        shares = [(of(own.sides(each)[1])[1], each) for each in queues]
        return sorted(shares, key=_SHARE, reverse=True)

    def _compared(
        self,
        incoming: Incoming,
        ranked: Sequence[tuple[Share, ClusterQueueState]],
        reclaim: Allowed,
        taken: tuple[Workload, ...],
    ) -> Compared | None:
        """The shares that protect the next candidate of the side with the largest share.

        Args:
            incoming: the workload that looks for targets.
            ranked: the queues that may have candidates, by the shares of their sides.
            reclaim: what the policy of the incoming's queue allows in them.
            taken: the candidates that were taken; they are out of the tree.
        """
        cache, own, of = self._cache, incoming.queue, self.shares.of
        gone = set(taken)
        left = next(
            (
                (share, queue, candidate)
                for share, queue in ranked
                for candidate in candidates_in_order(cache.holders[queue.node], incoming.mask, reclaim)
                if candidate not in gone
            ),
            None,
        )
        if left is None:
            return None
        initial, queue, candidate = left
        sides = own.sides(queue)
        before = of(sides[0])[1], initial
        cache.tree.charge(own.node, incoming.requests)
        share = of(sides[0])[1]
        remove(cache.tree, candidate)
        final = of(sides[1])[1]
        put_back(cache.tree, candidate)
        cache.tree.refund(own.node, incoming.requests)
        for strategy in self.strategies:
            if strategy == TO_FINAL_SHARE:
                allowed = less_than_or_equal_to_final_share(share, final)
            else:
                allowed = less_than_initial_share(share, initial)
            if allowed:
                return None
        return Compared(candidate, sides, before, (share, final), self.strategies)

    def takes_back(self, incoming: Incoming) -> bool:
        """Returns True if the queue, with the incoming, uses no more than its own quota of what is needed."""
        return self._within_nominal and within_nominal(self._cache.tree, incoming.queue.node, incoming.need)


def _borrowers(cache: Cache, own: ClusterQueueState, need: tuple[int, ...]) -> list[ClusterQueueState]:
    """The other queues of a tree that hold more than their nominal quota of something that is needed.

    Amounts that a cycle has only reserved offer no workload to preempt.
    """
    width, usage, nominal = cache.tree.width, cache.tree.usage, cache.tree.nominal
    if len(need) == 1:  # as nearly always: each search asks all queues for it
        cell = need[0]
        return [
            queue
            for queue in cache.holding[own.root]
            if usage[queue.node * width + cell] > nominal[queue.node * width + cell] and queue is not own
        ]
    found = []
    for queue in cache.holding[own.root]:
        first = queue.node * width
        for cell in need:
            if usage[first + cell] > nominal[first + cell] and queue is not own:
                found.append(queue)
                break
    return found
