"""The heads of a cycle, which are the first workloads of all ClusterQueues with a workload to try.

Upstream: `Heads` and `QueueInadmissibleWorkloads` in pkg/cache/queue/manager.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import Workload


class AllHeads:
    """Finds the heads of cycles, and considers every queue in every cycle."""

    def __init__(self, pending: Sequence[PendingQueue]) -> None:
        self._pending = [each for each in pending if each.queue.usable]
        self._to_requeue: set[int] = set()

    def requeue_inadmissible(self, root: int) -> None:
        """Makes the next cycle requeue the inadmissible workloads of a tree in which quota was freed."""
        self._to_requeue.add(root)

    def requeue(self) -> None:
        """Requeues the inadmissible workloads that the next cycle must try again."""
        for pending in self._pending:
            if pending.queue.root in self._to_requeue:
                pending.requeue_inadmissible()
        self._to_requeue.clear()

    def waits(self, root: int) -> bool:
        """Returns True if a tree has heads to try."""
        return any(each.queue.root == root and each.first() is not None for each in self._pending)

    def only(self, root: int) -> None:
        """Keeps only the queues of one tree. The queues of other trees are no longer considered."""
        self._pending = [each for each in self._pending if each.queue.root == root]

    def take_all(self) -> list[Workload]:
        """Returns the first workload of every queue that is not empty. The workloads stay in their queues."""
        self.requeue()
        return [head for pending in self._pending if (head := pending.first()) is not None]
