"""Answers the flavor assigner's questions about available quota, places, and preemption targets.

Upstream: `SimulatePreemption` in pkg/scheduler/preemption/preemption_oracle.go, and
`FindHeightOfLowestSubtreeThatFits` in pkg/scheduler/preemption/classical.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from harness_plugins.kueue.rules.classical import ClassicPreemption
from harness_plugins.kueue.rules.fair_sharing import FairSharing
from harness_plugins.kueue.rules.preemption import Incoming, Target
from harness_plugins.kueue.rules.topology.placement import WorkloadTopology
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

TargetSearch: TypeAlias = ClassicPreemption | FairSharing
"""A method of choosing preemption targets."""

Quota = tuple[bool, tuple[int, bool]]
"""Whether a queue could use an additional quantity of a flavor-resource now, and which node has the quota.

This is the lowest ClusterQueue or Cohort that has the quota. The tuple contains its height, and whether it is
below the root of the tree.
"""


def quota_of(cache: Cache, queue: ClusterQueueState, cell: int, amount: int) -> Quota:
    """Returns what `Quota` says about a quantity of a flavor-resource."""
    tree, node = cache.tree, queue.node
    lowest = tree.lowest_with_room(node, cell, amount)
    fits = amount <= tree.available(node, cell) or not amount
    return fits, (cache.height[lowest], lowest != queue.root)


class Oracle:
    """Answers an assigner's questions about quota, places and targets during one assignment.

    The answers depend on the current state of the cache. If `search` is None, there are no targets.
    """

    def __init__(self, cache: Cache, search: TargetSearch | None, workload: Workload) -> None:
        self._cache = cache
        self._search = search
        self.workload = workload

    def quota_for(self, cell: int, amount: int) -> Quota:
        """Returns what `Quota` says about `amount` of a flavor-resource."""
        return quota_of(self._cache, self.workload.cluster_queue, cell, amount)

    def place(self, topology: WorkloadTopology) -> tuple[Placed, ...] | None:
        """Returns places that the present pods leave free, or None if some pod set has no place."""
        return topology.place()

    def targets(
        self, requests: Amounts, need: tuple[int, ...], topology: WorkloadTopology | None = None
    ) -> list[Target]:
        """Returns the workloads to preempt so that `requests` fit. See `Incoming` for the arguments."""
        place = None if topology is None else topology.place
        return self.found(Incoming(self.workload, requests, need, place))

    def found(self, incoming: Incoming) -> list[Target]:
        """Returns the result of a search for targets."""
        return [] if self._search is None else self._search.find_targets(incoming)


OracleFactory: TypeAlias = Callable[[Workload], Oracle]
