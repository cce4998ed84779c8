"""Finds the heads of cycles without shortcuts. `RestingHeads` has the same methods, and skips cycles."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, final

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


@final
class EveryCycle(AllHeads):
    """Skips no cycle, and considers all heads. See `RestingHeads` for the methods."""

    resting = 0
    stirs = True

    def take(self) -> CycleHeads:
        """Returns the first workload of every queue that is not empty."""
        heads = self.take_all()
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
