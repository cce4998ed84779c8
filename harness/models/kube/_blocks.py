"""Groups pods that have failed often into blocks, so that they can fail again without separate attempts.

When a pod finishes, the scheduler tries all pods again that wait for free resources. Nearly all of them fail,
because an equal pod has just failed. Pods that have failed often have the same backoff. Therefore, pods of
the same priority that fail one after another at the same time stay neighbors in the queue. They form a block,
which is one entry of the queue. In a pass, the scheduler tries all pods of a block once.
A block groups equal pods. If there are many groups, those that wait only for free resources are called
resting. They are in an index (`_resting.py`), and a pass examines them only if a node offers enough
resources. The other groups are called awake. A pass examines each of them, and again if nodes change within
the pass.

The pods of a block are in the order of `PodInfo.place`, and no other pod of their priority belongs between
them. At any time during a pass, all pods up to some place have been tried and have failed, and no later pod
has been tried. If different plugins rejected two equal pods, these pods are not in the same block. A block
never contains a pod whose priority can change, or that can become equal to other pods than before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, final

from harness.models.kube._equal_pods import AFTER_ALL, BEFORE_ALL, EqualPods, waits_for_room
from harness.models.kube._queued import Queued
from harness.models.kube._rests import Rests
from harness.models.kube.pod import Peers, PodInfo, Template

OFTEN = 4
"""The number of failures after which each further failure results in the longest backoff."""

FEW = 16
"""The number of groups up to which a pass examines each group, because that costs less than the index."""


def _place(pod: PodInfo) -> int:
    return pod.place


_WIDEST = 64
"""The maximum number of free places between two blocks that are joined.

Without a limit, a block would move by the width of the block in front of it, and the next block would move by
twice that width. Places would eventually exceed `AFTER_ALL`.
"""


@final
class Block(Queued):
    """Pods of the same priority that form one entry of the queue, as this module describes.

    Attributes:
        priority: the priority of all its pods.
        groups: the pods, grouped by equality.
        stamp, since, backoff: as for a single pod; see `queue.py`.
        taken: the pod that is being tried.
        tried: how many pods were really attempted in this pass and failed.
    """

    __slots__ = (
        "_awake", "_failed_at", "_failing", "_first", "_found", "_last", "_reached", "_resting", "_size",
        "_turned", "_version", "groups", "priority", "taken", "tried",
    )  # fmt: skip

    def __init__(self, priority: int, groups: dict[Peers, EqualPods]) -> None:
        self.priority = priority
        self.stamp = self.since = 0
        self.backoff = 0
        self.taken: PodInfo | None = None
        self.tried = 0
        self._reached = BEFORE_ALL
        self._version = -1  # at the last look in this pass
        self._found: EqualPods | None = None  # what `fails` found immediately before a pass
        self._failing: dict[EqualPods, frozenset[str]] = {}  # these fail because of other plugins
        self._turned: list[EqualPods] = []  # see `Rests.turn`
        self._become(groups, Rests())

    def _become(self, groups: dict[Peers, EqualPods], resting: Rests) -> None:
        """Sets the groups, and determines which of them are resting."""
        self.groups = groups
        self._resting = resting
        self._failed_at = -1  # the version at which all pods last failed in a pass
        self._awake = {peers: group for peers, group in groups.items() if group not in resting}
        # All pods are between these places, but pods at the places themselves may have left.
        self._size, self._first, self._last = 0, AFTER_ALL, BEFORE_ALL
        for group in groups.values():
            pods = group.pods
            self._size += len(pods)
            if pods[-1].place < self._first:
                self._first = pods[-1].place
            if pods[0].place > self._last:
                self._last = pods[0].place

    def __len__(self) -> int:
        return self._size

    # --- pods that rest -----------------------------------------------------------------------------------

    def _rest(self, failed: Iterable[Peers]) -> None:
        """Puts the groups to rest that wait only for free resources."""
        for peers in list(failed):
            group = self._awake[peers]
            if group.may_rest(peers.lasting):
                del self._awake[peers]
                group.verdict = None
                self._resting.add(group, peers.lasting)

    def _wake(self, group: EqualPods, peers: Peers) -> None:
        self._resting.discard(group)
        if group.verdict is None and group.behind(self._reached) < len(group.pods):
            group.verdict = group.rejected_by  # the pods before this place failed as before
        self._awake[peers] = group

    def wake(self) -> None:
        """Wakes the resting groups that may succeed because nodes have changed. Call this before a pass."""
        for peers, group in self.groups.items():
            if peers.lasting is None and peers not in self._awake:
                self._wake(group, peers)
        self._failed_at = -1
        self._resting.drop_empty()

    def settle(self) -> None:
        """Updates `rejected_by` of all groups. Call this before a pass."""
        self._resting.settle(self.groups.values())

    def _next_resting(self) -> EqualPods | None:
        """Returns the resting group with the first pod that may succeed, or None."""
        found, doubted = self._resting.first(self._reached)
        for group in doubted:
            self._wake(group, group.pods[0].peers)
        return found

    # --- a pass -------------------------------------------------------------------------------------------

    def kinds(self) -> list[tuple[Template, frozenset[str]]]:
        """Returns, for each group, its template and the plugins that rejected it. Call this before a pass."""
        self.settle()
        return [(group.pods[0].template, group.rejected_by) for group in self.groups.values() if group.pods]

    def pods(self, stamp: int, backoff: int) -> list[PodInfo]:
        """Returns the pods in queue order, and sets the attributes of single pods, which blocks don't keep.

        Args:
            stamp: the stamp of the first pod.
            backoff: the backoff of all pods.
        """
        self.settle()
        several = []
        for group in self.groups.values():
            for pod in group.pods:
                pod.rejected_by = group.rejected_by
                several.append(pod)
        several.sort(key=_place)
        for number, pod in enumerate(several):
            pod.stamp = stamp + number
            pod.since = self.since
            pod.backoff = backoff
        return several

    def fails(self, version: int, alike: list[PodInfo]) -> int:
        """If all pods of the block would fail again without an attempt, returns their number, otherwise 0.

        Call this only before a pass. If the result is not 0, the block is already in the state after it.

        Args:
            version: see `Peers.failed_at`.
            alike: receives the pods that are rejected by other plugins than before.
        """
        if version == self._failed_at:
            return self._size  # nothing has changed since the last pass
        self._found = None
        for peers, group in self._awake.items():
            if group.rejected_by != peers.rejected_by:
                return 0
            if peers.failed_at != version and not peers.fail_again(group.pods[-1], version):
                return 0
        if len(self.groups) > FEW:
            self._rest(self._awake)
        if len(self._awake) < len(self.groups):
            self._found = self._next_resting()
            if self._found is not None:
                return 0
            alike += sorted(self._resting.turn(BEFORE_ALL, AFTER_ALL, self._turned), key=_place)
            self._resting.pass_ends()
        self._failed_at = version
        return self._size

    def take(self, version: int, alike: list[PodInfo]) -> PodInfo | None:
        """Removes and returns the next pod that needs an attempt.

        All pods before it fail without an attempt, because an equal pod has failed. However, if other plugins
        than before rejected the equal pod, a pod needs an attempt unless it still waits for free resources.

        Args:
            version: see `Peers.failed_at`.
            alike: receives the pods before the returned pod that are rejected by other plugins than before.

        Returns:
            The pod, or None if all remaining pods fail.
        """
        if version != self._version:  # pods that failed may succeed now
            self._version = version
            self._failing.clear()
        reached, failing, rests = self._reached, self._failing, len(self._awake) < len(self.groups)
        found, place = None, AFTER_ALL
        calm: list[Peers] = []  # faster than `list[Peers]()`, which creates a generic alias
        if rests:
            found, self._found = self._found or self._next_resting(), None
            place = AFTER_ALL if found is None else found.next_place(reached)
        chosen, index = found, 0
        for peers, group in self._awake.items():
            if peers.failed_at == version:
                rejected_by = peers.rejected_by
                if group.rejected_by == rejected_by:
                    if group.verdict is None:
                        group.verdict = rejected_by
                    calm.append(peers)
                    continue
                if group.verdict in (None, rejected_by) and waits_for_room(rejected_by):
                    failing[group] = rejected_by
                    continue
            at, pods = group.behind(reached) - 1, group.pods
            if at < 0 or pods[at].place >= place or (failing and group in failing):
                continue
            if peers.failed_at != version:
                if group.fails_again(pods[at], version):
                    calm.append(peers)
                    continue
                if group.fails_otherwise(pods[at]):
                    failing[group] = peers.rejected_by
                    continue
            chosen, index, place = group, at, pods[at].place
        if len(self.groups) > FEW:
            self._rest(calm)
        if chosen is found and found is not None:
            self._wake(found, found.pods[0].peers)
            index = found.behind(reached) - 1
        self._reached = place
        if failing or rests:
            failed = [pod for group, reason in failing.items() for pod in group.fail(reached, place, reason)]
            alike += sorted([*failed, *self._resting.turn(reached, place, self._turned)], key=_place)
        if chosen is None:
            self.taken = None
            return None
        pod = self.taken = chosen.pods.pop(index)
        self._size -= 1
        pod.rejected_by = chosen.rejected_by
        return pod

    def put_back(self, pod: PodInfo) -> bool:
        """Puts the tried pod back into the block after it has failed, and returns True if that is possible.

        It is impossible if the pod no longer waits like its equal pods, or if other plugins rejected it.
        """
        group = self.groups[pod.peers]
        if not _waits_as_its_equals(pod) or group.verdict not in (None, pod.rejected_by):
            return False
        group.verdict = pod.rejected_by
        group.put_back(pod)
        self._size += 1
        self.taken = None
        self.tried += 1
        return True

    def split(self) -> Block:
        """Ends the pass, and returns a block of the pods that failed. If all failed, returns this block."""
        reached = self._reached
        self._reached, self.taken, self.tried = BEFORE_ALL, None, 0
        self._version, self._failing = -1, {}
        turned, self._turned = self._turned, []
        if reached == AFTER_ALL:  # all pods have failed
            for group in turned:
                group.over()
            self._resting.pass_ends()
            for peers, group in list(self._awake.items()):
                group.over()
                if not group.pods:
                    del self._awake[peers], self.groups[peers]
            return self
        resting, left = self._resting.split(reached)
        failed = {group.pods[0].peers: group for group in resting.groups()}
        for peers in failed:
            del self.groups[peers]
        self.groups |= {group.pods[0].peers: group for group in left}
        for peers, group in list(self._awake.items()):
            if group.pods and group.pods[-1].place > reached:
                group.verdict = None
                continue
            behind = group.split(reached)
            group.over()
            if group.pods:
                failed[peers] = group
            if behind is None:
                del self.groups[peers], self._awake[peers]
            else:
                self.groups[peers] = self._awake[peers] = behind
        block = Block(self.priority, {})
        block._become(failed, resting)
        self._size -= block._size
        self._first = max(self._first, reached + 1)
        return block

    def remove(self, pod: PodInfo) -> bool:
        """Removes a pod before a pass, and returns whether the block contained it."""
        group = self.groups.get(pod.peers)
        if group is None or pod not in group.pods:
            return False
        if pod.peers not in self._awake:
            self._wake(group, pod.peers)
        group.pods.remove(pod)
        self._size -= 1
        pod.rejected_by = group.rejected_by
        if not group.pods:
            del self.groups[pod.peers], self._awake[pod.peers]
        return True

    def join(self, later: Block) -> Block | None:
        """Joins this block and the next block into one block, which replaces both.

        Returns None if different plugins rejected equal pods of the two blocks. A later call may succeed.
        """
        mine, theirs = self.groups, later.groups
        if not mine or not theirs:
            return self if mine else later
        for each in mine.keys() & theirs.keys():
            self._resting.settle((mine[each],))
            later._resting.settle((theirs[each],))
            if mine[each].rejected_by != theirs[each].rejected_by:
                return None
        gap = later._first - 1
        overlap = self._last - gap
        kept, moved = (self, later) if self._size > later._size else (later, self)
        if overlap > 0 or overlap < -_WIDEST:
            moved.shift(overlap if moved is later else -overlap)
        kept.take_in(moved, is_later=moved is later)
        return kept

    def shift(self, places: int) -> None:
        for group in self.groups.values():
            for pod in group.pods:
                pod.place += places
        self._first += places
        self._last += places

    def take_in(self, moved: Block, *, is_later: bool) -> None:
        """Adds the pods of another block before or after all pods of this block."""
        for peers in moved.groups.keys() & self.groups.keys():
            if peers in moved._awake and peers not in self._awake:
                self._wake(self.groups[peers], peers)
        self._size += moved._size
        self._failed_at = -1
        self._first = min(self._first, moved._first)
        self._last = max(self._last, moved._last)
        for peers, group in moved.groups.items():
            known = self.groups.get(peers)
            if known is None:
                self.groups[peers] = group
            elif is_later:
                known.pods[:0] = group.pods
            else:
                known.pods += group.pods
        for peers, group in moved._awake.items():
            self._awake.setdefault(peers, group)
        self._resting.take_in(moved._resting, self.groups, self._awake, is_later=is_later)


Waiting: TypeAlias = PodInfo | Block
"""An entry of the queue."""


def joined(first: Waiting, second: Waiting) -> Block | None:
    """Joins two adjacent entries into one block, and returns None if they cannot be joined."""
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
    """Returns True if the same events help a pod and its equals, and its failures need no record."""
    return pod.is_told and not pod.expects_room and waits_for_room(pod.rejected_by)
