"""Koordinator's runtime quotas: fair shares down a tree, guarantees scaled as they are asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cluster.kinds.elastic import ElasticQuota
from harness.models.elastic.runtime_quotas import RuntimeQuotas
from harness.models.elastic.sharing import Part, fair_shares


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


def quota(name: str, least: int, most: int, parent: str = "", **fields: Any) -> ElasticQuota:
    """A quota of cpu."""
    return ElasticQuota(name, {"cpu": least}, {"cpu": most}, parent, **fields)


def quotas(*each: ElasticQuota, cpu: int = 10, **options: bool) -> RuntimeQuotas:
    """These quotas on nodes with so much cpu."""
    return RuntimeQuotas({one.name: one for one in each}, {"cpu": cpu}, **options)


def asked(found: RuntimeQuotas, **cpu: int) -> list[int]:
    """What quotas may use once each asks for so much cpu, asked for in this order."""
    for name, amount in cpu.items():
        found.ask(name, {"cpu": amount})
    return [found.runtime(name)["cpu"] for name in cpu]


def test_shares_go_down_the_tree() -> None:
    """What a group gets is shared within it; a request is cut to max on its way up."""
    found = quotas(quota("group", 4, 6), quota("x", 2, 6, "group"), quota("y", 2, 6, "group"), cpu=5)
    assert asked(found, x=9, y=1) == [4, 1]
    assert found.request("group") == {"cpu": 7}
    assert found.runtime("group") == {"cpu": 5}


TWO = quota("a", 6, 8), quota("b", 6, 8)


def test_a_guarantee_is_scaled_when_its_own_quota_is_asked_for_and_not_before() -> None:
    """The first quota that is asked for shares with the whole guarantee of the other, as in Koordinator."""
    found = quotas(*TWO, cpu=9)
    assert asked(found, a=8, b=8) == [4, 4]
    assert (found.rescaled, found.settled) == (2, False)
    assert found.runtime("a") == {"cpu": 5}  # what rounding leaves of 9 - 4 - 4
    assert found.rescaled == 2
    found.take_outside({"cpu": 6}, -1)
    assert [found.runtime(name)["cpu"] for name in "ab"] == [8, 7]
    assert found.settled


def test_without_quirks_all_guarantees_are_scaled_at_once() -> None:
    """No answer depends on who was asked for before."""
    found = quotas(*TWO, cpu=9, quirks=False)
    assert asked(found, a=8, b=8) == [5, 4]


def test_a_scaled_guarantee_without_weight_is_all_that_a_quota_gets() -> None:
    """Though nobody else asks: its group has what it asks for, which is less than is guaranteed below it."""
    group = quota("group", 6, 9), quota("y", 4, 9, "group")
    found = quotas(*group, quota("x", 2, 9, "group", weight={"cpu": 0, "memory": 1}))
    assert asked(found, x=2) == [0]
    assert asked(quotas(*group, quota("x", 2, 9, "group")), x=2) == [2]


def test_guarantees_may_exceed_what_there_is_where_they_are_not_scaled() -> None:
    """As with `enableMinQuotaScale: false`."""
    assert asked(quotas(quota("a", 6, 8), quota("b", 6, 8), cpu=8, scales=False), a=8, b=8) == [6, 6]


def test_a_quota_that_does_not_lend_asks_for_nothing_until_it_has_had_a_pod() -> None:
    """That shows where its guarantee is scaled: it has that and no more, and may have more afterwards."""
    others = quota("b", 6, 12), quota("a", 6, 12, lends=False)
    found = quotas(*others, cpu=8)
    found.ask("b", {"cpu": 2})
    assert found.runtime("a") == {"cpu": 4}
    found.ask("a", {"cpu": 1})
    found.ask("a", {"cpu": 1}, -1)
    assert found.runtime("a") == {"cpu": 6}
    settled = quotas(*others, cpu=8, quirks=False)
    settled.ask("b", {"cpu": 2})
    assert settled.runtime("a") == {"cpu": 6}


def test_what_a_group_asks_for_includes_guarantees_below_it_that_are_not_lent() -> None:
    """Also before any pod is there."""
    found = quotas(quota("group", 4, 8), quota("x", 3, 8, "group", lends=False), quota("y", 1, 8, "group"))
    assert found.request("group") == {"cpu": 3}
    found.ask("y", {"cpu": 9})
    assert found.request("group") == {"cpu": 3 + 8}
    assert found.runtime("y") == {"cpu": 5}


def test_trees_share_what_their_root_says_and_it_is_taken_off_the_rest() -> None:
    """With the gate; without it all quotas are in one tree."""
    root = quota("root", 0, 6, tree="t", total={"cpu": 6})
    each = root, quota("x", 0, 9, "root", tree="t"), quota("z", 0, 9)
    assert asked(quotas(*each, trees=True), x=9, z=9) == [6, 4]
    apart = quota("root", 0, 6, tree="t", total={"cpu": 6}, apart=True)
    assert asked(quotas(apart, *each[1:], trees=True), x=9, z=9) == [6, 9]
    assert asked(quotas(*each), x=9, z=9) == [4, 6]
