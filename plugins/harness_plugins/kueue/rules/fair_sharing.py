"""Fair-sharing preemption, which takes workloads from the queue with the largest share first.

It takes a workload only if its preemption brings shares closer together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from harness.models.cluster import strategies_of
from harness_plugins.kueue.rules.dominant_resource_share import Shares
from harness_plugins.kueue.rules.fair_search import Candidates, FairSearch, Refuses, may_allow_any
from harness_plugins.kueue.rules.preemption import Incoming, Target, fill_back, restore
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
        own, candidates = incoming.queue, Candidates(self._cache, incoming, self.shares)
        if candidates.reclaim is None and candidates.head(own) is None:
            return []
        search, done = self.search(incoming, candidates)
        if done:
            fill_back(self._cache.tree, incoming, search.targets, borrowing=True, cells=search.cells)
        elif self.crashed is not None and not own.path:
            self.crashed(incoming.workload)
        restore(self._cache.tree, search.targets, search.cells)
        return search.targets if done else []

    def search(self, incoming: Incoming, candidates: Candidates) -> tuple[FairSearch, bool]:
        """Runs a search, and returns whether the incoming workload fits without the targets.

        Afterwards, the usage of the targets is no longer in the quota tree.
        """
        tree, own, takes_back = self._cache.tree, incoming.queue, self.takes_back(incoming)
        search = FairSearch(
            self._cache, incoming, self.shares, candidates, self._refuses, takes_back=takes_back
        )
        tree.charge(own.node, incoming.requests)
        done = search.run(self.strategies)
        tree.refund(own.node, incoming.requests)
        return search, done

    def takes_back(self, incoming: Incoming) -> bool:
        """Returns True if the incoming workload's queue stays within its own quota of all needed resources.

        The queue then takes back its quota without comparing shares (upstream's preemptorWithinNominal). The
        requests of the incoming workload count as usage.
        """
        if not self._within_nominal:
            return False
        borrows, node, amounts = self._cache.tree.borrows, incoming.queue.node, dict(incoming.requests)
        return not any(borrows(node, cell, amounts.get(cell, 0)) for cell in incoming.need)
