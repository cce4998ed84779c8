"""Indexes resting pods, which fail as long as no node offers enough resources for any of them.

When a pod finishes, nearly all pods in a long queue fail again, even if their requests are different. The
index compares only a few pods with the nodes that have changed to find the first pod that may succeed.

The index consists of trees (`_resting_tree.py`) and of the groups that were added last. Trees of similar size
are merged, so each pod moves to another tree only a few times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import gt
from typing import final

from harness.models.kube._equal_pods import EqualPods
from harness.models.kube._resting_tree import Entry, Look, Tree, first_unclear, parted, take_out, turn_each
from harness.models.kube.pod import PodInfo, Verdicts

_NEW = 4  # the maximum number of groups that are not in a tree yet


@final
class Resting:
    """The index of resting groups that the module docstring describes. A group consists of equal pods.

    Attributes:
        seen: the version of the cache at which all groups failed.
        looked: the version of the cache at the last call of `unclear`.
    """

    __slots__ = ("_leaves", "_new", "_trees", "looked", "seen")

    def __init__(self, seen: int) -> None:
        self.seen = self.looked = seen
        self._leaves: dict[EqualPods, Tree | None] = {}  # None if the group is in `_new`
        self._new: list[Entry] = []
        self._trees: list[Tree] = []  # the largest first

    def __contains__(self, group: EqualPods) -> bool:
        return group in self._leaves

    def add(self, entries: list[Entry]) -> None:
        """Adds groups. If a group is already in the index and has a new first pod, updates the index."""
        for _, group in entries:
            if group in self._leaves:
                self.remove(group)
            self._leaves[group] = None
            group.judged_at = -1
        self._new += entries
        if len(self._new) > _NEW:
            entries, self._new = self._new, []
            while self._trees and self._trees[-1].size <= 2 * len(entries):
                entries += self._trees.pop().entries()
            self._trees.append(Tree(entries, None, self._leaves))

    def grow(self, group: EqualPods) -> None:
        """Notes that later pods joined a group."""
        tree = self._leaves[group]
        while tree is not None:
            tree.alone, tree = False, tree.above

    def remove(self, group: EqualPods) -> Sequence[int]:
        leaf = self._leaves.pop(group)
        amounts = take_out(self._new, group) if leaf is None else leaf.remove(group)
        if leaf is not None:
            self._trees = [tree for tree in self._trees if tree.size]
        group.settle()
        return amounts

    def cut(self, place: int) -> list[Entry]:
        """Removes and returns the groups with pods up to a place. They are up to date without this index."""
        found, self._new = parted(self._new, place)
        for tree in self._trees:
            found += tree.cut(place)
        self._trees = [tree for tree in self._trees if tree.size]
        for _, group in found:
            del self._leaves[group]
            group.settle()
        return found

    def entries(self) -> list[Entry]:
        return [*self._new, *chain.from_iterable(tree.entries() for tree in self._trees)]

    def settle(self, group: EqualPods) -> None:
        """Updates a group, because it is about to be used without this index."""
        leaf = self._leaves.get(group)
        if leaf is not None:
            leaf.hand_down_from_top()
        group.settle()

    def first(self, rooms: Iterable[Sequence[int]], reached: int, place: int) -> EqualPods | None:
        """Returns the group with the first pod for which a node has enough resources, or None.

        Args:
            rooms: the quantities that each node offers.
            reached: only pods after this place count.
            place: only pods before this place count.
        """
        found = None
        for room in rooms:
            for amounts, group in self._new:
                if group.pods[-1].place < place and not any(map(gt, amounts, room)):
                    at = group.next_place(reached)
                    if at < place:
                        found, place = group, at
            for tree in self._trees:
                if tree.first < place and not any(map(gt, tree.least, room)):
                    of_tree = tree.search(room, reached, place)
                    if of_tree is not None:
                        found, place = of_tree, of_tree.next_place(reached)
        return found

    def unclear(self, verdicts: Verdicts, reached: int, place: int) -> EqualPods | None:
        """Returns the group with the first pod between two places that may succeed, or None."""
        look = Look(verdicts, self.seen, reached)
        found = first_unclear(self._new, look, place)
        for tree in self._trees:
            found = tree.unclear(look, place if found is None else found.next_place(reached)) or found
        self.looked = verdicts.version
        return found

    def turn(self, verdicts: Verdicts, reached: int, place: int, turned: list[EqualPods]) -> list[PodInfo]:
        """Makes the pods between two places fail by the verdicts. Call `unclear` before.

        Args:
            verdicts: the verdicts on the pods.
            reached: the first place.
            place: the second place, or `AFTER_ALL` if all pods of the pass fail.
            turned: receives the groups with pods that fail for another reason than before this pass, and
                whose pass is not over.

        Returns:
            The pods whose rejection must be recorded, in any order.
        """
        look = Look(verdicts, self.seen, reached)
        news: list[PodInfo] = []
        turn_each(self._new, look, None, place, turned, news)
        for tree in self._trees:
            tree.turn(look, None, place, turned, news)
        return news
