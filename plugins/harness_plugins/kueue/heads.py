"""Which queues have a workload to try, tree by tree, and which trees would only do the same again.

Trees of cohorts have nothing to do with each other. A tree rests when a cycle changed nothing in it and the
next one would go the same way; its heads count as tried in every cycle, without work, until something
happens in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import NamedTuple, final

from harness_plugins.kueue.pending import Pending
from harness_plugins.kueue.workload import Workload


class Taken(NamedTuple):
    """The heads of a cycle.

    Attributes:
        workloads: those that are to be looked at, taken out of their queues.
        parked: the roots of trees in which others were parked without a look.
        number: how many there are in all.
    """

    workloads: list[Workload]
    parked: set[int]
    number: int


_NONE = Taken([], set(), 0)


@final
class Heads:
    """Finds the heads of cycles.

    Args:
        pending: the queues, by number.
        by_name: whether the names of all heads tell which tree's turn it is when several trees have some.

    Attributes:
        resting: how many heads the trees have that rest.
    """

    def __init__(self, pending: Sequence[Pending], *, by_name: bool) -> None:
        self._pending = pending
        self._by_name = by_name
        self._asleep: dict[int, dict[Pending, None]] = {}
        for each in pending:
            each.asleep = self._asleep.setdefault(each.queue.root, {})
        self._awake: dict[int, set[int]] = {}
        self._at_rest: dict[int, tuple[set[int], int]] = {}
        self._woken: dict[int, None] = {}
        self._taken: dict[int, int] = {}
        self.resting = 0

    def add(self, pending: Pending) -> None:
        """A queue has something to try."""
        root = pending.queue.root
        self.stir(root)
        self._awake.setdefault(root, set()).add(pending.number)

    def stir(self, root: int) -> None:
        """Something happened in a tree."""
        at_rest = self._at_rest.pop(root, None)
        if at_rest is not None:
            self._awake[root], heads = at_rest
            self.resting -= heads

    def wake(self, root: int) -> None:
        """Quota became free in a tree: what is parked there is to be tried again."""
        self.stir(root)
        self._woken[root] = None

    def waits(self, root: int) -> bool:
        """Whether a tree has heads to try, be it that they would only do the same again."""
        return root in self._at_rest or root in self._awake

    def take(self, in_vain: Callable[[Workload], bool]) -> Taken:
        """Take out the first workload of every queue whose tree does not rest.

        Args:
            in_vain: whether nothing would come of a head's turn but that it is parked with its kin; those are
                parked at once.
        """
        if self._woken:
            self._wake_up()
        self._taken.clear()
        if not self._awake:
            return _NONE
        workloads: list[Workload] = []
        vain: list[Workload] = []
        for number in sorted(chain.from_iterable(self._awake.values())):
            pending = self._pending[number]
            root = pending.queue.root
            head = pending.first()
            if head is not None:
                self._taken[root] = self._taken.get(root, 0) + 1
                (vain if in_vain(head) else workloads).append(head)
            else:
                self._awake[root].remove(number)
                if not self._awake[root]:
                    del self._awake[root]
        if vain and self._by_name and len({head.home.queue.root for head in workloads}) > 1:
            workloads = sorted((*workloads, *vain), key=lambda head: head.home.number)
            vain.clear()
        for head in vain:
            head.home.park_kin(head.kin)
        for head in workloads:
            head.home.take(head)
        parked = {head.home.queue.root for head in vain}
        return Taken(workloads, parked, len(workloads) + len(vain))

    def settle(self, restless: Collection[int]) -> None:
        """The heads that were taken are back, and nothing happened in their trees but for `restless` ones."""
        for root, heads in self._taken.items():
            if root not in restless:
                self._at_rest[root] = self._awake.pop(root), heads
                self.resting += heads

    def _wake_up(self) -> None:
        for root in self._woken:
            asleep = self._asleep[root]
            for pending in asleep:
                pending.wake()
                self._awake.setdefault(root, set()).add(pending.number)
            asleep.clear()
        self._woken.clear()
