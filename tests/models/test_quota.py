"""The quota tree: hierarchical quotas, limits, and usage that always equals a recomputation from scratch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ClusterError
from harness.cluster.model import ClusterQueue, Cohort, FlavorQuotas, ResourceGroup, ResourceQuota
from harness.models.quota import UNLIMITED, FlavorResource, QuotaTree, minus, plus

CPU = FlavorResource("default", "cpu")


def quota(
    nominal: int, borrowing: int | None = None, lending: int | None = None
) -> tuple[ResourceGroup, ...]:
    """A resource group with one flavor and one resource."""
    flavor = FlavorQuotas("default", {"cpu": ResourceQuota(nominal, borrowing, lending)})
    return (ResourceGroup(("cpu",), (flavor,)),)


def tree_of(queues: dict[str, ClusterQueue], cohorts: dict[str, Cohort] | None = None) -> QuotaTree:
    """A tree of queues and of cohorts, which exist without quota when they are only named."""
    return QuotaTree(queues, cohorts or {})


def two_teams(borrowing: int | None = None, lending: int | None = None) -> QuotaTree:
    """The two teams of Kueue's documentation: 9 and 12 CPUs in one cohort."""
    return tree_of(
        {
            "team-a": ClusterQueue("team-a", "ab", quota(9, borrowing)),
            "team-b": ClusterQueue("team-b", "ab", quota(12, None, lending)),
        }
    )


def test_a_queue_may_use_what_its_cohort_has_left() -> None:
    """Without limits the unused quota of the whole cohort is available."""
    tree = two_teams()
    team_a, team_b = tree.queues["team-a"], tree.queues["team-b"]
    assert tree.available(team_a, 0) == 21
    tree.charge(team_b, [(0, 5)])
    assert tree.available(team_a, 0) == 16
    tree.charge(team_a, [(0, 10)])
    assert tree.available(team_a, 0) == 6
    assert tree.borrows(team_a, 0)
    assert not tree.borrows(team_b, 0)


def test_a_borrowing_limit_bounds_what_a_queue_takes_from_others() -> None:
    """With a borrowing limit of 1 a queue of 9 CPUs reaches 10."""
    tree = two_teams(borrowing=1)
    team_a = tree.queues["team-a"]
    assert tree.available(team_a, 0) == 10
    assert tree.potential_available[team_a] == 10


def test_a_lending_limit_hides_quota_from_the_cohort() -> None:
    """When team-b lends at most 1 of its CPUs, team-a reaches 10, and team-b still has all of its own."""
    tree = two_teams(lending=1)
    team_a, team_b = tree.queues["team-a"], tree.queues["team-b"]
    assert tree.available(team_a, 0) == 10
    assert tree.local_quota[team_b] == 11
    assert tree.available(team_b, 0) == 21
    tree.charge(team_b, [(0, 11)])
    assert tree.usage[tree.cohorts["ab"]] == 0
    assert tree.available(team_a, 0) == 10
    tree.charge(team_b, [(0, 2)])
    assert tree.usage[tree.cohorts["ab"]] == 2
    assert tree.available(team_a, 0) == 8


def test_a_limit_of_zero_is_a_limit() -> None:
    """Zero is not the same as no limit, neither for borrowing nor for lending."""
    tree = two_teams(borrowing=0, lending=0)
    assert tree.available(tree.queues["team-a"], 0) == 9
    assert tree.potential_available[tree.cohorts["ab"]] == 9


def test_limits_of_a_queue_without_cohort_bind_nothing() -> None:
    """A queue outside of cohorts is its own root: its nominal quota is all there is."""
    tree = tree_of({"alone": ClusterQueue("alone", "", quota(5, 3, 0))})
    assert tree.available(0, 0) == 5
    tree.charge(0, [(0, 7)])
    assert tree.available(0, 0) == -2


def test_cohorts_lend_to_cohorts() -> None:
    """Quota of a cohort reaches every queue below its root, bounded by each level's borrowing limit."""
    tree = tree_of(
        {"q": ClusterQueue("q", "left", quota(1)), "r": ClusterQueue("r", "right", quota(2))},
        {
            "left": Cohort("left", "root", quota(3, borrowing=4)),
            "right": Cohort("right", "root", quota(5, lending=6)),
            "root": Cohort("root", "", quota(10)),
        },
    )
    root, left, right = (tree.cohorts[name] for name in ("root", "left", "right"))
    assert tree.parent[left] == tree.parent[right] == root
    assert (tree.subtree[left], tree.subtree[right], tree.subtree[root]) == (4, 7, 10 + 4 + 6)
    assert tree.available(tree.queues["q"], 0) == 8
    assert tree.available(tree.queues["r"], 0) == 21
    assert tree.path(tree.queues["q"]) == [left, root]


def test_parents_come_before_their_children() -> None:
    """Whatever the order of the manifests, one pass from the front is a pass from the top."""
    cohorts = {name: Cohort(name, parent) for name, parent in (("c", "b"), ("b", "a"), ("a", ""))}
    tree = tree_of({"q": ClusterQueue("q", "c", quota(1))}, cohorts)
    assert all(parent < node for node, parent in enumerate(tree.parent))
    assert set(tree.root) == {tree.cohorts["a"]}


def test_cohorts_in_a_circle_are_refused() -> None:
    """Every cohort of the circle, and what hangs below it, is named."""
    cohorts = {name: Cohort(name, parent) for name, parent in (("a", "b"), ("b", "a"), ("c", "a"), ("d", ""))}
    with pytest.raises(ClusterError) as caught:
        tree_of({}, cohorts)
    assert [fault.where for fault in caught.value.faults] == ["Cohort a", "Cohort b", "Cohort c"]


def test_room_is_made_for_what_is_used_without_quota() -> None:
    """A flavor-resource that nobody has a quota for can be charged, and counts as quota zero."""
    tree = QuotaTree({"q": ClusterQueue("q", "", quota(1))}, {}, also=[FlavorResource("old", "cpu")])
    cell = tree.cell("old", "cpu")
    assert cell is not None
    assert tree.cell("old", "memory") is None
    tree.charge(0, [(cell, 3)])
    assert tree.available(0, cell) == -3
    assert tree.declared[0] == (tree.cell("default", "cpu"),)


def test_unlimited_quota_stays_unlimited() -> None:
    """The largest integer is no amount but the absence of a bound, at every level above it too."""
    tree = tree_of(
        {
            "q": ClusterQueue("q", "c", quota(UNLIMITED, lending=5)),
            "r": ClusterQueue("r", "c", quota(2, borrowing=UNLIMITED)),
        }
    )
    q, r = tree.queues["q"], tree.queues["r"]
    tree.charge(q, [(0, 100)])
    tree.charge(r, [(0, 1)])
    assert tree.available(q, 0) == UNLIMITED
    assert tree.local_quota[q] == UNLIMITED
    assert tree.subtree[tree.cohorts["c"]] == 2
    assert tree.available(r, 0) == 1


def test_arithmetic_saturates() -> None:
    """Unlimited absorbs finite amounts, and nothing leaves 64 bits."""
    assert plus(UNLIMITED, 5) == UNLIMITED
    assert plus(UNLIMITED - 1, 5) == UNLIMITED
    assert minus(UNLIMITED, 5) == UNLIMITED
    assert minus(UNLIMITED, UNLIMITED) == 0
    assert minus(5, UNLIMITED) == -UNLIMITED - 1
    assert minus(-UNLIMITED, 5) == -UNLIMITED - 1


def test_a_negative_charge_stays_at_its_node() -> None:
    """A reservation below zero gives the queue room without touching its cohort; refunding it undoes that."""
    tree = two_teams()
    team_a, cohort = tree.queues["team-a"], tree.cohorts["ab"]
    tree.charge(team_a, [(0, 4)])
    tree.charge(team_a, [(0, -1)])
    assert (tree.usage[team_a], tree.usage[cohort]) == (3, 4)
    tree.refund(team_a, [(0, -1)])
    assert (tree.usage[team_a], tree.usage[cohort]) == (4, 4)


# --- invariants over random trees --------------------------------------------------------------------------

_LIMITS = st.none() | st.integers(0, 20)
_QUOTAS = st.builds(quota, st.integers(0, 20), _LIMITS, _LIMITS)


@st.composite
def trees(draw: st.DrawFn) -> QuotaTree:
    """Up to five cohorts, each below an earlier one or on its own, and up to six queues."""
    cohorts: dict[str, Cohort] = {}
    for number in range(draw(st.integers(0, 5))):
        parent = draw(st.sampled_from(["", *cohorts]))
        cohorts[f"c{number}"] = Cohort(f"c{number}", parent, draw(_QUOTAS) if draw(st.booleans()) else ())
    queues = {
        f"q{number}": ClusterQueue(f"q{number}", draw(st.sampled_from(["", *cohorts])), draw(_QUOTAS))
        for number in range(draw(st.integers(1, 6)))
    }
    return QuotaTree(queues, cohorts)


def recomputed(tree: QuotaTree, holders: list[tuple[int, int]]) -> list[int]:
    """Usage from scratch: what queues hold, then per cohort what its children use beyond what they keep."""
    usage = [0] * len(tree.names)
    for node, amount in holders:
        usage[node] += amount
    for node in range(len(tree.names) - 1, -1, -1):
        if tree.parent[node] >= 0:
            usage[tree.parent[node]] += max(0, usage[node] - tree.local_quota[node])
    return usage


def available_by_definition(tree: QuotaTree, node: int) -> int:
    """What is available, by the recursive definition."""
    usage, kept, subtree = tree.usage[node], tree.local_quota[node], tree.subtree[node]
    if tree.parent[node] < 0:
        return subtree - usage
    above = available_by_definition(tree, tree.parent[node])
    limit = tree.borrowing_limit[node]
    if limit is not None:
        above = min(above, (subtree - kept) - max(0, usage - kept) + limit)
    return max(0, kept - usage) + above


@given(trees(), st.data())
def test_usage_equals_a_recomputation_after_any_charges_and_refunds(
    tree: QuotaTree, data: st.DataObject
) -> None:
    """Usage depends on who holds what, never on the order in which it came and went."""
    holders: list[tuple[int, int]] = []
    queues = list(tree.queues.values())
    for _ in range(data.draw(st.integers(0, 12))):
        if holders and data.draw(st.booleans()):
            node, amount = holders.pop(data.draw(st.integers(0, len(holders) - 1)))
            tree.refund(node, [(0, amount)])
        else:
            node, amount = data.draw(st.sampled_from(queues)), data.draw(st.integers(0, 15))
            holders.append((node, amount))
            tree.charge(node, [(0, amount)])
        assert tree.usage == recomputed(tree, holders)
        for node in range(len(tree.names)):
            assert tree.available(node, 0) == available_by_definition(tree, node)


@given(trees(), st.lists(st.integers(0, 15), max_size=5), st.integers(-5, 15), st.data())
def test_a_refund_is_the_inverse_of_a_charge(
    tree: QuotaTree, before: list[int], amount: int, data: st.DataObject
) -> None:
    """A charge and its refund leave no trace, whatever the usage was before."""
    queues = list(tree.queues.values())
    for held in before:
        tree.charge(data.draw(st.sampled_from(queues)), [(0, held)])
    usage = list(tree.usage)
    node = data.draw(st.sampled_from(queues))
    tree.charge(node, [(0, amount)])
    tree.refund(node, [(0, amount)])
    assert tree.usage == usage


def charged(tree: QuotaTree, held: list[tuple[int, int]]) -> list[int]:
    """The queues of a tree, after each amount was charged to one of them, which a number tells."""
    queues = list(tree.queues.values())
    for number, amount in held:
        tree.charge(queues[number % len(queues)], [(0, amount)])
    return queues


@given(trees(), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 15)), max_size=8), st.integers(0, 15))
def test_what_was_available_is_covered_once_it_is_charged(
    tree: QuotaTree, held: list[tuple[int, int]], amount: int
) -> None:
    """What is available falls by just what is charged, at every queue of every tree, overused ones too."""
    for node in charged(tree, held):
        before = tree.available(node, 0)
        tree.charge(node, [(0, amount)])
        assert tree.available(node, 0) == before - amount
        assert tree.covers(node, [(0, amount)]) == (amount <= before)
        tree.refund(node, [(0, amount)])


def test_unlimited_quota_covers_everything() -> None:
    """It does not fall, whatever is charged."""
    tree = tree_of({"q": ClusterQueue("q", "", quota(UNLIMITED)), "r": ClusterQueue("r", "", quota(5))})
    for node, amount in ((tree.queues["q"], UNLIMITED), (tree.queues["r"], 5)):
        tree.charge(node, [(0, amount)])
        assert tree.covers(node, [(0, amount)])


@given(trees(), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 15)), max_size=8), st.integers(0, 30))
def test_an_amount_shrinks_by_what_each_node_keeps_on_the_way_up(
    tree: QuotaTree, held: list[tuple[int, int]], amount: int
) -> None:
    """The lowest node with room for what is left of an amount, by the definition level by level."""
    for node in charged(tree, held):
        left = amount
        for at in (node, *tree.path(node)):
            found = at
            if not tree.borrows(at, 0, left):
                break
            left -= max(0, tree.local_quota[at] - tree.usage[at])
        assert tree.lowest_with_room(node, 0, amount) == found


@given(trees(), st.lists(st.tuples(st.integers(0, 5), st.integers(1, 15)), max_size=20))
def test_what_is_admitted_never_exceeds_quota_and_limits(
    tree: QuotaTree, asks: list[tuple[int, int]]
) -> None:
    """Admitting only what is available keeps every queue and cohort within what it has and may borrow.

    No node uses more than its capacity or its quota plus borrowing limit, none lends more than its lending
    limit, and a root never gives out more than it has.
    """
    queues = list(tree.queues.values())
    for number, amount in asks:
        node = queues[number % len(queues)]
        if amount <= tree.available(node, 0):
            tree.charge(node, [(0, amount)])
    for node in range(len(tree.names)):
        used = tree.usage[node]
        assert used <= tree.potential_available[node]
        if tree.parent[node] < 0:
            assert used <= tree.subtree[node]
            continue
        if (limit := tree.borrowing_limit[node]) is not None:
            assert used <= tree.subtree[node] + limit
        if (lending := tree.lending_limit[node]) is not None:
            assert tree.subtree[node] - tree.local_quota[node] <= lending


@given(trees(), st.integers(1, 1000))
def test_scaling_all_amounts_scales_all_answers(tree: QuotaTree, factor: int) -> None:
    """Quotas are linear: the same tree in smaller units answers the same in those units."""

    def scaled(groups: tuple[ResourceGroup, ...]) -> tuple[ResourceGroup, ...]:
        cells = [entry for group in groups for entry in group.flavors]
        if not cells:
            return ()
        was = cells[0].resources["cpu"]
        limits = [
            None if value is None else value * factor for value in (was.borrowing_limit, was.lending_limit)
        ]
        return quota(was.nominal * factor, *limits)

    def groups_of(node: int) -> tuple[ResourceGroup, ...]:
        return quota(tree.nominal[node], tree.borrowing_limit[node], tree.lending_limit[node])

    def parent_of(node: int) -> str:
        return tree.names[tree.parent[node]] if tree.parent[node] >= 0 else ""

    larger = QuotaTree(
        {
            name: ClusterQueue(name, parent_of(node), scaled(groups_of(node)))
            for name, node in tree.queues.items()
        },
        {name: Cohort(name, parent_of(node), scaled(groups_of(node))) for name, node in tree.cohorts.items()},
    )
    for names in ("queues", "cohorts"):
        for name, node in getattr(tree, names).items():
            twin = getattr(larger, names)[name]
            assert larger.available(twin, 0) == tree.available(node, 0) * factor
            assert larger.potential_available[twin] == tree.potential_available[node] * factor
