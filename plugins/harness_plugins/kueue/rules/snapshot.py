"""The assumptions of a cycle about reserved quota, reserved places, and victims that will be gone.

Upstream: `Snapshot` in pkg/cache/scheduler/snapshot.go. Kueue works on a copy of its cache. Here, the cache
itself is charged, and restored at the end of the cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar, final

from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.holders import Holders
from harness_plugins.kueue.state.topology.flavors import Placed, without
from harness_plugins.kueue.state.workload import Workload

_T = TypeVar("_T")


class Reservation(NamedTuple):
    """The quota and places that a cycle reserves for an entry, so that later entries see them as used."""

    workload: Workload
    amounts: Amounts
    places: Sequence[Placed]


@final
class Snapshot:
    """The assumptions of one cycle.

    Attributes:
        reserved: the reservations so far, which are charged to the quota tree and to the topologies.
        victims: the workloads that this cycle preempts, with their preemptors, by the root of the preemptor's
            tree.
    """

    def __init__(self, cache: Cache, cycle: int) -> None:
        self._cache = cache
        self.cycle = cycle
        self.reserved: list[Reservation] = []
        self.victims: dict[int, dict[Workload, Workload]] = {}

    def preempt(self, victims: Iterable[Workload], preemptor: Workload) -> None:
        """Adds victims of a preemptor. A victim that already had a preemptor gets the new one."""
        known = self.victims.setdefault(preemptor.cluster_queue.root, {})
        known.update(dict.fromkeys(victims, preemptor))

    def reserve(self, workload: Workload, amounts: Amounts, places: Sequence[Placed]) -> None:
        """Reserves quota and places for an entry until the cycle ends."""
        self._cache.tree.charge(workload.cluster_queue.node, amounts)
        for placed in places:
            placed.charge()
        self.reserved.append(Reservation(workload, amounts, places))

    def end(self) -> None:
        """Releases all reservations."""
        for workload, amounts, places in reversed(self.reserved):
            self._cache.tree.refund(workload.cluster_queue.node, amounts)
            for placed in places:
                placed.refund()
        self.reserved.clear()

    def gone(self, root: int) -> list[Workload]:
        """Returns the victims that can free quota or places for a tree.

        These are the victims in the tree, and the victims in other trees that have places in topologies.
        """
        return [
            victim
            for tree, those in self.victims.items()
            for victim in those
            if tree == root or victim.placed
        ]

    def without_victims(self, root: int, ask: Callable[[], _T]) -> _T:
        """Calls `ask` as if the victims of this cycle were already gone, and returns the result."""
        cache, tree, before = self._cache, self._cache.tree, self._cache.tree.usage.copy()
        left: dict[int, Holders] = {}  # who holds the quota of the queues with victims when these are gone
        for victim in self.victims[root]:
            node = victim.cluster_queue.node
            if node not in left:
                left[node] = Holders(victim.cluster_queue)
                left[node].become(cache.holders[node])
            left[node].remove_holder(victim)
            tree.refund(node, victim.usage)
        holders = {node: cache.holders[node] for node in left}
        cache.holders.update(left)
        answer = without([placed for victim in self.gone(root) for placed in victim.placed], ask)
        tree.usage[:] = before
        cache.holders.update(holders)
        return answer
