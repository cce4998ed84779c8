"""Heads that rest: they would only do the same again, so the cycle does not look at them.

Trees of cohorts have nothing to do with each other. Those that take room of topologies from each other count
as one tree here. A cycle may only mark heads inadmissible in a tree, without an effect on the other heads of
the tree. Then the next cycle would go the same way for those that are left: they rest. They count as tried in
every cycle, without work, until something happens in their tree, or another head has to be looked at there.
Heads of a class that is known not to fit yet become inadmissible without a look, too. Where all in a queue
do, nothing is done but to count them, as if one class had become so in every cycle.

Valid for the version of a tree: everything that changes it reactivates its heads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import final

from harness_plugins.kueue.rules.entry import Entry
from harness_plugins.kueue.rules.heads import CycleHeads
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import Workload

_NONE = CycleHeads([], inadmissible=False, cycles=0, number=0)


@final
class RestingHeads:
    """Finds the heads of cycles that have to be looked at.

    Args:
        pending: the queues, by number.
        still_inadmissible: whether nothing would come of a head's turn but that it becomes inadmissible with
            its class.
        all_in_vain: of a queue in which everything is inadmissible, how many classes it has if that is so of
            all of them, else 0.
        by_name: whether the names of all heads decide which tree's turn it is when several trees have some.
            In trees with cohorts below their root, the shares of all heads decide which cohort's it is.
        by_class: whether classes become inadmissible as a whole (gate SchedulingEquivalenceHashing).
        room: the roots of the trees that take room from each other.

    Attributes:
        resting: how many heads rest.
    """

    def __init__(
        self,
        pending: Sequence[PendingQueue],
        still_inadmissible: Callable[[Workload], bool],
        all_in_vain: Callable[[PendingQueue], int],
        *,
        by_name: bool,
        by_class: bool,
        room: Collection[int],
    ) -> None:
        self._pending = pending
        self._still_inadmissible = still_inadmissible
        self._all_in_vain = all_in_vain
        self._by_name = by_name
        self._layered = {each.queue.root for each in pending if len(each.queue.path) > 1}
        # Whether heads of which nothing comes may have a part in the order of others, see `_meet`.
        self._may_meet = by_name and (bool(self._layered) or len({each.queue.root for each in pending}) > 1)
        self._by_class = by_class
        # Root -> the root that stands for all trees that take room from each other.
        self._one = {each.queue.root: each.queue.root for each in pending} | dict.fromkeys(
            room, min(room, default=-1)
        )
        # Root -> the queues of its tree in which something is inadmissible.
        self._inadmissible: dict[int, dict[int, None]] = {each.queue.root: {} for each in pending}
        # Number of a queue in which all is in vain -> how many of its classes would still have to become
        # inadmissible again: all are taken for it, as if they had never been requeued.
        self._in_vain: dict[int, int] = {}
        self._active: set[int] = set()
        self._at_rest: dict[int, dict[int, Workload]] = {}  # by root, number of a queue -> its head
        self._to_requeue: dict[int, None] = {}
        self._looked_at: list[Workload] = []
        self.resting = 0

    def add(self, pending: PendingQueue) -> None:
        """A queue has something to try; behind a head that rests it has nothing new."""
        root, number = pending.queue.root, pending.queue.number
        resting = self._at_rest.get(self._one[root], {}).get(number)
        if resting is not None:
            if pending.first() is resting:
                return
            self.reactivate(root)
        self._active.add(number)

    def join(self, pending: PendingQueue) -> None:
        """Heads of a queue, and what is inadmissible in it, were found in another way until now."""
        if pending.has_inadmissible:
            self._inadmissible[pending.queue.root][pending.queue.number] = None
        if pending.first() is not None:
            self._active.add(pending.queue.number)

    def leave(self) -> None:
        """Heads are found in another way from now on: what was to be tried again is requeued."""
        for number, left in self._in_vain.items():
            self._pending[number].requeue_last(left)
        for root in self._to_requeue:
            for number in self._inadmissible[root]:
                self._pending[number].requeue_inadmissible()

    def reactivate(self, root: int) -> None:
        """Something happened in a tree: its heads may do something else now."""
        at_rest = self._at_rest.pop(self._one[root], None)
        if at_rest is not None:
            self._active.update(at_rest)
            self.resting -= len(at_rest)

    def requeue_inadmissible(self, root: int) -> None:
        """Quota became free in a tree: what is inadmissible there is to be tried again."""
        self.reactivate(root)
        self._to_requeue[root] = None

    def waits(self, root: int) -> bool:
        """Whether a tree has heads to try, be it that they would only do the same again."""
        with_heads = self._active.union(self._at_rest.get(self._one[root], ()))
        return any(self._pending[each].queue.root == root for each in with_heads)

    @property
    def stirs(self) -> bool:
        """See `Heads`."""
        return bool(self._active or self._to_requeue or self._in_vain)

    def take(self) -> CycleHeads:
        """Find the first workload of every queue that has any; they stay in their queues.

        Cycles without a head to look at change nothing but who is inadmissible. So they are passed at once,
        up to the first one where some queue has a head to look at.
        """
        if self._in_vain:
            self._look_again()
        if self._to_requeue:
            self._requeue()
        self._looked_at = []
        if not self._active:
            return self._pass_over(_NONE) if self._in_vain else _NONE
        still_inadmissible = self._still_inadmissible
        queues: Iterable[PendingQueue] = map(self._pending.__getitem__, sorted(self._active))
        cycles = number = 0
        while True:
            looked_at: list[Workload] = []
            inadmissible: list[PendingQueue] = []  # those whose head becomes so in this cycle
            for pending in queues:
                head = pending.first()
                if head is None:
                    self._active.remove(pending.queue.number)
                elif still_inadmissible(head):
                    pending.set_class_inadmissible(head.place.equivalence_class)
                    inadmissible.append(pending)
                else:
                    looked_at.append(head)
            if inadmissible and not cycles:
                for pending in inadmissible:
                    self._inadmissible[pending.queue.root][pending.queue.number] = None
            if inadmissible or looked_at:
                cycles += 1
                number += len(inadmissible)
            if looked_at:
                heads = self._look_at(looked_at, inadmissible, cycles, number)
                break
            if not inadmissible:
                heads = CycleHeads([], inadmissible=True, cycles=cycles, number=number) if cycles else _NONE
                break
            queues = inadmissible
        return self._pass_over(heads) if self._in_vain else heads

    def take_all(self) -> list[Workload]:
        """The first workload of every queue that has any; none of them rests after this cycle."""
        self.leave()
        self._in_vain.clear()
        self._to_requeue.clear()
        self._at_rest.clear()
        self._active.clear()
        self._looked_at = []
        self.resting = 0
        for pending in self._pending:
            self._inadmissible[pending.queue.root].pop(pending.queue.number, None)
            if pending.queue.usable:
                self.join(pending)
        return [head for each in sorted(self._active) if (head := self._pending[each].first()) is not None]

    def _pass_over(self, heads: CycleHeads) -> CycleHeads:
        """The same with the heads of queues in which all is in vain: a class of each in every cycle."""
        workloads, inadmissible, cycles, number = heads
        if not workloads:
            cycles = max(cycles, *self._in_vain.values())
            inadmissible = True
        for queue, left in list(self._in_vain.items()):
            number += min(left, cycles)
            inadmissible = inadmissible or left >= cycles
            if left > cycles:
                self._in_vain[queue] = left - cycles
            else:
                del self._in_vain[queue]
        return CycleHeads(workloads, inadmissible, cycles, number)

    def _look_again(self) -> None:
        """Something was looked at: where not all is in vain any more, what was not passed over is to try."""
        for number, left in list(self._in_vain.items()):
            if not self._all_in_vain(self._pending[number]):
                del self._in_vain[number]
                self._pending[number].requeue_last(left)
                self._active.add(number)

    def settle(self, entries: Iterable[Entry], left_out: Collection[Workload]) -> None:
        """The cycle is over: heads rest in the trees in which the next cycle would go the same way."""
        restless = set()
        for workload in left_out:
            queue = workload.cluster_queue
            self._inadmissible[queue.root][queue.number] = None
            restless.add(self._one[queue.root])
        for entry in entries:
            queue = entry.workload.cluster_queue
            if entry.inadmissible:
                self._inadmissible[queue.root][queue.number] = None
            if self._one[queue.root] not in restless and self._matters(entry):
                restless.add(self._one[queue.root])
        for head in self._looked_at:
            queue = head.cluster_queue
            one = self._one[queue.root]
            if one not in restless and not head.place.equivalence_class.inadmissible:
                self._active.remove(queue.number)
                self._at_rest.setdefault(one, {})[queue.number] = head
                self.resting += 1

    def _matters(self, entry: Entry) -> bool:
        """Whether the next cycle would not go the same way after what became of a head."""
        if not entry.reason or entry.preempts or entry.newly_marked:
            return True
        if entry.resumed or entry.workload.place.last_assignment is not None:
            return True  # it begins with another flavor next time
        if not entry.inadmissible:
            return False
        # Others may have taken notice: of what it reserved, or of its share.
        return entry.reserved or not self._by_class or len(entry.workload.cluster_queue.path) > 1

    def _look_at(
        self, looked_at: list[Workload], inadmissible: list[PendingQueue], cycles: int, number: int
    ) -> CycleHeads:
        """The heads of a cycle where some have to be looked at.

        Args:
            looked_at: those.
            inadmissible: the queues whose head becomes inadmissible in this cycle.
            cycles: how many cycles there are, up to this one.
            number: how many heads became inadmissible in them.
        """
        number += len(looked_at)
        if self._at_rest:
            for one in {self._one[head.cluster_queue.root] for head in looked_at} & self._at_rest.keys():
                heads = [self._pending[each].first() for each in self._at_rest[one]]
                looked_at += [head for head in heads if head is not None]
                number += len(heads) * cycles
                self.reactivate(one)
        if self._by_name and inadmissible and self._meet(looked_at):
            for pending in inadmissible:
                pending.undo_inadmissible()
                head = pending.first()
                assert head is not None
                looked_at.append(head)
            inadmissible = []
        if len(looked_at) > 1:
            looked_at.sort(key=_number)
        self._looked_at = looked_at
        return CycleHeads(looked_at, bool(inadmissible), cycles, number)

    def _meet(self, looked_at: list[Workload]) -> bool:
        """Whether heads without an effect have a part in the order of those that are looked at."""
        roots = {head.cluster_queue.root for head in looked_at}
        return len(roots) > 1 or not roots.isdisjoint(self._layered)

    def _requeue(self) -> None:
        for root in self._to_requeue:
            in_vain: dict[int, None] = {}
            for number in self._inadmissible[root]:
                pending = self._pending[number]
                classes = 0 if number in self._active or self._may_meet else self._all_in_vain(pending)
                if classes:
                    in_vain[number] = None
                    self._in_vain[number] = classes
                else:
                    pending.requeue_inadmissible()
                    self._active.add(number)
            self._inadmissible[root] = in_vain
        self._to_requeue.clear()


def _number(head: Workload) -> int:
    return head.cluster_queue.number
