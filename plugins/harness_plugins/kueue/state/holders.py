"""The workloads that hold quota of a ClusterQueue: candidates for preemption in their order, and others."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import final

from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Rank, Workload, rank_of


@final
class Holders:
    """The holders of a ClusterQueue's quota; usage in the quota tree is not touched here.

    Attributes:
        queue: the ClusterQueue.
        workloads: candidates for preemption, in their order without regard to the usage of LocalQueues.
        spared: those that are no candidates yet, in the order in which they were entered.
        evicted: how many of them, at the front, are already leaving.
        usages: the holdings of candidates -> how many candidates hold exactly that.
    """

    __slots__ = ("_ranks", "evicted", "queue", "spared", "usages", "workloads")

    def __init__(self, queue: ClusterQueueState) -> None:
        self.queue = queue
        self.workloads: list[Workload] = []
        self.spared: dict[Workload, None] = {}
        self._ranks: list[Rank] = []  # of each of them: to look for one needs no calls back into Python
        self.evicted = 0
        self.usages: dict[Amounts, int] = {}

    @property
    def everybody(self) -> Iterable[Workload]:
        """Candidates, then the others."""
        return chain(self.workloads, self.spared) if self.spared else self.workloads

    def renumber(self, numbers: Mapping[int, int]) -> None:
        """Flavor-resources have other numbers from now on."""
        self.usages.clear()
        for workload in self.everybody:
            workload.usage = tuple(sorted((numbers[cell], amount) for cell, amount in workload.usage))
            workload.uses = sum(1 << number for cell, number in numbers.items() if workload.uses >> cell & 1)
            if not workload.spared:
                self.usages[workload.usage] = self.usages.get(workload.usage, 0) + 1

    def add_holder(self, workload: Workload) -> None:
        """Enter a workload."""
        if workload.spared:
            self.spared[workload] = None
            return
        rank = workload.rank = rank_of(workload)
        at = bisect_right(self._ranks, rank)
        self._ranks.insert(at, rank)
        self.workloads.insert(at, workload)
        self.evicted += workload.evicted
        self.usages[workload.usage] = self.usages.get(workload.usage, 0) + 1

    def remove_holder(self, workload: Workload) -> None:
        """Take a workload out."""
        if workload.spared:
            del self.spared[workload]
            return
        at = bisect_left(self._ranks, workload.rank)
        while self.workloads[at] is not workload:  # equal UIDs
            at += 1
        del self._ranks[at], self.workloads[at]
        self.evicted -= workload.evicted
        if self.usages[workload.usage] == 1:
            del self.usages[workload.usage]
        else:
            self.usages[workload.usage] -= 1
