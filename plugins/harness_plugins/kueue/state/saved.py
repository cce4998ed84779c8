"""Saves the state of one tree of ClusterQueues, so that cycles that were tried out can be undone."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, final

from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.holders import Holders
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import Workload

_FIELDS = (
    "timestamp", "has_quota", "usage", "uses", "reserved", "evicted", "spared", "rank", "admission",
    "admissions", "wanted", "unhealthy", "ticket", "last_assignment", "namespace_mismatch", "told",
)  # fmt: skip
_of_workload = attrgetter(*_FIELDS)


@final
class SavedTree:
    """The state of the queues of one tree, and of their workloads, at the time when this object is created.

    The usage of quota is not part of the state. Cycles are therefore tried out with another quota tree.
    Workloads that hold quota are saved one by one, because few of them change.
    """

    def __init__(self, cache: Cache, pending: Sequence[PendingQueue]) -> None:
        self._queues = [(each.queue, each.queue.spec, each.queue.generation) for each in pending]
        self._pending: list[tuple[PendingQueue, PendingQueue]] = []
        self._holders: list[tuple[Holders, Holders]] = []
        waiting: list[Workload] = []
        for each in pending:
            queue, holders = PendingQueue(each.queue), Holders(each.queue)
            queue.become(each)
            holders.become(cache.holders[each.queue.node])
            self._pending.append((each, queue))
            self._holders.append((cache.holders[each.queue.node], holders))
            waiting += (*each.active(), *each.inadmissible())
        self._of_classes = [(each, each.equivalence_class) for each in waiting if each.ticket]
        self._workloads: list[tuple[Workload, tuple[Any, ...]]]
        self._workloads = [(each, _of_workload(each)) for each in waiting]

    def keep(self, workload: Workload) -> None:
        """Saves a workload that holds quota, before it is evicted."""
        self._workloads.append((workload, _of_workload(workload)))

    def restore(self) -> None:
        """Gives the queues and workloads their saved state. A state can be restored once."""
        for queue, spec, generation in self._queues:
            queue.spec, queue.generation = spec, generation
        for pending, before in self._pending:
            pending.become(before)
        for holders, others in self._holders:
            holders.become(others)
        for workload, equivalence_class in self._of_classes:
            workload.equivalence_class = equivalence_class
        while self._workloads:  # the state that was saved first is restored last
            workload, of_workload = self._workloads.pop()
            for field, value in zip(_FIELDS, of_workload, strict=True):
                setattr(workload, field, value)
