"""Kueue on nodes, where a flavor's labels say which of them a pod may use; and pods that end one by one."""

from __future__ import annotations

import json

import pytest
from kueue_worlds import Happened, Jobs, cluster, flavor, node, pod_set, queue

from harness import Bind
from harness.cluster.changes.over_time import unrolled
from harness.cluster.load import cluster_from
from harness_plugins.kueue.binding import Binder

WITHIN = {"withinClusterQueue": "LowerPriority"}
FAST, SLOW = "fast", "slow"


def bound(happened: Happened) -> list[str]:
    """Where pods were bound, in order, such as `0 a-1 on n0`."""
    return [f"{row.time // 10**6} {row.pod} on {row.node}" for row in happened.decisions.of("bind")]


def test_pods_are_bound_to_nodes_of_their_flavor_alone() -> None:
    """The slow node has more room, and is not theirs."""
    where = cluster(
        flavor(FAST, nodeLabels={"kind": FAST}),
        flavor(SLOW, nodeLabels={"kind": SLOW}),
        node("f0", 4, kind=FAST),
        node("s0", 64, kind=SLOW),
        queue("q", flavors={FAST: {"cpu": 4}, SLOW: {"cpu": 64}}),
    )
    jobs = Jobs().add("a", "q", 4).add("b", "q", 4)
    assert bound(Happened(where, jobs)) == ["0 a on f0", "0 b on s0"]


def test_a_pod_tolerates_what_its_flavor_does() -> None:
    """Kueue adds the flavor's tolerations to its pods."""
    tainted = node("n", 4)
    tainted["spec"] = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    for tolerations, binds in (([{"key": "gpu", "operator": "Exists"}], ["0 a on n"]), ([], [])):
        where = cluster(flavor(tolerations=tolerations), tainted, queue("q", cpu=4), flavors=False)
        assert bound(Happened(where, Jobs().add("a", "q", 4))) == binds


def test_a_taint_that_comes_moves_the_pods_that_do_not_tolerate_it_and_their_job_keeps_its_quota() -> None:
    """Job b tolerates it for 5 s; both have another node then, and nobody is admitted again."""
    later = node("n1", 8)
    later["metadata"]["annotations"] = {"harness/from": "2s"}
    taint = {"taints": [{"key": "broken", "effect": "NoExecute"}], "unschedulable": True}
    times = {"name": "n0", "annotations": {"harness/from": "3s"}}
    change = {"apiVersion": "v1", "kind": "Node", "metadata": times, "spec": taint}
    manifests = [node("n0", 8), later, flavor(), queue("q", cpu=16), change]
    where = unrolled(cluster_from(manifests, "the test"), None)
    for_a_time = [{"key": "broken", "operator": "Exists", "tolerationSeconds": 5}]
    tolerant = pod_set("main", 1, 2, tolerations=json.dumps(for_a_time))
    happened = Happened(where, Jobs().add("a", "q", 2).add("b", "q", pod_sets=(tolerant,), seconds=20))
    assert happened.lines("admit") == ["0 admit a", "0 admit b"]
    evictions = [f"{time}: DeletionByTaintManager" for time in ("3 evict a", "8 evict b")]
    assert happened.lines("evict") == evictions
    assert bound(happened) == ["0 a on n0", "0 b on n0", "3 a-r1 on n1", "8 b-r1 on n1"]


def test_an_admitted_job_waits_for_its_nodes_holding_quota() -> None:
    """Nobody is preempted for it on the nodes, and it progresses once all its pods run."""
    where = cluster(node("n0", 4), node("n1", 4), queue("q", cpu=16))
    jobs = Jobs().add("low", "q", 4, seconds=10).add("gang", "q", 4, pods=2, priority=9, at=1)
    happened = Happened(where, jobs)
    assert happened.lines("admit") == ["0 admit low", "1 admit gang"]
    assert [time for time, *_ in map(str.split, bound(happened))] == ["0", "1", "10"]
    assert happened.decisions.starts()["gang"] == 10


def test_a_preempted_job_gives_back_its_nodes_and_its_quota() -> None:
    """The preemptor is admitted when both are free."""
    where = cluster(node("n", 4), queue("q", cpu=4, preemption=WITHIN))
    jobs = Jobs().add("low", "q", 2, pods=2, grace=30).add("high", "q", 4, at=5, priority=1)
    happened = Happened(where, jobs)
    assert bound(happened) == ["0 low-0 on n", "0 low-1 on n", "36 high on n"]


@pytest.mark.parametrize(("gates", "admitted"), [("", 10), ("ReclaimablePods=false", 20)])
def test_pods_that_have_ended_give_their_quota_back(gates: str, admitted: int) -> None:
    """Pods of an independent job end one by one; what they held is free at once, or with the last one.

    `other` has one of two nodes, so the second pod of `a` runs after the first one, from 10 to 20 s.
    """
    where = cluster(node("n0", 1), node("n1", 1), queue("q", cpu=2), queue("r", cpu=1, cohort=""))
    jobs = Jobs().add("other", "r", 1, seconds=30).add("a", "q", 1, pods=2, gang=False, seconds=10)
    happened = Happened(where, jobs.add("next", "q", 1, at=5), featureGates=gates)
    assert happened.lines("admit")[-1] == f"{admitted} admit next"


def test_a_preempted_job_does_not_run_again_what_had_ended() -> None:
    """One of its two pods had ended: only the other one comes back, and asks for its own quota alone."""
    where = cluster(node("n", 2), queue("q", cpu=2, preemption=WITHIN), queue("r", cpu=1, cohort=""))
    sets = (pod_set("x", 1, 1), pod_set("y", 1, 1))
    jobs = Jobs().add("other", "r", 1, seconds=15).add("a", "q", pod_sets=sets, gang=False, seconds=10)
    happened = Happened(where, jobs.add("high", "q", 2, at=12, priority=1, seconds=5))
    assert happened.victims == ["a"]
    assert [(row.time // 10**6, row.pods) for row in happened.decisions.of("admit") if row.job == "a"] == [
        (0, 2),
        (20, 1),
    ]


def test_pods_that_have_ended_are_among_those_of_a_partial_admission() -> None:
    """The last of three has ended: of two that are admitted one is left to run, and it is the first."""
    job = Jobs().add("a", "q", 1, pods=3, gang=False)["a"]
    binder = Binder(cluster(node("n0", 9), queue("q", cpu=9)))
    binder.advance(0)
    binder.start(job, {}, {})
    assert [bind.pods for bind in binder.run() if isinstance(bind, Bind)] == [
        range(n, n + 1) for n in range(3)
    ]
    binder.end(job, range(2, 3))
    binder.leave(job)
    binder.start(job, {}, {"main": 2})
    assert [bind.pods for bind in binder.run() if isinstance(bind, Bind)] == [range(1)]
