"""Jobs and clusters written by hand: names mean the same in all of them."""

from __future__ import annotations

import pytest
from policies import Greedy, PodByPod

from harness import Cluster
from harness.policy import PolicyFactory
from harness.testing import Script, nodes, pool, queues, replayed


@pytest.mark.parametrize(
    ("policy", "cluster"),
    [
        (Greedy, pool(cpu=4, gpu=1)),
        (Greedy, queues(default={"cpu": 4, "gpu": 1})),
        (Greedy, queues(default={"cpu": 4, "nvidia.com/gpu": 1})),
        (PodByPod, nodes(n={"cpu": 4, "gpu": 1})),
    ],
)
def test_gpu_is_the_same_resource_of_jobs_and_clusters(policy: PolicyFactory, cluster: Cluster) -> None:
    """So that jobs of one GPU each run one after the other where there is one."""
    jobs = Script().job("a", seconds=5, cpu=1, gpu=1).job("b", seconds=5, cpu=1, gpu=1)
    assert replayed(policy, jobs, cluster).starts() == {"a": 0, "b": 5}
