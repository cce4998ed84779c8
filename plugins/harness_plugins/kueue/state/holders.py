"""The workloads that hold quota of a ClusterQueue, in the order of candidates for preemption."""

from __future__ import annotations

from bisect import bisect_left, insort
from operator import attrgetter
from typing import final

from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload, rank_of

_RANK = attrgetter("rank")


@final
class Holders:
    """Who holds quota of a ClusterQueue; usage in the quota tree is not touched here.

    Attributes:
        queue: the ClusterQueue.
        workloads: in the order of candidates for preemption but for the usage of LocalQueues.
        evicted: how many of them, at the front, are going already.
        usages: what they hold -> how many hold just that.
    """

    __slots__ = ("evicted", "queue", "usages", "workloads")

    def __init__(self, queue: ClusterQueueState) -> None:
        self.queue = queue
        self.workloads: list[Workload] = []
        self.evicted = 0
        self.usages: dict[Amounts, int] = {}

    def add_holder(self, workload: Workload) -> None:
        """Enter a workload."""
        workload.rank = rank_of(workload)
        insort(self.workloads, workload, key=_RANK)
        self.evicted += workload.evicted
        self.usages[workload.usage] = self.usages.get(workload.usage, 0) + 1

    def remove_holder(self, workload: Workload) -> None:
        """Take a workload out."""
        at = bisect_left(self.workloads, workload.rank, key=_RANK)
        while self.workloads[at] is not workload:  # equal UIDs
            at += 1
        del self.workloads[at]
        self.evicted -= workload.evicted
        if self.usages[workload.usage] == 1:
            del self.usages[workload.usage]
        else:
            self.usages[workload.usage] -= 1
