"""Jobs and clusters written by hand: names mean the same in all of them."""

from __future__ import annotations

import pytest
from policies import Greedy, PodByPod

from harness import Cluster
from harness.base.errors import InputError
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


def test_a_misspelt_argument_is_no_resource() -> None:
    """Else the job would request what no cluster has, and never start."""
    with pytest.raises(InputError, match=r"'requestd' is neither an argument of job\(\) nor a resource"):
        Script().job("a", cpu=1, requestd=20)
    scripted = Script().job(
        "a", cpu=1, requested=20, user="ana", priority_class="high", **{"example.com/x": 2}
    )
    job = scripted["a"]
    assert (job.requested, job.user, job.priority_class) == (20_000_000, "ana", "high")
    assert job.pod_sets[0].requests == {"cpu": 1, "example.com/x": 2}
