"""Indexes resting pods, which fail as long as no node offers enough resources for any of them.

When a pod finishes, nearly all pods in a long queue fail again, even if their requests are different. The
index compares only a few pods with the nodes that have changed to find the first pod that may succeed. Pods
with similar requests are close to each other in the index. If even the smallest requests of these pods exceed
what a node offers, the search skips all of them.

The index consists of trees and of the groups that were added last. Trees of similar size are merged, so each
pod moves to another tree only a few times.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import chain
from operator import gt
from typing import TypeAlias, final

from harness.models.kube._equal_pods import EqualPods
from harness.models.kube.pod import Verdicts

_FEW = 8
"""A tree with more groups is split into two halves. In a smaller tree, searches examine each group."""

_NEW = 16  # the maximum number of groups that are not in a tree yet

Entry: TypeAlias = tuple[Sequence[int], EqualPods]
"""The requests of each pod in a group, and the group."""

Turning: TypeAlias = list[tuple[EqualPods, frozenset[str] | None]]
"""Groups that may fail no longer as before, with the plugins that reject them now, or None if unknown."""


@final
class Resting:
    """The index of resting groups that the module docstring describes. A group consists of equal pods.

    Attributes:
        seen: the version of the cache at which all groups failed.
        looked: the version of the cache at the last call of `turning`.
    """

    __slots__ = ("_groups", "_new", "_trees", "looked", "seen")

    def __init__(self, seen: int) -> None:
        self.seen = self.looked = seen
        self._groups: dict[EqualPods, Sequence[int]] = {}
        self._new: list[Entry] = []
        self._trees: list[Tree] = []  # the largest first; may contain groups that were removed

    def __contains__(self, group: EqualPods) -> bool:
        return group in self._groups

    def add(self, group: EqualPods, amounts: Sequence[int]) -> None:
        """Adds a group. If the group is already in the index and has a new first pod, updates the index."""
        self._groups[group] = amounts
        self._new.append((amounts, group))
        if len(self._new) > _NEW:
            entries, self._new = self._new, []
            while self._trees and self._trees[-1].size <= 2 * len(entries):
                entries += self._trees.pop().entries()
            known = {group: self._groups[group] for _, group in entries if group in self._groups}
            self._trees.append(Tree([(amounts, group) for group, amounts in known.items()]))

    def remove(self, group: EqualPods) -> Sequence[int]:
        return self._groups.pop(group)

    def items(self) -> Iterable[tuple[EqualPods, Sequence[int]]]:
        return self._groups.items()

    def first(self, rooms: Iterable[Sequence[int]], reached: int, place: int) -> EqualPods | None:
        """Returns the group with the first pod for which a node has enough resources, or None.

        Args:
            rooms: the quantities that each node offers.
            reached: only pods after this place count.
            place: only pods before this place count.
        """
        found, groups, emptied = None, self._groups, False
        for room in rooms:
            for amounts, group in self._new:
                if group in groups and group.pods[-1].place < place and not any(map(gt, amounts, room)):
                    at = group.next_place(reached)
                    if at < place:
                        found, place = group, at
            for tree in self._trees:
                if tree.first < place and not any(map(gt, tree.least, room)):
                    of_tree = tree.search(room, reached, place, groups)
                    if of_tree is not None:
                        found, place = of_tree, of_tree.next_place(reached)
                    emptied = emptied or not tree.size
        if emptied:
            self._trees = [tree for tree in self._trees if tree.size]
        return found

    def turning(self, verdicts: Verdicts, reached: int) -> Turning:
        """Returns the groups whose pods after a place no longer fail as before this pass.

        If there are any, the caller sets `seen` after the pass.
        """
        found: Turning = []
        _turn(self._new, verdicts, None, self.seen, reached, self._groups, found)
        for tree in self._trees:
            tree.turn(verdicts, None, self.seen, reached, self._groups, found)
        self._trees = [tree for tree in self._trees if tree.size]
        self.looked = verdicts.version
        if not found:
            self.seen = self.looked
        return found


def _turn(
    entries: Iterable[Entry],
    verdicts: Verdicts,
    of_all: frozenset[str] | None,
    seen: int,
    reached: int,
    groups: Container[EqualPods],
    found: Turning,
) -> frozenset[str] | None:
    """Implements `Resting.turning` for some groups, and returns the plugins if all still fail in one way.

    `of_all` is the verdict on all groups, or None if it is not known.
    """
    by_nodes, common, several = verdicts.by_nodes, None, False
    for amounts, group in entries:
        if group not in groups:
            continue
        before = group.rejected_by
        now = of_all or verdicts.rejecting(amounts, amounts, seen if before == by_nodes else -1)
        turns = None if now is None else group.turns(now, reached)
        if turns is not False:
            found.append((group, None if turns is None else now))
        several = several or turns is not False or group.verdict is not None or common not in (None, before)
        common = before
    return None if several else common


@final
class Tree:
    """A binary tree of groups of equal pods.

    Groups that were removed from the index stay in the tree until a search visits them.

    Args:
        entries: the groups.

    Attributes:
        size: the number of groups.
        least, most: the smallest and the largest request of any pod for each resource.
        rejected_by: the plugins that reject all groups, or None if they differ or are not known.
        first: a place before which the tree has no pod.
    """

    __slots__ = ("_few", "_halves", "first", "least", "most", "rejected_by", "size")

    def __init__(self, entries: list[Entry]) -> None:
        self._halves: list[Tree] = []  # empty if the tree has few groups
        self._few: list[Entry] = entries
        self.rejected_by: frozenset[str] | None = None
        self._sum_up_few()
        if self.size <= _FEW:
            return
        spreads = [1000 * (high - low) // (high + 1) for low, high in zip(self.least, self.most, strict=True)]
        axis = spreads.index(max(spreads))
        entries.sort(key=lambda entry: entry[0][axis])
        middle = self.size // 2
        self._halves = [Tree(entries[:middle]), Tree(entries[middle:])]
        self._few = []

    def _sum_up_few(self) -> None:
        self.size = len(self._few)
        if self.size:
            amounts = list(zip(*[amounts for amounts, _ in self._few], strict=True))
            self.least: Sequence[int] = tuple(map(min, amounts))
            self.most: Sequence[int] = tuple(map(max, amounts))
            self.first = min([group.pods[-1].place for _, group in self._few])

    def _sum_up_halves(self) -> None:
        halves = self._halves = [half for half in self._halves if half.size]
        self.size = sum([half.size for half in halves])
        if halves:
            self.least = tuple(map(min, zip(*[half.least for half in halves], strict=True)))
            self.most = tuple(map(max, zip(*[half.most for half in halves], strict=True)))
            self.first = min([half.first for half in halves])

    def entries(self) -> list[Entry]:
        return self._few or list(chain.from_iterable(half.entries() for half in self._halves))

    def search(
        self, room: Sequence[int], reached: int, place: int, groups: Container[EqualPods]
    ) -> EqualPods | None:
        """Implements `Resting.first` for one node.

        Args:
            room: the quantities that the node offers.
            reached: only pods after this place count.
            place: only pods before this place count.
            groups: the groups that were not removed.
        """
        found, size = None, 0
        if self._halves:
            halves = self._halves
            for half in halves if halves[0].first <= halves[-1].first else halves[::-1]:
                if half.first < place and not any(map(gt, half.least, room)):
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
                if group.pods[-1].place < place and not any(map(gt, amounts, room)):
                    at = group.next_place(reached)
                    if at < place:
                        found, place = group, at
        if size != self.size:
            self._few = [entry for entry in self._few if entry[1] in groups]
            self._sum_up_few()
        return found

    def turn(
        self,
        verdicts: Verdicts,
        of_all: frozenset[str] | None,
        seen: int,
        reached: int,
        groups: Container[EqualPods],
        found: Turning,
    ) -> None:
        """Implements `Resting.turning`, and skips trees whose groups all fail as before. See `_turn`."""
        before = self.rejected_by
        if of_all is None:
            of_all = verdicts.rejecting(self.least, self.most, seen if before == verdicts.by_nodes else -1)
        if of_all is not None and of_all == before:
            return
        if not self._halves:
            self.rejected_by = _turn(self._few, verdicts, of_all, seen, reached, groups, found)
            if any(entry[1] not in groups for entry in self._few):
                self._few = [entry for entry in self._few if entry[1] in groups]
                self._sum_up_few()
            return
        for half in self._halves:
            half.turn(verdicts, of_all, seen, reached, groups, found)
        if sum([half.size for half in self._halves]) != self.size:
            self._sum_up_halves()
        kinds = [half.rejected_by for half in self._halves]
        self.rejected_by = kinds[0] if kinds and kinds.count(kinds[0]) == len(kinds) else None
