"""Pod groups: at least so many pods are placed together, and the others as they fit."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from quota_worlds import (
    AT_ONCE,
    LONG_ENOUGH,
    POD_GROUP,
    Happened,
    Jobs,
    cluster,
    fuzz,
    group,
    grouped,
    leaf,
    node,
    tree,
)

from harness import PodSet
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.model import frozen
from harness.policy import PolicyFactory
from harness.testing import replayed
from harness_plugins.elastic_quota.policy import auto, elastic_quota, without_quotas
from harness_plugins.kube.policy import OPTIONS as KUBE_OPTIONS
from harness_plugins.kube_scheduler import kube_scheduler

NODES = [node("n1", 4), node("n2", 4), node("n3", 4)]
ROOMY = tree(12, leaf("a", 12, 12))
QUOTAS = tree(12, leaf("a", 8, 12), leaf("b", 4, 12))
MEMBER = {POD_GROUP: "g"}


@pytest.mark.parametrize("gang", [False, True])
def test_a_group_starts_with_those_that_fit_if_they_are_enough(gang: bool) -> None:
    """Two of three are needed and two fit: both are bound at once, the third one when there is room."""
    jobs = Jobs().add("own", "a", 4, seconds=20)
    jobs.add("group", "a", 4, pods=3, gang=gang, labels=MEMBER, at=10, seconds=30)
    happened = Happened(cluster(*NODES, ROOMY, group(2)), jobs)
    assert happened.lines("bind")[1:] == [
        "10 bind group-0 on n2",
        "10 bind group-1 on n3",
        "20 bind group-2 on n1",
    ]
    first = next(row for row in happened.decisions.of("bind") if row.pod == "group-0")
    assert first.detail == {"gang": 2, "waiting": 1, "least": 2}


def test_pods_of_a_group_that_are_no_gang_run_each_by_itself() -> None:
    """The first two end while the third one still runs."""
    jobs = Jobs().add("own", "a", 4, seconds=20)
    jobs.add("group", "a", 4, pods=3, gang=False, labels=MEMBER, at=10, seconds=30)
    happened = Happened(cluster(*NODES, ROOMY, group(2)), jobs)
    assert happened.lines("finish")[1:] == ["40 finish group-0", "40 finish group-1", "50 finish group-2"]


def test_a_gang_that_is_bound_in_part_runs_when_all_of_its_pods_are() -> None:
    """What a gang of a trace means does not change: until then the bound ones hold their nodes."""
    jobs = Jobs().add("own", "a", 4, seconds=20)
    jobs.add("group", "a", 4, pods=3, gang=True, labels=MEMBER, at=10, seconds=30)
    where = cluster(*NODES, ROOMY, group(2))
    assert Happened(where, jobs).decisions.starts()["group"] == 20
    cut = Happened(where, jobs, until=15).decisions.outcome
    assert cut is not None
    assert cut.half_bound == (("group", 2, 3, {"cpu": 8000}),)


@pytest.mark.parametrize("gang", [False, True])
def test_a_group_of_which_too_few_fit_is_not_bound_at_all(gang: bool) -> None:
    """Three are needed, and two fit."""
    jobs = Jobs().add("own", "a", 4).add("group", "a", 4, pods=4, gang=gang, labels=MEMBER, at=10)
    happened = Happened(cluster(*NODES, ROOMY, group(3)), jobs, until=100)
    assert happened.lines("bind") == ["0 bind own on n1"]


def test_least_of_all_pods_is_a_gang() -> None:
    """Placed and preempted as without a PodGroup; only what is refused alike is told apart by the labels."""
    plain, grouped = Jobs(), Jobs()
    for number in range(12):
        fields: dict[str, Any] = {"pods": 2, "at": 5 * number, "seconds": 30}
        name, queue, cpu = f"j{number}", "ab"[number % 2], 1 + number % 4
        plain.add(name, queue, cpu, **fields)
        grouped.add(name, queue, cpu, labels={"scheduling.x-k8s.io/pod-group": f"g{number}"}, **fields)
    groups = [group(2, f"g{number}") for number in range(12)]
    mine = Happened(cluster(*NODES, QUOTAS, *groups), grouped).decisions.rows
    theirs = Happened(cluster(*NODES, QUOTAS), plain).decisions.rows
    assert [row for row in mine if row.action == "preempt"]
    assert [row for row in mine if row.action != "refuse"] == [
        row for row in theirs if row.action != "refuse"
    ]


def test_the_rest_of_a_group_is_a_list_of_its_own() -> None:
    """One of four fits and is enough; the other three are helped together or not at all."""
    for theirs, victims in ((0, 2), (9, 0)):
        jobs = Jobs().add("low", "a", 4).add("other", "a", 4, priority=theirs)
        jobs.add("group", "a", 4, pods=3, gang=False, labels=MEMBER, at=10, priority=5)
        happened = Happened(cluster(*NODES, tree(12, leaf("a", 4, 12)), group(1)), jobs, until=100)
        assert len(happened.preemptions) == victims
        assert "10 bind group-0 on n3" in happened.lines("bind")


def test_a_group_short_of_its_least_makes_room_for_all_that_wait_or_for_none() -> None:
    """All pods that wait are one list, also those beyond the least."""
    for second, victims in ((0, 2), (9, 0)):
        jobs = Jobs().add("top", "a", 4, priority=9)
        jobs.add("low", "a", 4).add("other", "a", 4, priority=second)
        jobs.add("group", "a", 4, pods=2, gang=False, labels=MEMBER, at=10, priority=5)
        happened = Happened(cluster(*NODES, tree(12, leaf("a", 4, 12)), group(1)), jobs, until=100)
        assert len(happened.preemptions) == victims


def test_a_group_may_be_of_several_jobs_and_waits_for_its_pods() -> None:
    """One pod of two is not enough, whatever room there is; with the second one both are bound."""
    jobs = Jobs().add("first", "a", 4, labels=MEMBER).add("second", "a", 4, labels=MEMBER, at=30)
    happened = Happened(cluster(*NODES, ROOMY, group(2)), jobs)
    assert happened.lines("bind") == ["30 bind first on n1", "30 bind second on n2"]
    (row,) = happened.decisions.of("refuse")
    assert row.detail is not None
    assert row.detail["preemption"] == "its group has fewer pods than must be placed together"


def test_a_more_important_job_raises_its_whole_group() -> None:
    """The job that waits counts as 5 once its mate is there, and comes before one of priority 3."""
    jobs = Jobs().add("own", "a", 4, pods=3, gang=False, seconds=20, priority=9)
    jobs.add("first", "a", 4, labels=MEMBER, at=1).add("between", "a", 4, pods=2, at=2, priority=3)
    jobs.add("second", "a", 4, labels=MEMBER, at=3, priority=5)
    happened = Happened(cluster(*NODES, ROOMY, group(2)), jobs, until=100)
    assert happened.lines("bind")[3:] == ["20 bind first on n1", "20 bind second on n2"]


def test_pods_that_are_bound_count_towards_the_least() -> None:
    """An evicted pod of a group comes back by itself, for the others have their place."""
    jobs = Jobs().add("group", "b", 4, pods=3, gang=False, labels=MEMBER, seconds=50)
    jobs.add("mine", "a", 4, at=10, seconds=20)
    happened = Happened(cluster(*NODES, QUOTAS, group(3)), jobs)
    assert happened.preemptions == ["group-2 by mine"]
    assert happened.lines("bind")[-2:] == ["10 bind mine on n3", "30 bind group-2-r1 on n3"]


def test_pods_that_have_ended_count_towards_the_least() -> None:
    """The evicted pod comes back when its mates have finished."""
    jobs = Jobs().add("group", "b", 4, pods=3, gang=False, labels=MEMBER, seconds=50)
    jobs.add("mine", "a", 4, at=10, seconds=100)
    happened = Happened(cluster(*NODES, QUOTAS, group(3)), jobs)
    assert happened.lines("bind")[-1] == "50 bind group-2-r1 on n1"


@pytest.mark.parametrize("api", ["scheduling.x-k8s.io", "scheduling.sigs.k8s.io"])
@pytest.mark.parametrize("label", ["scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"])
def test_either_api_group_and_label_makes_a_group(api: str, label: str) -> None:
    """Three of four pods fit, and one would be enough."""
    jobs = Jobs().add("group", "a", 4, pods=4, gang=True, labels={label: "g"})
    happened = Happened(cluster(*NODES, ROOMY, group(1, api=api)), jobs, until=9)
    assert len(happened.decisions.of("bind")) == 3


def test_labels_alone_make_a_group() -> None:
    """ACK's: the name and how many are needed; without that number the job's own gang counts."""
    prefix = "pod-group.scheduling.sigs.k8s.io"
    for size, bound in (("2", 3), ("4", 0), ("many", 0), (None, 0)):
        labels = {f"{prefix}/name": "g"} | ({f"{prefix}/min-available": size} if size else {})
        jobs = Jobs().add("group", "a", 4, pods=4, labels=labels, gang=True)
        happened = Happened(cluster(*NODES, ROOMY), jobs, until=9)
        assert len(happened.decisions.of("bind")) == bound


def test_a_job_larger_than_its_quota_may_start_with_what_fits_it() -> None:
    """The quota holds two of three pods; a gang of three would be rejected for good."""
    quotas = tree(12, leaf("a", 4, 8), leaf("b", 4, 12))
    jobs = Jobs().add("group", "a", 4, pods=3, gang=False, labels=MEMBER, seconds=20)
    happened = Happened(cluster(*NODES, quotas, group(2)), jobs)
    assert happened.lines("bind") == ["0 bind group-0 on n1", "0 bind group-1 on n2", "20 bind group-2 on n1"]


def test_the_last_pod_of_a_group_returns_after_the_others_have_ended() -> None:
    """Those that have ended still count when it is evicted: alone it would wait for them for ever."""
    jobs = Jobs().add("group", "b", 4, pods=3, gang=False, labels=MEMBER, seconds=20)
    jobs.add("own", "a", 4, at=10, seconds=100).add("other", "a", 4, at=21, seconds=100)
    jobs.add("urgent", "b", 4, at=30, seconds=20, priority=5)
    happened = Happened(cluster(*NODES, QUOTAS, group(2)), jobs)
    assert happened.lines("preempt") == ["10 preempt group-2 by own", "30 preempt group-2-r1 by urgent"]
    assert happened.lines("bind")[-1] == "50 bind group-2-r2 on n1"


def test_pods_of_a_group_on_their_own_with_gang_pods() -> None:
    """The option says so, and the PodGroup does not count."""
    jobs = Jobs().add("own", "a", 4).add("group", "a", 4, pods=3, gang=False, labels=MEMBER, at=10)
    happened = Happened(cluster(*NODES, ROOMY, group(3)), jobs, until=100, gang="pods")
    assert len(happened.decisions.of("bind")) == 3


@pytest.mark.parametrize("preempts", [True, False])
def test_groups_without_quotas(preempts: bool) -> None:
    """`default-preemption` and `none` place groups as `elasticquota` does, with gang=all-or-nothing."""
    jobs = Jobs().add("low", "q", 4, pods=2, gang=False, seconds=20)
    jobs.add("group", "q", 4, pods=3, gang=False, labels=MEMBER, at=10, priority=5)
    given = AT_ONCE | {"gang": "all-or-nothing", "disablePreemption": not preempts}
    options = resolve(KUBE_OPTIONS, given, owner="default-preemption")
    found = replayed(kube_scheduler, jobs, cluster(*NODES, group(1)), options=options, until=100)
    bound = [(row.time // SECOND, row.pod) for row in found.of("bind")][2:]
    assert bound == [(10, "group-0"), *((10 if preempts else 20, f"group-{pod}") for pod in (1, 2))]


@given(
    groups=st.lists(
        st.tuples(
            st.sampled_from("ab"), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(0, 9)
        ),
        min_size=1,
        max_size=8,
    )
)
@fuzz(80)
def test_a_group_never_begins_with_fewer_than_its_least(groups: list[tuple[str, int, int, int, int]]) -> None:
    """As many at the first instant, whoever is preempted; and all pods of possible groups end."""
    jobs, manifests = Jobs(), []
    for number, (queue, pods, least, cpu, at) in enumerate(groups):
        labels = {"scheduling.x-k8s.io/pod-group": f"g{number}"}
        jobs.add(f"j{number}", queue, cpu, pods=pods, gang=False, labels=labels, at=at, seconds=20)
        manifests.append(group(least, f"g{number}"))
    happened = Happened(cluster(*NODES, QUOTAS, *manifests), jobs).decisions
    for number, (_, pods, least, cpu, _) in enumerate(groups):
        bound = [row.time for row in happened.of("bind") if row.job == f"j{number}"]
        if pods < least or cpu * least > 12:
            assert not bound
        if bound:
            assert bound.count(bound[0]) >= least
        if pods >= least and cpu * pods <= 8 - 4 * (groups[number][0] == "b"):
            assert happened.jobs[f"j{number}"].state == "finished"


@pytest.mark.parametrize(
    ("plugin", "options"),
    [
        (elastic_quota, {}),
        (elastic_quota, {"semantics": "capacity-scheduling", "gang": "all-or-nothing"}),
        (elastic_quota, {"semantics": "koordinator", "gang": "all-or-nothing"}),
        pytest.param(auto, {"evictionLatency": "3s"}, marks=pytest.mark.nightly),
        (without_quotas, {"gang": "all-or-nothing"}),
    ],
    ids=["ack", "capacity-scheduling", "koordinator", "auto", "default-preemption"],
)
@given(seed=st.integers(0, 10**9))
@example(seed=13)  # a pod that was placed with others would make room for the next one of its group
@example(seed=11)  # a job whose group became more important would preempt its own pods
@example(seed=20)  # room is planned for pods without a quota, and takes up that of the others
@fuzz(20)
def test_no_pod_makes_room_for_another_one_of_its_group(
    plugin: PolicyFactory, options: dict[str, Any], seed: int
) -> None:
    """Whatever their quotas and priorities are: the group would gain nothing."""
    where, jobs = grouped(random.Random(seed))
    group_of = {job.id: job.pod_sets[0].labels.get(POD_GROUP, job.id) for job, *_ in jobs.arrivals()}
    happened = Happened(where, jobs, plugin=plugin, until=LONG_ENOUGH, **options)
    for row in happened.decisions.of("preempt"):
        assert row.by
        assert group_of[row.job] != group_of[row.by]


def test_a_job_makes_no_room_for_itself_although_its_pods_are_in_different_groups() -> None:
    """The pod of `both` that is in the group counts as 5 because of `first`, and the other one as 0."""
    jobs = Jobs().add("first", "a", 4, labels=MEMBER, seconds=50, priority=5)
    jobs.add("top", "a", 2, at=1, seconds=9, priority=9)
    pod_sets = (
        PodSet("member", 1, 1, frozen({"cpu": 4000}), labels=frozen(MEMBER)),
        PodSet("other", 1, 1, frozen({"cpu": 2000})),
    )
    jobs.job("both", queue="a", at=2, seconds=1000, pod_sets=pod_sets)
    for plugin in (elastic_quota, without_quotas):
        happened = Happened(cluster(*NODES[:2], ROOMY, group(1)), jobs, plugin=plugin, gang="all-or-nothing")
        assert happened.preemptions == []
        assert happened.lines("bind")[2:] == ["2 bind both-1 on n2", "50 bind both-0 on n1"]
