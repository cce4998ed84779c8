"""Dominant resource shares: what counts as borrowed, against what, and how weights and infinity compare."""

from __future__ import annotations

import math

from fair_worlds import Cohorts, cohort, queue
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

from harness.base.units import INT64_MAX
from harness_plugins.kueue.record.shares import published
from harness_plugins.kueue.rules.dominant_resource_share import NOTHING
from harness_plugins.kueue.shortcuts.kept_shares import KeptShares


def test_a_queue_within_its_nominal_quota_has_no_share() -> None:
    """Only what exceeds the own quota counts."""
    world = Cohorts(queue("a", 4), queue("b", 6)).hold("a", "x", cpu=4)
    assert world.share("a") == NOTHING


def test_a_share_is_what_is_borrowed_in_thousandths_of_what_the_cohort_can_lend() -> None:
    """3 of the 10 cores of the cohort are borrowed."""
    world = Cohorts(queue("a", 2), queue("b", 8)).hold("a", "x", cpu=5)
    assert world.share("a") == (False, 300.0)


def test_the_resource_of_which_most_is_borrowed_decides() -> None:
    """A tenth of the cpu and half of the gpus."""
    world = Cohorts(queue("a", 0, gpu=0), queue("b", 10, gpu=4)).hold("a", "x", cpu=1, gpu=2)
    assert world.share("a") == (False, 500.0)


def test_a_share_is_divided_by_the_weight_without_rounding() -> None:
    """1000 / 3 / 2, in double precision, in this order."""
    world = Cohorts(queue("a", 0, weight="2"), queue("b", 3)).hold("a", "x", cpu=1)
    assert world.share("a") == (False, 1000.0 / 3.0 / 2.0)


def test_weight_zero_is_infinite_only_while_it_borrows() -> None:
    """Without borrowing it is an ordinary nothing."""
    world = Cohorts(queue("a", 1, weight="0"), queue("b", 3)).hold("a", "x", cpu=1)
    assert world.share("a") == NOTHING
    assert world.hold("a", "y").share("a") == (True, 250.0)


def test_infinite_shares_come_after_all_others_and_compare_by_what_they_borrow() -> None:
    """A little of an infinite share is more than all of a finite one."""
    world = Cohorts(queue("a", weight="0"), queue("b", weight="0"), queue("c"), queue("rest", 10))
    world.hold("a", "x", cpu=1).hold("b", "y", cpu=2).hold("c", "z", cpu=7)
    assert world.share("c") < world.share("a") < world.share("b")


def test_a_cohort_has_the_share_that_its_queues_borrow_from_beyond_it() -> None:
    """The cohort owns 2 of the 12 cores: of the 5 that its queue uses it borrows 3."""
    world = Cohorts(cohort("left", "all", 2), queue("a", 0, "left"), queue("rest", 10))
    world.hold("a", "x", cpu=5)
    assert world.share("left") == (False, 250.0)
    assert world.share("a") == (False, 5000.0 / 12.0)


def test_a_ranking_follows_the_queues_that_change() -> None:
    """Queues right below a root, and cohorts for the queues below them, by share; equal ones by node."""
    world = Cohorts(cohort("left", "all", 1), queue("a", 0, "left"), queue("b", 1), queue("rest", 8))
    tree = world.cache.tree
    root = tree.root[0]
    kept = KeptShares(tree, [1.0] * len(tree.names))
    assert [tree.names[node] for _, node in kept.ranking(root)] == ["left", "b", "rest"]
    world.hold("a", "x", cpu=3).hold("b", "y", cpu=2)
    assert kept.ranking(root)[1:] == [
        ((False, 100.0), tree.queues["b"]),
        ((False, 200.0), tree.cohorts["left"]),
    ]
    world.hold("b", "z", cpu=2)
    assert kept.ranking(root)[-1] == ((False, 300.0), tree.queues["b"])
    tree.refund(tree.queues["b"], ((0, 4000),))  # only for a trial, so that the version stays the same
    assert kept.ranking(root) == world.shares.ranking(root)
    tree.charge(tree.queues["b"], ((0, 4000),))
    assert kept.ranking(root) == world.shares.ranking(root)


def test_the_published_share_is_rounded_up_and_the_largest_integer_if_infinite() -> None:
    """The figure in Kueue's status never hides that something is borrowed."""
    assert [published(share) for share in (NOTHING, (False, 0.001), (False, 300.0))] == [0, 1, 300]
    assert published((True, 0.5)) == INT64_MAX


@examples(25)
@given(
    borrowed=st.integers(1, 10**6), lendable=st.integers(1, 10**6), weight=st.sampled_from((1, 2, 3, 7, 1000))
)
def test_more_borrowed_is_never_a_smaller_share(borrowed: int, lendable: int, weight: int) -> None:
    """A share grows with what is borrowed, and shrinks with the weight."""
    world = Cohorts(queue("a", weight=str(weight)), queue("b"), queue("rest", lendable))
    world.hold("a", "x", cpu=borrowed).hold("b", "y", cpu=borrowed)
    before = world.share("a")
    assert before <= world.share("b")
    assert world.hold("a", "z").share("a") >= before
    assert math.ceil(before[1]) == published(before)
