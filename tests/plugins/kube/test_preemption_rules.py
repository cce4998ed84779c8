"""Rules that hold for every preemption, whatever the cluster and the trace."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_worlds import World, budget, job, node

from harness import Job
from harness.cluster.kinds.pods import PodSpec
from harness.cluster.kinds.scheduler_configuration import SchedulerConfiguration
from harness.cluster.load import cluster_from
from harness.engine.events import BIND, FINISH, GONE, NOMINATE, PREEMPT, SUBMIT, Fact
from harness.models.kube.cache import Cache
from harness.models.kube.placement.status import NODE_RESOURCES_FIT
from harness.models.kube.pod import PodInfo, Templates
from harness.models.kube.scheduler import Scheduler


class Watched(World):
    """A replay that keeps its own books, and checks each preemption against them."""

    def record(self, fact: Fact) -> None:
        """Follow what is bound where, and look at whom a nominated pod takes the place of."""
        action, job, node = fact.action, fact.job, fact.node or ""
        if action == SUBMIT:
            self.books: dict[str, dict[str, Job]] = getattr(self, "books", {})
            self.leaving: dict[str, tuple[Job, str]] = getattr(self, "leaving", {})
            self.pending: set[str] = getattr(self, "pending", set())
            self.pending.add(job.id)
        elif action == BIND:
            self.books.setdefault(node, {})[job.id] = job
            self.pending.discard(job.id)
        elif action in (FINISH, GONE):
            for held in self.books.values():
                held.pop(job.id, None)
            self.leaving.pop(job.id, None)
            if action == GONE:
                self.pending.add(job.id)
        elif action == PREEMPT:
            assert fact.by is not None
            assert fact.by.id in self.pending
            assert fact.by.preempts
            assert job.priority < fact.by.priority
            assert job.id in self.books[node]
            self.leaving[job.id] = (fact.by, node)
        elif action == NOMINATE:
            self.assert_fits_afterwards(job, node)
        super().record(fact)

    def assert_fits_afterwards(self, preemptor: Job, name: str) -> None:
        """Once the victims are gone the preemptor fits its node."""
        free = dict(self.cluster.nodes[name].allocatable)
        for held in self.books.get(name, {}).values():
            if held.id not in self.leaving:
                free["pods"] -= 1
                for resource, amount in held.pod_sets[0].requests.items():
                    free[resource] -= amount
        assert free["pods"] >= 1
        assert all(
            free[resource] >= amount for resource, amount in preemptor.pod_sets[0].requests.items() if amount
        )


@given(st.integers(0, 10**6))
def test_no_preemption_without_a_waiting_pod_of_higher_priority_that_fits_afterwards(seed: int) -> None:
    """Victims are less important than a pod that waits, may preempt, and has room once they are gone."""
    rng = random.Random(seed)
    nodes = [node(f"n{number}", cpu=rng.choice([4, 8]), pods=rng.choice([2, 5])) for number in range(3)]
    jobs = [
        job(
            f"j{number}",
            {"cpu": rng.randint(0, 6)},
            priority=rng.choice([0, 1, 5, 9]),
            at=rng.randint(0, 60),
            runs=rng.randint(1, 50),
            grace=rng.choice([1, 10]),
            preempts=rng.random() < 0.8,
            labels={"app": rng.choice("ab")},
        )
        for number in range(rng.randint(5, 25))
    ]
    Watched([*nodes, budget("a", {"app": "a"}, minAvailable="50%")], *jobs, until=300)


@given(st.integers(0, 10**6))
def test_nothing_is_preempted_with_preemption_disabled(seed: int) -> None:
    """The same scheduler without preemption only waits."""
    rng = random.Random(seed)
    jobs = [
        job(f"j{number}", {"cpu": rng.randint(1, 9)}, priority=rng.randint(0, 9), at=number, runs=30)
        for number in range(20)
    ]
    world = World([node("n1"), node("n2")], *jobs, disablePreemption=True)
    assert world.about("preempt", "nominate", "unnominate", "gone") == []
    assert len(world.about("finish")) == 20


def test_the_record_says_what_decided() -> None:
    """Each preemption is recorded with its node, the criterion, the victims and the number of candidates."""
    world = World(
        [node("n1"), node("n2")],
        job("a", {"cpu": 10}, priority=1, grace=30),
        job("b", {"cpu": 10}, priority=2, at=1, grace=30),
        job("p", {"cpu": 10}, priority=10, at=2),
        until=10,
    )
    assert world.about("preempt") == ["2 preempt a by p on n1"]
    assert world.details == [
        {
            "node": "n1",
            "criterion": "lowest highest priority of victims",
            "candidates": 2,
            "pdb_violations": 0,
            "victims": {"a": 1},
        }
    ]


def candidates(absolute: int, percentage: int = 1) -> dict[str, Any]:
    """A configuration that wants so many candidate nodes for a preemption."""
    args = {"minCandidateNodesAbsolute": absolute, "minCandidateNodesPercentage": percentage}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}],
    }


def with_candidates(absolute: int, *, ports: bool, free: bool = False) -> World:
    """Three nodes, of which the last has the least important pod; a budget lets none go, or not the last."""
    container = {"name": "c", "resources": {"requests": {"cpu": 10}}, "ports": [{"hostPort": 80}]}
    spec = {"containers": [container]} if ports else {}
    jobs = [
        job(f"f{number}", {"cpu": 10}, priority=3 - number, at=number, grace=5, labels={"app": app}, **spec)
        for number, app in enumerate(("a", "a", "b" if free else "a"))
    ]
    preemptor = job("p", {"cpu": 10}, priority=9, at=10, **spec)
    world = [*(node(f"n{number}") for number in range(3)), budget("a", {"app": "a"}, minAvailable=3)]
    return World([*world, candidates(absolute)], *jobs, preemptor, until=30)


@pytest.mark.parametrize("ports", [False, True])
@pytest.mark.parametrize(("wanted", "chosen", "told"), [(1, "f0", 1), (2, "f1", 2), (3, "f2", 3)])
def test_of_candidates_that_all_break_a_budget_no_more_than_wanted_are_kept(
    wanted: int, chosen: str, told: int, ports: bool
) -> None:
    """The search goes on beyond them for one that breaks none; a better one that it meets does not count."""
    world = with_candidates(wanted, ports=ports)
    (line,) = [each for each in world.about("preempt") if each.startswith("10 ")]
    assert line == f"10 preempt {chosen} by p on n{chosen[1:]}"
    assert world.details[0]["candidates"] == told


@pytest.mark.parametrize("ports", [False, True])
def test_a_candidate_that_breaks_no_budget_is_found_behind_those_that_do(ports: bool) -> None:
    """One is wanted; the first two break a budget, of which one is kept, and the third does not."""
    world = with_candidates(1, ports=ports, free=True)
    assert world.about("preempt")[0] == "10 preempt f2 by p on n2"
    assert world.details[0]["candidates"] == 2


@pytest.mark.parametrize("ports", [False, True])
def test_where_no_candidate_is_wanted_nobody_is_preempted(ports: bool) -> None:
    """A hundredth of three nodes, and at least none: the pod waits until one ends."""
    world = with_candidates(0, ports=ports, free=True)
    assert world.about("preempt", "nominate") == []
    assert [(time, detail["preemption"]) for time, _, detail in world.refused if detail] == [
        (10, "no node can be freed for it")
    ]


def test_nominations_are_withdrawn_in_the_order_in_which_their_pods_failed_last() -> None:
    """Pod a was nominated first; at 10 both fail again while their victims leave, b before a."""
    world = World(
        [node("n1", cpu=11), node("n2", cpu=1)],
        job("v1", {"cpu": 5}, grace=100),
        job("v2", {"cpu": 5}, at=1, grace=100),
        job("w", {"cpu": 1}, at=1),
        job("x", {"cpu": 1}, at=1, runs=9),
        job("a", {"cpu": 5}, priority=5, at=2),
        job("b", {"cpu": 5}, priority=6, at=3),
        job("c", {"cpu": 11}, priority=9, at=20),
        until=20,
    )
    assert world.about("nominate", "unnominate") == [
        "2 nominate a on n1",
        "3 nominate b on n1",
        "20 unnominate b",
        "20 unnominate a",
        "20 nominate c on n1",
    ]


def test_a_nomination_that_is_made_anew_is_behind_the_others() -> None:
    """As when a pod preempts once more for the node it is nominated to; nothing else changes."""
    cache = Cache(cluster_from([node("n1")], "test"))
    template = Templates(cache.resources, lambda namespace, labels: ()).of("default", {}, PodSpec())
    one, two = (PodInfo(name, template, 0, preempts=True) for name in ("one", "two"))
    for pod in (one, two):
        cache.nominate(pod, "n1")
    version = cache.version
    cache.nominate(one, "n1")
    assert cache.by_name["n1"].nominated == [two, one]
    assert cache.version == version


def test_a_nominated_pod_that_is_deleted_helps_pods_that_are_not_more_important() -> None:
    """From others no room was kept for it."""
    scheduler = Scheduler(cluster_from([node("n1")], "test"), SchedulerConfiguration())
    scheduler.advance(0)
    template = scheduler.templates.of("default", {}, PodSpec())
    low, gone, high = (PodInfo(f"p{each}", template, each, preempts=True) for each in (1, 5, 9))
    scheduler.cache.nominate(gone, "n1")
    for pod in (low, gone, high):
        scheduler.queue.add_unschedulable(pod, frozenset({NODE_RESOURCES_FIT}))
    scheduler.delete(gone)
    assert scheduler.queue.pop(scheduler.cache.version) is low
    assert scheduler.queue.pop(scheduler.cache.version) is None


def test_of_equal_nodes_the_lowest_name_is_chosen() -> None:
    """Where kube-scheduler takes any of the best nodes, this model takes the first by name: n10 before n2."""
    world = World([node("n2"), node("n10")], job("a", {"cpu": 1}))
    assert world.about("bind") == ["0 bind a on n10"]


def test_a_gang_holds_what_is_bound_until_all_its_pods_are() -> None:
    """Pods of a gang are bound one by one; the first ones wait idle for room for the last."""
    world = World(
        [node("n1")],
        job("x", {"cpu": 5}, priority=5, runs=20),
        job("gang", {"cpu": 5}, at=1, runs=10, pods=2, gang=True),
    )
    assert world.lines == [
        "0 bind x on n1",
        "1 bind gang-0 on n1",
        "20 finish x",
        "20 bind gang-1 on n1",
        "30 finish gang",
    ]


def test_evicted_pods_come_back_as_new_ones_behind_their_equals() -> None:
    """A successor queues by the time of its own arrival, not by that of the pod it replaces."""
    world = World(
        [node("n1")],
        job("old", {"cpu": 10}, priority=1, runs=50, grace=5),
        job("p", {"cpu": 10}, priority=10, at=5, runs=20),
        job("young", {"cpu": 10}, priority=1, at=4, runs=50),
        until=200,
    )
    assert world.about("bind") == [
        "0 bind old on n1",
        "10 bind p on n1",
        "30 bind young on n1",
        "80 bind old-r1 on n1",
    ]
