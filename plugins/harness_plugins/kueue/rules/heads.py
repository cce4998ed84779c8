"""The heads of a cycle: the first workload of every ClusterQueue that has one to try.

Upstream: `Heads` and `QueueInadmissibleWorkloads` in pkg/cache/queue/manager.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol, final

from harness_plugins.kueue.rules.entry import Entry
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import Workload


class CycleHeads(NamedTuple):
    """The heads of the next cycle in which one has to be looked at, and of the cycles before it.

    Attributes:
        workloads: those that are to be looked at; empty if there is none in any cycle.
        inadmissible: whether others became inadmissible in the last of the cycles without a look.
        cycles: how many cycles there are; in all but the last one heads only became inadmissible.
        number: how many heads there are in them, but for those that rest.
    """

    workloads: list[Workload]
    inadmissible: bool
    cycles: int
    number: int


class Heads(Protocol):
    """Finds the heads of cycles."""

    @property
    def resting(self) -> int:
        """How many heads would do the same again: nothing. They count as tried in every cycle."""

    @property
    def stirs(self) -> bool:
        """Whether the next cycle may have a head to look at."""

    def add(self, pending: PendingQueue) -> None:
        """A queue has something to try."""

    def join(self, pending: PendingQueue) -> None:
        """Heads of a queue, and what is inadmissible in it, were found in another way until now."""

    def leave(self) -> None:
        """Heads are found in another way from now on: what was to be tried again is requeued."""

    def reactivate(self, root: int) -> None:
        """Something happened in a tree: its heads may do something else now."""

    def requeue_inadmissible(self, root: int) -> None:
        """Quota became free in a tree: what is inadmissible there is to be tried again."""

    def waits(self, root: int) -> bool:
        """Whether a tree has heads to try."""

    def take(self) -> CycleHeads:
        """Find the first workload of every queue that has any; they stay in their queues."""

    def take_all(self) -> list[Workload]:
        """The same for a cycle in which others are tried beside them: each is looked at, and none rests."""

    def settle(self, entries: Iterable[Entry], left_out: Collection[Workload]) -> None:
        """The cycle is over.

        Args:
            entries: what became of its heads.
            left_out: heads that were put aside without an entry.
        """


@final
class AllHeads:
    """Looks at every queue in every cycle.

    Args:
        pending: the queues, by number.

    Attributes:
        resting: 0.
        stirs: True, since all queues are looked at.
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
        """Heads are found in another way from now on: what was to be tried again is requeued."""
        for pending in self._pending:
            if pending.queue.root in self._requeue:
                pending.requeue_inadmissible()
        self._requeue.clear()

    def reactivate(self, root: int) -> None:
        """Nothing to note."""

    def requeue_inadmissible(self, root: int) -> None:
        """Quota became free in a tree: what is inadmissible there is to be tried again."""
        self._requeue.add(root)

    def waits(self, root: int) -> bool:
        """Whether a tree has heads to try."""
        return any(each.queue.root == root and each.first() is not None for each in self._pending)

    def take(self) -> CycleHeads:
        """Find the first workload of every queue that has any."""
        heads = self.take_all()
        return CycleHeads(heads, inadmissible=False, cycles=1 if heads else 0, number=len(heads))

    def take_all(self) -> list[Workload]:
        """The first workload of every queue that has any."""
        self.leave()
        return [head for pending in self._pending if (head := pending.first()) is not None]

    def settle(self, entries: Iterable[Entry], left_out: Collection[Workload]) -> None:
        """Nothing to note."""
