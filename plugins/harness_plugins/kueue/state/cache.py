"""Models the scheduler's cache of workloads that hold quota. It is updated in place and never copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import final

from harness.models.cluster import Cluster
from harness.models.quota import FlavorResource, QuotaTree
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState, inactive_reason
from harness_plugins.kueue.state.holders import Holders
from harness_plugins.kueue.state.workload import Workload

_NUMBER = attrgetter("number")


@final
class Cache:
    """The quota tree, its queues, and the workloads that hold quota of these queues.

    Args:
        also: flavor-resources that are in use although no queue has quota for them.
        before: the cache before the cluster changed, or None at the start. Workloads keep their quota, and
            the queue objects are reused.

    Attributes:
        at: the queue at each node of the quota tree, or None for cohorts.
        holders: by the node of the queue, the workloads that hold its quota.
        cohorts: for each node, the cohorts right below it.
        members: for each node, the usable queues right below it, by number. Here, a queue without a cohort is
            below its own node.
        height: for each node, the number of levels of usable nodes below it.
        version: for each node, how often the workloads that hold quota at it or below it have changed.
        unmarked_version: like `version` of a root node, but evictions that keep the order of the queue's
            candidates do not count.
        changed: the queues, by node, that have changed since a reader last cleared this mapping. A queue has
            changed if it is new or its workloads have changed.
    """

    def __init__(
        self, cluster: Cluster, *, also: Iterable[FlavorResource] = (), before: Cache | None = None
    ) -> None:
        used = () if before is None else before.used()
        tree = self.tree = QuotaTree(cluster.cluster_queues, cluster.cohorts, also={*also, *used})
        self.queues: dict[str, ClusterQueueState] = {}
        self.at: list[ClusterQueueState | None] = [None] * len(tree.names)
        self.holders: dict[int, Holders] = {}
        self.members: list[list[ClusterQueueState]] = [[] for _ in tree.names]
        self.cohorts: list[list[int]] = [
            [below for below in children if below < len(tree.cohorts)] for children in tree.children
        ]
        for number, (name, spec) in enumerate(cluster.cluster_queues.items()):
            node = tree.queues[name]
            usable = not inactive_reason(spec, cluster.flavors)
            known = None if before is None else before.queues.get(name)
            queue = known or ClusterQueueState(name)
            holders = Holders(queue) if known is None or before is None else before.holders[known.node]
            queue.be(spec, number, node, tuple(tree.path(node)), usable=usable)
            self.queues[name] = self.at[node] = queue
            self.holders[node] = holders
            if usable:
                self.members[queue.above].append(queue)
        self.height: list[int] = [0] * len(tree.names)
        for node in range(len(tree.names) - 1, -1, -1):
            present = self.at[node]
            if tree.parent[node] >= 0 and (present is None or present.usable):
                above = tree.parent[node]
                self.height[above] = max(self.height[above], self.height[node] + 1)
        self.version: list[int] = [0] * len(tree.names)
        self.unmarked_version: list[int] = [0] * len(tree.names)
        self.changed: dict[int, ClusterQueueState] = {queue.node: queue for queue in self.queues.values()}
        if before is not None:
            self._take_over(before)

    def used(self) -> Iterator[FlavorResource]:
        """Yields the flavor-resources that admitted workloads use."""
        uses = 0
        for workload in self.everybody():
            uses |= workload.uses
        return (each for cell, each in enumerate(self.tree.flavor_resources) if uses >> cell & 1)

    def everybody(self) -> Iterator[Workload]:
        """Yields all workloads that hold quota."""
        for holders in self.holders.values():
            yield from holders.everybody

    def _take_over(self, before: Cache) -> None:
        """Charges all usage again, because the new quotas determine how much of it counts for the cohorts."""
        tree = self.tree
        same = tree.flavor_resources == before.tree.flavor_resources
        numbers = {
            cell: number
            for cell, each in enumerate(before.tree.flavor_resources)
            if (number := tree.cell(*each)) is not None
        }
        for node, holders in self.holders.items():
            if not same:
                holders.renumber(numbers)
            for workload in holders.everybody:
                tree.charge(node, workload.usage)

    def members_below(self, node: int) -> list[ClusterQueueState]:
        """Returns the usable queues below a cohort on all levels, by number."""
        found = list(self.members[node])
        for below in self.cohorts[node]:
            found += self.members_below(below)
        return sorted(found, key=_NUMBER)

    def amounts(self, flavors: Iterable[tuple[str, str, int]]) -> tuple[Amounts, int]:
        """Returns the amounts by flavor-resource, and a bit mask of all given flavor-resources.

        Flavor-resources that are not in the tree are ignored.
        """
        total: dict[int, int] = {}
        for flavor, resource, amount in flavors:
            cell = self.tree.cell(flavor, resource)
            if cell is not None:
                total[cell] = total.get(cell, 0) + amount
        return tuple(sorted(total.items())), sum(1 << cell for cell in total)

    def hold(
        self, workload: Workload, queue: ClusterQueueState, usage: Amounts, uses: int, reserved: int
    ) -> None:
        """Adds a workload that takes quota from a queue."""
        workload.cluster_queue = queue
        workload.has_quota = True
        workload.usage = usage
        workload.uses = uses
        workload.reserved = reserved
        self.tree.charge(queue.node, usage)
        self.holders[queue.node].add_holder(workload)
        self._changed(queue)

    def drop(self, workload: Workload) -> None:
        """Removes a workload and releases its quota."""
        queue = workload.cluster_queue
        self.holders[queue.node].remove_holder(workload)
        self.tree.refund(queue.node, workload.usage)
        workload.has_quota = False
        workload.evicted = workload.spared = False
        self._changed(queue)

    def reclaim(self, workload: Workload, usage: Amounts) -> None:
        """Reduces the usage of a workload after some of its pods have finished."""
        queue = workload.cluster_queue
        holders = self.holders[queue.node]
        holders.remove_holder(workload)
        self.tree.refund(queue.node, workload.usage)
        self.tree.charge(queue.node, usage)
        workload.usage = usage
        holders.add_holder(workload)
        self._changed(queue)

    def evict(self, workload: Workload) -> None:
        """Marks a workload as evicted. The workload still holds its quota."""
        queue = workload.cluster_queue
        holders = self.holders[queue.node]
        stays = workload in holders.workloads[holders.evicted : holders.evicted + 1]
        holders.remove_holder(workload)
        workload.spared = False
        workload.evicted = True
        holders.add_holder(workload)
        stays = stays and holders.workloads[holders.evicted - 1] is workload and not queue.spec.by_usage
        self._changed(queue, stays=stays)

    def spare(self, workload: Workload, *, spared: bool) -> None:
        """Excludes a workload from the preemption candidates, or includes it again."""
        holders = self.holders[workload.cluster_queue.node]
        holders.remove_holder(workload)
        workload.spared = spared
        holders.add_holder(workload)
        self._changed(workload.cluster_queue)

    def reorder(self, queue: ClusterQueueState, *, stays: bool = False) -> None:
        """Records that the candidates of a queue have a new order, although the workloads are the same.

        `stays` is True if only their marks have changed, and not their order.
        """
        version = self.version
        version[queue.node] += 1
        for cohort in queue.path:
            version[cohort] += 1
        if not stays:
            self.unmarked_version[queue.root] += 1

    def _changed(self, queue: ClusterQueueState, *, stays: bool = False) -> None:
        queue.generation += 1
        self.reorder(queue, stays=stays)
        self.changed[queue.node] = queue
