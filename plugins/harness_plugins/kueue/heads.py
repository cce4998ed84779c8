"""Which queues have a workload to try, tree by tree, and which heads would only do the same again.

Trees of cohorts have nothing to do with each other. When nothing came of a cycle in a tree but that heads
were parked of which the others took no notice, the next one would go the same way for those that are left:
they rest. They count as tried in every cycle, without work, until something happens in their tree, or another
head has to be looked at there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, final

from harness_plugins.kueue.pending import Pending
from harness_plugins.kueue.workload import Workload


class Taken(NamedTuple):
    """The heads of the next cycle in which one has to be looked at, and of the cycles before it.

    Attributes:
        workloads: those that are to be looked at; empty if there is none in any cycle.
        parked: whether others were parked in the last of the cycles without a look.
        cycles: how many cycles there are; in all but the last one heads were only parked.
        number: how many heads there are in them, but for those that rest.
    """

    workloads: list[Workload]
    parked: bool
    cycles: int
    number: int


_Run = tuple[Pending, int, Workload | None]
"""A queue, how many heads of it were parked, one a cycle, and the head after these."""

_NONE = Taken([], False, 0, 0)
_FAR = 1 << 62


@final
class Heads:
    """Finds the heads of cycles.

    Args:
        pending: the queues, by number.
        by_name: whether the names of all heads tell which tree's turn it is when several trees have some.

    Attributes:
        resting: how many heads rest.
    """

    def __init__(self, pending: Sequence[Pending], *, by_name: bool) -> None:
        self._pending = pending
        self._by_name = by_name
        self._asleep: dict[int, dict[Pending, None]] = {}
        for each in pending:
            each.asleep = self._asleep.setdefault(each.queue.root, {})
        self._awake: set[int] = set()
        self._at_rest: dict[int, set[int]] = {}
        self._woken: dict[int, None] = {}
        self._looked_at: list[Workload] = []
        self.resting = 0

    def add(self, pending: Pending) -> None:
        """A queue has something to try."""
        root = pending.queue.root
        if pending.number in self._at_rest.get(root, ()):
            self.stir(root)
        self._awake.add(pending.number)

    def stir(self, root: int) -> None:
        """Something happened in a tree: its heads may do something else now."""
        at_rest = self._at_rest.pop(root, None)
        if at_rest is not None:
            self._awake |= at_rest
            self.resting -= len(at_rest)

    def wake(self, root: int) -> None:
        """Quota became free in a tree: what is parked there is to be tried again."""
        self.stir(root)
        self._woken[root] = None

    def waits(self, root: int) -> bool:
        """Whether a tree has heads to try, be it that they would only do the same again."""
        return root in self._at_rest or any(self._pending[each].queue.root == root for each in self._awake)

    def take(self, in_vain: Callable[[Workload], bool]) -> Taken:
        """Find the first workload of every queue that has any; they stay in their queues.

        Cycles in which nothing has to be looked at change nothing but who is parked, so they are gone through
        at once, queue by queue, up to the first one in which some queue has a head to look at.

        Args:
            in_vain: whether nothing would come of a head's turn but that it is parked with its kin; those are
                parked at once.
        """
        if self._woken:
            self._wake_up()
        self._looked_at = []
        if not self._awake:
            return _NONE
        looked_at: list[Workload] = []
        runs: list[_Run] = []
        last = _FAR  # the cycle in which some head is to be looked at, counted from 0
        for number in sorted(self._awake):
            pending = self._pending[number]
            parked = 0
            while (head := pending.first()) is not None and parked <= last and in_vain(head):
                pending.park_kin(head.kin)
                parked += 1
            if head is not None and parked <= last:
                if parked < last:
                    last = parked
                    looked_at = []
                looked_at.append(head)
            if parked:
                runs.append((pending, parked, head))
            elif head is None:
                self._awake.remove(number)
        if not looked_at:
            return self._only_parked(runs) if runs else _NONE
        return self._up_to(last, looked_at, runs)

    def settle(self, restless: Collection[int]) -> None:
        """The cycle is over; nothing happened in the trees of its heads but for `restless` ones."""
        for head in self._looked_at:
            pending = head.home
            root = pending.queue.root
            if root not in restless and not head.kin.parked:
                self._awake.remove(pending.number)
                self._at_rest.setdefault(root, set()).add(pending.number)
                self.resting += 1

    def _only_parked(self, runs: list[_Run]) -> Taken:
        """All that was awake is parked now."""
        self._awake.clear()
        parked = [each for _, each, _ in runs]
        return Taken([], True, max(parked), sum(parked))

    def _up_to(self, last: int, looked_at: list[Workload], runs: list[_Run]) -> Taken:
        """The heads of the cycle `last`; whoever's turn would come after it has not been parked yet."""
        roots = {head.home.queue.root for head in looked_at}
        look_at_all = self._by_name and len(roots) > 1
        number = len(looked_at)
        any_parked = False
        for pending, parked, head in runs:
            if parked > last:
                number += last + 1
                pending.unpark(parked - last - (not look_at_all))
                if look_at_all:
                    head = pending.first()
                    assert head is not None
                    looked_at.append(head)
                else:
                    any_parked = True
            else:
                number += parked
                if head is None:
                    self._awake.remove(pending.number)
        for root in roots & self._at_rest.keys():
            heads = [self._pending[each].first() for each in self._at_rest[root]]
            looked_at += [head for head in heads if head is not None]
            number += len(heads) * (last + 1)
            self.stir(root)
        looked_at.sort(key=_number)
        self._looked_at = looked_at
        return Taken(looked_at, any_parked, last + 1, number)

    def _wake_up(self) -> None:
        for root in self._woken:
            asleep = self._asleep[root]
            for pending in asleep:
                pending.wake()
                self._awake.add(pending.number)
            asleep.clear()
        self._woken.clear()


def _number(head: Workload) -> int:
    return head.home.number
