"""Fair-sharing preemption, which takes workloads from the queue with the largest share first.

It takes a workload only if its preemption brings shares closer together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from harness.models.cluster import strategies_of
from harness_plugins.kueue.rules.dominant_resource_share import Shares
from harness_plugins.kueue.rules.fair_obstacle import fair_obstacle
from harness_plugins.kueue.rules.fair_search import Candidates, FairSearch, Refuses, may_allow_any
from harness_plugins.kueue.rules.preemption import Incoming, Obstacle, Target, fill_back, within_nominal
from harness_plugins.kueue.rules.preemption_policy import allowed_by
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.workload import Workload


@final
class FairSharing:
    """Chooses preemption targets by comparing shares.

    Args:
        strategies: the names of the strategies, in order.
        within_nominal: whether a queue that stays within its nominal quota reclaims without comparing shares
            (the FairSharingPreemptWithinNominal feature gate).
        crashed: called for a workload whose search makes the controller crash. This happens if all candidates
            of a queue without a cohort are not enough. None if the release does not crash (since PR 10891).
        refuses: returns True if a strategy is known to refuse all workloads below a cohort.

    Attributes:
        shares, crashed: the arguments.
        strategies: the strategies with the given names.
        outranked: the tree nodes of the queues whose next candidates may have affected a search. See
            `target_ordering.Below`.
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
        self.outranked: set[int] = set()

    def find_targets(self, incoming: Incoming) -> list[Target]:
        """Returns the workloads to preempt. The cache is unchanged afterwards."""
        cache, own, workload = self._cache, incoming.queue, incoming.workload
        preemption = own.spec.preemption
        within = allowed_by(preemption.within_cluster_queue, workload)
        reclaim = allowed_by(preemption.reclaim_within_cohort, workload) if own.path else None
        candidates = Candidates(cache, incoming, within, reclaim, self.outranked)
        if reclaim is None and candidates.head(own) is None:
            return []
        tree = cache.tree
        tree.charge(own.node, incoming.requests)
        search = FairSearch(cache, incoming, self.shares, candidates, self._refuses)
        done = search.run(self.strategies, takes_back=self.takes_back(incoming))
        if self.crashed is not None and not (done or own.path):
            self.crashed(workload)
        tree.refund(own.node, incoming.requests)
        if done:
            fill_back(tree, incoming, search.targets, borrowing=True, cells=search.cells)
        search.put_back()
        return search.targets if done else []

    def obstacle(self, incoming: Incoming) -> Obstacle:
        """Returns the reason why a search finds no targets, with the shares that protect other workloads."""
        refuses = self._refuses
        return fair_obstacle(self._cache, incoming, self.shares, self.strategies, self.takes_back, refuses)

    def takes_back(self, incoming: Incoming) -> bool:
        """Returns True if the incoming workload's queue stays within its own quota of all needed resources.

        The requests of the incoming workload must already be charged.
        """
        return self._within_nominal and within_nominal(self._cache.tree, incoming.queue.node, incoming.need)
