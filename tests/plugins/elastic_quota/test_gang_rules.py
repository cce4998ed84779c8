"""Gangs: one preemption list, all or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quota_worlds import Happened, Jobs, auto_happened, budget, cluster, fuzz, leaf, names, node, spread, tree

from harness.base.units import SECOND
from harness_plugins.elastic_quota.policy import without_quotas
from harness_plugins.elastic_quota.scheduler import QuotaScheduler

QUOTAS = tree(12, leaf("a", 8, 12), leaf("b", 4, 12))
NODES = [node("n1", 4), node("n2", 4), node("n3", 4)]


def test_a_gang_makes_room_for_all_of_its_pods_at_once() -> None:
    """Two pods need a node each, and both are freed in one go."""
    jobs = Jobs().add("theirs", "b", 4, pods=3, gang=False).add("gang", "a", 4, pods=2, at=10)
    happened = Happened(cluster(*NODES, QUOTAS), jobs, until=100)
    assert len(happened.preemptions) == 2
    assert happened.used == {"root": 12, "a": 8, "b": 4}


def test_a_gang_of_which_one_pod_cannot_be_helped_evicts_nobody() -> None:
    """A pod of the gang would fit in the place of a borrower; the other would not, so none moves."""
    jobs = Jobs().add("stray", "nobody", 4, pods=2, gang=False).add("theirs", "b", 4)
    jobs.add("gang", "a", 4, pods=2, at=10)
    quotas = tree(12, leaf("a", 8, 12), leaf("b", 3, 12))
    happened = Happened(cluster(*NODES, quotas), jobs, until=100)
    assert happened.preemptions == []
    assert happened.lines("bind", "nominate") == [
        "0 bind stray-0 on n1",
        "0 bind stray-1 on n2",
        "0 bind theirs on n3",
    ]


def test_pods_on_their_own_take_what_the_gang_would_not() -> None:
    """The same world with `gang=pods`: one pod is placed, and holds its node in vain."""
    jobs = Jobs().add("stray", "nobody", 4, pods=2, gang=False).add("theirs", "b", 4)
    jobs.add("gang", "a", 4, pods=2, at=10)
    quotas = tree(12, leaf("a", 8, 12), leaf("b", 3, 12))
    happened = Happened(cluster(*NODES, quotas), jobs, until=100, gang="pods")
    assert happened.preemptions == ["theirs by gang"]
    assert happened.decisions.outcome is not None
    assert happened.decisions.outcome.half_bound == (("gang", 1, 2, {"cpu": 4000}),)


def test_a_gang_is_bound_as_a_whole_or_not() -> None:
    """Room for one of two pods is left to others."""
    jobs = Jobs().add("own", "a", 4, pods=2, gang=False).add("gang", "a", 4, pods=2)
    happened = Happened(
        cluster(*NODES, tree(12, leaf("a", 12, 12))), jobs.add("late", "a", 4, at=10), until=100
    )
    assert happened.lines("bind") == ["0 bind own-0 on n1", "0 bind own-1 on n2", "10 bind late on n3"]


def test_the_request_of_a_gang_counts_as_a_whole() -> None:
    """Each pod alone would stay within min; all of them would borrow, so nobody else is touched."""
    quotas = tree(12, leaf("a", 6, 12), leaf("b", 6, 12))
    jobs = Jobs().add("theirs", "b", 4, pods=3, gang=False).add("gang", "a", 4, pods=2, at=10)
    assert Happened(cluster(*NODES, quotas), jobs, until=100).preemptions == []
    alone = Happened(cluster(*NODES, quotas), jobs, until=100, gang="pods")
    assert len(alone.preemptions) == 1


def test_a_gang_counts_as_its_most_important_pod() -> None:
    """One pod set names a high class: the whole gang preempts with it, and is preempted as it."""
    quotas = tree(8, leaf("a", 2, 8), leaf("b", 6, 8))
    high: dict[str, Any] = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 10,
    }
    nodes = [node("n1", 4), node("n2", 4)]
    for spec, victims in (({"priorityClassName": "high"}, 2), (None, 0)):
        jobs = Jobs().add("own", "a", 4, pods=2, gang=False, priority=5)
        jobs.add("gang", "a", 4, pods=2, at=10, priority=1, spec=spec)
        assert len(Happened(cluster(*nodes, quotas, high), jobs, until=100).preemptions) == victims


def test_a_pod_of_a_gang_is_as_hard_to_preempt_as_the_gang() -> None:
    """A pod of priority 5 does not get the place of a gang that counts as 10."""
    jobs = Jobs().add("gang", "a", 4, pods=2, priority=1, spec={"priority": 10})
    jobs.add("mine", "a", 4, at=10, priority=5)
    happened = Happened(cluster(node("n1", 4), node("n2", 4), tree(8, leaf("a", 2, 8))), jobs, until=100)
    assert happened.preemptions == []


def test_one_pool_of_nodes_for_all_pods_that_are_short() -> None:
    """A cordoned node that the pods tolerate is left out for one of them, and joins the pool for two."""
    cordoned = [node(name, 4, spec={"unschedulable": True}) for name in ("n1", "n2")]
    spec = {"tolerations": [{"operator": "Exists"}]}
    quotas = tree(8, leaf("a", 8, 8), leaf("b", 0, 8))
    for pods, victims in ((2, 2), (1, 0)):
        jobs = Jobs().add("theirs", "b", 4, pods=2, gang=False, spec=spec)
        jobs.add("gang", "a", 4, pods=pods, gang=True, at=10, spec=spec)
        assert len(Happened(cluster(*cordoned, quotas), jobs, until=100).preemptions) == victims


def test_room_that_one_pod_needs_serves_the_others_too() -> None:
    """One victim of 4 cores makes room for two pods of 2."""
    quotas = tree(4, leaf("a", 4, 4), leaf("b", 0, 4))
    jobs = Jobs().add("theirs", "b", 4).add("gang", "a", 2, pods=2, at=10)
    happened = Happened(cluster(node("n", 4), quotas), jobs, until=100)
    assert happened.preemptions == ["theirs by gang"]
    assert happened.lines("bind")[1:] == ["10 bind gang-0 on n", "10 bind gang-1 on n"]


def test_the_pods_of_a_gang_have_no_victim_in_common() -> None:
    """Every victim is named once, and all of a gang's victims keep to a budget together."""
    covered = {"app": "web"}
    jobs = Jobs().add("web", "b", 4, pods=3, gang=False, labels=covered).add("gang", "a", 4, pods=2, at=10)
    free = Happened(cluster(*NODES, QUOTAS, budget(covered, minAvailable=1)), jobs, until=100)
    assert len(set(names(free.preemptions))) == len(free.preemptions) == 2
    strict = Happened(cluster(*NODES, QUOTAS, budget(covered, minAvailable=2)), jobs, until=100)
    assert strict.preemptions == []


def test_a_refused_gang_says_which_pod_which_nodes_and_which_rule() -> None:
    """Once, not at every attempt; and what it waits for in words."""
    jobs = Jobs().add("stray", "nobody", 4, pods=2, gang=False).add("theirs", "b", 4)
    jobs.add("gang", "a", 4, pods=2, at=10)
    quotas = tree(12, leaf("a", 8, 12), leaf("b", 3, 12))
    (row,) = Happened(cluster(*NODES, quotas), jobs, until=100).decisions.of("refuse")
    assert row.reason == "Unschedulable"
    assert row.detail == {
        "pod": "gang-1",
        "preemption": "no node can be freed for it",
        "request": {"cpu": 4000},
        "nodes": {"Insufficient cpu": {"count": 3}},
        "most_free": {"cpu": 0},
        "not_freed": {"no pod on the node may be a victim": {"count": 3, "first": ["n1", "n2", "n3"]}},
    }


@pytest.mark.parametrize("preempts", [True, False])
def test_the_nodes_of_a_refused_gang_are_those_that_its_pod_found(preempts: bool) -> None:
    """The two pods before it have their nodes then, and no longer when it is recorded."""
    jobs = Jobs().add("gang", "q", 1, pods=3).add("equal", "q", 1, pods=3)
    where = cluster(node("n1", 1), node("n2", 1))
    options = {"disablePreemption": not preempts}
    refused = Happened(where, jobs, plugin=without_quotas, until=5, **options).decisions.of("refuse")
    assert [row.detail and row.detail["pod"] for row in refused] == ["gang-2", "equal-2"]
    for row in refused:
        assert row.detail is not None
        assert row.detail["nodes"] == {"Insufficient cpu": {"count": 2}}
        assert row.detail["most_free"] == {"cpu": 0}


def test_the_quota_of_a_refused_gang_is_as_its_pod_found_it() -> None:
    """It is full with the gang's first pod; the only one that could go is covered by a budget."""
    covered = {"app": "web"}
    jobs = Jobs().add("own", "a", 4, labels=covered).add("theirs", "b", 4)
    jobs.add("gang", "a", 4, pods=2, at=10, priority=5)
    quotas = tree(12, leaf("a", 4, 12), leaf("b", 8, 12))
    where = cluster(*NODES, node("n4", 4), quotas, budget(covered, minAvailable=1))
    (row,) = Happened(where, jobs, until=100).decisions.of("refuse")
    assert row.detail is not None
    assert (row.detail["pod"], row.detail["request"]) == ("gang-1", {"cpu": 4000})
    assert row.detail["message"] == "quota root would use more cpu than its max"
    assert row.detail["short"] == {"cpu": 4000}
    assert row.detail["usage"] == {"a": {"cpu": 8000}, "root": {"cpu": 12000}}


@pytest.mark.parametrize("gangs", [0, 1, 2])
def test_a_gang_that_gets_no_nodes_leaves_the_next_search_where_it_was(gangs: int) -> None:
    """On a large cluster, of which a part is looked at; the second gang is not even tried."""
    jobs = Jobs()
    for number in range(gangs):
        jobs.add(f"gang-{number}", "q", 2, pods=121)
    jobs.add("one", "q", 1, at=1).add("two", "q", 1, at=2)
    where = cluster(*(node(f"n{number:03}", 2) for number in range(120)))
    happened = Happened(where, jobs, plugin=without_quotas, until=3, percentageOfNodesToScore=1)
    assert happened.lines("bind") == ["1 bind one on n000", "2 bind two on n001"]


def test_a_gang_refused_because_an_equal_one_was_names_its_own_pod() -> None:
    """The second gang is not tried; its second pod is the one that would find no node."""
    jobs = Jobs().add("held", "a", 4, pods=2, gang=False, priority=9)
    jobs.add("one", "a", 4, pods=2, at=10).add("two", "a", 4, pods=2, at=10)
    happened = Happened(cluster(*NODES, tree(16, leaf("a", 16, 16))), jobs, until=20)
    refused = [(row.job, row.detail["pod"]) for row in happened.decisions.of("refuse")]
    assert refused == [("one", "one-1"), ("two", "two-1")]


def test_equal_gangs_are_all_refused_anew_when_another_quota_refuses_them() -> None:
    """First their own quota does, then the one above it; the second gang is not tried."""
    jobs = Jobs().add("own", "a", 4, seconds=10).add("theirs", "b", 8)
    jobs.add("one", "a", 4, pods=2, at=1).add("two", "a", 4, pods=2, at=1)
    where = cluster(node("n", 20), tree(12, leaf("a", 4, 8), leaf("b", 8, 12)))
    refused = Happened(where, jobs, until=20).decisions.of("refuse")
    assert [(row.time // SECOND, row.job, row.detail and row.detail["message"]) for row in refused] == [
        (1, "one", "quota a would use more cpu than its max"),
        (1, "two", "quota a would use more cpu than its max"),
        (10, "one", "quota root would use more cpu than its max"),
        (10, "two", "quota root would use more cpu than its max"),
    ]


def test_equal_gangs_are_not_refused_anew_when_other_filters_reject_them_by_the_same_rule() -> None:
    """What nodes lack does not tell the reasons of gangs apart, whether they are tried or not."""
    web = {"app": "web"}
    jobs = Jobs().add("own", "q", 4, seconds=10, priority=9)
    jobs.add("one", "q", 3, pods=2, at=1, labels=web).add("two", "q", 3, pods=2, at=1, labels=web)
    jobs.add("alone", "q", 1, at=10, priority=9, spec=spread(1))
    where = cluster(node("n", 4, labels={"zone": "z"}))
    refused = Happened(where, jobs, plugin=without_quotas, until=20).decisions.of("refuse")
    assert [(row.time // SECOND, row.job) for row in refused] == [(1, "one"), (1, "two")]


def test_a_gang_beyond_its_quota_is_refused_with_the_quotas_words() -> None:
    """No node was looked at."""
    quotas = tree(12, leaf("a", 6, 12), leaf("b", 6, 12))
    jobs = Jobs().add("theirs", "b", 4, pods=3, gang=False).add("gang", "a", 4, pods=2, at=10)
    (row,) = Happened(cluster(*NODES, quotas), jobs, until=100).decisions.of("refuse")
    assert row.detail is not None
    assert row.detail["pod"] == "gang-0"
    assert row.detail["preemption"] == "its quota would exceed its min, and has no pod of lower priority"
    assert row.detail["message"] == "quota root would use more cpu than its max"
    assert row.detail["short"] == {"cpu": 8000}
    assert row.detail["usage"] == {"a": {}, "root": {"cpu": 12000}}


def test_an_evicted_pod_of_a_gang_is_a_list_of_its_own() -> None:
    """The pods that are still bound stay; the one that waits is placed when it can be."""
    quotas = tree(12, leaf("a", 8, 12), leaf("b", 4, 12))
    jobs = Jobs().add("gang", "b", 4, pods=3, seconds=50).add("mine", "a", 4, at=10, seconds=20)
    happened = Happened(cluster(*NODES, quotas), jobs)
    assert happened.preemptions == ["gang-2 by mine"]
    assert happened.lines("bind")[-2:] == ["10 bind mine on n3", "30 bind gang-2-r1 on n3"]
    assert happened.decisions.jobs["gang"].state == "finished"


def test_an_evicted_pod_does_not_shorten_the_backoff_of_its_gang() -> None:
    """Its mate failed a second ago: a job without a backoff comes first, however unimportant it is."""
    jobs = Jobs().add("gang", "q", 4, pods=2, priority=5, grace=1)
    jobs.add("long", "q", 4, pods=2, gang=False, priority=9, seconds=9)
    jobs.add("first", "q", 4, at=7, priority=9).add("second", "q", 4, at=8, priority=9)
    jobs.add("late", "q", 4, at=9, priority=3)
    nodes = [node(f"n{number}", 4) for number in range(1, 5)]
    happened = auto_happened(cluster(*nodes), jobs, until=100)
    at_nine = [line.split(" on ")[0] for line in happened.lines("gone", "bind") if line.startswith("9 ")]
    assert at_nine[:2] == ["9 gone gang-0", "9 bind late"]


def test_auto_places_gangs_together_by_default_preemption_too() -> None:
    """Without quotas: both pods find a victim of lower priority, or none goes."""
    for victims, important in ((2, 0), (0, 9)):
        jobs = Jobs().add("one", "q", 4).add("two", "q", 4, priority=important)
        jobs.add("gang", "q", 4, pods=2, at=10, priority=5)
        happened = auto_happened(cluster(node("n1", 4), node("n2", 4)), jobs, until=100)
        assert len(happened.preemptions) == victims


def books(scheduler: QuotaScheduler) -> dict[str, Any]:
    """Everything that the scheduler knows of nodes and quotas, in its order."""
    cache = scheduler.cache
    return {
        "nodes": [
            (node.name, list(node.free), node.slots, list(node.pods), list(node.nominated), node.scored_cpu)
            for node in cache.nodes
        ],
        "expecting": list(cache.expecting),
        "bound": dict(cache.bound),
        "placed": {template: dict(template.placed) for template in cache.placed},
        "quotas": {
            name: ({k: v for k, v in quota.used.items() if v}, {k: v for k, v in quota.leaving.items() if v})
            for name, quota in scheduler.usage.tree.quotas.items()
        },
        "total": {k: v for k, v in scheduler.usage.tree.used.items() if v},
    }


@given(
    held=st.lists(st.tuples(st.sampled_from(["a", "b", "nobody"]), st.integers(1, 4)), max_size=8),
    size=st.integers(1, 4),
    pods=st.integers(2, 4),
)
@fuzz(80)
def test_a_refused_gang_leaves_no_trace_in_any_book(
    held: list[tuple[str, int]], size: int, pods: int
) -> None:
    """Nodes, nominations and quotas are as before, down to the order of pods."""
    jobs = Jobs()
    for number, (queue, cpu) in enumerate(held):
        jobs.add(f"held-{number}", queue, cpu)
    without = Happened(cluster(*NODES, QUOTAS), jobs, until=5)
    before = books(without.scheduler)
    again = Jobs()
    for number, (queue, cpu) in enumerate(held):
        again.add(f"held-{number}", queue, cpu)
    happened = Happened(cluster(*NODES, QUOTAS), again.add("gang", "a", size, pods=pods, at=1), until=5)
    if happened.lines("bind")[-1:] and "gang" in happened.lines("bind")[-1]:
        return
    if happened.decisions.of("preempt", "reject"):
        return
    assert _named(books(happened.scheduler)) == _named(before)


def _named(found: Any) -> str:
    """Books of two replays compared by names: their pods are not the same objects."""
    found = dict(found)
    found["placed"] = sorted(
        sorted((node.position, pods) for node, pods in placed.items()) for placed in found["placed"].values()
    )
    return repr(found)
