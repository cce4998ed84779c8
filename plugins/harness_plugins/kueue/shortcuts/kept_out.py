"""Finds heads that fail only because futile heads (see `in_vain`) reserve quota before them.

Futile heads are heads that would be refused again because of a lack of quota. The heads after them fail again
if the next futile heads also reserve enough quota. Results are valid for one version of the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import final

from harness_plugins.kueue.rules.admission import kept_for_later
from harness_plugins.kueue.rules.entry import FAILED_AFTER_NOMINATION, NO_LONGER_FITS
from harness_plugins.kueue.rules.entry_order import ClassicOrder, FairOrder
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_assigner import FIT, Assignment
from harness_plugins.kueue.rules.preemption import fits
from harness_plugins.kueue.rules.preemption_oracle import quota_of
from harness_plugins.kueue.shortcuts.in_vain import Run
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

_FEWER = (16, 4, 1)
"""How many of the first heads of a run to try if not all of its heads block another head."""

_KEPT_OUT = FAILED_AFTER_NOMINATION + NO_LONGER_FITS


@final
class KeptOut:
    """Finds the number of cycles in which futile heads (see `in_vain`) block another head."""

    def __init__(
        self,
        cache: Cache,
        order: ClassicOrder | FairOrder,
        gates: Gates,
        assigned: Callable[[Workload], Assignment],
    ) -> None:
        self._cache = cache
        self._tree = cache.tree
        self._order = order
        # Whether entries that borrow equally and have equal shares are ordered as in a queue.
        self._by_age = gates.priority_sorting_within_cohort and not gates.prioritize_preemptor_workloads
        self._assigned = assigned

    def cycles(self, runs: Iterable[Run], head: Workload) -> int:
        """Returns the number of next cycles in which `head` fails again because futile heads reserve quota.

        `runs` contains the futile heads that may reserve quota. Returns 0 if the number is not known. The
        check compares `head` with a whole run of futile heads. The smallest request of the run must reserve
        enough, and the run's last request must be served before `head`. If this is not true for all heads of
        a run, the first heads of the run are checked.
        """
        queue = head.cluster_queue
        # The order of entries from different cohorts depends on the shares of the cohorts.
        if head.told.last != _KEPT_OUT or head.last_assignment is not None or len(queue.path) != 1:
            return 0
        keepers = [each for each in runs if each.pending.queue.path == queue.path]
        if not keepers or not self._by_age or head.namespace_mismatch:
            return 0
        assignment = self._assigned(head)
        if assignment.mode != FIT or assignment.placed or assignment.untried:
            return 0
        standing = self._standing(queue.node, assignment.usage, assignment.borrowing)
        turn = *standing, -head.priority, head.timestamp, head.uid
        return max(self._keeps_out(each, queue.node, assignment.usage, turn) for each in keepers)

    def _keeps_out(self, run: Run, node: int, usage: Amounts, turn: tuple[object, ...]) -> int:
        """Returns for how many cycles a run of futile heads blocks the other head.

        The queue of the other head is in the same cohort. `turn` is the sort key of the other head in the
        order of entries.
        """
        if self._all_keep_out(run, node, usage, turn):
            return run.number
        for number in _FEWER:
            if number < run.number:
                fewer = run.first(number)
                if self._all_keep_out(fewer, node, usage, turn):
                    return number
        return 0

    def _all_keep_out(self, run: Run, node: int, usage: Amounts, turn: tuple[object, ...]) -> bool:
        if len(run.parts) != 1:
            return False
        (((flavors, wanting), bounds),) = run.parts.items()
        if not wanting or len(flavors) != 1:
            return False
        own, tree = run.pending.queue, self._tree
        least = tuple(zip(flavors[0], bounds.least[0], strict=True))
        most = tuple(zip(flavors[0], bounds.most[0], strict=True))
        highest = self._height(own, most)
        standing = self._standing(own.node, most, highest)
        if not (*standing, *run.last) < turn:
            return False
        borrows = bool(highest and (least == most or self._height(own, least)))
        kept = self._kept(own, least, borrows=borrows, or_so=bool(highest))
        tree.charge(own.node, kept)
        keeps_out = not fits(tree, node, usage, borrowing=True)
        tree.refund(own.node, kept)
        return keeps_out

    def _standing(self, node: int, usage: Amounts, borrowing: int) -> tuple[object, ...]:
        """Returns the part of an entry's sort key before priority and age."""
        order = self._order
        if isinstance(order, ClassicOrder):
            return (borrowing,)
        return order.standing(node, node, usage, borrowing)

    def _kept(self, queue: ClusterQueueState, least: Amounts, *, borrows: bool, or_so: bool) -> Amounts:
        """Returns the least quota that any head of a run reserves, where no request is below `least`.

        `borrows` says whether all heads borrow, and `or_so` whether some heads may borrow.
        """
        kept = kept_for_later(self._tree, queue, least, borrows=borrows)
        if borrows or not or_so:
            return kept
        both = zip(kept, kept_for_later(self._tree, queue, least, borrows=True), strict=True)
        return tuple((cell, min(one, other)) for (cell, one), (_, other) in both)

    def _height(self, queue: ClusterQueueState, amounts: Amounts) -> int:
        return max([quota_of(self._cache, queue, *each)[1][0] for each in amounts], default=0)
