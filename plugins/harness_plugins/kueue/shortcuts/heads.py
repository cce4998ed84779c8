"""Defines how the scheduler finds the heads of cycles, so that cycles without an effect can be skipped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol, final

from harness_plugins.kueue.rules.entry import Entry
from harness_plugins.kueue.rules.heads import AllHeads
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import Workload


class CycleHeads(NamedTuple):
    """The heads of the next cycle that must consider heads, and a summary of the skipped cycles before it.

    Attributes:
        workloads: the heads to consider, or [] if no cycle has any.
        inadmissible: whether other heads became inadmissible in the last skipped cycle.
        cycles: the number of cycles, including this one. In the skipped cycles, the only effect is that heads
            become inadmissible.
        number: the number of heads in these cycles, not counting resting heads.
    """

    workloads: list[Workload]
    inadmissible: bool
    cycles: int
    number: int


class Heads(Protocol):
    """Finds the heads of cycles."""

    @property
    def resting(self) -> int:
        """The number of heads that the next cycle would handle like the last cycle.

        They count as tried in every cycle.
        """

    @property
    def stirs(self) -> bool:
        """True if the next cycle may have to consider a head."""

    def add(self, pending: PendingQueue) -> None:
        """Activates a queue that has a head to try."""

    def join(self, pending: PendingQueue) -> None:
        """Takes over a queue with its head and inadmissible workloads from another `Heads` object."""

    def leave(self) -> None:
        """Requeues the workloads that must be tried again, before another `Heads` object takes over."""

    def reactivate(self, root: int) -> None:
        """Reactivates the heads of a tree after a change, because they could be handled differently now."""

    def requeue_inadmissible(self, root: int) -> None:
        """Makes the next cycle requeue the inadmissible workloads of a tree in which quota was freed."""

    def reason_changed(self, workload: Workload) -> None:
        """Makes a cycle consider a workload again, because its reason for waiting has changed.

        The cycle does so when the workload is next the head of its queue.
        """

    def waits(self, root: int) -> bool:
        """Returns True if a tree has heads to try."""

    def only(self, root: int) -> None:
        """Keeps only the heads of one tree. The heads of other trees are no longer considered."""

    def take(self) -> CycleHeads:
        """Returns the first workload of every queue that is not empty. The workloads stay in their queues."""

    def take_all(self) -> list[Workload]:
        """Returns the first workload of every queue for a cycle with second passes, which skips no heads."""

    def settle(self, entries: Sequence[Entry], left_out: Collection[Workload]) -> None:
        """Ends the cycle."""


@final
class EveryCycle:
    """Skips no cycle, and considers all heads."""

    def __init__(self, heads: AllHeads) -> None:
        self._heads = heads
        self.resting = 0
        self.stirs = True
        self.leave = heads.requeue
        self.requeue_inadmissible = heads.requeue_inadmissible
        self.waits = heads.waits
        self.only = heads.only
        self.take_all = heads.take

    def take(self) -> CycleHeads:
        """Returns the first workload of every queue that is not empty."""
        heads = self._heads.take()
        return CycleHeads(heads, inadmissible=False, cycles=1 if heads else 0, number=len(heads))

    def add(self, pending: PendingQueue) -> None:
        """Does nothing, like the next four methods, because every cycle considers all queues."""

    def join(self, pending: PendingQueue) -> None:
        """Does nothing."""

    def reactivate(self, root: int) -> None:
        """Does nothing."""

    def reason_changed(self, workload: Workload) -> None:
        """Does nothing."""

    def settle(self, entries: Sequence[Entry], left_out: Collection[Workload]) -> None:
        """Does nothing."""
