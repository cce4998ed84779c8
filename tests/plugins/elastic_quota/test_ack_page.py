"""What ACK's page about preemption says, a sentence a test; `docs/elasticquota.md` has the table of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quota_worlds import (
    LONG_ENOUGH,
    POD_GROUP,
    Happened,
    Jobs,
    Manifest,
    auto_happened,
    budget,
    cluster,
    fuzz,
    group,
    grouped,
    leaf,
    names,
    node,
    tree,
    varied,
    with_daemons,
)

from harness import Cluster
from harness.cluster.kinds.elastic import QUOTA_NAME_LABEL
from harness.models.kube.running import running_jobs

TWO = tree(10, leaf("a", 5, 10), leaf("b", 5, 10))
NODES = [node(name, 4) for name in ("n1", "n2", "n3")]
MEMBER = {POD_GROUP: "g"}
HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 100,
}


def pod(name: str, namespace: str, cpu: int, on: str = "", **fields: Any) -> Manifest:
    """A Pod of the manifests; `spec` and `metadata` may follow."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **fields.pop("spec", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **fields.pop("metadata", {})},
        "spec": spec | ({"nodeName": on} if on else {}),
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"} if on else {"phase": "Pending"},
    }


def of_group(name: str, cpu: int, on: str, **fields: Any) -> Manifest:
    """A Pod of the group `g` and the quota `b`."""
    return pod(name, "default", cpu, on, metadata={"labels": {**MEMBER, QUOTA_NAME_LABEL: "b"}}, **fields)


def owned_by(kind: str) -> Manifest:
    """Metadata with an owner reference."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "agent", "uid": "1", "controller": True}
    return {"ownerReferences": [owner]}


def with_pods(where: Cluster, jobs: Jobs | None = None) -> Jobs:
    """The pods of a cluster as jobs, and further ones after them."""
    return Jobs().of(running_jobs(where), jobs)


def test_a_pod_that_runs_keeps_its_node_though_its_quota_would_never_let_it_in() -> None:
    """The quota's max may have been lowered after the pod was bound; its node has no room for another pod."""
    pods = pod("old", "a", 6, "n"), pod("new", "b", 6)
    where = cluster(node("n", 8), tree(8, leaf("a", 1, 4, namespaces=["a"])), *pods)
    happened = Happened(where, with_pods(where), until=10)
    assert happened.lines("bind", "reject") == ["0 bind a/old on n"]
    assert happened.used == {"root": 6, "a": 6}


# --- how preemption works ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "victims"), [("high", ["b/low by b/mine"]), ("", [])])
def test_the_class_of_a_pod_gives_its_priority(name: str, victims: list[str]) -> None:
    """A quota that borrows takes from its less important pods."""
    spec = {"priorityClassName": name} if name else {}
    pods = pod("low", "b", 10, "n"), pod("mine", "b", 10, spec=spec)
    where = cluster(node("n", 10), TWO, HIGH, *pods)
    assert Happened(where, with_pods(where), until=5).preemptions == victims


@pytest.mark.parametrize("kind", ["DaemonSet", "ReplicaSet"])
@pytest.mark.parametrize("evicts", [False, True])
def test_pods_of_daemon_sets_are_not_evicted_by_default(kind: str, evicts: bool) -> None:
    """Neither for a guarantee nor for a more important pod of their quota; those of other owners are."""
    spared = kind == "DaemonSet" and not evicts
    for jobs, by in (
        (Jobs().add("claims", "a", 5, at=10), "claims"),
        (Jobs().add("urgent", "b", 5, at=10, priority=9), "urgent"),
    ):
        where = cluster(node("n", 10), TWO, pod("agent", "b", 10, "n", metadata=owned_by(kind)))
        happened = Happened(where, with_pods(where, jobs), until=20, evictDaemonSets=evicts)
        assert happened.preemptions == ([] if spared else [f"b/agent by {by}"])


def test_another_pod_goes_in_place_of_one_of_a_daemon_set() -> None:
    """That pod is more important, and would have stayed."""
    pods = pod("agent", "b", 5, "n", metadata=owned_by("DaemonSet")), pod("web", "b", 5, "n", spec=CLASS)
    where = cluster(node("n", 10), TWO, HIGH, *pods)
    claims = Jobs().add("claims", "a", 5, at=10)
    for evicts, victim in ((False, "b/web"), (True, "b/agent")):
        happened = Happened(where, with_pods(where, claims), until=20, evictDaemonSets=evicts)
        assert happened.preemptions == [f"{victim} by claims"]


CLASS = {"priorityClassName": "high"}


def test_default_preemption_evicts_pods_of_daemon_sets_as_kubernetes_does() -> None:
    """Who has no quota falls back to it with `auto`."""
    where = cluster(node("n", 10), TWO, pod("agent", "b", 10, "n", metadata=owned_by("DaemonSet")))
    jobs = with_pods(where, Jobs().add("urgent", "nobody", 5, at=10, priority=9))
    assert auto_happened(where, jobs, until=20).preemptions == ["b/agent by urgent"]


def test_victims_hold_what_they_have_for_their_grace_period() -> None:
    """They leave as Kubernetes lets pods go; the preemptor starts afterwards."""
    jobs = Jobs().add("theirs", "b", 10, grace=30).add("mine", "a", 5, at=10)
    happened = Happened(cluster(node("n", 10), TWO), jobs, until=60)
    assert happened.lines("preempt", "bind")[1:3] == ["10 preempt theirs by mine", "40 bind mine on n"]


def test_an_evicted_pod_comes_back_and_goes_where_there_is_room_or_waits() -> None:
    """`first` finds another node, `last` waits until one is free."""
    jobs = Jobs().add("first", "b", 4, priority=1).add("late", "nobody", 4, pods=2, gang=False, seconds=5)
    jobs.add("mine", "a", 4, at=2, seconds=20)
    where = cluster(*NODES, tree(12, leaf("a", 4, 12), leaf("b", 0, 12)))
    assert Happened(where, jobs, until=30).lines("preempt", "bind")[3:] == [
        "2 preempt first by mine",
        "2 bind mine on n1",
        "5 bind first-r1 on n2",
    ]


# --- the preemption list of a gang ------------------------------------------------------------------------


def test_a_running_pod_gives_its_gang_its_priority() -> None:
    """`late` counts as 100, the priority of a pod of its group that runs, whichever of two comes first."""
    low, high = of_group("one", 2, "n1"), of_group("two", 2, "n1", spec=CLASS)
    for pods in ((low, high), (high, low), (low,)):
        jobs = Jobs().add("between", "b", 4, at=1, priority=50).add("late", "b", 4, at=5, labels=MEMBER)
        where = cluster(node("n1", 4), node("n2", 4), ROOMY, HIGH, group(1), *pods)
        happened = Happened(where, with_pods(where, jobs), until=20)
        raised = high in pods
        assert happened.preemptions == (["between by late"] if raised else [])


ROOMY = tree(8, leaf("b", 8, 8))


def test_a_waiting_pod_gives_its_priority_to_those_of_its_gang_that_are_bound() -> None:
    """A job of priority 5 does not take the place of `bound`, which counts as 9 from second 5 on."""
    for waits in (False, True):
        jobs = Jobs().add("bound", "b", 8, labels=MEMBER)
        if waits:
            jobs.add("waits", "b", 8, at=5, labels=MEMBER, priority=9)
        jobs.add("mine", "b", 8, at=10, priority=5)
        happened = Happened(cluster(node("n", 8), ROOMY, group(1)), jobs, until=20)
        assert happened.preemptions == ([] if waits else ["bound by mine"])


def test_running_pods_count_as_the_most_important_one_of_their_gang() -> None:
    """The less important one is not preempted by what is between the two."""
    low, high = of_group("one", 4, "n1"), of_group("two", 4, "n2", spec=CLASS)
    for pods, victims in (((low, high), []), ((high, low), []), ((low,), ["default/one by mine"])):
        where = cluster(node("n1", 4), node("n2", 4), ROOMY, HIGH, group(1), *pods)
        filler = Jobs() if high in pods else Jobs().add("filler", "b", 4, priority=90)
        jobs = with_pods(where, filler.add("mine", "b", 4, at=10, priority=50))
        assert Happened(where, jobs, until=20).preemptions == victims


def test_a_pod_that_has_ended_gives_its_gang_nothing_any_more() -> None:
    """`waits` counted as 9 as long as `short` ran; then `other` is more important, and is placed first."""
    jobs = Jobs().add("short", "b", 4, labels=MEMBER, priority=9, seconds=10)
    jobs.add("holds", "nobody", 4, seconds=100).add("holds-too", "nobody", 4, seconds=100)
    jobs.add("waits", "b", 4, at=1, labels=MEMBER).add("other", "b", 4, at=2, priority=5)
    happened = Happened(cluster(*NODES, tree(12, leaf("b", 12, 12)), group(1)), jobs, until=20)
    assert happened.lines("bind")[3:] == ["10 bind other on n1"]


def test_an_evicted_pod_counts_until_its_successor_waits() -> None:
    """Its gang is as important as before, and so backs off: `late`, which does not, is placed before it."""
    jobs = Jobs().of_pod_sets("gang", "q", 0, ("", 4, 5), ("", 4, None), gang=True, grace=1)
    jobs.add("long", "q", 4, pods=2, gang=False, priority=9, seconds=9)
    jobs.add("first", "q", 4, at=7, priority=9).add("second", "q", 4, at=8, priority=9)
    jobs.add("late", "q", 4, at=9, priority=3)
    happened = auto_happened(cluster(*NODES, node("n4", 4)), jobs, until=100)
    assert happened.preemptions[:2] == ["gang-1 by first", "gang-0 by second"]
    at_nine = [line.split(" on ")[0] for line in happened.lines("gone", "bind") if line.startswith("9 ")]
    assert at_nine[:2] == ["9 gone gang-0", "9 bind late"]


def test_a_pod_of_one_group_gives_no_priority_to_another_group_of_its_job() -> None:
    """Only pods of the gang count: the important pod set of `both` is in the group `h`."""
    jobs = Jobs().add("holds", "b", 4, priority=5)
    jobs.of_pod_sets("both", "b", 5, ("g", 4, None), ("h", 1, 9))
    happened = Happened(
        cluster(node("n", 5), tree(5, leaf("b", 5, 5)), group(1), group(1, "h")), jobs, until=9
    )
    assert happened.preemptions == []
    assert happened.lines("bind") == ["0 bind holds on n", "5 bind both-1 on n"]


# --- who may take what ------------------------------------------------------------------------------------


def five_of_four() -> Jobs:
    """`b` uses 6 of 8 cores and is guaranteed 4; `a` uses nothing, is guaranteed 4 and asks for 5."""
    return Jobs().add("theirs", "b", 3, pods=2, gang=False).add("mine", "a", 5, at=10)


EIGHT = tree(8, leaf("a", 4, 8), leaf("b", 4, 8))


@pytest.mark.parametrize(("claims", "victims"), [("usage", 1), ("with-request", 0)])
def test_a_quota_claims_its_guarantee_by_its_usage_or_with_the_request(claims: str, victims: int) -> None:
    """By the letter of the page its usage has to be within its min; by default the request counts, too."""
    happened = Happened(cluster(node("n", 8), EIGHT), five_of_four(), until=20, claims=claims)
    assert len(happened.preemptions) == victims


def test_by_usage_a_gang_claims_as_a_whole_and_only_once() -> None:
    """Two pods of 4 claim with 6 guaranteed; then `a` uses 8, and a third one is refused."""
    jobs = Jobs().add("theirs", "b", 4, pods=3, gang=False)
    jobs.add("gang", "a", 4, pods=2, at=10).add("more", "a", 4, at=20)
    quotas = tree(12, leaf("a", 6, 12), leaf("b", 0, 12))
    happened = Happened(cluster(*NODES, quotas), jobs, until=40, claims="usage")
    assert len(happened.preemptions) == 2
    refused = [row.detail["preemption"] for row in happened.decisions.of("refuse") if row.job == "more"]
    assert refused == ["its quota uses more than its min, and has no pod of lower priority"]


def test_by_usage_room_that_was_made_counts_as_used() -> None:
    """While the victims of `first` leave, `a` is as good as above its min: `second` claims nothing more."""
    jobs = Jobs().add("theirs", "b", 4, pods=3, gang=False, grace=30)
    jobs.add("first", "a", 4, at=10).add("second", "a", 4, at=11)
    quotas = tree(12, leaf("a", 3, 12), leaf("b", 0, 12))
    happened = Happened(cluster(*NODES, quotas), jobs, until=100, claims="usage")
    assert [row.split(" by ")[1] for row in happened.preemptions] == ["first"]


def test_by_usage_two_quotas_may_evict_each_other_for_ever() -> None:
    """Why it is not the default: 8 cores, two quotas of min 4, and both ask for 5."""
    jobs = Jobs().add("one", "a", 5, seconds=3600).add("two", "b", 5, at=10, seconds=3600)
    where = cluster(node("n", 8), EIGHT)
    letter = Happened(where, jobs, until=20_000, claims="usage", evictionLatency="1s")
    assert [row.split(" ")[0].split("-")[0] for row in letter.preemptions[:4]] == ["one", "two"] * 2
    assert len(letter.preemptions) == 57
    assert letter.lines("finish") == []
    usual = Happened(where, jobs, until=20_000)
    assert usual.preemptions == []
    assert usual.lines("finish") == ["3600 finish one", "7200 finish two"]


def test_above_its_min_a_quota_takes_from_its_own_by_usage_too() -> None:
    """It uses 6 of 4: its own less important pod goes, and that of the other quota that borrows does not."""
    quotas = tree(12, leaf("a", 4, 12), leaf("b", 4, 12))
    jobs = Jobs().add("own", "a", 6).add("theirs", "b", 6).add("mine", "a", 5, at=10, priority=1)
    happened = Happened(cluster(node("n", 12), quotas), jobs, until=100, claims="usage")
    assert happened.preemptions == ["own by mine"]


@pytest.mark.parametrize(("cordoned", "victims"), [("left-out", 0), ("tried", 1)])
def test_one_pod_alone_leaves_out_cordoned_nodes_or_tries_them(cordoned: str, victims: int) -> None:
    """A pod that tolerates the mark: the English page leaves such nodes out, the Chinese one does not."""
    spec = {"tolerations": [{"operator": "Exists"}]}
    jobs = Jobs().add("theirs", "b", 10, spec=spec).add("mine", "a", 5, at=10, spec=spec)
    where = cluster(node("n", 10, spec={"unschedulable": True}), TWO)
    assert len(Happened(where, jobs, until=100, cordonedNodes=cordoned).preemptions) == victims


def test_a_budget_and_a_preemption_under_way_keep_a_pod() -> None:
    """Neither what leaves already nor what a budget covers goes for `second`."""
    covered = {"app": "web"}
    jobs = Jobs().add("leaves", "b", 5, grace=50).add("web", "b", 5, labels=covered)
    jobs.add("first", "a", 5, at=10).add("second", "c", 5, at=20)
    quotas = tree(10, leaf("a", 5, 10), leaf("b", 0, 10), leaf("c", 5, 10))
    where = cluster(node("n", 10), quotas, budget(covered, minAvailable=1))
    assert names(Happened(where, jobs, until=40).preemptions) == ["leaves"]


# --- Auto -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "victims"), [("pod", ["theirs by urgent"]), ("cluster", [])])
def test_auto_decides_by_pod_or_by_cluster(by: str, victims: list[str]) -> None:
    """`urgent` has no quota in a cluster with quotas: it falls back to priority, or preempts nobody."""
    jobs = Jobs().add("theirs", "b", 10).add("urgent", "nobody", 5, at=10, priority=9)
    assert auto_happened(cluster(node("n", 10), TWO), jobs, until=20, autoBy=by).preemptions == victims


@pytest.mark.parametrize("by", ["pod", "cluster"])
def test_auto_without_quotas_is_default_preemption_either_way(by: str) -> None:
    """There is no tree for the other policy to take effect by."""
    jobs = Jobs().add("theirs", "b", 10).add("urgent", "nobody", 5, at=10, priority=9)
    assert auto_happened(cluster(node("n", 10)), jobs, until=20, autoBy=by).preemptions == [
        "theirs by urgent"
    ]


@pytest.mark.parametrize("algorithm", ["Default", "None", "ElasticQuota", "Auto"])
def test_the_configuration_goes_before_the_option(algorithm: str) -> None:
    """`autoBy` says what Auto means, and nothing of the others."""
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "preemptionAlgorithm": algorithm,
    }
    jobs = Jobs().add("theirs", "b", 10).add("urgent", "nobody", 5, at=10, priority=9)
    where = cluster(node("n", 10), TWO, configuration)
    victims = ["theirs by urgent"] if algorithm == "Default" else []
    assert auto_happened(where, jobs, until=20, autoBy="cluster").preemptions == victims


@given(seed=st.integers(0, 10**9), worlds=st.sampled_from((varied, grouped)))
@fuzz(8)
def test_auto_by_cluster_is_elasticquota_where_there_are_quotas(
    seed: int, worlds: Callable[[random.Random], tuple[Cluster, Jobs]]
) -> None:
    """Decision by decision."""
    by_cluster = auto_happened(*worlds(random.Random(seed)), until=LONG_ENOUGH, autoBy="cluster")
    assert (
        by_cluster.decisions.rows == Happened(*worlds(random.Random(seed)), until=LONG_ENOUGH).decisions.rows
    )


@given(seed=st.integers(0, 10**9))
@fuzz(15)
def test_no_pod_of_a_daemon_set_is_ever_evicted(seed: int) -> None:
    """Whatever else happens in random worlds."""
    rng = random.Random(seed)
    where, jobs = varied(rng)
    jobs, daemons = with_daemons(jobs, rng)
    happened = Happened(where, jobs, until=LONG_ENOUGH)
    assert not daemons & {row.job for row in happened.decisions.of("preempt")}


@given(seed=st.integers(0, 10**9), claims=st.sampled_from(("usage", "with-request")))
@fuzz(30)
def test_every_pod_of_a_gang_counts_as_the_most_important_that_exists(seed: int, claims: str) -> None:
    """At the end of a random world, and the books of priorities are those of its pods."""
    until = random.Random(seed).randint(5, 120)
    scheduler = Happened(*grouped(random.Random(seed)), until=until, claims=claims).scheduler
    bound = [each for there in scheduler.cache.nodes for each in there.pods]
    gangs = {each.gang for each in bound if each.gang is not None}
    for gang in gangs:
        pods = [*gang.pending.values(), *gang.bound.values()]
        assert {each.priority for each in pods} == {gang.priority}
        assert gang.priority == max(each.job.priority for each in pods if each.job is not None)
    counted: dict[int, int] = {}
    for each in bound:
        counted[each.priority] = counted.get(each.priority, 0) + 1
        assert scheduler.usage.has_lower(scheduler.usage.quota_of(each), each.priority + 1)
    assert scheduler.cache.bound == counted
