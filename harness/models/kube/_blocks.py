"""Groups pods that have failed often into blocks, so that they can fail again without separate attempts.

When a pod finishes, the scheduler tries all pods again that wait for free resources. Nearly all of them fail,
because an equal pod has just failed. Pods that have failed often have the same backoff. Therefore, pods of
the same priority that fail one after another at the same time stay neighbors in the queue. They form a block,
which is one entry of the queue. In a pass, the scheduler tries all pods of a block once.
A block groups equal pods. A group that waits only for free resources is called resting. It is in an index
(`_resting.py`), and a pass examines it only if a node offers enough resources. The other groups are called
awake. A pass examines each of them once, and again if nodes change within the pass.

The pods of a block are in the order of `PodInfo.place`, and no other pod of their priority belongs between
them. At any time during a pass, all pods up to some place have been tried and have failed, and no later pod
has been tried. If different plugins rejected two equal pods, these pods are not in the same block. A block
never contains a pod whose priority can change, or that can become equal to other pods than before.
"""

from __future__ import annotations

from bisect import insort_left
from heapq import heapify, heappop, heappush
from typing import TypeAlias, final

from harness.models.kube._equal_pods import AFTER_ALL, BEFORE_ALL, EqualPods, from_the_end
from harness.models.kube._resting import Resting
from harness.models.kube.most_room import MostRoom
from harness.models.kube.placement.status import INTER_POD_AFFINITY, NODE_RESOURCES_FIT, POD_TOPOLOGY_SPREAD
from harness.models.kube.pod import Peers, PodInfo, Template
from harness.models.kube.refusal import NoRoom

OFTEN = 4
"""The number of failures after which each further failure results in the longest backoff."""

BY_BINDINGS = frozenset({INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD})
"""The plugins that may no longer reject a pod after another pod is bound."""


def _place(pod: PodInfo) -> int:
    return pod.place


_WIDEST = 64
"""The maximum number of free places between two blocks that are joined.

Without a limit, a block would move by the width of the block in front of it, and the next block would move by
twice that width. Places would eventually exceed `AFTER_ALL`.
"""


@final
class Block:
    """Pods of the same priority that form one entry of the queue, as this module describes.

    Attributes:
        priority: the priority of all its pods.
        groups: the pods, grouped by equality.
        timestamp, backoff: as for a single pod; see `queue.py`.
        taken: the pod that is being tried.
        tried: how many pods were really attempted in this pass and failed.
    """

    __slots__ = (
        "_again", "_ahead", "_at", "_awake", "_current", "_failing", "_first", "_found", "_last", "_reached",
        "_resting", "_size", "_version", "backoff", "groups", "priority", "taken", "timestamp", "tried",
    )  # fmt: skip

    def __init__(self, priority: int, groups: dict[Peers, EqualPods]) -> None:
        self.priority = priority
        self.timestamp = 0
        self.backoff = 0
        self.taken: PodInfo | None = None
        self.tried = 0
        self._reached = BEFORE_ALL
        # The state of a pass: the version at the last look, and the groups to examine, by the places of their
        # next pods.
        self._version = -1
        self._ahead: list[int] | None = None
        self._at: dict[int, EqualPods] = {}
        self._current: EqualPods | None = None  # the group of the pod that is being tried
        self._found: EqualPods | None = None  # what `fails` found immediately before a pass
        # These groups have more pods that fail at this version, because of the same or other plugins.
        self._again: list[EqualPods] = []
        self._failing: list[tuple[EqualPods, frozenset[str]]] = []
        self._become(groups, {})

    def _become(self, groups: dict[Peers, EqualPods], resting: dict[MostRoom, Resting]) -> None:
        """Sets the groups, and determines which of them are resting."""
        self.groups = groups
        self._resting = resting
        self._awake, self._size = groups.copy(), 0
        # All pods are between these places, but pods at the places themselves may have left.
        self._first, self._last = AFTER_ALL, BEFORE_ALL
        for peers, group in groups.items():
            self._size += len(group.pods)
            self._first = min(self._first, group.pods[-1].place)
            self._last = max(self._last, group.pods[0].place)
            if resting and any(group in each for each in resting.values()):
                del self._awake[peers]

    def __len__(self) -> int:
        return self._size

    # --- pods that rest -----------------------------------------------------------------------------------

    def _rest(self, peers: Peers, version: int) -> None:
        """Puts a group of equal pods to rest, because their refusal lasts until nodes change."""
        lasting = peers.lasting
        most_room = None if lasting is None else lasting.most_room
        assert lasting is not None, "see `EqualPods.may_rest`"
        assert most_room is not None, "see `EqualPods.may_rest`"
        group = self._awake.pop(peers)
        group.verdict = None
        self._resting.setdefault(most_room, Resting(version)).add(group, lasting.amounts)

    def _wake(self, group: EqualPods, peers: Peers) -> None:
        for resting in self._resting.values():
            if group in resting:
                resting.remove(group)
        self._awake[peers] = group

    def wake(self) -> None:
        """Wakes the resting groups that may succeed because nodes have changed. Call this before a pass."""
        for peers, group in self.groups.items():
            if peers.lasting is None and peers not in self._awake:
                self._wake(group, peers)

    def _next_resting(self, version: int) -> EqualPods | None:
        """Returns the resting group with the first pod that may succeed, or None if there is none."""
        found, reached, place = None, self._reached, AFTER_ALL
        for most_room, resting in self._resting.items():
            rooms = most_room.since(resting.seen) if resting.seen != version else []
            while rooms and (group := resting.first(rooms, reached, place)) is not None:
                pod = group.pods[group.behind(reached) - 1]
                lasting = pod.peers.lasting
                if not isinstance(lasting, NoRoom) or not lasting.holds_since(resting.seen):
                    found, place = group, pod.place
                    break
                group.doubted = lasting
                self._wake(group, pod.peers)
                self._again.append(group)
            else:
                if found is None:
                    resting.seen = version
        return found

    # --- a pass -------------------------------------------------------------------------------------------

    def kinds(self) -> list[tuple[Template, frozenset[str]]]:
        """Returns, for each group, its template and the plugins that rejected it. Call this before a pass."""
        return [(group.pods[0].template, group.rejected_by) for group in self.groups.values() if group.pods]

    def pods(self, timestamp: int, backoff: int) -> list[PodInfo]:
        """Returns the pods in queue order, and sets their timestamps and backoffs, which blocks don't keep.

        Args:
            timestamp: the timestamp of the first pod.
            backoff: the backoff of all pods.
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
        """If all pods of the block would fail again without an attempt, returns their number, otherwise 0.

        Call this only before a pass. If the result is not 0, the block is already in the state after it.

        Args:
            version: see `Peers.failed_at`.
        """
        calm, self._found = [], None
        for peers, group in self._awake.items():
            lasting = peers.lasting
            if group.rejected_by != peers.rejected_by:
                return 0
            if peers.failed_at != version and not peers.fail_again(group.pods[-1], version):
                return 0
            if group.may_rest(lasting):
                calm.append(peers)
        for peers in calm:
            self._rest(peers, version)
        self._found = self._next_resting(version)
        return self._size if self._found is None else 0

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
        if self._ahead is None:
            self._ahead, self._version = [], version
            self._again.clear()
            for group in self._awake.values():
                self._look_at(group)
            heapify(self._ahead)
        elif self._version != version:  # pods that failed may succeed now
            self._version = version
            for group in (*self._again, *[group for group, _ in self._failing]):
                self._look_at(group)
            self._again.clear()
            self._failing.clear()
        if self._current is not None:
            self._look_at(self._current)
        reached = self._reached
        found, self._found = self._found or self._next_resting(version), None
        place = AFTER_ALL if found is None else found.next_place(reached)
        chosen = self._next_awake(version, self._ahead, place)
        if chosen is not None:
            place = chosen.next_place(reached)
        elif found is not None:
            chosen = found
            self._wake(found, found.pods[0].peers)
        self._reached = place
        if self._failing:
            failed = [pod for group, reason in self._failing for pod in group.fail(reached, place, reason)]
            failed.sort(key=_place)
            alike += failed
            self._failing = [each for each in self._failing if each[0].next_place(place) < AFTER_ALL]
        self._current = chosen
        if chosen is None:
            self.taken = None
            return None
        pod = self.taken = chosen.pods.pop(chosen.behind(reached) - 1)
        self._size -= 1
        pod.rejected_by = chosen.rejected_by
        return pod

    def _look_at(self, group: EqualPods) -> None:
        """Adds equal pods to those that this pass examines, starting with the first that has not failed."""
        place = group.next_place(self._reached)
        if place < AFTER_ALL and self._ahead is not None:
            if place not in self._at:
                heappush(self._ahead, place)
            self._at[place] = group

    def _next_awake(self, version: int, ahead: list[int], place: int) -> EqualPods | None:
        """Returns the awake group of the first pod before a place that needs an attempt, or None."""
        while ahead and ahead[0] < place:
            group = self._at.pop(heappop(ahead))
            pod = group.pods[group.behind(self._reached) - 1]
            peers = pod.peers
            lasting, rejected_by = peers.lasting, peers.rejected_by
            if peers.failed_at == version:
                if group.rejected_by == rejected_by:
                    if group.verdict is None:
                        group.verdict = rejected_by
                elif group.verdict in (None, rejected_by) and _waits_for_room(rejected_by):
                    self._failing.append((group, rejected_by))
                    continue
                else:
                    return group
            elif not group.fails_again(pod, version):
                return group
            if group.may_rest(lasting):
                self._rest(peers, version)
            elif len(group.pods) > 1:
                self._again.append(group)
        return None

    def put_back(self, pod: PodInfo) -> bool:
        """Puts the tried pod back into the block after it has failed, and returns True if that is possible.

        It is impossible if the pod no longer waits like its equal pods, or if other plugins rejected it.
        """
        group = self.groups[pod.peers]
        if not _waits_as_its_equals(pod) or group.verdict not in (None, pod.rejected_by):
            return False
        group.verdict = pod.rejected_by
        if group.pods and group.pods[-1].place < pod.place:
            insort_left(group.pods, pod, key=from_the_end)
        else:
            group.pods.append(pod)
        self._size += 1
        self.taken = None
        self.tried += 1
        return True

    def split(self) -> Block:
        """Ends the pass, and returns a block of the pods that failed. If all failed, returns this block."""
        reached = self._reached
        self._reached, self.taken, self.tried = BEFORE_ALL, None, 0
        self._ahead, self._current = None, None
        self._at.clear()
        self._again, self._failing = [], []
        if reached == AFTER_ALL:  # all pods have failed
            for peers, group in list(self._awake.items()):
                group.over()
                if not group.pods:
                    del self._awake[peers], self.groups[peers]
            return self
        failed: dict[Peers, EqualPods] = {}
        left: dict[Peers, EqualPods] = {}
        for peers, group in self.groups.items():
            behind = group.split(reached)
            if behind is not group and group.pods:
                group.over()
                failed[peers] = group
            if behind is not None:
                left[peers] = behind
        resting: dict[MostRoom, Resting] = {}
        for most_room, mine in self._resting.items():
            theirs = resting[most_room] = Resting(mine.seen)
            for peers, group in failed.items():
                if group in mine:
                    amounts = mine.remove(group)
                    theirs.add(group, amounts)
                    if peers in left:
                        mine.add(left[peers], amounts)
        self._become(left, self._resting)
        block = Block(self.priority, {})
        block._become(failed, resting)
        return block

    def remove(self, pod: PodInfo) -> bool:
        """Removes a pod before a pass, and returns whether the block contained it."""
        group = self.groups.get(pod.peers)
        if group is None or pod not in group.pods:
            return False
        group.pods.remove(pod)
        self._size -= 1
        pod.rejected_by = group.rejected_by
        if not group.pods:
            if pod.peers not in self._awake:
                self._wake(group, pod.peers)
            del self.groups[pod.peers], self._awake[pod.peers]
        return True

    def join(self, later: Block) -> Block | None:
        """Joins this block and the next block into one block, which replaces both.

        Returns None if different plugins rejected equal pods of the two blocks. A later call may succeed.
        """
        mine, theirs = self.groups, later.groups
        if not mine or not theirs:
            return self if mine else later
        if any(mine[each].rejected_by != theirs[each].rejected_by for each in mine.keys() & theirs.keys()):
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
        for most_room, theirs in moved._resting.items():
            resting = self._resting.setdefault(most_room, Resting(theirs.seen))
            resting.seen = min(resting.seen, theirs.seen)
            for group, amounts in theirs.items():
                group = self.groups[group.pods[0].peers]  # this group has pods from both blocks
                if group.pods[0].peers not in self._awake and not (is_later and group in resting):
                    resting.add(group, amounts)


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
    return pod.is_told and not pod.expects_room and _waits_for_room(pod.rejected_by)


def _waits_for_room(rejected_by: frozenset[str]) -> bool:
    """Returns True if the deletion of any pod may help, and no binding can help."""
    return NODE_RESOURCES_FIT in rejected_by and BY_BINDINGS.isdisjoint(rejected_by)
