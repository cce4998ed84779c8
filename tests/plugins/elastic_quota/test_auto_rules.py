"""Auto: quotas where a pod belongs to one, else priority; and what a scheduler's configuration chooses."""

from __future__ import annotations

from functools import partial

import pytest
from quota_worlds import Happened, Jobs, Manifest, auto_happened, cluster, leaf, node, tree

from harness.base.errors import InputError
from harness.testing import replayed
from harness_plugins.kube.policy import default_preemption

QUOTAS = tree(10, leaf("a", 5, 10), leaf("b", 5, 10))


def choice(algorithm: str) -> Manifest:
    """A KubeSchedulerConfiguration with this `preemptionAlgorithm`."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "preemptionAlgorithm": algorithm,
    }


def reclaim() -> Jobs:
    """`mine` requests its guarantee from pods that are more important: only quotas help."""
    return Jobs().add("theirs", "b", 5, pods=2, gang=False, priority=5).add("mine", "a", 5, at=10)


def important() -> Jobs:
    """`mine` belongs to no quota and is more important: only priority helps."""
    return Jobs().add("theirs", "b", 10).add("mine", "nobody", 5, at=10, priority=5)


def test_a_pod_of_a_quota_preempts_by_quotas() -> None:
    """Default preemption would not touch what is more important."""
    happened = auto_happened(cluster(node("n", 10), QUOTAS), reclaim(), until=100)
    assert [row.reason for row in happened.decisions.of("preempt")] == ["QuotaReclaim"]


def test_a_pod_without_a_quota_preempts_by_priority() -> None:
    """`elasticquota` refuses it; `auto` falls back."""
    where = cluster(node("n", 10), QUOTAS)
    happened = auto_happened(where, important(), until=100)
    assert [row.reason for row in happened.decisions.of("preempt")] == ["PreemptionByScheduler"]
    assert Happened(where, important(), until=100).preemptions == []


def test_a_pod_of_a_quota_does_not_fall_back() -> None:
    """It would borrow, so priority does not help it against another quota."""
    jobs = Jobs().add("theirs", "b", 10).add("mine", "a", 6, at=10, priority=9)
    assert auto_happened(cluster(node("n", 10), QUOTAS), jobs, until=100).preemptions == []


def test_it_switches_attempt_by_attempt() -> None:
    """Both in one replay."""
    jobs = Jobs().add("theirs", "b", 5, pods=2, gang=False, priority=5)
    jobs.add("mine", "a", 5, at=10).add("free", "nobody", 5, at=20, priority=9)
    happened = auto_happened(cluster(node("n", 10), QUOTAS), jobs, until=100)
    assert [row.reason for row in happened.decisions.of("preempt")] == [
        "QuotaReclaim",
        "PreemptionByScheduler",
    ]


def test_without_quotas_it_is_default_preemption() -> None:
    """Decision by decision, when pods of gangs are on their own."""
    jobs = Jobs()
    for number in range(30):
        jobs.add(
            f"j{number}",
            "q",
            1 + number % 4,
            at=number,
            seconds=7 + number,
            priority=number % 5,
            grace=number % 3,
        )
    where = cluster(node("n1", 4), node("n2", 6))
    mine = auto_happened(where, jobs, gang="pods").decisions.rows
    assert [row for row in mine if row.action == "preempt"]
    alone = partial(default_preemption, latency=0)
    assert mine == replayed(alone, jobs, where).rows


@pytest.mark.parametrize(
    ("algorithm", "reclaimed", "preempted"),
    [("Auto", 1, 1), ("ElasticQuota", 1, 0), ("Default", 0, 1), ("None", 0, 0)],
)
def test_the_configuration_selects_what_preempts(algorithm: str, reclaimed: int, preempted: int) -> None:
    """ACK's `preemptionAlgorithm`."""
    where = cluster(node("n", 10), QUOTAS, choice(algorithm))
    assert len(auto_happened(where, reclaim(), until=100).preemptions) == reclaimed
    assert len(auto_happened(where, important(), until=100).preemptions) == preempted


def test_elastic_quota_by_configuration_needs_quotas() -> None:
    """It is said, not ignored."""
    with pytest.raises(InputError):
        auto_happened(cluster(node("n", 10), choice("ElasticQuota")), reclaim())
