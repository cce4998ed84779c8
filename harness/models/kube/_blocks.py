"""Blocks: pods that have failed often, kept together so that they fail again without an attempt of each.

When a pod ends, every pod that waits for room is tried again, and nearly all of them fail because an equal
pod has just failed. Pods that have failed often back off equally long, so that those of one priority that
failed one after the other at one instant keep their order. They form a block, which lies in the queue as one
pod does. It groups equal pods, so that the next pod that needs an attempt of its own is found without looking
at each pod.

The invariant: a block is its pods in the order of `PodInfo.place`, and no other pod of their priority belongs
between them. While it is passed over, the pods up to one place have failed in this pass, and no other has
been tried in it. Equal pods of it were rejected by the same plugins, and that is recorded of each: else
nothing is done with any of them. A pod whose equals or priority may change while it waits is never in one.
"""

from __future__ import annotations

from bisect import bisect_left, insort_left
from typing import TypeAlias, final

from harness.models.kube.placement.status import INTER_POD_AFFINITY, NODE_RESOURCES_FIT, POD_TOPOLOGY_SPREAD
from harness.models.kube.pod import LastingRefusal, Peers, PodInfo, Template

OFTEN = 4
"""After this many failures every other one means the longest backoff."""

BY_BINDINGS = frozenset({INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD})
"""Plugins whose rejection a binding can end."""


def _from_the_end(pod: PodInfo) -> int:
    return -pod.place


def _place(pod: PodInfo) -> int:
    return pod.place


_BEFORE_ALL = -(1 << 62)
_AFTER_ALL = 1 << 62

_WIDEST = 64
"""This many places may be left free between two blocks that become one.

Without a limit, a block that is put behind another one would move as far as that is wide. The next one would
move twice as far, until places are larger than `_AFTER_ALL`.
"""


@final
class EqualPods:
    """Equal pods of a block.

    Attributes:
        pods: the pods, the first one last: pods are taken and put back at the front of long lines, where
            nothing else is to be moved then. Which plugins rejected them is up to date in those outside only.
        rejected_by: the plugins that rejected them before this pass.
        verdict: those that rejected them in this pass, so far as they failed in it; None before the first.
    """

    __slots__ = ("pods", "rejected_by", "verdict")

    def __init__(self, pods: list[PodInfo], rejected_by: frozenset[str]) -> None:
        self.pods = pods
        self.rejected_by = rejected_by
        self.verdict: frozenset[str] | None = None

    def behind(self, place: int) -> int:
        """How many pods come after a place."""
        pods = self.pods
        if pods and pods[-1].place > place:  # all of them, as a rule
            return len(pods)
        return bisect_left(pods, -place, key=_from_the_end)

    def fail(self, reached: int, place: int, rejected_by: frozenset[str]) -> list[PodInfo]:
        """Have the pods fail that come after a place and before another one, by other plugins than before.

        Returns:
            Those that are to be recorded with it, the first one first.
        """
        first, last = self.behind(place - 1), self.behind(reached)
        if first >= last:
            return []
        self.verdict = rejected_by
        failed = self.pods[first:last]
        failed.reverse()
        news = []
        for pod in failed:
            pod.rejected_by = self.rejected_by  # up to now, see `pods`
            if pod.note_rejection(rejected_by):
                news.append(pod)
            pod.rejected_by = rejected_by
        return news

    def over(self) -> None:
        """The pass is over, and all of its pods have failed in it."""
        assert self.verdict is not None, "pods have failed for no reason"
        self.rejected_by, self.verdict = self.verdict, None

    def fails_again(self, pod: PodInfo, peers: Peers, lasting: LastingRefusal) -> bool:
        """Whether the next pod needs no attempt to fail as its equals last did."""
        rejected_by = peers.rejected_by
        if self.rejected_by != rejected_by or self.verdict not in (None, rejected_by):
            return False
        if not lasting.holds(pod):
            return False
        self.verdict = rejected_by
        return True


@final
class Block:
    """Pods of one priority that wait as one; see the module.

    Attributes:
        priority: the priority of all of them.
        groups: its pods, by their equals.
        timestamp, backoff: as those of a pod.
        taken: the pod that is being tried.
        tried: how many pods have failed in this pass by an attempt of their own.
    """

    __slots__ = ("_reached", "backoff", "groups", "priority", "taken", "timestamp", "tried")

    def __init__(self, priority: int, groups: dict[Peers, EqualPods]) -> None:
        self.priority = priority
        self.timestamp = 0
        self.backoff = 0
        self.taken: PodInfo | None = None
        self.tried = 0
        self.groups = groups
        self._reached = _BEFORE_ALL

    def __len__(self) -> int:
        pods = 0
        for group in self.groups.values():
            pods += len(group.pods)
        return pods

    def kinds(self) -> list[tuple[Template, frozenset[str]]]:
        """Template and rejecting plugins of each of its groups, before a pass."""
        return [(group.pods[0].template, group.rejected_by) for group in self.groups.values() if group.pods]

    def pods(self, timestamp: int, backoff: int) -> list[PodInfo]:
        """Its pods one by one, the first one first, each with the stamp that it would have had alone.

        Args:
            timestamp: of the first pod.
            backoff: of all of them.
        """
        several = []
        for group in self.groups.values():
            for pod in group.pods:
                pod.rejected_by = group.rejected_by
                several.append(pod)
        several.sort(key=_place)
        for number, pod in enumerate(several):
            pod.timestamp = timestamp + number
            pod.backoff = backoff
        return several

    def fails(self, version: int) -> int:
        """How many pods it has, if all fail again as they did before without an attempt; else 0.

        It may be asked before a pass; where they fail the block is then as it will be afterwards.

        Args:
            version: see `Peers.failed_at`.
        """
        pods = 0
        for peers, group in self.groups.items():
            if group.rejected_by != peers.rejected_by:
                return 0
            if peers.failed_at != version:
                if peers.lasting is None or not peers.lasting.holds(group.pods[-1]):
                    return 0
                peers.failed_at = version
            pods += len(group.pods)
        return pods

    def take(self, version: int, alike: list[PodInfo]) -> PodInfo | None:
        """Take out the next pod that does not simply fail; all before it do, as an equal one has.

        It has to be tried itself, or fails as its equals have and no longer waits for room as they do.

        Args:
            version: see `Peers.failed_at`.
            alike: the pods before it that fail by other plugins than before are added to these.

        Returns:
            The pod; None when all that were left fail.
        """
        reached, place = self._reached, _AFTER_ALL
        chosen: EqualPods | None = None
        index = 0
        failing: list[tuple[EqualPods, frozenset[str]]] = []
        for peers, group in self.groups.items():
            if peers.failed_at == version:
                rejected_by = peers.rejected_by
                if group.rejected_by == rejected_by:
                    if group.verdict is None:
                        group.verdict = rejected_by
                    continue
                if group.verdict in (None, rejected_by) and _waits_for_room(rejected_by):
                    failing.append((group, rejected_by))
                    continue
            pods = group.pods
            at = group.behind(reached) - 1
            if at < 0 or pods[at].place >= place:
                continue
            if peers.lasting is not None and group.fails_again(pods[at], peers, peers.lasting):
                peers.failed_at = version
                continue
            chosen, index, place = group, at, pods[at].place
        self._reached = place
        if failing:
            failed = [pod for group, reason in failing for pod in group.fail(reached, place, reason)]
            if len(failing) > 1:
                failed.sort(key=_place)
            alike += failed
        if chosen is None:
            self.taken = None
            return None
        pod = self.taken = chosen.pods.pop(index)
        pod.rejected_by = chosen.rejected_by
        return pod

    def put_back(self, pod: PodInfo) -> bool:
        """The pod that was taken has failed; answers whether it stays where it was.

        It does not if it differs from its equals now, or they would be rejected by different plugins.
        """
        group = self.groups[pod.peers]
        if not _waits_as_its_equals(pod) or group.verdict not in (None, pod.rejected_by):
            return False
        group.verdict = pod.rejected_by
        if group.pods and group.pods[-1].place < pod.place:
            insort_left(group.pods, pod, key=_from_the_end)
        else:
            group.pods.append(pod)
        self.taken = None
        self.tried += 1
        return True

    def split(self) -> Block:
        """Take out the pods that have failed in this pass; another pass over the others begins.

        Where all of them have, it is still the same block.
        """
        failed: dict[Peers, EqualPods] = {}
        left: dict[Peers, EqualPods] = {}
        reached = self._reached
        for peers, group in self.groups.items():
            pods = group.pods
            if reached < _AFTER_ALL:
                at = group.behind(reached)
                if at:
                    if 2 * at > len(pods):  # the shorter part is copied: that looks at each of its pods
                        rest, group.pods = pods, pods[at:]
                        del rest[at:]
                    else:
                        rest = pods[:at]
                        del pods[:at]
                    left[peers] = EqualPods(rest, group.rejected_by)
            if group.pods:
                group.over()
                failed[peers] = group
        self._reached, self.taken, self.tried = _BEFORE_ALL, None, 0
        if reached == _AFTER_ALL:  # nobody has it any more
            self.groups = failed
            return self
        self.groups = left
        return Block(self.priority, failed)

    def remove(self, pod: PodInfo) -> bool:
        """Remove a pod, before a pass; answers whether it was there."""
        group = self.groups.get(pod.peers)
        if group is None or pod not in group.pods:
            return False
        group.pods.remove(pod)
        pod.rejected_by = group.rejected_by
        if not group.pods:
            del self.groups[pod.peers]
        return True

    def join(self, later: Block) -> Block | None:
        """One block of this one and the one that comes next, which uses both up.

        None if equal pods of the two were rejected by different plugins; later they may not be.
        """
        mine, theirs = self.groups, later.groups
        if not mine or not theirs:
            return self if mine else later
        for peers in mine.keys() & theirs.keys():
            one, other = mine[peers], theirs[peers]
            if one.rejected_by != other.rejected_by:
                return None
        gap = min(group.pods[-1].place for group in theirs.values()) - 1
        overlap = max(group.pods[0].place for group in mine.values()) - gap
        kept, moved = (self, later) if len(self) > len(later) else (later, self)
        if overlap > 0 or overlap < -_WIDEST:
            shift = overlap if moved is later else -overlap
            for group in moved.groups.values():
                for pod in group.pods:
                    pod.place += shift
        for peers, group in moved.groups.items():
            known = kept.groups.get(peers)
            if known is None:
                kept.groups[peers] = group
            elif moved is later:
                known.pods[:0] = group.pods
            else:
                known.pods += group.pods
        return kept


Waiting: TypeAlias = PodInfo | Block
"""What lies in the queue."""


def joined(first: Waiting, second: Waiting) -> Block | None:
    """One block of two neighbours, the first in the order first; None if they are no part of one."""
    one = _block_of(first)
    two = _block_of(second) if one is not None else None
    return one.join(two) if one is not None and two is not None else None


def _block_of(waiting: Waiting) -> Block | None:
    if isinstance(waiting, Block):
        return waiting
    if waiting.failures < OFTEN or waiting.peers.loose or not _waits_as_its_equals(waiting):
        return None
    return Block(waiting.priority, {waiting.peers: EqualPods([waiting], waiting.rejected_by)})


def _waits_as_its_equals(pod: PodInfo) -> bool:
    """Whether nothing but what helps its equals helps a pod, and nothing is left to be recorded of it.

    One that has a node of its own in view waits for more.
    """
    return pod.is_told and not pod.expects_room and _waits_for_room(pod.rejected_by)


def _waits_for_room(rejected_by: frozenset[str]) -> bool:
    """Whether every deletion may help, and no binding."""
    return NODE_RESOURCES_FIT in rejected_by and BY_BINDINGS.isdisjoint(rejected_by)
