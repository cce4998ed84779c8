"""Koordinator's semantics: runtime by weighted fair share, and over-use that is revoked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quota_worlds import Happened, Jobs, Manifest, cluster, leaf, node, tree

from harness_plugins.elastic_quota.koordinator import RuntimeTree
from harness_plugins.elastic_quota.runtime import Part, fair_shares

KOORDINATOR = "quota.scheduling.koordinator.sh/"
TWO = tree(10, leaf("a", 5, 10), leaf("b", 5, 10))


def parts(*figures: tuple[int, int, int]) -> list[Part]:
    """Quotas with these (weight, request, guarantee)."""
    return [Part(f"q{at:02}", request, least, weight) for at, (weight, request, least) in enumerate(figures)]


DONOR = [(1, 0, 3), *[(1, 100, 8)] * 8, *[(1, 100, 7)] * 2]


@pytest.mark.parametrize(
    ("total", "figures", "shares"),
    [
        (100, [(40, 5, 10), (60, 20, 15), (50, 40, 20), (80, 70, 15)], [5, 20, 35, 40]),
        (100, [(40, 5, 10), (60, 20, 15), (50, 40, 20), (0, 70, 15)], [5, 20, 40, 15]),
        (100, [(40, 5, 10), (60, 20, 15), (50, 40, 20), (0, 70, 45)], [5, 20, 30, 45]),
        (81, DONOR, [0, 9, 9, 9, 8, 8, 8, 8, 8, 7, 7]),
    ],
)
def test_the_worked_numbers_of_koordinators_own_tests(
    total: int, figures: list[tuple[int, int, int]], shares: list[int]
) -> None:
    """Guarantees first, then by weight and largest remainder, and surplus is handed on."""
    assert fair_shares(total, parts(*figures)) == shares


def test_a_quota_that_does_not_lend_keeps_its_guarantee() -> None:
    """What it does not ask for is not there for others."""
    stingy = Part("stingy", 0, 40, 1, lends=False)
    assert fair_shares(100, [stingy, Part("other", 100, 0, 1)]) == [40, 60]


def test_guarantees_are_kept_beyond_the_total() -> None:
    """Without scaling of guarantees there may be more promised than there is."""
    assert fair_shares(10, parts((1, 20, 8), (1, 20, 8))) == [8, 8]


@given(
    st.integers(0, 200),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 80), st.integers(0, 40)), max_size=6),
)
def test_a_fair_share_wastes_nothing_and_promises_nothing_twice(
    total: int, figures: list[tuple[int, int, int]]
) -> None:
    """Nobody gets more than it asks for, guarantees are kept, and what is left is wanted by nobody."""
    shares = fair_shares(total, parts(*figures))
    for share, (_, request, least) in zip(shares, figures, strict=True):
        assert min(request, least) <= share <= max(request, 0)
    assert sum(shares) <= max(total, sum(min(request, least) for _, request, least in figures))
    wanting = any(
        share < request and weight for share, (weight, request, _) in zip(shares, figures, strict=True)
    )
    assert not wanting or sum(shares) >= total


def test_shares_go_down_the_tree() -> None:
    """What a group gets is shared within it; a request is cut to max on its way up."""
    group = {**leaf("group", 4, 6), "children": [leaf("x", 2, 6), leaf("y", 2, 6)]}
    quotas = RuntimeTree(cluster(tree(10, group, leaf("z", 2, 10))).elastic_quotas, {"cpu": 10_000})
    for name, cpu in (("x", 9000), ("y", 1000), ("z", 9000)):
        quotas.ask(quotas.leaves[name], {"cpu": cpu})
    assert {name: quotas.runtime(found)["cpu"] for name, found in quotas.leaves.items()} == {
        "x": 4500,
        "y": 1000,
        "z": 4500,
    }


def fair(jobs: Jobs, **options: str) -> Happened:
    """A replay for 200 s on one node of 10 cores that two equal quotas share."""
    return Happened(cluster(node("n", 10), TWO), jobs, until=200, semantics="koordinator", **options)


def test_idle_guarantees_are_lent_and_over_use_is_revoked() -> None:
    """The owner asks again: nobody is preempted for it, but the borrower loses what is beyond its share."""
    jobs = Jobs().add("low", "b", 5).add("high", "b", 5, priority=3).add("mine", "a", 5, at=10)
    happened = Happened(
        cluster(node("n", 10), TWO), jobs, until=200, semantics="koordinator", revokeAfter="30s"
    )
    assert happened.lines("bind", "preempt", "evict") == [
        "0 bind high on n",
        "0 bind low on n",
        "40 evict low",
        "40 bind mine on n",
    ]
    (evicted,) = happened.decisions.of("evict")
    assert evicted.reason == "QuotaOveruse"
    assert happened.used == {"root": 10, "a": 5, "b": 5}


def test_what_need_not_go_is_given_back() -> None:
    """A small pod that was taken first stays if taking a larger one is enough."""
    jobs = Jobs().add("small", "b", 1).add("large", "b", 5, priority=1).add("rest", "b", 4, priority=2)
    jobs.add("mine", "a", 5, at=10)
    happened = fair(jobs)
    assert happened.lines("evict") == ["130 evict large"]


def test_pods_that_must_not_be_preempted_are_not_revoked() -> None:
    """By Koordinator's label; the next ones are."""
    never = {f"{KOORDINATOR}preemptible": "false"}
    jobs = (
        Jobs().add("kept", "b", 5, labels=never).add("other", "b", 5, priority=3).add("mine", "a", 5, at=10)
    )
    happened = fair(jobs)
    assert happened.lines("evict") == ["130 evict other"]


def test_preemption_stays_within_the_quota() -> None:
    """Lower priority of the own quota goes; another quota's pods do not, whatever their priority."""
    jobs = Jobs().add("own", "a", 5, priority=1).add("theirs", "b", 5).add("mine", "a", 5, at=10, priority=2)
    happened = fair(jobs)
    assert happened.preemptions == ["own by mine"]
    never = {f"{KOORDINATOR}preemptible": "false"}
    spared = (
        Jobs().add("own", "a", 5, labels=never).add("theirs", "b", 5).add("mine", "a", 5, at=10, priority=2)
    )
    assert fair(spared).preemptions == []


def test_what_pods_without_a_quota_hold_besides_cpu_and_memory_is_shared_all_the_same() -> None:
    """The quota that they are charged to names cpu and memory only."""
    quotas = RuntimeTree(cluster(flat("a", 0, 8, amounts={"gpu": 8})).elastic_quotas, {"cpu": 8000, "gpu": 8})
    quotas.ask(quotas.leaves["a"], {"cpu": 8000, "gpu": 8})
    quotas.take_outside({"cpu": 1000, "gpu": 4})
    assert quotas.runtime(quotas.leaves["a"]) == {"cpu": 7000, "gpu": 8}


def flat(
    name: str, least: int, most: int, *, amounts: dict[str, int] | None = None, **labels: str
) -> Manifest:
    """A Koordinator ElasticQuota of cpu, and of other resources that its `max` may name."""
    given = {f"{KOORDINATOR}{key.replace('_', '-')}": value for key, value in labels.items()}
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": name, "labels": given},
        "spec": {"min": {"cpu": least}, "max": {"cpu": most, **(amounts or {})}},
    }


def test_koordinators_own_manifests_bound_only_what_max_names() -> None:
    """A quota that does not lend keeps its guarantee idle; nodes are the total."""
    where = cluster(
        node("n", 10),
        flat("a", 4, 10, tree_id="", allow_lent_resource="false"),
        flat("b", 0, 10, tree_id="", allow_lent_resource="true"),
    )
    jobs = Jobs().add("theirs", "b", 3, pods=3, gang=False)
    happened = Happened(where, jobs, until=100, semantics="koordinator")
    assert happened.lines("bind") == ["0 bind theirs-0 on n", "0 bind theirs-1 on n"]
    assert happened.used == {"a": 0, "b": 6}
