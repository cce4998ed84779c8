"""Which queues have a workload to try, tree by tree, and which trees would only do the same again.

Trees of cohorts have nothing to do with each other. A tree rests when a cycle changed nothing in it and the
next one would go the same way; its heads count as tried in every cycle, without work, until something
happens in it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import final

from harness_plugins.kueue.cache import Cache
from harness_plugins.kueue.pending import Pending
from harness_plugins.kueue.workload import Workload


@final
class Heads:
    """Finds the heads of cycles.

    Args:
        cache: which queues belong to a tree.
        pending: the queues, by number.

    Attributes:
        resting: how many heads the trees have that rest.
    """

    def __init__(self, cache: Cache, pending: Sequence[Pending]) -> None:
        self._members = {root: [queue.node for queue in members] for root, members in cache.members.items()}
        self._of_node = {each.queue.node: each for each in pending}
        self._pending = pending
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

    def rests(self, root: int) -> bool:
        """Whether a tree has heads, and they would do the same as in the last cycle: nothing."""
        return root in self._at_rest

    def take(self) -> list[Workload]:
        """Take out the first workload of every queue whose tree does not rest."""
        self._wake_up()
        heads = []
        self._taken.clear()
        for number in sorted(number for numbers in self._awake.values() for number in numbers):
            pending = self._pending[number]
            root = pending.queue.root
            head = pending.pop()
            if head is not None:
                heads.append(head)
                self._taken[root] = self._taken.get(root, 0) + 1
            else:
                self._awake[root].remove(number)
                if not self._awake[root]:
                    del self._awake[root]
        return heads

    def settle(self, restless: Collection[int]) -> None:
        """The heads that were taken are back, and nothing happened in their trees but for `restless` ones."""
        for root, heads in self._taken.items():
            if root not in restless:
                self._at_rest[root] = self._awake.pop(root), heads
                self.resting += heads

    def _wake_up(self) -> None:
        for root in self._woken:
            for node in self._members[root]:
                pending = self._of_node[node]
                if pending.wake():
                    self._awake.setdefault(root, set()).add(pending.number)
        self._woken.clear()
