"""The scheduling queue: who is tried next, and what makes a waiting pod be tried again."""

from __future__ import annotations

import pytest

from harness.base.units import SECOND
from harness.cluster.kinds.pods import HostPort, PodSpec, TopologySpreadConstraint
from harness.cluster.kinds.selectors import LabelSelector
from harness.models.kube.gangs import Gang
from harness.models.kube.hints import Hints
from harness.models.kube.placement.status import (
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    POD_TOPOLOGY_SPREAD,
)
from harness.models.kube.pod import PodInfo, Templates
from harness.models.kube.queue import SchedulingQueue

FIT = frozenset({NODE_RESOURCES_FIT})
NODES = frozenset({NODE_AFFINITY})
TEMPLATES = Templates({"cpu": 0, "memory": 1}, lambda namespace, labels: ())
TEMPLATE = TEMPLATES.of("default", {}, PodSpec())
VERSION = 0


def pod(name: str, priority: int = 0) -> PodInfo:
    """A pod with nothing special about it."""
    return PodInfo(name, TEMPLATE, priority, preempts=True)


def queue() -> SchedulingQueue:
    """An empty queue at second 0."""
    empty = SchedulingQueue(Hints(lambda namespace: {}))
    empty.advance(0)
    return empty


def failed(waiting: SchedulingQueue, one: PodInfo, second: int, by: frozenset[str] = FIT) -> None:
    """An attempt of a pod ends at a second."""
    waiting.advance(second * SECOND)
    waiting.add_unschedulable(one, by)


def deleted(waiting: SchedulingQueue, second: int) -> None:
    """A bound pod ends at a second."""
    waiting.advance(second * SECOND)
    waiting.pod_deleted(pod("x"))


def names(waiting: SchedulingQueue) -> list[str]:
    """The order in which all pods that are not in the pool are tried."""
    found = []
    while (one := waiting.pop(VERSION)) is not None:
        found.append(one.name)
    return found


def test_more_important_pods_are_tried_first_then_older_ones() -> None:
    """Priority descending, then the time at which a pod came into the queue."""
    waiting = queue()
    for name, priority in [("a", 0), ("b", 5), ("c", 5), ("d", 9)]:
        waiting.add(pod(name, priority))
    assert names(waiting) == ["d", "b", "c", "a"]


def test_a_failed_pod_waits_for_an_event() -> None:
    """It is not tried again before something that may help it happens."""
    waiting = queue()
    failed(waiting, pod("a"), 0)
    assert waiting.pop(VERSION) is None
    deleted(waiting, 100)
    assert names(waiting) == ["a"]


def test_a_pod_that_nodes_themselves_rejected_is_not_helped_by_deletions() -> None:
    """Only filters that look at pods ask for deletions."""
    waiting = queue()
    failed(waiting, pod("a"), 0, NODES)
    deleted(waiting, 100)
    assert waiting.pop(VERSION) is None


def test_backoff_orders_retries_and_does_not_delay_them() -> None:
    """Pods that back off are tried after all others, in the order in which their backoff ends."""
    waiting = queue()
    often, once, fresh = pod("often", 9), pod("once"), pod("fresh")
    for _ in range(3):
        failed(waiting, often, 0)
    failed(waiting, once, 0)
    deleted(waiting, 1)
    waiting.add(fresh)
    assert names(waiting) == ["fresh", "once", "often"]


def test_backoff_is_over_before_the_current_second() -> None:
    """A first failure backs off for a second; only in the second after that it counts as over."""
    waiting = queue()
    early, late = pod("early"), pod("late", 5)
    failed(waiting, early, 0)
    failed(waiting, late, 1)
    deleted(waiting, 2)
    assert names(waiting) == ["early", "late"]


def test_the_longest_backoff_is_ten_seconds() -> None:
    """It doubles from one second, four times at most."""
    waiting, one = queue(), pod("a")
    found = []
    for _ in range(6):
        failed(waiting, one, 0)
        found.append(one.backoff)
    assert found == [1, 2, 4, 8, 10, 10]


def test_pods_are_tried_again_after_five_minutes_in_the_pool() -> None:
    """The pool is looked through every 30 seconds, for pods that have been there for longer than that."""
    waiting = queue()
    failed(waiting, pod("a"), 7, NODES)
    assert waiting.next_flush() == 330 * SECOND
    waiting.advance(310 * SECOND)
    assert waiting.pop(VERSION) is None
    waiting.advance(330 * SECOND)
    assert names(waiting) == ["a"]


def test_exactly_five_minutes_are_not_longer_than_five_minutes() -> None:
    """A pod that failed on a multiple of 30 seconds is moved by the check after the one at five minutes."""
    waiting = queue()
    failed(waiting, pod("a"), 30)
    assert waiting.next_flush() == 360 * SECOND
    waiting.advance(330 * SECOND)
    assert waiting.pop(VERSION) is None
    waiting.advance(360 * SECOND)
    assert names(waiting) == ["a"]


@pytest.mark.parametrize("first", [0, 7, 29])
def test_the_timer_counts_from_the_second_of_the_first_instant(first: int) -> None:
    """Whatever the time is then: a replay that begins later decides the same later."""
    waiting = SchedulingQueue(Hints(lambda namespace: {}))
    waiting.advance(first * SECOND + 300_000)
    failed(waiting, pod("a"), first + 7, NODES)
    assert waiting.next_flush() == (first + 330) * SECOND
    waiting.advance((first + 310) * SECOND)
    assert waiting.pop(VERSION) is None
    waiting.advance((first + 330) * SECOND)
    assert names(waiting) == ["a"]


def test_a_withdrawn_nomination_helps_pods_that_are_not_more_important() -> None:
    """The room that was kept is free to pods of the same or lower priority, the pod itself among them."""
    waiting = queue()
    same, lower, higher = pod("same", 5), pod("lower", 1), pod("higher", 6)
    for one in (same, lower, higher):
        failed(waiting, one, 0)
    waiting.advance(100 * SECOND)
    waiting.nomination_withdrawn(same)
    assert names(waiting) == ["same", "lower"]


@pytest.mark.parametrize("gone", ["bound", "nominated"])
def test_a_pod_that_is_gone_helps_those_that_its_ports_and_its_labels_kept_out(gone: str) -> None:
    """Whether it was bound, or only had a nomination; another one helps neither of them."""
    spread = TopologySpreadConstraint("zone", 1, LabelSelector({"app": "a"}))
    port = HostPort("TCP", "0.0.0.0", 80)
    apart = PodInfo("apart", TEMPLATES.of("default", {}, PodSpec(spread=(spread,))), 0, preempts=True)
    web = PodInfo("web", TEMPLATES.of("default", {}, PodSpec(host_ports=(port,))), 0, preempts=True)
    labelled = PodInfo("a", TEMPLATES.of("default", {"app": "a"}, PodSpec()), 0, preempts=True)
    other_port = PodSpec(host_ports=(HostPort("TCP", "10.0.0.1", 81),))
    other = PodInfo("b", TEMPLATES.of("default", {"app": "b"}, other_port), 0, preempts=True)
    for helper, helped in ((other, []), (labelled, ["apart"]), (web, ["web"])):
        waiting = queue()
        failed(waiting, apart, 0, frozenset({POD_TOPOLOGY_SPREAD}))
        failed(waiting, web, 0, frozenset({NODE_PORTS}))
        waiting.advance(100 * SECOND)
        event = waiting.pod_deleted if gone == "bound" else waiting.nomination_withdrawn
        event(helper)
        assert names(waiting) == helped


def test_a_pod_whose_equal_has_failed_is_not_tried_in_vain() -> None:
    """It fails like the first, counts as an attempt, and is back in the pool; a nominated one is tried."""
    waiting = queue()
    first, second, nominated = pod("first"), pod("second"), pod("nominated")
    nominated.nominated = "n1"
    for one in (first, second, nominated):
        waiting.add(one)
    assert waiting.pop(VERSION) is first
    first.peers.failed_at, first.peers.rejected_by = VERSION, FIT
    waiting.add_unschedulable(first, FIT)
    assert waiting.pop(VERSION) is nominated
    assert waiting.pop(VERSION) is None
    assert waiting.attempts == 3
    assert (second.failures, second.rejected_by) == (1, FIT)
    deleted(waiting, 100)
    assert names(waiting) == []
    deleted(waiting, 200)
    assert waiting.pop(VERSION + 1) is first


def test_a_discarded_pod_is_not_tried() -> None:
    """A pod that is no longer wanted leaves the queue, wherever in it it is."""
    waiting = queue()
    active, pooled, backing_off = pod("active"), pod("pooled"), pod("backing-off")
    failed(waiting, backing_off, 0)
    deleted(waiting, 0)
    waiting.add(active)
    failed(waiting, pooled, 0)
    for one in (active, pooled, backing_off):
        waiting.discard(one)
    assert waiting.pop(VERSION) is None
    assert waiting.next_flush() is None


def test_a_gang_with_room_made_for_it_is_tried_although_an_equal_one_has_just_failed() -> None:
    """Be it for another pod than the one that stands for it; an attempt may use that room, or gives it up."""
    waiting, leader, mate = queue(), pod("leader"), pod("mate")
    gang = Gang(("default", "g"), 0)
    gang.pending = {(0, 0): leader, (0, 1): mate}
    leader.gang = mate.gang = gang
    leader.peers.failed_at, leader.peers.rejected_by = VERSION, FIT
    waiting.add(leader)
    assert waiting.pop(VERSION) is None
    mate.nominated = "n1"
    waiting.activate(leader)
    assert waiting.pop(VERSION) is leader
