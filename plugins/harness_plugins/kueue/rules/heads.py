"""The heads of a cycle: the first workload of every ClusterQueue that has one to try.

Upstream: `Heads` and `QueueInadmissibleWorkloads` in pkg/cache/queue/manager.go.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol, final

from harness_plugins.kueue.rules.entry import Entry
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import Workload


class CycleHeads(NamedTuple):
    """The heads of the next cycle that must consider one, and of the cycles before it.

    Attributes:
        workloads: those to consider; empty if there is none in any cycle.
        inadmissible: whether others became inadmissible in the last of the skipped cycles.
        cycles: how many cycles there are; in all but the last one heads only became inadmissible.
        number: how many heads there are in them, except resting ones.
    """

    workloads: list[Workload]
    inadmissible: bool
    cycles: int
    number: int


class Heads(Protocol):
    """Finds the heads of cycles."""

    @property
    def resting(self) -> int:
        """The number of heads that would again do nothing. They count as tried in every cycle."""

    @property
    def stirs(self) -> bool:
        """Returns True if the next cycle may have a head to consider."""

    def add(self, pending: PendingQueue) -> None:
        """A queue has something to try."""

    def join(self, pending: PendingQueue) -> None:
        """Takes over a queue whose heads, and inadmissible workloads, were found in another way until now."""

    def leave(self) -> None:
        """Heads are found in another way from now on: requeues what was to be tried again."""

    def reactivate(self, root: int) -> None:
        """Something happened in a tree: its heads may act differently now."""

    def requeue_inadmissible(self, root: int) -> None:
        """Quota became free in a tree: its inadmissible workloads are tried again."""

    def waits(self, root: int) -> bool:
        """Returns True if a tree has heads to try."""

    def take(self) -> CycleHeads:
        """Finds the first workload of every queue that has any; they stay in their queues."""

    def take_all(self) -> list[Workload]:
        """Finds the first workload of every queue for a cycle with second passes, in which no head rests."""

    def settle(self, entries: Sequence[Entry], left_out: Collection[Workload]) -> None:
        """Ends the cycle.

        Args:
            entries: its heads with their outcomes.
            left_out: heads that were put aside without an entry.
        """


@final
class AllHeads:
    """Considers every queue in every cycle.

    Args:
        pending: the queues, by number.

    Attributes:
        resting: 0.
        stirs: True, since all queues are considered.
    """

    def __init__(self, pending: Sequence[PendingQueue]) -> None:
        self._pending = [each for each in pending if each.queue.usable]
        self._requeue: set[int] = set()
        self.resting = 0
        self.stirs = True

    def add(self, pending: PendingQueue) -> None:
        """Nothing to note."""

    def join(self, pending: PendingQueue) -> None:
        """Nothing to note."""

    def leave(self) -> None:
        """Heads are found in another way from now on: requeues what was to be tried again."""
        for pending in self._pending:
            if pending.queue.root in self._requeue:
                pending.requeue_inadmissible()
        self._requeue.clear()

    def reactivate(self, root: int) -> None:
        """Nothing to note."""

    def requeue_inadmissible(self, root: int) -> None:
        """Quota became free in a tree: its inadmissible workloads are tried again."""
        self._requeue.add(root)

    def waits(self, root: int) -> bool:
        """Returns True if a tree has heads to try."""
        return any(each.queue.root == root and each.first() is not None for each in self._pending)

    def take(self) -> CycleHeads:
        """Finds the first workload of every queue that has any."""
        heads = self.take_all()
        return CycleHeads(heads, inadmissible=False, cycles=1 if heads else 0, number=len(heads))

    def take_all(self) -> list[Workload]:
        """The first workload of every queue that has any."""
        self.leave()
        return [head for pending in self._pending if (head := pending.first()) is not None]

    def settle(self, entries: Sequence[Entry], left_out: Collection[Workload]) -> None:
        """Nothing to note."""
