"""The index of pods that rest: it finds the pod that looking at each of them finds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from operator import gt

from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

from harness.cluster.kinds.pods import PodSpec
from harness.models.kube._equal_pods import AFTER_ALL, BEFORE_ALL, EqualPods
from harness.models.kube._resting import Resting
from harness.models.kube._rests import Rests
from harness.models.kube.placement.status import NODE_RESOURCES_FIT
from harness.models.kube.pod import PodInfo, Templates
from harness.models.told import NOTHING_TOLD, Told

TEMPLATE = Templates({}, lambda namespace, labels: ()).of("default", {}, PodSpec())
FIT = frozenset({NODE_RESOURCES_FIT})


@examples(60)
@given(st.integers(0, 2**32))
def test_it_finds_the_first_pod_that_asks_for_no_more_than_a_node_offers(seed: int) -> None:
    """While groups come, go, and lose or get pods at the front, whatever they ask for."""
    rng = random.Random(seed)
    most = rng.choice((3, 40, 10**9))
    resting, known, place = Resting(0), dict[EqualPods, tuple[int, ...]](), 0
    for _ in range(rng.randint(1, 150)):
        if rng.random() < 0.7 or not known:
            added = []
            for _ in range(rng.choice((1, 1, 20))):
                pods = []
                for _ in range(rng.choice((1, 1, 3))):
                    place += rng.randint(1, 3)
                    pods.append(_pod(place))
                group = EqualPods(pods[::-1], FIT)
                known[group] = tuple(rng.randint(0, most) for _ in range(3))
                added.append((known[group], group))
            resting.add(added)
        elif rng.random() < 0.2:
            end = rng.randint(0, place)
            before = {group: amounts for group, amounts in known.items() if group.pods[-1].place <= end}
            assert {group: amounts for amounts, group in resting.cut(end)} == before
            known = {group: amounts for group, amounts in known.items() if group not in before}
        else:
            group = rng.choice(list(known))
            if rng.random() < 0.2:
                first = group.pods[-1].place - 1
                if all(pod.place != first for each in known for pod in each.pods):
                    group.pods.append(_pod(first))
                    resting.add([(known[group], group)])
            elif len(group.pods) > 1:
                group.pods.pop()
            else:
                assert resting.remove(group) == known.pop(group)
        rooms = [tuple(rng.randint(0, most) for _ in range(3)) for _ in range(rng.choice((0, 1, 2)))]
        reached, until = rng.choice((BEFORE_ALL, place // 2)), rng.choice((AFTER_ALL, place))
        fitting = [
            (pod.place, group)
            for group, amounts in known.items()
            for pod in group.pods
            if reached < pod.place < until and not all(any(map(gt, amounts, room)) for room in rooms)
        ]
        expected = min(fitting, key=lambda each: each[0])[1] if fitting else None
        assert resting.first(rooms, reached, until) is expected


def test_of_many_pods_few_are_compared_with_a_node() -> None:
    """Neither where none of 10,000 fits, nor where the last one alone does, is each looked at."""
    rng = random.Random(7)
    resting = Resting(0)
    for place in range(10_000):
        requests = rng.randint(4, 8), rng.randint(8_000, 16_000)
        resting.add([(requests, EqualPods([_pod(place)], FIT))])
    looked: list[int] = []

    class Room(tuple[int, ...]):
        """Notes how often it is compared."""

        def __iter__(self):  # type: ignore[no-untyped-def]
            looked.append(1)
            return super().__iter__()

    for room in ((3, 20_000), (8, 7_999), (5, 8_000)):
        looked.clear()
        assert resting.first([Room(room)], BEFORE_ALL, AFTER_ALL) is None
        assert len(looked) < 300
    last = EqualPods([_pod(10_000)], FIT)
    resting.add([((1, 1), last)])
    looked.clear()
    assert resting.first([Room((1, 1))], BEFORE_ALL, AFTER_ALL) is last
    assert len(looked) < 300


class Limits:
    """What the limits of a quota leave. A pod that exceeds none of them may succeed."""

    by_nodes = FIT

    def __init__(self) -> None:
        self.version = self.judged = 0
        self.left: tuple[int, ...] = ()

    def rejecting(self, least: Sequence[int], most: Sequence[int], seen: int) -> frozenset[str] | None:
        """See `Verdicts`."""
        self.judged += 1
        for resource, left in enumerate(self.left):
            if least[resource] > left:
                return frozenset({f"resource {resource}"})
            if most[resource] > left:
                return None
        return None


class Lasting:
    """The refusal of a pod by limits."""

    most_room = None
    amounts = (9, 9, 9)

    def __init__(self, verdicts: Limits) -> None:
        self.verdicts = verdicts

    def holds(self, pod: PodInfo) -> bool:
        """See `LastingRefusal`."""
        return True

    def outlives_nodes(self) -> bool:
        """See `LastingRefusal`."""
        return True


@examples(60)
@given(st.integers(0, 2**32))
def test_pods_fail_by_verdicts_as_if_each_were_judged(seed: int) -> None:
    """Whether one limit after another refuses many of them, or some are tried in between."""
    rng, limits, place = random.Random(seed), Limits(), 0
    resting, known = Resting(0), dict[EqualPods, tuple[int, ...]]()
    told: dict[PodInfo, Told] = {}
    for _ in range(rng.randint(1, 40)):
        limits.version += 1
        limits.left = tuple(rng.randint(0, 12) for _ in range(3))
        for _ in range(rng.choice((0, 0, 3, 20))):
            pods = [_pod(place := place + 1) for _ in range(rng.choice((1, 1, 3)))]
            group = EqualPods(pods[::-1], frozenset({"resource 0"}))
            for pod in pods:
                pod.told = told[pod] = NOTHING_TOLD.then(group.rejected_by)
            known[group] = tuple(rng.randint(5, 20) for _ in range(3))
            resting.add([(known[group], group)])
        reached, turned = BEFORE_ALL, list[EqualPods]()
        while reached < AFTER_ALL:
            verdicts = {
                pod: (group, limits.rejecting(amounts, amounts, -1))
                for group, amounts in known.items()
                for pod in group.pods
                if pod.place > reached
            }
            hopeful = [(pod.place, group) for pod, (group, now) in verdicts.items() if now is None]
            before, expected = min(hopeful, key=lambda each: each[0], default=(AFTER_ALL, None))
            assert resting.unclear(limits, reached, AFTER_ALL) is expected
            news = []
            for pod, (_, now) in verdicts.items():
                if pod.place < before and now != told[pod].last:
                    after = told[pod].then(now)
                    if told[pod].tells(after):
                        news.append(pod)
                    told[pod] = after
            found = resting.turn(limits, reached, before, turned)
            assert sorted(found, key=id) == sorted(news, key=id)
            if expected is not None:
                assert resting.remove(expected) == known.pop(expected)
            reached = before
        for group in turned:
            group.over()
        resting.seen = resting.looked
    for group in known:
        resting.remove(group)
        for pod in group.pods:
            assert (pod.told, group.rejected_by) == (told[pod], told[pod].last)


def test_few_of_many_pods_are_judged_until_one_may_succeed() -> None:
    """Whatever limits refuse the others."""
    rng, limits, resting = random.Random(7), Limits(), Resting(0)
    for place in range(2_000):
        requests = tuple(rng.randint(5, 20) for _ in range(3))
        resting.add([(requests, EqualPods([_pod(place)], FIT))])
    resting.add([((4, 4, 4), EqualPods([_pod(2_000)], FIT))])
    for version, left in enumerate(((10, 10, 4), (10, 4, 10), (4, 10, 10), (4, 4, 4)), 1):
        limits.version, limits.left, limits.judged = version, left, 0
        found = resting.unclear(limits, BEFORE_ALL, AFTER_ALL)
        assert found is not None
        assert found.pods[0].place == 2_000
        assert limits.judged < 200


def test_pods_that_ask_for_few_quantities_turn_together() -> None:
    """A limit of such a resource refuses all pods that ask for the same, whatever else they ask for."""
    rng, limits, resting = random.Random(7), Limits(), Resting(0)
    by_both = [frozenset({f"resource {number}"}) for number in range(2)]
    for place in range(1_000):
        pod = _pod(place)
        pod.told = Told(by_both[0], frozenset(by_both), 1_000)
        requests = rng.randint(2, 8), *rng.choices(range(99, 9_999), k=2)
        resting.add([(requests, EqualPods([pod], by_both[0]))])
    for limits.version in range(40):
        limits.left, limits.judged = (limits.version % 8, 0, 0), 0
        assert resting.unclear(limits, BEFORE_ALL, AFTER_ALL) is None
        assert not resting.turn(limits, BEFORE_ALL, AFTER_ALL, [])
    assert limits.judged < 150


def test_a_later_pod_of_a_group_may_fail_for_another_reason_than_an_earlier_one() -> None:
    """It must be tried, also where the later one came from another block."""
    limits, peers, mine, later = Limits(), TEMPLATE.peers(0, True), Rests(), Rests()
    limits.left = (5, 20, 20)
    by_first = frozenset({"resource 0"})
    groups = [EqualPods([_pod(place)], by_first) for place in range(20)]
    for group in groups:
        mine.add(group, Lasting(limits))
    later.add(EqualPods([_pod(30)], by_first), Lasting(limits))
    groups[0].pods.insert(0, _pod(30))
    mine.take_in(later, {peers: groups[0]}, (), is_later=True)
    assert mine.first(BEFORE_ALL) == (None, [])
    assert mine.turn(BEFORE_ALL, 25, []) == []
    limits.version, limits.left = 1, (20, 5, 20)
    assert mine.first(25) == (groups[0], [])


def _pod(place: int) -> PodInfo:
    pod = PodInfo(f"p{place}", TEMPLATE, 0, preempts=True)
    pod.place = place
    return pod
