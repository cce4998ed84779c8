"""Fair-sharing preemption, which takes workloads from the queue with the largest share first.

It takes a workload only if its preemption brings shares closer together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import final

from harness.models.cluster import strategies_of
from harness_plugins.kueue.rules.candidates import borrowers, candidates_in_order, has_candidate
from harness_plugins.kueue.rules.dominant_resource_share import Shares
from harness_plugins.kueue.rules.fair_search import Candidates, FairSearch, Refuses, may_allow_any
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
    restore,
    within_nominal,
)
from harness_plugins.kueue.rules.preemption_policy import ANY, Allowed
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

_SHARE = itemgetter(0)


@final
class FairSharing:
    """Chooses preemption targets by comparing shares.

    Args:
        strategies: the names of the strategies, in order.
        within_nominal: whether a queue that stays within its nominal quota reclaims without comparing shares
            (the FairSharingPreemptWithinNominal feature gate).
        crashed: called for a workload whose search makes the controller crash. This happens if all candidates
            of a queue without a cohort are not enough. None if the release does not crash (since PR 10891).
        refuses: see `FairSearch`.
    """

    def __init__(
        self,
        cache: Cache,
        shares: Shares,
        strategies: tuple[str, ...],
        *,
        within_nominal: bool,
        crashed: Callable[[Workload], None] | None = None,
        refuses: Refuses = may_allow_any,
    ) -> None:
        self.crashed = crashed
        self._refuses = refuses
        self._cache = cache
        self.shares = shares
        self._within_nominal = within_nominal
        self.strategies = strategies_of(strategies)

    def find_targets(self, incoming: Incoming) -> list[Target]:
        """Returns the workloads to preempt. The cache is unchanged afterwards."""
        cache, own = self._cache, incoming.queue
        candidates = Candidates(cache, incoming)
        if candidates.reclaim is None and candidates.head(own) is None:
            return []
        tree = cache.tree
        tree.charge(own.node, incoming.requests)
        search = FairSearch(cache, incoming, self.shares, candidates, self._refuses)
        done = search.run(self.strategies, takes_back=self.takes_back(incoming))
        if self.crashed is not None and not (done or own.path):
            self.crashed(incoming.workload)
        tree.refund(own.node, incoming.requests)
        if done:
            fill_back(tree, incoming, search.targets, borrowing=True, cells=search.cells)
        restore(tree, search.targets, search.cells)
        return search.targets if done else []

    def takes_back(self, incoming: Incoming) -> bool:
        """Returns True if the incoming workload's queue stays within its own quota of all needed resources.

        The queue then takes back its quota without comparing shares (upstream's preemptorWithinNominal). The
        requests of the incoming workload must already be charged.
        """
        return self._within_nominal and within_nominal(self._cache.tree, incoming.queue.node, incoming.need)

    # --- why there are no targets ---------------------------------------------------------------------------

    def obstacle(self, incoming: Incoming) -> Obstacle:
        """Returns the reason why a search finds no targets, with the shares that protect other workloads."""
        cache, own, candidates = self._cache, incoming.queue, Candidates(self._cache, incoming)
        mask, preemption, holders = incoming.mask, own.spec.preemption, cache.holders
        others = borrowers(cache, own, incoming.need, cache.members_below(own.root))
        reclaim, theirs = candidates.reclaim, any(map(candidates.of, others))
        if not (theirs or candidates.of(own)):
            fields = {}
            if has_candidate(holders[own.node], mask, ANY):
                fields["withinClusterQueue"] = preemption.within_cluster_queue
            if any(has_candidate(holders[each.node], mask, ANY) for each in others):
                fields["reclaimWithinCohort"] = preemption.reclaim_within_cohort
            return Obstacle(FORBIDDEN if fields else NOBODY, fields)
        if reclaim is None or not theirs:
            return Obstacle(TOO_LITTLE)
        cache.tree.charge(own.node, incoming.requests)
        takes_back = self.takes_back(incoming)
        search = FairSearch(cache, incoming, self.shares, candidates, self._refuses)
        search.run(self.strategies, takes_back=takes_back)
        cache.tree.refund(own.node, incoming.requests)
        taken = tuple(target.workload for target in search.targets)
        compared = None if takes_back else self._compared(incoming, others, reclaim, taken)
        restore(cache.tree, search.targets, search.cells)
        return Obstacle(BY_SHARES if compared else TOO_LITTLE, compared=compared, taken=taken)

    def _compared(
        self,
        incoming: Incoming,
        queues: Iterable[ClusterQueueState],
        reclaim: Allowed,
        taken: tuple[Workload, ...],
    ) -> Compared | None:
        """Returns the shares that protect the next candidate on the side with the largest share.

        `queues` can have candidates. The candidates in `taken` are no longer in the tree.
        """
        own, of, tree = incoming.queue, self.shares.of, self._cache.tree
        gone, ranked = set(taken), [(of(own.sides(each)[1])[1], each) for each in queues]
        ranked.sort(key=_SHARE, reverse=True)
        left = next(
            (
                (share, queue, candidate)
                for share, queue in ranked
                for candidate in candidates_in_order(self._cache.holders[queue.node], incoming.mask, reclaim)
                if candidate not in gone
            ),
            None,
        )
        if left is None:
            return None
        initial, queue, candidate = left
        sides = own.sides(queue)
        before = of(sides[0])[1], initial
        tree.charge(own.node, incoming.requests)
        share = of(sides[0])[1]
        remove(tree, candidate)
        final = of(sides[1])[1]
        put_back(tree, candidate)
        tree.refund(own.node, incoming.requests)
        if any(strategy.allows(share, initial, final) for strategy in self.strategies):
            return None
        names = tuple(strategy.name for strategy in self.strategies)
        return Compared(candidate, sides, before, (share, final), names)
