"""Finds futile heads. When a cycle serves a futile head, it only makes the head's class inadmissible.

Whether a head is futile again can be decided by comparing numbers. A futile head requests more of a
flavor-resource than is free, and more than preemption could free. For many consecutive heads, the smallest
requests are compared first. If even these are too large, none of the heads is considered.

A head is skipped if it was refused because of a lack of quota, and would be refused for the same reason
again. Results are valid for one version of the tree. The requests of heads are cached by content (see
`lacks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from operator import gt
from typing import final

from harness.base.units import INT64_MAX
from harness.models.quota import QuotaTree
from harness.models.told import Told
from harness_plugins.kueue.rules.admission import reserves
from harness_plugins.kueue.rules.entry import (
    FAILED_AFTER_NOMINATION,
    NO_PLACE,
    NO_PREEMPTION_CANDIDATES,
    NO_QUOTA,
)
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_assigner import Assignment
from harness_plugins.kueue.rules.fungibility import borrowing_first_of_all, preference_of
from harness_plugins.kueue.shortcuts.cached_no_fit import CachedNoFits
from harness_plugins.kueue.shortcuts.lacks import Flavors, Kind, Lack, Lacks, Parts, parts_of, take_in
from harness_plugins.kueue.shortcuts.no_targets import Reasons
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.line import Block
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import Workload

_FUTILE = frozenset((NO_QUOTA, NO_PREEMPTION_CANDIDATES, NO_PLACE))
"""The reasons that futile heads were refused for."""

_FEW = 4
"""If a queue has fewer classes, looking up each class costs less than comparing requests."""

_NO_REQUEST = -1, INT64_MAX + 1
"""The bounds of the requests in reach before any request was tried."""


@final
class Run:
    """Consecutive heads of a queue that would be refused again because of a lack of quota (futile heads).

    Attributes:
        number: the number of heads that were not skipped yet.
        parts: the smallest and the largest requests of the heads. It is empty if they are not known.
        reserves: whether a head may reserve quota that later entries then cannot use.
        assignment: the assignment of a single head, or None if it is not known.
        head: the first head that is left.
        block: the block of the heads in their queue, or None if there is a single head. The notes of the
            block are the quota that each head lacks.
        told: the new recorded reasons of a single head, or None if its reason for waiting stays the same.
    """

    __slots__ = ("_at", "assignment", "block", "head", "number", "parts", "pending", "reserves", "told")

    def __init__(
        self,
        pending: PendingQueue,
        head: Workload,
        parts: Parts,
        *,
        reserves: bool,
        block: Block | None = None,
        at: int = 0,
        number: int = 1,
        assignment: Assignment | None = None,
        told: Told | None = None,
    ) -> None:
        self.assignment = assignment
        self.told = told
        self.pending = pending
        self.head = head
        self.number = number
        self.block = block
        self._at = at  # the index of the first head in the block
        self.parts = parts
        self.reserves = reserves

    @property
    def last(self) -> tuple[int, int, str]:
        """The negated priority, queue order time and UID of the last head."""
        head = self.head
        if self.block is None:
            return -head.priority, head.timestamp, head.uid
        return self.block.entries[self._at + self.number - 1][:3]

    def first(self, number: int) -> Run:
        """Returns a run that consists of the first `number` heads that are left."""
        block, at = self.block, self._at
        parts = self.parts if block is None else parts_of(block.notes[at : at + number])
        return Run(self.pending, self.head, parts, reserves=self.reserves, block=block, at=at, number=number)

    def pass_over(self, number: int) -> None:
        """Marks the first `number` heads and their classes as inadmissible."""
        self.number -= number
        if self.block is None:
            self.pending.set_class_inadmissible(self.head.equivalence_class)
            if self.told is not None:
                self.head.told = self.told
            return
        start = self._at
        self._at += number
        self.pending.set_ahead_inadmissible(self.block.entries[start : self._at])
        if self.number:
            self.head = self.block.entries[self._at][4]


@final
class _Known:
    """What is known about the workloads in a block.

    Attributes:
        owner: the object that collected the data. Its notes in the block are the quota that each workload
            lacks, or None for a workload that does not wait for lack of quota.
        unnoticed: the number of changes of reasons in the queue that the owner had not noticed by then.
        parts: the bounds of these requests, possibly including workloads that are no longer in the block.
    """

    __slots__ = ("owner", "parts", "unnoticed")

    def __init__(self, owner: object, unnoticed: int, parts: Parts) -> None:
        self.owner = owner
        self.unnoticed = unnoticed
        self.parts = parts


@final
class _Room:
    """What a queue could get in one version of its tree.

    Attributes:
        version: the version of the tree.
        free: the available quota of the flavors that were considered.
        reach: by priority and flavor-resource, the largest request so far that might find targets, and the
            smallest one that cannot find any.
    """

    __slots__ = ("free", "reach", "version")

    def __init__(self, version: int) -> None:
        self.version = version
        self.free: dict[Flavors, Sequence[Sequence[int]]] = {}
        self.reach: dict[tuple[int, int], tuple[int, int]] = {}


@final
class InVain:
    """Finds heads that would be refused again because of a lack of quota (futile heads)."""

    def __init__(
        self,
        pending: Sequence[PendingQueue],
        lacks: Lacks,
        no_fits: CachedNoFits,
        reasons: Reasons,
        gates: Gates,
        tree: QuotaTree,
    ) -> None:
        self._tree = tree
        self._pending = pending
        self._lacks = lacks
        self._no_fits = no_fits
        self._reasons = reasons
        self._reserves = [reserves(each.queue, gates, marked=False) for each in pending]
        # For each queue, whether comparing numbers is enough to decide what its heads lack. Without the
        # FlavorFungibility gate, a head is tried once more if some of its pod sets fit.
        self._counts = [
            gates.scheduling_equivalence_hashing
            and gates.flavor_fungibility
            and preference_of(each.queue.spec.fungibility, gates) is not borrowing_first_of_all
            and not reasons.crashes(each.queue)
            for each in pending
        ]
        self._room = [_Room(-1) for _ in pending]
        self._unnoticed = [0] * len(pending)

    def run(self, pending: PendingQueue, head: Workload) -> Run | None:
        """Returns the first heads of a queue that would fail again, or None if the first head may succeed."""
        last = head.told.last
        if last in _FUTILE:
            run = self._by_numbers(pending, head) if len(pending.present) >= _FEW else None
            if run is not None:
                return run
        elif not str(last).startswith(FAILED_AFTER_NOMINATION):
            return None
        # Whether its class fails as before.
        found = self._no_fits.futile(head, pending, self._no_fits.version(pending.queue))
        if found is None:
            return None
        assignment, reserving, told = found
        return Run(pending, head, {}, reserves=reserving, assignment=assignment, told=told)

    def _by_numbers(self, pending: PendingQueue, head: Workload) -> Run | None:
        """Returns the heads at the front of a queue that lack quota by their numbers, or None."""
        number = pending.queue.number
        ahead = pending.ahead() if self._counts[number] else None
        if ahead is None:
            return self._alone(pending, head)
        block, at = ahead
        known = self._known(pending, block)
        parts, end, whole = known.parts, len(block.entries), all(block.notes)
        if not (whole and self._all_lack(pending.queue, head, parts)):
            end = self._first_in_reach(pending.queue, block, at)
            if end == at:
                return None
            if whole and end == len(block.entries):
                parts = known.parts = parts_of(block.notes)
        reserving = self._reserves[number] and any(wanting for _, wanting in parts)
        return Run(pending, head, parts, reserves=reserving, block=block, at=at, number=end - at)

    def reason_changed(self, workload: Workload) -> None:
        """Updates the quota that a workload is known to lack, as its reason for waiting may have changed."""
        pending = self._pending[workload.cluster_queue.number]
        if len(pending.present) < _FEW:
            self._unnoticed[pending.queue.number] += 1
            return
        found = pending.find(workload)
        if found is None:
            return
        block, at = found
        known, lack = self._known(pending, block), self._lacks.of(workload)
        if lack is not None and lack != block.notes[at]:
            take_in(known.parts, lack)
        block.notes[at] = lack

    def _alone(self, pending: PendingQueue, head: Workload) -> Run | None:
        """Returns a run that consists of the first head if it is futile, otherwise None."""
        queue = pending.queue
        if queue.strict:
            return None
        known = self._counts[queue.number] and pending.preemptor is not head
        lack = self._lacks.of(head) if known else None
        if lack is None or not self._lacks_again(queue, head, lack):
            return None
        parts: Parts = {}
        take_in(parts, lack)
        reserving = self._reserves[queue.number] and lack.kind.for_want_of_candidates
        return Run(pending, head, parts, reserves=reserving)

    def _known(self, pending: PendingQueue, block: Block) -> _Known:
        known, unnoticed = block.known, self._unnoticed[pending.queue.number]
        if not isinstance(known, _Known) or known.owner is not self or known.unnoticed != unnoticed:
            block.notes = [self._lacks.of(entry[4]) for entry in block.entries]
            known = block.known = _Known(self, unnoticed, parts_of(filter(None, block.notes)))
        return known

    # --- what is out of reach -----------------------------------------------------------------------------

    def _all_lack(self, queue: ClusterQueueState, first: Workload, parts: Parts) -> bool:
        for (flavors, wanting), bounds in parts.items():
            if not self._out_of_reach(queue, first, flavors, bounds.least, wanting=wanting):
                return False
        return True

    def _first_in_reach(self, queue: ClusterQueueState, block: Block, start: int) -> int:
        """Returns the index of the first entry from `start` on that may not lack what it lacked before."""
        kind: Kind | None = None
        short, over = 0, -1  # workloads of this kind that request more than `over` of `short` lack it, too
        entries = block.entries
        lacks: Iterator[Lack | None] = islice(block.notes, start, None)
        for index, lack in enumerate(lacks, start):
            if lack is None:
                return index
            if lack[0] is kind and lack[1][0][short] > over:
                continue
            if len(lack.kind.flavors) != 1:
                if not self._lacks_again(queue, entries[index][4], lack):
                    return index
                continue
            found = self._short(queue, entries[index][4], lack)
            if found is None:
                return index
            kind, (short, over) = lack.kind, found
        return len(entries)

    def _short(self, queue: ClusterQueueState, first: Workload, lack: Lack) -> tuple[int, int] | None:
        """Returns which amount of a single flavor is out of reach, and the bound above which all amounts are.

        Returns None if no amount is out of reach.
        """
        flavors, wanting = lack.kind
        free = self._free_of(queue, flavors)[0]
        reaches = wanting and queue.preempts
        for at, (cell, amount) in enumerate(zip(flavors[0], lack.amounts[0], strict=True)):
            if amount > free[at]:
                if not reaches:
                    return at, free[at]
                if not self._in_reach(queue, first, cell, amount, free[at]):
                    least = self._room[queue.number].reach[first.priority, cell][1]
                    return at, max(free[at], least - 1)
        return None

    def _lacks_again(self, queue: ClusterQueueState, first: Workload, lack: Lack) -> bool:
        (flavors, wanting), amounts = lack
        return self._out_of_reach(queue, first, flavors, amounts, wanting=wanting)

    def _out_of_reach(
        self,
        queue: ClusterQueueState,
        first: Workload,
        flavors: Flavors,
        amounts: Sequence[Sequence[int]],
        *,
        wanting: bool,
    ) -> bool:
        """Returns True if every flavor lacks some flavor-resource.

        `first` is the workload with the highest priority among the heads, `amounts` are the smallest requests
        for each flavor, and `wanting` says whether preemption might help.
        """
        free = self._free_of(queue, flavors)
        if not (wanting and queue.preempts):
            return all(any(map(gt, wanted, left)) for wanted, left in zip(amounts, free, strict=True))
        for cells, wanted, left in zip(flavors, amounts, free, strict=True):
            for cell, amount, each in zip(cells, wanted, left, strict=True):
                if amount > each and not self._in_reach(queue, first, cell, amount, each):
                    break
            else:
                return False
        return True

    def _in_reach(self, queue: ClusterQueueState, first: Workload, cell: int, amount: int, free: int) -> bool:
        """Returns `Reasons.reach`. If a request is out of reach, all larger ones are, too."""
        known = self._room[queue.number].reach
        most, least = known.get((first.priority, cell), _NO_REQUEST)
        if most < amount < least:
            if self._reasons.reach(queue, first, cell, amount, free):
                most = amount
            else:
                least = amount
            known[first.priority, cell] = most, least
        return amount <= most

    def _free_of(self, queue: ClusterQueueState, flavors: Flavors) -> Sequence[Sequence[int]]:
        """Returns how much of each flavor-resource of these flavors is available to a queue."""
        room, version = self._room[queue.number], self._no_fits.version(queue)
        if room.version != version:
            room = self._room[queue.number] = _Room(version)
        found = room.free.get(flavors)
        if found is None:
            available, node = self._tree.available, queue.node
            found = [[max(0, available(node, cell)) for cell in cells] for cells in flavors]
            room.free[flavors] = found
        return found
