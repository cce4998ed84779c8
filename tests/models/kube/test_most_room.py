"""What nodes offer beside nominated pods."""

from __future__ import annotations

import random
from operator import gt

from hypothesis import given
from hypothesis import strategies as st
from kube_worlds import manifest, node

from harness.cluster.kinds.pod_reading import read_pod
from harness.cluster.load import cluster_from
from harness.cluster.yaml.fields import Fields
from harness.models.kube.cache import Cache
from harness.models.kube.most_room import MostRoom, amounts_of
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.pod import PodInfo, Templates


@given(st.integers(0, 10**6))
def test_a_pod_fits_where_a_node_offers_enough_beside_nominated_pods(seed: int) -> None:
    """Resources are reserved for equally and more important pods, and so are places."""
    rng = random.Random(seed)
    nodes = [node(f"n{number}", cpu=rng.randint(2, 6), pods=rng.choice((1, 2, 110))) for number in range(3)]
    cluster = cluster_from(nodes, "test")
    cache = Cache(cluster)
    templates = Templates(cache.resources, lambda namespace, labels: ())
    scheduling = Scheduling(cache)
    for number in range(rng.randint(1, 12)):
        read = read_pod(Fields(manifest(f"p{number}", {"cpu": rng.randint(1, 4)}), f"p{number}", []))
        template = templates.of("default", read.labels, read.spec)
        pod = PodInfo(f"p{number}", template, rng.choice((0, 5)), preempts=True)
        if rng.random() < 0.5:
            cache.nominate(pod, rng.choice(cache.nodes).name)
            continue
        room = MostRoom(cache, scheduling.shape_nodes(template.shape).rules, None, pod.priority)
        asked = amounts_of(template.shape, len(cache.names))
        offered = any(not any(map(gt, asked, each)) for each in room.since(-1))
        found = scheduling.schedule(pod)
        assert offered == isinstance(found, NodeInfo)
        if isinstance(found, NodeInfo) and rng.random() < 0.5:
            cache.add_pod(pod, found)
