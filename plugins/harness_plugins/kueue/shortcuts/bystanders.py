"""Orders the entries of a cycle among futile heads (see `in_vain`), without nominating the futile heads.

When a futile head is served, nothing changes for other entries. But with fair sharing, it takes part in the
tournament of shares, and can delay other heads below the same cohorts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, final

from harness_plugins.kueue.rules.entry import NO_QUOTA, Entry, Order
from harness_plugins.kueue.rules.flavor_assigner import Assignment
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import Workload

Bystander: TypeAlias = tuple[Workload, Assignment | None]
"""A futile head, and its assignment if it is known."""


@final
class Bystanders:
    """An order in which futile heads take part.

    Attributes:
        heads: the futile heads of the cycle that may delay other heads.
    """

    def __init__(
        self, order: Order, pending: Sequence[PendingQueue], assigned: Callable[[Workload], Assignment]
    ) -> None:
        self._order = order
        self._pending = pending
        self._assigned = assigned
        self.heads: list[Bystander] = []

    def __call__(self, entries: list[Entry]) -> Iterator[Entry]:
        """Yields the entries in order, and also some futile heads, which start with a reason."""
        queues = [entry.workload.cluster_queue for entry in entries if not entry.reason] if self.heads else ()
        if len(queues) < 2:
            return self._order(entries)
        heads = self.heads
        if len({queue.root for queue in queues}) == 1:
            cohorts = {cohort for queue in queues for cohort in queue.path[:-1]}
            heads = [each for each in heads if not cohorts.isdisjoint(each[0].cluster_queue.path)]
        return self._order([*entries, *[self._entry(*each) for each in heads]])

    def _entry(self, head: Workload, assignment: Assignment | None) -> Entry:
        marked = self._pending[head.cluster_queue.number].preemptor is head
        entry = Entry(head, assignment or self._assigned(head), marked=marked)
        entry.reason = NO_QUOTA
        return entry
