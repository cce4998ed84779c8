"""ACK's rules about who may preempt whom, each on a small cluster."""

from __future__ import annotations

import pytest
from quota_worlds import Happened, Jobs, budget, cluster, leaf, names, node, tree

from harness.base.errors import InputError

TWO = tree(10, leaf("a", 5, 10), leaf("b", 5, 10))


def test_a_guarantee_is_taken_back_from_a_quota_that_borrows() -> None:
    """`b` borrows 5 of 10 cores; `a` asks for what it is guaranteed, and priority does not matter."""
    jobs = Jobs().add("low", "b", 5, priority=9).add("high", "b", 5, priority=10).add("mine", "a", 5, at=10)
    happened = Happened(cluster(node("n", 10), TWO), jobs, until=100)
    assert happened.preemptions == ["low by mine"]
    assert happened.used == {"root": 10, "a": 5, "b": 5}


def test_a_request_exactly_at_min_is_within_the_guarantee() -> None:
    """At the limit the quota reclaims; one core more and it would borrow, and has nobody of its own."""
    for asked, victims in ((5, ["theirs-4", "theirs-3", "theirs-2", "theirs-1", "theirs-0"]), (6, [])):
        jobs = Jobs().add("theirs", "b", 2, pods=5, gang=False).add("mine", "a", asked, at=10)
        happened = Happened(cluster(node("n", 10), TWO), jobs, until=100)
        assert set(names(happened.preemptions)) <= set(victims)
        assert bool(happened.preemptions) == bool(victims)


def test_a_quota_exactly_at_its_min_loses_nothing() -> None:
    """Only what is used beyond `min` may be taken: at the limit a quota does not borrow."""
    quotas = tree(10, leaf("a", 5, 10), leaf("b", 5, 10))
    jobs = Jobs().add("theirs", "b", 5).add("stray", "nobody", 5).add("mine", "a", 5, at=10)
    happened = Happened(cluster(node("n", 10), quotas), jobs, until=100)
    assert happened.preemptions == []
    assert happened.lines("bind") == ["0 bind theirs on n", "0 bind stray on n"]


def test_above_its_min_a_quota_takes_only_less_important_pods_of_its_own() -> None:
    """The pod that borrows may not touch the other quota, though that borrows too."""
    quotas = tree(12, leaf("a", 4, 10), leaf("b", 4, 10), leaf("c", 4, 10))
    jobs = Jobs().add("own", "a", 6).add("theirs", "b", 6).add("mine", "a", 5, at=10, priority=1)
    happened = Happened(cluster(node("n", 12), quotas), jobs, until=100)
    assert happened.preemptions == ["own by mine"]


def test_an_equally_important_pod_of_the_own_quota_is_no_victim() -> None:
    """Lower priority means strictly lower."""
    quotas = tree(10, leaf("a", 4, 10), leaf("b", 6, 10))
    jobs = Jobs().add("own", "a", 10, priority=1).add("mine", "a", 5, at=10, priority=1)
    assert Happened(cluster(node("n", 10), quotas), jobs, until=100).preemptions == []


def test_usage_reaches_max_exactly_and_never_exceeds_it() -> None:
    """The bound itself is allowed."""
    quotas = tree(10, leaf("a", 2, 6), leaf("b", 2, 10))
    jobs = Jobs().add("first", "a", 3).add("second", "a", 3).add("third", "a", 1)
    happened = Happened(cluster(node("n", 20), quotas), jobs, until=100)
    assert happened.lines("bind") == ["0 bind first on n", "0 bind second on n"]
    assert happened.used["a"] == 6


def test_max_of_a_parent_bounds_its_children_together() -> None:
    """Usage adds up the tree."""
    parent = leaf("p", 4, 6, children=[leaf("a", 2, 6), leaf("b", 2, 6)])
    jobs = Jobs().add("first", "a", 4).add("second", "b", 3).add("third", "b", 2)
    happened = Happened(cluster(node("n", 20), tree(20, parent, leaf("c", 4, 20))), jobs, until=100)
    assert happened.lines("bind") == ["0 bind first on n", "0 bind third on n"]
    assert happened.used["p"] == 6


def test_a_group_within_its_min_loses_nothing_to_other_groups() -> None:
    """`a` borrows from its sibling `b`; the group `p` keeps to its guarantee, so `c` takes from `d`."""
    parent = leaf("p", 6, 12, children=[leaf("a", 3, 6), leaf("b", 3, 6)])
    quotas = tree(12, parent, leaf("c", 3, 12), leaf("d", 3, 12))
    jobs = Jobs().add("sibling", "a", 6, priority=0).add("other", "d", 6, priority=9)
    happened = Happened(cluster(node("n", 12), quotas), jobs.add("mine", "c", 3, at=10), until=100)
    assert happened.preemptions == ["other by mine"]


def test_a_sibling_takes_its_guarantee_back_within_the_group() -> None:
    """What a group has is shared among its quotas by the same rule."""
    parent = leaf("p", 6, 6, children=[leaf("a", 3, 6), leaf("b", 3, 6)])
    jobs = Jobs().add("one", "a", 3).add("two", "a", 3).add("mine", "b", 3, at=10)
    happened = Happened(cluster(node("n", 12), tree(12, parent, leaf("c", 6, 12))), jobs, until=100)
    assert len(happened.preemptions) == 1
    assert happened.used == {"root": 6, "p": 6, "a": 3, "b": 3, "c": 0}


def test_a_pod_without_a_quota_preempts_nobody() -> None:
    """However important it is."""
    jobs = Jobs().add("theirs", "b", 10).add("mine", "nobody", 5, at=10, priority=100)
    assert Happened(cluster(node("n", 10), TWO), jobs, until=100).preemptions == []


def test_a_pod_without_a_quota_is_no_victim() -> None:
    """Nobody is guaranteed what it holds."""
    jobs = Jobs().add("stray", "nobody", 10).add("mine", "a", 5, at=10, priority=100)
    assert Happened(cluster(node("n", 10), TWO), jobs, until=100).preemptions == []


def test_a_pod_that_never_preempts_waits() -> None:
    """`preemptionPolicy: Never` holds for guarantees too."""
    jobs = Jobs().add("theirs", "b", 10).add("mine", "a", 5, at=10, preempts=False)
    assert Happened(cluster(node("n", 10), TWO), jobs, until=100).preemptions == []


@pytest.mark.parametrize("name", ["system-cluster-critical", "system-node-critical"])
def test_pods_of_system_classes_are_never_victims(name: str) -> None:
    """Their class says so, whatever their priority is."""
    jobs = Jobs().add("core", "b", 10, priority_class=name).add("mine", "a", 5, at=10, priority=100)
    assert Happened(cluster(node("n", 10), TWO), jobs, until=100).preemptions == []


@pytest.mark.parametrize(
    ("label", "spared"), [("daemon", True), ("daemon=yes", True), ("daemon=no", False), ("", False)]
)
def test_pods_that_a_label_protects_are_never_victims(label: str, spared: bool) -> None:
    """By its key alone, or by key and value."""
    jobs = Jobs().add("agent", "b", 10, labels={"daemon": "yes"}).add("mine", "a", 5, at=10)
    happened = Happened(cluster(node("n", 10), TWO), jobs, until=100, protectedLabel=label)
    assert (happened.preemptions == []) == spared


def test_a_disruption_budget_is_a_hard_rule() -> None:
    """Where default preemption would only rather not, nobody is evicted against a budget."""
    covered = {"app": "web"}
    jobs = Jobs().add("web", "b", 5, pods=2, gang=False, labels=covered).add("mine", "a", 5, at=10)
    strict = cluster(node("n", 10), TWO, budget(covered, minAvailable=2))
    assert Happened(strict, jobs, until=100).preemptions == []
    loose = cluster(node("n", 10), TWO, budget(covered, minAvailable=1))
    assert names(Happened(loose, jobs, until=100).preemptions) == ["web-1"]


def test_nobody_is_a_victim_twice() -> None:
    """While a victim leaves, the next request takes another one, or waits."""
    quotas = tree(9, leaf("a", 3, 9), leaf("b", 3, 9), leaf("c", 3, 9))
    jobs = Jobs().add("theirs", "c", 3, pods=3, gang=False, grace=50)
    jobs.add("first", "a", 3, at=10).add("second", "b", 3, at=20)
    happened = Happened(cluster(node("n", 9), quotas), jobs, until=40)
    assert len(happened.preemptions) == len(set(names(happened.preemptions))) == 2


def test_what_is_leaving_does_not_count_as_borrowed() -> None:
    """Once its borrowed pod leaves, a quota is at its min, and a second request finds nobody."""
    quotas = tree(9, leaf("a", 3, 9), leaf("b", 6, 9))
    jobs = Jobs().add("theirs", "b", 3, pods=3, gang=False, grace=50)
    jobs.add("first", "a", 3, at=10).add("second", "a", 3, at=20, priority=5)
    happened = Happened(cluster(node("n", 9), quotas), jobs, until=40)
    assert len(happened.preemptions) == 1


def test_room_that_was_taken_back_is_kept_for_its_owner() -> None:
    """The victim is more important and comes back at once, and does not get its room again."""
    jobs = Jobs().add("theirs", "b", 10, priority=100).add("mine", "a", 5, at=10)
    happened = Happened(cluster(node("n", 10), tree(20, leaf("a", 5, 20), leaf("b", 5, 20))), jobs, until=100)
    assert happened.lines("preempt", "bind") == [
        "0 bind theirs on n",
        "10 preempt theirs by mine",
        "10 bind mine on n",
    ]


def test_a_node_marked_unschedulable_is_left_out_for_one_pod() -> None:
    """Even where the pod tolerates the mark."""
    cordoned = node("n", 10, spec={"unschedulable": True})
    spec = {"tolerations": [{"operator": "Exists"}]}
    jobs = Jobs().add("theirs", "b", 10, spec=spec).add("mine", "a", 5, at=10, spec=spec)
    assert Happened(cluster(cordoned, TWO), jobs, until=100).preemptions == []


def test_a_failed_simulation_changes_nothing() -> None:
    """The only borrower is too small to help, so it stays."""
    quotas = tree(10, leaf("a", 8, 10), leaf("b", 2, 10))
    jobs = Jobs().add("theirs", "b", 3).add("stray", "nobody", 7).add("mine", "a", 8, at=10)
    happened = Happened(cluster(node("n", 10), quotas), jobs, until=100)
    assert happened.preemptions == []
    assert happened.decisions.of("nominate") == []


def test_a_job_that_its_quota_can_never_let_in_is_rejected() -> None:
    """It says which bound."""
    happened = Happened(cluster(node("n", 20), tree(20, leaf("a", 2, 6))), Jobs().add("big", "a", 7))
    (row,) = happened.decisions.of("reject")
    assert row.reason == "even without other pods, quota a would use more cpu than its max"


def test_the_figures_name_both_sides() -> None:
    """Usage, min and max of the preemptor's quota and of its victims' before anybody goes."""
    jobs = Jobs().add("theirs", "b", 10).add("mine", "a", 5, at=10)
    (row,) = Happened(cluster(node("n", 10), TWO), jobs, until=100).decisions.of("preempt")
    assert row.reason == "QuotaReclaim"
    assert row.detail is not None
    memory = 2**40
    assert row.detail["queue"] == "a"
    assert row.detail["request"] == {"cpu": 5000}
    assert row.detail["taken"] == {"b": {"cpu": 10000}}
    assert row.detail["usage"] == {"a": {}, "b": {"cpu": 10000}}
    assert row.detail["quota"] == {"a": {"cpu": 5000}, "b": {"cpu": 5000}}
    assert row.detail["max"] == {name: {"cpu": 10000, "memory": memory} for name in ("a", "b")}


def test_a_cluster_without_quotas_is_refused_with_the_way_out() -> None:
    """The plugin has nothing to work on; `auto` has."""
    with pytest.raises(InputError) as refused:
        Happened(cluster(node("n", 10)), Jobs().add("a", "a", 1))
    assert refused.value.hint is not None
    assert "auto" in refused.value.hint
