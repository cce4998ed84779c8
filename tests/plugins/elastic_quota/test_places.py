"""How many equal pods nodes have room for is how many get a node when they are placed one after the other."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from quota_worlds import Happened, Jobs, cluster, leaf, node, tree

from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness_plugins.elastic_quota.places import Places
from harness_plugins.elastic_quota.scheduler import QuotaScheduler


def happened(rng: random.Random) -> QuotaScheduler:
    """Nodes of several sizes, one of which takes few pods and one of which no pod tolerates."""
    few = {"amounts": {"pods": rng.randint(1, 3)}}
    tainted = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    nodes = [node("n0", 9, **few), node("n1", 5, **tainted)]
    nodes += [node(f"n{number}", rng.randint(1, 9)) for number in range(2, 5)]
    jobs = Jobs()
    for number in range(rng.randint(3, 12)):
        jobs.add(f"j{number}", "q", rng.randint(1, 3), at=rng.randint(0, 9), seconds=rng.randint(1, 20))
    return Happened(cluster(*nodes, tree(99, leaf("q", 99, 99))), jobs, until=10).scheduler


def placed(scheduler: QuotaScheduler, like: PodInfo) -> list[PodInfo]:
    """Pods like this one, placed while there is room."""
    pods: list[PodInfo] = []
    while True:
        pod = PodInfo(f"new-{len(pods)}", like.template, 0, preempts=False)
        found = scheduler.scheduling.schedule(pod)
        if not isinstance(found, NodeInfo):
            return pods
        scheduler.cache.add_pod(pod, found)
        pods.append(pod)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_as_many_get_a_node_as_there_is_room_for(seed: int) -> None:
    """Whatever has come and gone since it was last asked."""
    scheduler = happened(random.Random(seed))
    cache, places = scheduler.cache, Places(scheduler.scheduling)
    kinds = {pod.template.shape: pod for each in cache.nodes for pod in each.pods}
    room = {shape: places.of(shape).now() for shape in kinds}
    for shape, like in kinds.items():
        pods = placed(scheduler, like)
        assert len(pods) == room[shape]
        assert places.of(shape).now() == 0
        for pod in pods:
            cache.remove_pod(pod)
    assert {shape: places.of(shape).now() for shape in kinds} == room
