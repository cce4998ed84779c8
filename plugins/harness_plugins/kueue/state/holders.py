"""Keeps the workloads that hold quota of a ClusterQueue, and the preemption candidates in order."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from itertools import chain
from operator import attrgetter
from typing import final

from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload, rank_of

_RANK = attrgetter("rank")


@final
class Holders:
    """The workloads that hold quota of a ClusterQueue. This class does not change the quota tree.

    Attributes:
        workloads: the preemption candidates in order, regardless of the usage of LocalQueues.
        spared: the workloads that cannot be preempted yet, in the order in which they were added.
        evicted: the number of candidates that are already evicted. They are at the beginning of `workloads`.
        usages: for each usage, the number of candidates with exactly that usage.
    """

    def __init__(self, queue: ClusterQueueState) -> None:
        self.queue = queue
        self.workloads: list[Workload] = []
        self.spared: dict[Workload, None] = {}
        self.evicted = 0
        self.usages: dict[Amounts, int] = {}

    @property
    def everybody(self) -> Iterable[Workload]:
        """The candidates, followed by the other workloads."""
        return chain(self.workloads, self.spared) if self.spared else self.workloads

    def become(self, other: Holders) -> None:
        """Copies the content of another `Holders` object. Both objects contain the same workloads."""
        self.workloads, self.spared = other.workloads.copy(), other.spared.copy()
        self.usages, self.evicted = other.usages.copy(), other.evicted

    def renumber(self, numbers: Mapping[int, int]) -> None:
        """Renumbers the flavor-resources."""
        self.usages.clear()
        for workload in self.everybody:
            workload.usage = tuple(sorted((numbers[cell], amount) for cell, amount in workload.usage))
            workload.uses = sum(1 << number for cell, number in numbers.items() if workload.uses >> cell & 1)
            if not workload.spared:
                self.usages[workload.usage] = self.usages.get(workload.usage, 0) + 1

    def add_holder(self, workload: Workload) -> None:
        """Adds a workload."""
        if workload.spared:
            self.spared[workload] = None
            return
        workload.rank = rank_of(workload)
        insort(self.workloads, workload, key=_RANK)
        self.evicted += workload.evicted
        self.usages[workload.usage] = self.usages.get(workload.usage, 0) + 1

    def remove_holder(self, workload: Workload) -> None:
        """Removes a workload."""
        if workload.spared:
            del self.spared[workload]
            return
        at = bisect_left(self.workloads, workload.rank, key=_RANK)
        while self.workloads[at] is not workload:  # ranks are equal if UIDs are
            at += 1
        del self.workloads[at]
        self.evicted -= workload.evicted
        if self.usages[workload.usage] == 1:
            del self.usages[workload.usage]
        else:
            self.usages[workload.usage] -= 1
