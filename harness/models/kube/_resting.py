"""Resting pods: an index of those that fail until a node offers one of them as much as it asks for.

Nearly all pods of a long queue fail again whenever something is over, whether or not they ask for the same
amounts. The index finds the first one that may not, by comparing few of them with the nodes that have
changed. Pods that ask for similar amounts are near each other in it. If even their least amounts are more
than a node offers, none of them is looked at.

It consists of trees, and of what was added last. Trees of similar sizes become one tree, so that pods move
from tree to tree only a few times.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import chain
from typing import TypeAlias, final

from harness.models.kube._equal_pods import EqualPods
from harness.models.kube.most_room import is_within

_FEW = 8
"""As many groups are looked at one by one."""

_NEW = 16
"""As many are not in a tree yet."""

Entry: TypeAlias = tuple[Sequence[int], EqualPods]
"""What each of the pods asks for, and the pods."""


@final
class Resting:
    """Groups of equal pods; see the module.

    Attributes:
        seen: the version of the cache at which all of them failed.
    """

    __slots__ = ("_groups", "_new", "_trees", "seen")

    def __init__(self, seen: int) -> None:
        self.seen = seen
        self._groups: dict[EqualPods, Sequence[int]] = {}
        self._new: list[Entry] = []
        self._trees: list[Tree] = []  # the largest one first; they may have groups that are gone

    def __contains__(self, group: EqualPods) -> bool:
        return group in self._groups

    def add(self, group: EqualPods, amounts: Sequence[int]) -> None:
        """Pods rest from now on, or pods have come before those that were there."""
        self._groups[group] = amounts
        self._new.append((amounts, group))
        if len(self._new) > _NEW:
            entries, self._new = self._new, []
            while self._trees and self._trees[-1].size <= 2 * len(entries):
                entries += self._trees.pop().entries()
            known = {group: amounts for amounts, group in entries if group in self._groups}
            self._trees.append(Tree([(amounts, group) for group, amounts in known.items()]))

    def remove(self, group: EqualPods) -> Sequence[int]:
        """Pods rest no longer; answers what each of them asks for."""
        return self._groups.pop(group)

    def items(self) -> Iterable[tuple[EqualPods, Sequence[int]]]:
        """All groups, and what each of their pods asks for."""
        return self._groups.items()

    def first(self, rooms: Iterable[Sequence[int]], reached: int, place: int) -> EqualPods | None:
        """The group of the first pod that asks for no more than one of the nodes offers.

        Args:
            rooms: what these offer.
            reached: only pods that come after this place count.
            place: and that come before this one.
        """
        found, groups = None, self._groups
        for room in rooms:
            for amounts, group in self._new:
                if group in groups and group.pods[-1].place < place and is_within(amounts, room):
                    at = group.next_place(reached)
                    if at < place:
                        found, place = group, at
            for tree in self._trees:
                if tree.first < place and is_within(tree.least, room):
                    of_tree = tree.search(room, reached, place, groups)
                    if of_tree is not None:
                        found, place = of_tree, of_tree.next_place(reached)
        self._trees = [tree for tree in self._trees if tree.size]
        return found


@final
class Tree:
    """Groups in halves, which have halves themselves.

    Groups that are gone are left out when a search comes by.

    Args:
        entries: the groups.

    Attributes:
        size: how many groups there are.
        least: the least that any of the pods asks for, of each resource.
        first: no pod of them comes before this place.
    """

    __slots__ = ("_few", "_halves", "first", "least", "size")

    def __init__(self, entries: list[Entry]) -> None:
        self._halves: list[Tree] = []  # none of few groups
        self._few: list[Entry] = entries
        self._sum_up_few()
        if self.size <= _FEW:
            return
        most = tuple(map(max, zip(*[amounts for amounts, _ in entries], strict=True)))
        spreads = [1000 * (high - low) // (high + 1) for low, high in zip(self.least, most, strict=True)]
        axis = spreads.index(max(spreads))
        entries.sort(key=lambda entry: entry[0][axis])
        middle = self.size // 2
        self._halves = [Tree(entries[:middle]), Tree(entries[middle:])]
        self._few = []

    def _sum_up_few(self) -> None:
        self.size = len(self._few)
        if self.size:
            amounts = zip(*[amounts for amounts, _ in self._few], strict=True)
            self.least: Sequence[int] = tuple(map(min, amounts))
            self.first = min([group.pods[-1].place for _, group in self._few])

    def _sum_up_halves(self) -> None:
        halves = self._halves = [half for half in self._halves if half.size]
        self.size = sum([half.size for half in halves])
        if halves:
            self.least = tuple(map(min, zip(*[half.least for half in halves], strict=True)))
            self.first = min([half.first for half in halves])

    def entries(self) -> list[Entry]:
        """All groups."""
        return self._few or list(chain.from_iterable(half.entries() for half in self._halves))

    def search(
        self, room: Sequence[int], reached: int, place: int, groups: Container[EqualPods]
    ) -> EqualPods | None:
        """See `Resting.first`, for one node.

        Args:
            room: what it offers.
            reached: see there.
            place: see there.
            groups: those that are not gone.
        """
        found, size = None, 0
        if self._halves:
            halves = self._halves
            for half in halves if halves[0].first <= halves[-1].first else halves[::-1]:
                if half.first < place and is_within(half.least, room):
                    of_half = half.search(room, reached, place, groups)
                    if of_half is not None:
                        found, place = of_half, of_half.next_place(reached)
            for half in self._halves:
                size += half.size
            if size != self.size:
                self._sum_up_halves()
            return found
        for amounts, group in self._few:
            if group in groups:
                size += 1
                if group.pods[-1].place < place and is_within(amounts, room):
                    at = group.next_place(reached)
                    if at < place:
                        found, place = group, at
        if size != self.size:
            self._few = [entry for entry in self._few if entry[1] in groups]
            self._sum_up_few()
        return found
