"""Who holds which quota: the scheduler's cache, kept up to date event by event, never copied."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from operator import attrgetter
from typing import final

from harness.cluster.model import Cluster, ClusterQueue
from harness.models.quota import FlavorResource, QuotaTree
from harness_plugins.kueue.workload import Amounts, Workload, rank_of

_RANK = attrgetter("rank")


@final
class Queue:
    """A ClusterQueue with the workloads that hold its quota.

    Attributes:
        spec: what its manifest says.
        node: its node in the quota tree.
        root: the node at the top of its tree; equal to `node` without a cohort.
        path: the cohorts above it, nearest first.
        below: cohort above it -> the node right below that one on the way to it.
        usable: whether it takes part in scheduling; a stopped queue does not, but its quota is still lent.
        holders: the workloads that hold its quota, in the order of candidates for preemption but for the
            usage of LocalQueues.
        evicted: how many of them, at the front, are going already.
        usages: what holders hold -> how many hold just that.
        generation: how often its holders changed; outdates what flavor assignment remembers.
    """

    __slots__ = (
        "below",
        "evicted",
        "generation",
        "holders",
        "name",
        "node",
        "path",
        "root",
        "spec",
        "usable",
        "usages",
    )

    def __init__(self, spec: ClusterQueue, node: int, path: tuple[int, ...], *, usable: bool) -> None:
        self.spec = spec
        self.name = spec.name
        self.node = node
        self.path = path
        self.below = dict(zip(path, (node, *path), strict=False))
        self.root = path[-1] if path else node
        self.usable = usable
        self.holders: list[Workload] = []
        self.evicted = 0
        self.usages: dict[Amounts, int] = {}
        self.generation = 0

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"


@final
class Cache:
    """The quota tree, the queues in it and who holds their quota.

    Args:
        cluster: the queues, cohorts and flavors.
        also: flavor-resources that are used although nobody has a quota for them.

    Attributes:
        tree: quotas and usage.
        queues: by name.
        at: node of the tree -> its queue, None for cohorts.
        members: node of a root -> the usable queues of its tree.
        height: node -> how many levels of usable nodes are below it.
        version: node of a root -> how often anything in its tree changed.
        changed: node -> its queue, if it is new or its holders changed since this was emptied.
    """

    __slots__ = ("_watching", "at", "changed", "height", "members", "queues", "tree", "version")

    def __init__(self, cluster: Cluster, *, also: Iterable[FlavorResource] = ()) -> None:
        tree = self.tree = QuotaTree(cluster.cluster_queues, cluster.cohorts, also=also)
        self.queues: dict[str, Queue] = {}
        self.at: list[Queue | None] = [None] * len(tree.names)
        self.members: dict[int, list[Queue]] = {root: [] for root in tree.root}
        for name, spec in cluster.cluster_queues.items():
            node = tree.queues[name]
            flavors = (quotas.flavor for group in spec.resource_groups for quotas in group.flavors)
            usable = spec.stop_policy == "None" and all(flavor in cluster.flavors for flavor in flavors)
            queue = Queue(spec, node, tuple(tree.path(node)), usable=usable)
            self.queues[name] = self.at[node] = queue
            if usable:
                self.members[queue.root].append(queue)
        self.height: list[int] = [0] * len(tree.names)
        for node in range(len(tree.names) - 1, -1, -1):
            present = self.at[node]
            if tree.parent[node] >= 0 and (present is None or present.usable):
                above = tree.parent[node]
                self.height[above] = max(self.height[above], self.height[node] + 1)
        self.version: list[int] = [0] * len(tree.names)
        self._watching: list[dict[int, Queue]] = []
        self.changed: dict[int, Queue] = self.watch()

    def amounts(self, flavors: Iterable[tuple[str, str, int]]) -> tuple[Amounts, int]:
        """Amounts of (flavor, resource, amount) per flavor-resource, and the mask of all that are named.

        Flavor-resources without room in the tree are left out.
        """
        total: dict[int, int] = {}
        for flavor, resource, amount in flavors:
            cell = self.tree.cell(flavor, resource)
            if cell is not None:
                total[cell] = total.get(cell, 0) + amount
        return tuple(sorted(total.items())), sum(1 << cell for cell in total)

    def watch(self) -> dict[int, Queue]:
        """Another record like `changed`, for one more reader, who empties it."""
        record = {queue.node: queue for queue in self.queues.values()}
        self._watching.append(record)
        return record

    def hold(self, workload: Workload, queue: Queue, usage: Amounts, uses: int, reserved: int) -> None:
        """A workload takes quota of a queue."""
        workload.queue = queue
        workload.usage = usage
        workload.uses = uses
        workload.reserved = reserved
        self.tree.charge(queue.node, usage)
        self.enrol(workload, queue)
        self._changed(queue)

    def drop(self, workload: Workload) -> None:
        """A workload gives its quota back."""
        queue = self.strike(workload)
        self.tree.refund(queue.node, workload.usage)
        workload.queue = None
        workload.evicted = False
        self._changed(queue)

    def reclaim(self, workload: Workload, usage: Amounts) -> None:
        """A workload goes on with less: some of its pods have ended."""
        queue = self.strike(workload)
        self.tree.refund(queue.node, workload.usage)
        self.tree.charge(queue.node, usage)
        workload.usage = usage
        self.enrol(workload, queue)
        self._changed(queue)

    def evict(self, workload: Workload) -> None:
        """A workload was told to go; it still holds its quota."""
        queue = self.strike(workload)
        workload.evicted = True
        self.enrol(workload, queue)
        self._changed(queue)

    def enrol(self, workload: Workload, queue: Queue) -> None:
        """Enter a workload among the holders of a queue; usage is not touched."""
        workload.rank = rank_of(workload)
        insort(queue.holders, workload, key=_RANK)
        queue.evicted += workload.evicted
        queue.usages[workload.usage] = queue.usages.get(workload.usage, 0) + 1

    def strike(self, workload: Workload) -> Queue:
        """Take a workload out of its queue's holders; usage is not touched."""
        queue = workload.queue
        assert queue is not None
        at = bisect_left(queue.holders, workload.rank, key=_RANK)
        while queue.holders[at] is not workload:  # equal UIDs
            at += 1
        del queue.holders[at]
        queue.evicted -= workload.evicted
        if queue.usages[workload.usage] == 1:
            del queue.usages[workload.usage]
        else:
            queue.usages[workload.usage] -= 1
        return queue

    def reorder(self, queue: Queue) -> None:
        """Candidates of a queue stand in another order, although its holders are the same."""
        self.version[queue.root] += 1

    def _changed(self, queue: Queue) -> None:
        queue.generation += 1
        self.version[queue.root] += 1
        for record in self._watching:
            record[queue.node] = queue
