"""Keeps the resting groups of a block, each in an index with the groups that rest for the same reasons."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TypeAlias, final

from harness.models.kube._equal_pods import AFTER_ALL, EqualPods
from harness.models.kube._resting import Resting
from harness.models.kube._resting_tree import Entry
from harness.models.kube.most_room import MostRoom
from harness.models.kube.pod import LastingRefusal, Peers, PodInfo, Verdicts
from harness.models.kube.refusal import NoRoom

RestsBy: TypeAlias = MostRoom | Verdicts
"""Determines which of the resting pods still fail."""


@final
class Rests:
    """The resting groups of a block."""

    __slots__ = ("_resting",)

    def __init__(self) -> None:
        self._resting: dict[RestsBy, Resting] = {}

    def __contains__(self, group: EqualPods) -> bool:
        return any(group in each for each in self._resting.values())

    def add(self, group: EqualPods, lasting: LastingRefusal | None) -> None:
        """Adds a group that may rest because of this refusal. See `EqualPods.may_rest`."""
        key = None if lasting is None else lasting.most_room or lasting.verdicts
        assert lasting is not None, "see `EqualPods.may_rest`"
        assert key is not None, "see `EqualPods.may_rest`"
        resting = self._resting.get(key)
        if resting is None:
            resting = self._resting[key] = Resting(key.version)
        resting.add([(lasting.amounts, group)])

    def discard(self, group: EqualPods) -> None:
        for resting in self._resting.values():
            if group in resting:
                resting.remove(group)

    def drop_empty(self) -> None:
        """Drops the indexes without groups, because others may replace them after nodes have changed."""
        self._resting = {key: resting for key, resting in self._resting.items() if resting.entries()}

    def first(self, reached: int) -> tuple[EqualPods | None, list[EqualPods]]:
        """Returns the group with the first pod after a place that may succeed, or None if there is none.

        Also returns the groups that fail although a node has enough resources. They must not rest.
        """
        found, place, doubted = None, AFTER_ALL, []
        for most_room, resting in self._resting.items():
            if not isinstance(most_room, MostRoom):
                group = resting.unclear(most_room, reached, place)
                if group is not None:
                    found, place = group, group.next_place(reached)
                continue
            if resting.seen == most_room.version:
                continue
            rooms = most_room.since(resting.seen)
            while rooms and (group := resting.first(rooms, reached, place)) is not None:
                pod = group.pods[group.behind(reached) - 1]
                lasting = pod.peers.lasting
                if not isinstance(lasting, NoRoom) or not lasting.holds(pod, resting.seen):
                    found, place = group, pod.place
                    break
                group.doubted = lasting
                resting.remove(group)
                doubted.append(group)
            else:
                if found is None:
                    resting.seen = most_room.version
        return found, doubted

    def turn(self, reached: int, place: int, turned: list[EqualPods]) -> list[PodInfo]:
        """Makes the pods between two places fail, after `first` has found none that may succeed.

        See `Resting.turn`.
        """
        news: list[PodInfo] = []
        for verdicts, resting in self._resting.items():
            if not isinstance(verdicts, MostRoom):
                news += resting.turn(verdicts, reached, place, turned)
        return news

    def settle(self, groups: Iterable[EqualPods]) -> None:
        """Updates groups, because they are about to be used without this index."""
        for group in groups:
            for resting in self._resting.values():
                if group in resting:
                    resting.settle(group)

    def pass_ends(self) -> None:
        """Ends a pass in which all pods have failed."""
        for verdicts, resting in self._resting.items():
            if not isinstance(verdicts, MostRoom):
                resting.seen = resting.looked

    def groups(self) -> Iterable[EqualPods]:
        return [group for resting in self._resting.values() for _, group in resting.entries()]

    def split(self, place: int) -> tuple[Rests, list[EqualPods]]:
        """Ends a pass in which the pods up to a place have failed, and removes these pods.

        Returns:
            The groups of the failed pods, and what is left of these groups, which stays.
        """
        others = Rests()
        left: list[EqualPods] = []
        for key, mine in self._resting.items():
            moved = mine.cut(place)
            stay: list[Entry] = []
            for amounts, group in moved:
                behind = group.split(place)
                group.over()
                if behind is not None:
                    stay.append((amounts, behind))
                    left.append(behind)
            mine.add(stay)
            others._resting[key] = Resting(mine.seen)
            others._resting[key].add(moved)
        return others, left

    def take_in(
        self, moved: Rests, groups: Mapping[Peers, EqualPods], awake: Container[Peers], *, is_later: bool
    ) -> None:
        """Adds the groups of another block that came before or after all pods of this block.

        Args:
            moved: the resting groups of the other block.
            groups: the groups of both blocks.
            awake: the groups of both blocks that are awake.
            is_later: whether the other block came after this block.
        """
        for key, theirs in moved._resting.items():
            resting = self._resting.setdefault(key, Resting(theirs.seen))
            resting.seen = min(resting.seen, theirs.seen)
            added: list[Entry] = []
            for amounts, group in theirs.entries():
                group.settle()
                group = groups[group.pods[0].peers]  # this group has pods from both blocks
                if group.pods[0].peers in awake:
                    continue
                if is_later and group in resting:
                    resting.grow(group)
                else:
                    added.append((amounts, group))
            resting.add(added)
