"""Searches resting pods in trees, in which pods with similar requests are close to each other.

If even the smallest requests of a tree exceed what a node offers, the search skips all of its pods.

With quotas, resting pods often fail again for another reason than before. If all pods of a tree change from
one reason to another, the tree counts this change, and hands its count down later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from operator import gt
from typing import NamedTuple, TypeAlias, final

from harness.models.kube._equal_pods import AFTER_ALL, EqualPods
from harness.models.kube.pod import PodInfo, Verdicts

_FEW = 8  # a tree with more groups has two halves; in a smaller tree, searches examine each group

_UNKNOWN = -1

Entry: TypeAlias = tuple[Sequence[int], EqualPods]
"""The requests of each pod in a group, and the group."""


class Look(NamedTuple):
    """The input of a search by verdicts. All groups failed at version `seen`.

    Only pods after the place `reached` count.
    """

    verdicts: Verdicts
    seen: int
    reached: int


def take_out(entries: list[Entry], group: EqualPods) -> Sequence[int]:
    at = next(at for at, entry in enumerate(entries) if entry[1] is group)
    return entries.pop(at)[0]


def parted(entries: list[Entry], place: int) -> tuple[list[Entry], list[Entry]]:
    """Returns the groups with pods up to a place, and the other groups."""
    found = [entry for entry in entries if entry[1].pods[-1].place <= place]
    return found, [entry for entry in entries if entry[1].pods[-1].place > place] if found else entries


def first_unclear(entries: Iterable[Entry], look: Look, place: int) -> EqualPods | None:
    """Implements `Resting.unclear` for some groups."""
    found, reached, version = None, look.reached, look.verdicts.version
    for amounts, group in entries:
        at = group.pods[-1].place
        if at <= reached:
            at = group.next_place(reached)
        if at >= place:
            continue
        now = group.judged if group.judged_at == version else _verdict(group, amounts, look)
        if now is not None and group.verdict is None and now == group.rejected_by:
            continue  # nearly always the case
        if group.turns(now, reached) is None:
            found, place = group, at
    return found


def _verdict(group: EqualPods, amounts: Sequence[int], look: Look) -> frozenset[str] | None:
    verdicts = look.verdicts
    since = look.seen if group.rejected_by == verdicts.by_nodes else -1
    group.judged_at, group.judged = verdicts.version, verdicts.rejecting(amounts, amounts, since)
    return group.judged


def turn_each(
    entries: Iterable[Entry],
    look: Look,
    of_all: frozenset[str] | None,
    place: int,
    turned: list[EqualPods],
    news: list[PodInfo],
) -> None:
    """Implements `Resting.turn` for some groups. `of_all` is the verdict on all of them if it is known."""
    reached, version = look.reached, look.verdicts.version
    for amounts, group in entries:
        at = group.pods[-1].place
        if at >= place or (at <= reached and group.next_place(reached) >= place):
            continue
        now = of_all or look.verdicts.rejecting(amounts, amounts, version)
        assert now is not None, "see `unclear`"
        if (group.verdict is None and now == group.rejected_by) or not group.turns(now, reached):
            continue
        if place == AFTER_ALL and group.turns_silently(now, reached):
            continue
        news += group.turn(now, reached, place)
        if place == AFTER_ALL:
            group.over()
        else:
            turned.append(group)


def _rank(amounts: Sequence[int]) -> tuple[bool, int]:
    """Returns a key that is smallest for the resource by which a tree is best split into halves.

    If pods request few different quantities of a resource, soon all pods of a tree request the same. A limit
    of this resource then refuses all of them or none. Otherwise, the widest spread divides the pods best.
    """
    low, high = min(amounts), max(amounts)
    return not 1 < len(set(amounts)) <= _FEW, 1000 * (low - high) // (high + 1)


@final
class Tree:
    """A binary tree of groups of equal pods.

    Args:
        entries: the groups.
        above: the tree that has this tree as a half, or None.
        leaves: receives the smallest tree of each group.

    Attributes:
        size: the number of groups.
        alone: whether no group has ever had several pods.
        least, most: bounds of the requests of all pods for each resource.
        rejected_by: the plugins that reject all groups, or None if they differ or are not known.
        first: a place before which the tree has no pod.
        halves: the two halves without those that are empty, or nothing if the tree has few groups.
        turned: how often all pods turned from one reason to another, without the times handed down.
        quiet, known: see `EqualPods.quiet`. They are valid if `quiet` is not `_UNKNOWN`.
    """

    __slots__ = (
        "_few", "_verdict", "_version", "above", "alone", "first", "halves", "known", "least", "most",
        "quiet", "rejected_by", "size", "turned",
    )  # fmt: skip

    def __init__(
        self, entries: list[Entry], above: Tree | None, leaves: dict[EqualPods, Tree | None]
    ) -> None:
        self.above = above
        self.halves: list[Tree] = []
        self._few, self.size = entries, len(entries)
        self.rejected_by: frozenset[str] | None = None
        self.turned, self.quiet = 0, _UNKNOWN
        self.known: frozenset[Hashable] = frozenset()
        self._version = -1  # of the last verdict on all groups
        self._verdict: frozenset[str] | None = None
        amounts = list(zip(*[amounts for amounts, _ in entries], strict=True))
        self.least: Sequence[int] = tuple(map(min, amounts))
        self.most: Sequence[int] = tuple(map(max, amounts))
        if self.size <= _FEW:
            self.alone = max([len(group.pods) for _, group in entries]) == 1
            self.first = min([group.pods[-1].place for _, group in entries])
            leaves.update(dict.fromkeys([group for _, group in entries], self))
            return
        axis = min(range(len(amounts)), key=[_rank(column) for column in amounts].__getitem__)
        entries.sort(key=lambda entry: entry[0][axis])
        column = [entry[0][axis] for entry in entries]
        half = self.size // 2  # the split, if all quantities are equal
        middle = bisect_left(column, column[half]) or bisect_right(column, column[0]) % self.size or half
        low, high = Tree(entries[:middle], self, leaves), Tree(entries[middle:], self, leaves)
        self.halves, self._few = [low, high], []
        self.alone, self.first = low.alone and high.alone, min(low.first, high.first)

    def entries(self) -> list[Entry]:
        """Returns all groups, after their trees have handed down how often they turned."""
        self._hand_down()
        return self._few or list(chain.from_iterable(half.entries() for half in self.halves))

    def remove(self, group: EqualPods) -> Sequence[int]:
        """Removes a group from a tree without halves."""
        self.hand_down_from_top()
        tree: Tree | None = self
        while tree is not None:
            tree.size -= 1
            above = tree.above
            if above is not None and not tree.size:
                above.halves.remove(tree)
            tree = above
        return take_out(self._few, group)

    def cut(self, place: int) -> list[Entry]:
        """Implements `Resting.cut`."""
        if self.first > place:
            return []
        self._hand_down()
        found, self._few = parted(self._few, place)
        for half in self.halves:
            found += half.cut(place)
        self.halves = [half for half in self.halves if half.size]
        self.size -= len(found)
        self.first = place + 1
        return found

    def search(self, room: Sequence[int], reached: int, place: int) -> EqualPods | None:
        """Implements `Resting.first` for one node.

        Args:
            room: the quantities that the node offers.
            reached: only pods after this place count.
            place: only pods before this place count.
        """
        found = None
        for half in self._in_turn() if self.halves else ():
            if half.first < place and not any(map(gt, half.least, room)):
                of_half = half.search(room, reached, place)
                if of_half is not None:
                    found, place = of_half, of_half.next_place(reached)
        for amounts, group in self._few:
            if group.pods[-1].place < place and not any(map(gt, amounts, room)):
                at = group.next_place(reached)
                if at < place:
                    found, place = group, at
        return found

    def _in_turn(self) -> list[Tree]:
        halves = self.halves
        return halves if not halves or halves[0].first <= halves[-1].first else halves[::-1]

    def unclear(self, look: Look, place: int) -> EqualPods | None:
        """Implements `Resting.unclear`."""
        if self.first >= place:
            return None
        verdicts = look.verdicts
        if self.alone or self.first > look.reached:
            since = look.seen if self.rejected_by == verdicts.by_nodes else -1
            if verdicts.rejecting(self.least, self.least, since) is not None:
                return None  # larger requests fail, too, for whatever reason
        else:
            now = self._verdict_on_all(look)
            if now is not None and now == self.rejected_by:
                return None
        if self.turned:
            self._hand_down()
        found = first_unclear(self._few, look, place) if self._few else None
        for half in self._in_turn():
            found = half.unclear(look, place if found is None else found.next_place(look.reached)) or found
        return found

    def _verdict_on_all(self, look: Look) -> frozenset[str] | None:
        verdicts, version = look.verdicts, look.verdicts.version
        if self._version != version:
            since = look.seen if self.rejected_by == verdicts.by_nodes else -1
            self._version, self._verdict = version, verdicts.rejecting(self.least, self.most, since)
        return self._verdict

    def turn(
        self,
        look: Look,
        of_all: frozenset[str] | None,
        place: int,
        turned: list[EqualPods],
        news: list[PodInfo],
    ) -> None:
        """Implements `Resting.turn`, and skips trees whose groups all fail as before. See `turn_each`."""
        before = self.rejected_by
        if self.first >= place:
            return
        verdicts = look.verdicts  # at their version, no node has enough resources for pods in these places
        now = of_all or verdicts.rejecting(self.least, self.most, verdicts.version)
        if now is not None and before is not None:
            if now == before:
                return
            if place == AFTER_ALL and self.first > look.reached and self._turns_silently(now):
                return
        if self.turned:
            self._hand_down()
        for half in self.halves:
            half.turn(look, now, place, turned, news)
        if self._few:
            turn_each(self._few, look, now, place, turned, news)
        self._sum_up()

    def _turns_silently(self, rejected_by: frozenset[str]) -> bool:
        """Implements `EqualPods.turns_silently` for all groups."""
        self.count_quiet()
        if not self.quiet or rejected_by not in self.known:
            return False
        self.turned += 1
        self.quiet -= 1
        self.rejected_by = rejected_by
        return True

    def count_quiet(self) -> None:
        """Determines `quiet` and `known` if they are not known."""
        if self.quiet == _UNKNOWN:
            for half in self.halves:
                half.count_quiet()
            several = [(half.quiet, half.known) for half in self.halves]
            several += [group.quiet() for _, group in self._few]
            self.quiet = min([quiet for quiet, _ in several])
            self.known = frozenset.intersection(*[known for _, known in several])

    def hand_down_from_top(self) -> None:
        """Makes all trees with the groups of this tree hand down how often they turned."""
        if self.above is not None:
            self.above.hand_down_from_top()
        self._hand_down()

    def _hand_down(self) -> None:
        turned, rejected_by = self.turned, self.rejected_by
        if turned:
            assert rejected_by is not None, "only trees with one reason turn as a whole"
            self.turned = 0
            for half in self.halves:
                half.turned += turned
                half.quiet -= turned
                half.rejected_by = rejected_by
            for _, group in self._few:
                group.turned += turned
                group.rejected_by = rejected_by

    def _sum_up(self) -> None:
        """Determines whether all groups were rejected by the same plugins."""
        self.rejected_by, self.quiet = None, _UNKNOWN
        if self.halves:
            rejected_by = self.halves[0].rejected_by
            if rejected_by == self.halves[-1].rejected_by:
                self.rejected_by = rejected_by
            return
        rejected_by = self._few[0][1].rejected_by
        for _, group in self._few:
            if group.rejected_by != rejected_by or group.verdict is not None:
                return
        self.rejected_by = rejected_by
