"""What nominated pods count for beside a pod that is tried, and that its own nomination counts once."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from quota_worlds import Happened, Jobs, cluster, leaf, node, tree

from harness.models.kube.pod import PodInfo
from harness_plugins.elastic_quota.quota_request import Nominated, Taken, quota_request
from harness_plugins.elastic_quota.scheduler import QuotaScheduler


def with_nominations(rng: random.Random) -> tuple[QuotaScheduler, list[PodInfo]]:
    """Pods of two quotas and several resources that wait, some of which are nominated to one of two nodes."""
    jobs = Jobs()
    for number in range(rng.randint(1, 6)):
        jobs.add(
            f"j{number}", rng.choice(("q0", "q1")), rng.randint(1, 3), priority=rng.randint(0, 2), seconds=99
        )
    quotas = tree(9, leaf("q0", rng.randint(0, 4), 9), leaf("q1", rng.randint(0, 4), 9))
    nodes = [node("n0", 3), node("n1", 3)]
    scheduler = Happened(cluster(*nodes, quotas), jobs, until=1).scheduler
    pods = [pod for each in scheduler.cache.nodes for pod in each.pods]
    waiting = [
        PodInfo(f"new-{number}", pod.template, rng.randint(0, 2), preempts=True, job=pod.job, pod=pod.pod)
        for number, pod in enumerate(pods)
    ]
    for pod in waiting:
        if rng.random() < 0.7:
            scheduler.cache.nominate(pod, rng.choice(("n0", "n1", "no such node")))
    return scheduler, waiting


@given(st.integers(0, 10**6))
def test_a_pods_own_nomination_counts_once(seed: int) -> None:
    """Beside the others it is what it is to those that do not know it, also in the order of resources."""
    scheduler, waiting = with_nominations(random.Random(seed))
    usage, cache = scheduler.usage, scheduler.cache
    for pod in waiting:
        found = quota_request(pod, usage, Nominated(usage, cache).besides([pod]))
        name = pod.nominated
        cache.nominate(pod, "")
        expected = quota_request(pod, usage, Nominated(usage, cache).besides(()))
        cache.nominate(pod, name)
        assert [(*each.items(),) for each in found[3:5]] == [(*each.items(),) for each in expected[3:5]]
        assert found == expected


@given(st.integers(0, 10**6))
def test_nominations_of_a_gangs_pods_do_not_count_for_it(seed: int) -> None:
    """They are charged when its pods are placed."""
    rng = random.Random(seed)
    scheduler, waiting = with_nominations(rng)
    mates = rng.sample(waiting, min(2, len(waiting)))
    usage, cache = scheduler.usage, scheduler.cache
    others = Nominated(usage, cache).besides(mates)
    found = [quota_request(mate, usage, others) for mate in mates]
    for mate in mates:
        cache.nominate(mate, "")
    assert found == [quota_request(mate, usage, Nominated(usage, cache).beside) for mate in mates]


def test_a_pod_counts_what_is_nominated_in_its_quota_and_elsewhere() -> None:
    """In its quota, the pods that are as important; in other quotas, those of quotas that do not borrow."""
    quotas = tree(9, leaf("q0", 4, 9), leaf("q1", 4, 9), leaf("q2", 0, 9))
    jobs = Jobs().add("a", "q0", 1).add("b", "q1", 2).add("c", "q2", 3)
    scheduler = Happened(cluster(node("n0", 6), quotas), jobs, until=1).scheduler
    usage, cache = scheduler.usage, scheduler.cache
    there = list(cache.nodes[0].pods)
    for pod in there:
        for priority in (0, 2):
            new = PodInfo(f"{pod.name}-{priority}", pod.template, priority, preempts=True, job=pod.job)
            cache.nominate(new, "n0")
    mine = PodInfo("mine", there[0].template, 1, preempts=True, job=there[0].job)
    request = quota_request(mine, usage, Nominated(usage, cache).besides([mine]))
    assert (request.own["cpu"], request.in_quota["cpu"], request.in_all["cpu"]) == (1000, 2000, 6000)
    assert [amounts["cpu"] for amounts in request.shared.values()] == [4000]


def test_resources_of_the_pod_itself_come_first() -> None:
    """The order in which the policy checks bounds decides which bound the record names."""
    theirs, own = {"disk": 1, "cpu": 2, "gpu": 3}, {"cpu": 1, "memory": 4}
    found = Taken(theirs, theirs, {}).with_own(own)
    assert list(found.in_quota.items()) == [("cpu", 3), ("memory", 4), ("disk", 1), ("gpu", 3)]
