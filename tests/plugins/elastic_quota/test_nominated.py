"""What nominated pods count for beside a pod that is tried, and that its own nomination counts once."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from quota_worlds import Happened, Jobs, cluster, leaf, node, tree

from harness.models.kube.pod import PodInfo
from harness_plugins.elastic_quota.quota_request import Nominated, Others, Taken, with_amounts
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
    everyone = Nominated(usage, cache)
    for pod in waiting:
        quota, own, _ = usage.of(pod)
        others = everyone.besides([pod])
        assert quota is not None
        if others is None:
            continue
        found = others.with_pod(pod, quota, own)
        name = pod.nominated
        cache.nominate(pod, "")
        alone = Nominated(usage, cache).besides(())
        expected = (
            Taken(own, own, {}) if alone is None else with_amounts(own, alone.beside(quota, pod.priority))
        )
        cache.nominate(pod, name)
        assert [(*each.items(),) for each in found[:2]] == [(*each.items(),) for each in expected[:2]]
        assert found.shared == expected.shared


@given(st.integers(0, 10**6))
def test_nominations_of_a_gangs_pods_do_not_count_for_it(seed: int) -> None:
    """They are charged when its pods are placed."""
    rng = random.Random(seed)
    scheduler, waiting = with_nominations(rng)
    mates = rng.sample(waiting, min(2, len(waiting)))
    if len(mates) < 2:
        return
    usage, cache = scheduler.usage, scheduler.cache
    others = Nominated(usage, cache).besides(mates)
    found: dict[PodInfo, Taken] = {}
    for mate in mates if others is not None else []:
        quota, own, _ = usage.of(mate)
        assert quota is not None
        assert others is not None
        found[mate] = others.with_pod(mate, quota, own)
    for mate in mates:
        cache.nominate(mate, "")
    expected = Nominated(usage, cache).besides(())
    assert (others is None) == (expected is None)
    for mate, taken in found.items():
        quota, own, _ = usage.of(mate)
        assert quota is not None
        assert expected is not None
        assert taken == with_amounts(own, expected.beside(quota, mate.priority))


def test_resources_of_a_nominated_pod_come_first_as_they_do_beside_others() -> None:
    """In which order bounds are looked at decides which of them is told of."""
    scheduler, _ = with_nominations(random.Random(1))
    usage, cache = scheduler.usage, scheduler.cache
    pod = next(iter(cache.nodes[0].pods))
    quota = usage.quota_of(pod)
    assert quota is not None
    waiting = PodInfo("new", pod.template, 0, preempts=True)
    cache.nominate(waiting, "n0")
    other = PodInfo("other", pod.template, 0, preempts=True)
    theirs, own = {"disk": 1, "cpu": 2, "gpu": 3}, {"cpu": 1, "memory": 4}
    apart = {other: (0, quota, theirs)}
    beside = Others(apart, cache).with_pod(waiting, quota, own)
    among = Others({**apart, waiting: (0, quota, own)}, cache).with_pod(waiting, quota, own)
    assert list(beside.in_quota.items()) == [("cpu", 3), ("memory", 4), ("disk", 1), ("gpu", 3)]
    assert [list(each.items()) for each in among[:2]] == [list(each.items()) for each in beside[:2]]
