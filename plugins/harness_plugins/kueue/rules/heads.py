"""The heads of a cycle: the first workload of every ClusterQueue that has a workload to try.

Upstream: `Heads` and `QueueInadmissibleWorkloads` in pkg/cache/queue/manager.go.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol, final

from harness_plugins.kueue.rules.entry import Entry
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import Workload


class CycleHeads(NamedTuple):
    """The heads of the next cycle that must consider a head, and of the skipped cycles before it.

    Attributes:
        workloads: the heads to consider; empty if no cycle has any.
        inadmissible: whether other heads became inadmissible in the last skipped cycle.
        cycles: the number of cycles; in all but the last, heads only became inadmissible.
        number: the number of heads in these cycles, without resting heads.
    """

    workloads: list[Workload]
    inadmissible: bool
    cycles: int
    number: int


class Heads(Protocol):
    """Finds the heads of cycles."""

    @property
    def resting(self) -> int:
        """The number of heads that would again change nothing. They count as tried in every cycle."""

    @property
    def stirs(self) -> bool:
        """Returns True if the next cycle may have a head to consider."""

    def add(self, pending: PendingQueue) -> None:
        """Activates a queue with a head to try."""

    def join(self, pending: PendingQueue) -> None:
        """Takes over a queue, with its head and its inadmissible workloads, from another finder of heads."""

    def leave(self) -> None:
        """Requeues the workloads that are to be tried again, before another finder of heads takes over."""

    def reactivate(self, root: int) -> None:
        """Reactivates the heads of a changed tree, which may act differently now."""

    def requeue_inadmissible(self, root: int) -> None:
        """Lets the next cycle requeue the inadmissible workloads of a tree in which quota became free."""

    def waits(self, root: int) -> bool:
        """Returns True if a tree has heads to try."""

    def take(self) -> CycleHeads:
        """Finds the first workload of every queue that is not empty; the workloads stay in their queues."""

    def take_all(self) -> list[Workload]:
        """Finds the first workload of every queue for a cycle with second passes, in which no head rests."""

    def settle(self, entries: Sequence[Entry], left_out: Collection[Workload]) -> None:
        """Ends the cycle.

        Args:
            entries: its heads with their outcomes.
            left_out: heads that became inadmissible without an entry.
        """


@final
class AllHeads:
    """Considers every queue in every cycle.

    Args:
        pending: the queues, by number.

    Attributes:
        resting: 0.
        stirs: True, because all queues are considered.
    """

    def __init__(self, pending: Sequence[PendingQueue]) -> None:
        self._pending = [each for each in pending if each.queue.usable]
        self._requeue: set[int] = set()
        self.resting = 0
        self.stirs = True

    def add(self, pending: PendingQueue) -> None:
        """Does nothing: every cycle considers all queues."""

    def join(self, pending: PendingQueue) -> None:
        """Does nothing: every cycle considers all queues."""

    def leave(self) -> None:
        """Requeues the workloads that are to be tried again, before another finder of heads takes over."""
        for pending in self._pending:
            if pending.queue.root in self._requeue:
                pending.requeue_inadmissible()
        self._requeue.clear()

    def reactivate(self, root: int) -> None:
        """Does nothing: every cycle considers all queues."""

    def requeue_inadmissible(self, root: int) -> None:
        """Lets the next cycle requeue the inadmissible workloads of a tree in which quota became free."""
        self._requeue.add(root)

    def waits(self, root: int) -> bool:
        """Returns True if a tree has heads to try."""
        return any(each.queue.root == root and each.first() is not None for each in self._pending)

    def take(self) -> CycleHeads:
        """Finds the first workload of every queue that is not empty."""
        heads = self.take_all()
        return CycleHeads(heads, inadmissible=False, cycles=1 if heads else 0, number=len(heads))

    def take_all(self) -> list[Workload]:
        """Returns the first workload of every queue that is not empty."""
        self.leave()
        return [head for pending in self._pending if (head := pending.first()) is not None]

    def settle(self, entries: Sequence[Entry], left_out: Collection[Workload]) -> None:
        """Does nothing: no head ever rests."""
