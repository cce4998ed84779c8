"""How many equal pods nodes have room for is how many get a node when they are placed one after the other."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from quota_worlds import Happened, Jobs, cluster, fuzz, leaf, node, tree

from harness.cluster.kinds.pods import PodSpec
from harness.cluster.model import frozen
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness_plugins.elastic_quota.scheduler import QuotaScheduler
from harness_plugins.elastic_quota.shortcuts.lasting_refusal import Places


def happened(rng: random.Random) -> QuotaScheduler:
    """Nodes of several sizes, one of which takes few pods and one of which no pod tolerates."""
    few = {"amounts": {"pods": rng.randint(1, 3)}}
    tainted = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    nodes = [node("n0", 9, **few), node("n1", 5, **tainted)]
    nodes += [node(f"n{number}", rng.randint(1, 9)) for number in range(2, 5)]
    jobs = Jobs()
    for number in range(rng.randint(3, 12)):
        queue, seconds = rng.choice(("q0", "q1")), rng.randint(1, 20)
        about = {"priority": rng.randint(0, 2), "grace": rng.choice((0, 30))}
        jobs.add(f"j{number}", queue, rng.randint(1, 3), at=rng.randint(0, 9), seconds=seconds, **about)
    quotas = tree(99, leaf("q0", rng.randint(0, 9), 99), leaf("q1", rng.randint(0, 9), 99))
    return Happened(cluster(*nodes, quotas), jobs, until=10).scheduler


def placed(scheduler: QuotaScheduler, like: PodInfo) -> list[PodInfo]:
    """Pods like this one, placed while there is room."""
    pods: list[PodInfo] = []
    while True:
        pod = PodInfo(
            f"new-{len(pods)}", like.template, 1 << 63, preempts=False
        )  # from which no room is kept
        found = scheduler.scheduling.schedule(pod)
        if not isinstance(found, NodeInfo):
            return pods
        scheduler.cache.add_pod(pod, found)
        pods.append(pod)


@given(seed=st.integers(0, 10**6))
@fuzz(30)
def test_as_many_get_a_node_as_there_is_room_for(seed: int) -> None:
    """Whatever has come and gone since it was last asked."""
    scheduler = happened(random.Random(seed))
    cache, places = scheduler.cache, Places(scheduler.scheduling, scheduler.usage)
    kinds = {pod.template.shape: pod for each in cache.nodes for pod in each.pods}
    room = {shape: places.of(shape).now() for shape in kinds}
    for shape, like in kinds.items():
        pods = placed(scheduler, like)
        assert len(pods) == room[shape]
        assert places.of(shape).now() == 0
        for pod in pods:
            cache.remove_pod(pod)
    assert {shape: places.of(shape).now() for shape in kinds} == room


@given(seed=st.integers(0, 10**6))
@fuzz(30)
def test_with_victims_there_is_the_room_that_all_of_them_leave(seed: int) -> None:
    """They are the less important pods of the quota, and those that are leaving."""
    rng = random.Random(seed)
    scheduler = happened(rng)
    cache, places, usage = scheduler.cache, Places(scheduler.scheduling, scheduler.usage), scheduler.usage
    bound = [(pod, there) for there in cache.nodes for pod in there.pods]
    for like, _ in bound:
        quota, priority = rng.choice(list(usage.tree.leaves.values())), rng.randint(0, 3)
        found = places.of(like.template.shape, quota, priority).now()
        for pod, _ in bound:
            if pod.terminating or (pod.priority < priority and usage.quota_of(pod) is quota):
                cache.remove_pod(pod)
        assert places.of(like.template.shape).now() == found
        for pod, there in bound:
            if pod.node < 0:
                cache.add_pod(pod, there)


@given(free=st.lists(st.sampled_from((0, 300, 500, 700)), min_size=1, max_size=4), share=st.integers(1, 30))
@fuzz(30)
def test_shares_find_room_on_each_device_by_itself(free: list[int], share: int) -> None:
    """As many as can be placed one after the other."""
    has = {"nvidia.com/gpu-milli": 1000 * len(free)}
    machine = node("n0", 99, amounts=has)
    machine["metadata"]["labels"] = {"nvidia.com/gpu.count": str(len(free))}
    scheduler = Happened(cluster(machine, tree(99, leaf("q0", 9, 99))), Jobs(), until=1).scheduler

    def pod(amount: int, name: str) -> PodInfo:
        spec = PodSpec(frozen({"nvidia.com/gpu-milli": amount}))
        return PodInfo(name, scheduler.templates.of("default", {}, spec), 1 << 63, preempts=False)

    (where,) = scheduler.cache.nodes
    for number, left in enumerate(free):
        scheduler.cache.add_pod(pod(1000 - left, f"there-{number}"), where)
    like = pod(100 * share, "like")
    room = Places(scheduler.scheduling, scheduler.usage).of(like.template.shape).now()
    assert len(placed(scheduler, like)) == room
