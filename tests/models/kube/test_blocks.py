"""Pods in blocks: whatever happens, the queue tries the same pods in the same order as one without blocks."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

from harness.base.units import MINUTE, SECOND
from harness.cluster.kinds.pods import HostPort, PodSpec, TopologySpreadConstraint
from harness.cluster.kinds.selectors import LabelSelector
from harness.models.kube._blocks import Block, EqualPods
from harness.models.kube.hints import Hints
from harness.models.kube.placement.status import (
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    POD_TOPOLOGY_SPREAD,
)
from harness.models.kube.pod import Peers, PodInfo, Templates
from harness.models.kube.queue import SchedulingQueue

FIT = frozenset({NODE_RESOURCES_FIT})
FIT_OR_NODE = frozenset({NODE_RESOURCES_FIT, NODE_AFFINITY})
NODE = frozenset({NODE_AFFINITY})
SPREAD = frozenset({NODE_RESOURCES_FIT, POD_TOPOLOGY_SPREAD})
SPREAD_ONLY = frozenset({POD_TOPOLOGY_SPREAD})
PORTS = frozenset({NODE_PORTS})
OUTCOMES = (FIT,) * 12 + (FIT_OR_NODE,) * 3 + (NODE, SPREAD, SPREAD_ONLY, PORTS)

CELLS = 4
PRIORITIES = (0, 0, 0, 7)
HINTS = Hints(lambda namespace: {})
TEMPLATE = Templates({}, lambda namespace, labels: ()).of(
    "default",
    {},
    PodSpec(
        spread=(TopologySpreadConstraint("zone", 1, LabelSelector()),),
        host_ports=(HostPort("TCP", "10.0.0.1", 80),),
    ),
)
OTHER = PodInfo("other", TEMPLATE, 0, preempts=True)


class PlainQueue:
    """The same queue pod by pod: every pod is moved, passed over and put back by itself."""

    def __init__(self) -> None:
        self.now = -1
        self.attempts = 0
        self.failed_alike: list[PodInfo] = []
        self._began = 0
        self._stamps = 0
        self._active: list[PodInfo] = []
        self._backoff: list[PodInfo] = []
        self._pool: list[PodInfo] = []

    def advance(self, now: int) -> None:
        """Pods that wait for more than five minutes are moved every half minute from the beginning on."""
        if now != self.now:
            if self.now < 0:
                self._began = now // SECOND * SECOND
            self.now = now
            if (now - self._began) % (30 * SECOND) == 0:
                self._move(lambda pod: pod.since < now - 5 * MINUTE)

    def _stamp(self, pod: PodInfo) -> None:
        self._stamps += 1
        pod.stamp, pod.since = self._stamps, self.now

    def add(self, pod: PodInfo) -> None:
        """A new pod is active."""
        self._stamp(pod)
        self._active.append(pod)

    def pop(self, version: int) -> PodInfo | None:
        """Active pods by priority and age, then those that back off, by the end of it."""
        while self._active or self._backoff:
            if self._active:
                pod = min(self._active, key=lambda each: (-each.priority, each.stamp))
                self._active.remove(pod)
            else:
                pod = min(self._backoff, key=lambda each: (each.backoff, -each.priority, each.stamp))
                self._backoff.remove(pod)
            self.attempts += 1
            if pod.nominated or pod.peers.failed_at != version:
                return pod
            if pod.note_rejection(pod.peers.rejected_by):
                self.failed_alike.append(pod)
            self.add_unschedulable(pod, pod.peers.rejected_by)
        return None

    def add_unschedulable(self, pod: PodInfo, rejected_by: frozenset[str]) -> None:
        """Backoff doubles from one second up to ten."""
        pod.rejected_by = rejected_by
        pod.failures += 1
        pod.backoff = self.now // SECOND + min(2 ** (pod.failures - 1), 10)
        self._stamp(pod)
        self._pool.append(pod)

    def discard(self, pod: PodInfo) -> None:
        """Wherever it is."""
        for pods in (self._active, self._backoff, self._pool):
            if pod in pods:
                pods.remove(pod)

    def activate(self, pod: PodInfo) -> None:
        """Without backoff."""
        self.discard(pod)
        self._active.append(pod)

    def pod_deleted(self, gone: PodInfo) -> None:
        """All whom the hints let hope are moved."""
        self._move(lambda pod: HINTS.after_deletion(pod, gone))

    def nomination_withdrawn(self, other: PodInfo) -> None:
        """The same for pods that are not more important."""
        self._move(lambda pod: pod.priority <= other.priority and HINTS.after_deletion(pod, other))

    def pod_bound(self, bound: PodInfo) -> None:
        """The same after a binding."""
        self._move(lambda pod: HINTS.after_binding(pod, bound))

    def next_flush(self) -> int | None:
        """When the pod that has waited for longest will have done so for more than five minutes."""
        if not self._pool:
            return None
        since = min(pod.since for pod in self._pool) + 5 * MINUTE - self._began
        return self._began + (since // (30 * SECOND) + 1) * 30 * SECOND

    def _move(self, helps: Callable[[PodInfo], bool]) -> None:
        moved = [pod for pod in self._pool if helps(pod)]
        self._pool = [pod for pod in self._pool if pod not in moved]
        for pod in moved:
            (self._active if pod.backoff < self.now // SECOND else self._backoff).append(pod)


class Twins:
    """Both queues, with pods of their own that are called and treated alike; answers must be the same."""

    def __init__(self, rng: random.Random, *, calm: bool = False) -> None:
        self.rng = rng
        self.version = 0
        self._calm = calm  # pods wait for room, and nothing else ever comes of an attempt
        self.queues: tuple[PlainQueue | SchedulingQueue, ...] = (PlainQueue(), SchedulingQueue(HINTS))
        self.waiting: dict[str, tuple[PodInfo, PodInfo]] = {}
        self._peers = [
            [{priority: Peers() for priority in PRIORITIES} for _ in range(CELLS)] for _ in self.queues
        ]
        self._names = 0

    def advance(self, second: int, later: int | None = None) -> None:
        """It is a second, or a moment later."""
        later = self.rng.choice((0, 0, 5)) if later is None else later
        now = max(self.queues[0].now, second * SECOND + later)
        for queue in self.queues:
            queue.advance(now)

    def add(self) -> None:
        """A pod of a random kind arrives; some have no equals, and may get others."""
        priority, kind = self.rng.choice(PRIORITIES), self.rng.randrange(CELLS)
        loose = self.rng.random() < 0.15
        self._names += 1
        name = f"p{self._names}"
        pods = []
        for queue, peers in zip(self.queues, self._peers, strict=True):
            pod = PodInfo(name, TEMPLATE, priority, preempts=True)
            pod.peers = Peers(loose=True) if loose else peers[kind][priority]
            queue.add(pod)
            pods.append(pod)
        self.waiting[name] = (pods[0], pods[1])

    def happens(self) -> None:
        """Something that moves pods, or takes one away."""
        for queue, twin in self._each(self.rng.choice(list(self.waiting) or [""])):
            match self.event:
                case "deleted":
                    queue.pod_deleted(OTHER)
                case "bound":
                    queue.pod_bound(OTHER)
                case "activated" if twin is not None and twin.peers.loose:
                    queue.activate(twin)
                case "withdrawn" if twin is not None:
                    queue.nomination_withdrawn(twin)
                case "discarded" if twin is not None:
                    queue.discard(twin)
                    self.waiting.pop(twin.name, None)

    def _each(self, name: str) -> list[tuple[PlainQueue | SchedulingQueue, PodInfo | None]]:
        twins = self.waiting.get(name, (None, None))
        events = ("deleted",) * 8 + ("bound", "withdrawn", "discarded", "activated")
        self.event = self.rng.choice(events)
        return list(zip(self.queues, twins, strict=True))

    def cycle(self) -> None:
        """Try pods until none is left; now and then something happens in between."""
        while self._attempt():
            pass
        plain, blocks = self.queues
        assert blocks.attempts == plain.attempts
        assert blocks.next_flush() == plain.next_flush()

    def _attempt(self) -> bool:
        expected, got = (queue.pop(self.version) for queue in self.queues)
        for_first, as_well = ([pod.name for pod in queue.failed_alike] for queue in self.queues)
        assert as_well == for_first
        if expected is None or got is None:
            assert got is expected
            return False
        assert (got.name, got.rejected_by) == (expected.name, expected.rejected_by)
        chance, rejected_by = self.rng.random(), self.rng.choice(OUTCOMES)
        if self._calm:
            chance, rejected_by = 0.5, FIT
        if chance < 0.1:
            self.version += 1
            del self.waiting[got.name]
            for queue in self.queues:
                queue.pod_bound(OTHER)
            return True
        for queue, pod in zip(self.queues, (expected, got), strict=True):
            if chance < 0.15:
                pod.nominated = "n1"
            elif not pod.nominated and chance < 0.95:
                pod.peers.failed_at, pod.peers.rejected_by = self.version, rejected_by
            pod.note_rejection(rejected_by)
            queue.add_unschedulable(pod, rejected_by)
            if chance > 0.9:
                pod.nominated = ""
        self.version += chance < 0.2
        if self.rng.random() < 0.03:
            self.happens()
        return True


@examples(60)
@given(st.integers(0, 2**32))
def test_blocks_try_the_same_pods_in_the_same_order_as_a_queue_pod_by_pod(seed: int) -> None:
    """Through arrivals, ends, bindings, preemptions, withdrawals and the timer, at any pace."""
    rng = random.Random(seed)
    twins, second = Twins(rng), rng.randrange(45)
    pace = rng.choice(((0, 1), (1, 3), (2, 15), (11, 12, 40), (0, 5, 30, 300)))
    for _ in range(60):
        second += rng.choice(pace)
        twins.advance(second)
        for _ in range(rng.choice((0, 0, 1, 4))):
            twins.add()
        if rng.random() < 0.7:
            twins.happens()
        twins.cycle()


@examples(60)
@given(st.integers(0, 2**32))
def test_what_the_timer_moves_alone_fails_again_as_if_it_had_been_moved_and_tried(seed: int) -> None:
    """Through little but the timer, while few pods wait; also where a scheduler lets an instant pass."""
    rng = random.Random(seed)
    twins, second = Twins(rng, calm=rng.random() < 0.5), rng.randrange(45)
    changes, pace = rng.choice((0.0, 0.1, 0.4)), rng.choice(((30,), (30, 330), (330,)))
    for _ in range(120):
        second += rng.choice(pace)
        twins.advance(second)
        twins.version += rng.random() < changes
        if rng.random() < 0.1:
            for _ in range(rng.choice((1, 3))):
                twins.add()
        if rng.random() < changes / 3:
            twins.happens()
        if rng.random() < 0.9:
            twins.cycle()


@pytest.mark.parametrize(("nominated", "rejected_by"), [("", FIT_OR_NODE), ("n1", FIT)])
def test_a_pod_that_the_timer_moves_alone_is_told_apart_from_its_equals(
    nominated: str, rejected_by: frozenset[str]
) -> None:
    """It is tried where a preemption made room for it, and what rejects it now is to be recorded."""
    queue, pod = SchedulingQueue(HINTS), PodInfo("p", TEMPLATE, 0, preempts=True)
    queue.advance(SECOND)
    queue.add(pod)
    assert queue.pop(0) is pod
    queue.add_unschedulable(pod, FIT)
    pod.nominated, pod.peers.failed_at, pod.peers.rejected_by = nominated, 1, rejected_by
    queue.advance(queue.next_flush() or 0)
    assert queue.pop(1) is (pod if nominated else None)
    assert queue.failed_alike == ([] if nominated else [pod])
    assert pod.rejected_by == rejected_by


@pytest.mark.parametrize("sizes", [(1, 3), (3, 1), (2, 2)])
@pytest.mark.parametrize("apart", [-(10**12), 0, 1, 40, 10**12])
def test_pods_that_become_one_block_are_near_each_other(sizes: tuple[int, int], apart: int) -> None:
    """Wherever they were: else places would double each time that blocks change their turns."""
    blocks, pods = [], []
    for place, size in zip((0, apart), sizes, strict=True):
        mine = [PodInfo(f"p{place}-{number}", TEMPLATE, 0, preempts=True) for number in range(size)]
        for number, pod in enumerate(mine):
            pod.place = place + number
        pods += mine
        blocks.append(Block(0, {mine[0].peers: EqualPods(mine[::-1], FIT)}))
    joined = blocks[0].join(blocks[1])
    assert joined is not None
    together = [pod for group in joined.groups.values() for pod in group.pods]
    assert sorted(together, key=lambda pod: pod.place) == pods
    places = [pod.place for pod in pods]
    assert places == sorted(set(places))
    assert places[-1] - places[0] < 100


class Standing:
    """A refusal that always stands, and counts how often that is asked."""

    keeps_figures, verdicts, most_room, amounts = False, None, None, ()

    def __init__(self) -> None:
        self.asked = 0

    def holds(self, pod: PodInfo) -> bool:
        """See `LastingRefusal`."""
        self.asked += 1
        return True

    def outlives_nodes(self) -> bool:
        """See `LastingRefusal`."""
        return True


def test_a_block_that_has_failed_fails_again_at_once_while_nothing_changes() -> None:
    """Its refusal is looked at once for a version, as when the timer tries a pod again and again."""
    pod = PodInfo("waits", TEMPLATE, 0, preempts=False)
    peers = pod.peers
    peers.lasting = refusal = Standing()
    peers.rejected_by = FIT
    block = Block(0, {peers: EqualPods([pod], FIT)})
    assert [block.fails(version, []) for version in (7, 7, 7, 8)] == [1, 1, 1, 1]
    assert refusal.asked == 2
