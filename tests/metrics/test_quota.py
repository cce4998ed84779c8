"""Quota held beyond what might be borrowed: worked by hand, and against the tree that policies use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import scripted
from small_clusters import queues

from harness.analysis.metrics.quota_tree import quota_trees
from harness.cluster.model import Cluster, ClusterQueue, Cohort, FlavorQuotas, ResourceGroup, ResourceQuota
from harness.models.quota import UNLIMITED, FlavorResource, QuotaTree
from harness.runs.tenants import cohorts, quotas

Measured = Callable[..., Callable[..., float | None]]
OVERLOAD = queues({"a": {"cpu": "3"}, "b": {"cpu": "2"}, "c": {"cpu": "0"}, "d": {"cpu": "1"}})


def job(name: str, queue: str, cpu: int, at: int = 10, **fields: Any) -> dict[str, Any]:
    asks = {"queue": queue, "request.cpu": 1000 * cpu}
    return {"job_id": name, "submit_time": at, "duration": 100, **asks, **fields}


JOBS = (job("V", "b", 4, 0), job("X", "d", 1), job("P", "a", 3), job("F", "c", 2))


def test_quota_that_is_held_without_a_node(measured: Measured) -> None:
    """Two pods of x with a core each are admitted at 10 s; they are bound at 14 and 17 s: 11 core-seconds.

    Of a cluster without nodes nothing is known of pods.
    """
    steps = {10: [("admit", "x")], 14: [("bind", "x", 0, "n0")], 17: [("bind", "x", 1, "n0")]}
    x = job("x", "a", 1, pods=2)
    quota = {"a": {"cpu": "3"}, "b": {"cpu": "2"}}
    value = measured(x, cluster=queues(quota, nodes=1), plugin=scripted(steps), label="nodes")
    assert value("quota.held_unbound", resource="cpu") == 11 / 3600
    assert value("quota.held_unbound", "quota=a", "cpu") == 11 / 3600
    assert value("quota.held_unbound", "quota=b", "cpu") == 0
    value = measured(x, cluster=queues(quota), label="pool", plugin="kueue-classic")
    assert value("quota.held_unbound", "quota=a", "cpu") is None


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
def test_what_is_admitted_while_victims_leave_is_over_quota_for_a_moment(
    plugin: str, measured: Measured
) -> None:
    """V holds 4 cores for 30 s more, 2 of them borrowed; of what a leaves unused F borrows 2 beside it.

    To each of them the other leaves 1 of these 3 cores, so each is 1 over.
    """
    value = measured(*JOBS, cluster=OVERLOAD, plugin=plugin)
    hours = {name: value("quota.over", f"quota={name}", "cpu") for name in "abcd"}
    assert hours == {"a": 0, "b": 30 / 3600, "c": 30 / 3600, "d": 0}
    assert value("quota.over", resource="cpu") == 60 / 3600
    assert value("wait.admission_to_start.max") == 30


def test_with_nodes_admitted_pods_that_wait_for_nodes_hold_quota_too(measured: Measured) -> None:
    """The same queues on two nodes of 4 cores, where F's pod could be bound at once: V is as far over."""
    nodes = queues({"a": {"cpu": "3"}, "b": {"cpu": "2"}, "c": {"cpu": "0"}, "d": {"cpu": "1"}}, nodes=2)
    value = measured(*JOBS, cluster=nodes, plugin="kueue-classic")
    assert value("quota.over", "quota=b", "cpu") == 30 / 3600
    assert value("wait.admission_to_start.max") == 0


def test_who_borrows_no_more_than_others_leave_is_not_over(measured: Measured) -> None:
    """V borrows 2 of a's 3 cores until it is gone, and P waits for them."""
    value = measured(*JOBS[:3], cluster=OVERLOAD, plugin="kueue-classic")
    assert value("quota.over", resource="cpu") == 0


def test_a_queue_that_nobody_lends_to_is_over_its_own_quota(measured: Measured) -> None:
    """A policy that knows no quotas admits 4 cores where 2 are the queue's and the other holds its own 3."""
    steps = {0: [("admit", "low")], 10: [("admit", "high")]}
    jobs = (job("low", "b", 4, 0, duration=20), job("high", "a", 3, duration=20))
    together = queues({"a": {"cpu": "3"}, "b": {"cpu": "2"}, "idle": {"cpu": "2"}})
    value = measured(*jobs, cluster=together, plugin=scripted(steps))
    assert value("quota.over", "quota=b", "cpu") == 0
    head, _, tail = together.rpartition("cohortName: all")
    value = measured(*jobs, cluster=f"{head}cohortName: apart{tail}", plugin=scripted(steps))
    assert value("quota.over", "quota=b", "cpu") == 2 * 10 / 3600
    assert value("quota.over", "quota=idle", "cpu") == 0


def test_a_queue_without_a_quota_of_a_resource_is_not_over_one(measured: Measured) -> None:
    """A policy that knows no quotas admits 2 cores for 20 s to a queue that has a quota of memory alone."""
    where = queues({"a": {"memory": "3"}, "b": {"cpu": "2"}, "idle": {"memory": "2"}}, nodes=1)
    apart = where.replace("cohortName: all", "cohortName: apart", 1)
    steps = {0: [("admit", "j"), ("bind", "j", 0, "n0")]}
    value = measured(job("j", "a", 2, 0, duration=20), cluster=apart, plugin=scripted(steps))
    assert value("quota.over", "quota=a", "cpu") is None
    assert value("quota.over", "quota=b", "cpu") == value("quota.over", resource="cpu") == 0


def test_a_nominal_quota_of_0_is_a_quota(measured: Measured) -> None:
    """All of the 2 cores that are held for 20 s are over it."""
    where = queues({"a": {"cpu": "0"}}, nodes=1)
    steps = {0: [("admit", "j"), ("bind", "j", 0, "n0")]}
    value = measured(job("j", "a", 2, 0, duration=20), cluster=where, plugin=scripted(steps))
    assert value("quota.over", "quota=a", "cpu") == value("quota.over", resource="cpu") == 2 * 20 / 3600


def test_without_admissions_or_quotas_nothing_is_known_of_it(measured: Measured) -> None:
    """kube-scheduler admits nothing; a queue has no quota for what no flavor of it has."""
    on_nodes = measured({}, cluster=queues({"default": {"cpu": "4"}}, nodes=1), plugin="default-preemption")
    assert on_nodes("quota.over", resource="cpu") is None
    assert on_nodes("quota.over", "quota=default", "cpu") is None
    jobs = (job("a", "a", 1), job("b", "b", 1, **{"request.memory": 5}))
    value = measured(*jobs, cluster=queues({"a": {"cpu": "1"}, "b": {"cpu": "1", "memory": "5"}}))
    assert value("quota.over", "quota=a", "memory") is None
    assert value("quota.over", "quota=b", "memory") == 0


FLAVORS = ("f", "g")


@st.composite
def forests(draw: st.DrawFn) -> Cluster:
    """Cohorts and ClusterQueues with limits on up to two flavors of a resource, in up to four levels."""
    amount = st.integers(0, 8) | st.just(UNLIMITED)
    limit = st.none() | st.integers(0, 6)

    def groups() -> tuple[ResourceGroup, ...]:
        flavors = tuple(
            FlavorQuotas(name, {"cpu": ResourceQuota(draw(amount), draw(limit), draw(limit))})
            for name in FLAVORS[: draw(st.integers(0, 2))]
        )
        return (ResourceGroup(("cpu",), flavors),) if flavors else ()

    names = ["", *(f"c{number}" for number in range(draw(st.integers(0, 3))))]
    made = [
        Cohort(name, draw(st.sampled_from(names[:place])), groups())
        for place, name in enumerate(names)
        if name
    ]
    chosen = [ClusterQueue(name, draw(st.sampled_from(names)), groups()) for name in "pqr"]
    return Cluster(
        cluster_queues={each.name: each for each in chosen}, cohorts={each.name: each for each in made}
    )


def over(cluster: Cluster, held: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """Queue -> by how much it is over in each flavor, as the tree says that policies go by."""
    cells = [FlavorResource(flavor, "cpu") for flavor in FLAVORS]
    tree = QuotaTree(cluster.cluster_queues, cluster.cohorts, also=cells)
    numbers = [tree.flavor_resources.index(cell) for cell in cells]
    for name, amounts in held.items():
        tree.charge(tree.queues[name], list(zip(numbers, amounts, strict=True)))
    return {
        name: [
            max(0, min(amount - tree.nominal[node * tree.width + cell], -tree.available(node, cell)))
            for cell, amount in zip(numbers, amounts, strict=True)
        ]
        for name, amounts in held.items()
        for node in (tree.queues[name],)
    }


def _flavors(owner: ClusterQueue | Cohort) -> list[bool]:
    """Which flavors it has a quota for: nobody holds any other."""
    named = [quotas.flavor for group in owner.resource_groups for quotas in group.flavors]
    return [flavor in named for flavor in FLAVORS]


def _of_one_flavor(**quota: int) -> tuple[ResourceGroup, ...]:
    return (ResourceGroup(("cpu",), (FlavorQuotas("f", {"cpu": ResourceQuota(**quota)}),)),)


def test_a_cohort_without_end_that_keeps_some_of_it_lends_nothing() -> None:
    """Kueue's sums: without end less without end is nothing, however much the cohort's queues have beside."""
    inner = Cohort("inner", "outer", _of_one_flavor(nominal=UNLIMITED, lending_limit=2))
    rich = ClusterQueue("p", "inner", _of_one_flavor(nominal=UNLIMITED))
    poor = ClusterQueue("q", "outer", _of_one_flavor(nominal=0))
    cluster = Cluster(
        cluster_queues={"p": rich, "q": poor, "r": ClusterQueue("r")},
        cohorts={"outer": Cohort("outer"), "inner": inner},
    )
    assert over(cluster, {"q": (1, 0)}) == {"q": [1, 0]}
    _metric_agrees(cluster, [(9, 0, 1, 0, 0, 0)])


@given(forests(), st.lists(st.tuples(*[st.integers(0, 12)] * 6), min_size=1, max_size=4))
def test_what_is_over_is_what_the_tree_of_policies_says(cluster: Cluster, states: list[Any]) -> None:
    """The same where there is one flavor; of several nothing is over where none of them is."""
    _metric_agrees(cluster, states)


def _metric_agrees(cluster: Cluster, states: list[Any]) -> None:
    info = {"queues": quotas(cluster), "cohorts": cohorts(cluster)}
    found: dict[str, list[int]] = {}
    known = {name: _flavors(queue) for name, queue in cluster.cluster_queues.items()}
    held = [
        {name: [amount * flag for amount, flag in zip(state[at : at + 2], known[name], strict=True)]
         for at, name in zip((0, 2, 4), "pqr", strict=True)}
        for state in states
    ]  # fmt: skip
    for tree in quota_trees(info, "cpu"):
        places = {node.queue: str(place) for place, node in enumerate(tree.nodes) if node.queue is not None}
        if places:
            columns = {place: [sum(state[name]) for state in held] for name, place in places.items()}
            answer = tree.over(pl.DataFrame(columns))
            found |= {name: answer[place].to_list() for name, place in places.items()}
    single = not any(
        _flavors(owner)[1] for owner in (*cluster.cluster_queues.values(), *cluster.cohorts.values())
    )
    for row, state in enumerate(held):
        expected = {name: sum(of_flavors) for name, of_flavors in over(cluster, state).items()}
        if single or not any(expected.values()):
            assert {name: found[name][row] for name in expected} == expected


def test_an_evicted_job_without_a_bound_pod_holds_quota_until_its_latency_has_passed(
    measured: Measured,
) -> None:
    """`busy` has the node. `x` waits for it with a quota of 2 cores for 10 s, and `high` takes that.

    After 3 s more the quota of `x` is free, and `high` holds it from then until the end at 16 s.
    """
    where = queues({"a": {"cpu": "6"}}, nodes=1)
    jobs = (
        job("busy", "a", 4, 0, duration=20, priority=2),
        job("x", "a", 2, 0, duration=5),
        job("high", "a", 2, 10, duration=1, priority=1),
    )
    choices = {"plugin": "kueue-classic", "options": {"evictionLatency": "3s"}, "until": "16s"}
    value = measured(*jobs, cluster=where, **choices)
    assert value("disruption.preempted_pods") == 0
    assert value("disruption.preemptions") == 1
    held = 2 * (10 + 3) + 2 * (16 - 13)
    assert value("quota.held_unbound", "quota=a", "cpu") == pytest.approx(held / 3600, rel=1e-12)


@pytest.mark.parametrize("flavors", [1, 2])
def test_what_is_not_free_yet_is_borrowed_and_lent_too(flavors: int, measured: Measured) -> None:
    """`x` borrows 1 core of b for 10 s, waits for a node all the time, and is evicted; 3 s more it is held.

    It is the same where the resource has several flavors, which are followed decision by decision.
    """
    where = queues({"a": {"cpu": "5"}, "b": {"cpu": "1"}}, nodes=1)
    if flavors == 2:
        where += "---\n" + queues({"other": {"cpu": "0"}}).replace("name: f", "name: g")
    jobs = (
        job("busy", "a", 4, 0, duration=20, priority=2),
        job("x", "a", 2, 0, duration=5),
        job("mine", "b", 1, 10, duration=1, priority=1),
    )
    choices = {"plugin": "kueue-classic", "options": {"evictionLatency": "3s"}, "until": "16s"}
    value = measured(*jobs, cluster=where, **choices)
    assert value("disruption.preempted_pods") == 0
    assert value("disruption.preemptions") == 1
    assert value("quota.borrowed", "quota=a", "cpu") == pytest.approx(13 / 3600, rel=1e-12)
    assert value("quota.lent", "quota=b", "cpu") == pytest.approx(13 / 3600, rel=1e-12)


def test_little_that_is_lent_is_not_lost_beside_much(measured: Measured) -> None:
    """Queue a has 2^60 bytes and b 8; c, which has none, borrows 8, 8 and 5 bytes, for 5, 10 and 3,585 s.

    First and last a has all of its own to lend, in between nothing: then b lends all of it.
    """
    quotas = {"a": {"memory": "1Ei"}, "b": {"memory": "8"}, "c": {"memory": "0"}}
    asked = {"full": ("a", 2**60, 10), "x": ("c", 8, 5), "y": ("c", 8, 10), "z": ("c", 5, 3585)}
    jobs = [
        job(name, queue, 0, 0, duration=length, **{"request.memory": memory})
        for name, (queue, memory, length) in asked.items()
    ]
    steps = {0: [("admit", "x")], 5: [("admit", "full"), ("admit", "y")], 15: [("admit", "z")]}
    value = measured(*jobs, cluster=queues(quotas), plugin=scripted(steps))
    hour = 3600 * 2**30
    assert value("quota.borrowed", resource="memory") == (8 * 15 + 5 * 3585) / hour
    lent = {name: value("quota.lent", f"quota={name}", "memory") for name in "ab"}
    assert lent["a"] == pytest.approx((8 * 5 + 5 * 3585) / hour, rel=1e-14, abs=0)
    assert lent["b"] == pytest.approx(8 * 10 / hour, rel=1e-14, abs=0)
