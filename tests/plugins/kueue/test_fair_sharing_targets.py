"""Whom fair sharing preempts: the tests of shares, the order of queues, and what is given back."""

from __future__ import annotations

import pytest
from fair_worlds import Cohorts, cohort, queue

from harness.cluster.kinds import preemption_strategies
from harness.cluster.kinds.preemption_strategies import (
    DEFAULT_STRATEGIES,
    TO_FINAL_SHARE,
    TO_INITIAL_SHARE,
    Strategy,
)

FAIR, RECLAIMED, OWN = "InCohortFairSharing", "InCohortReclamation", "InClusterQueue"


def shared(*weights: str, **fields: object) -> Cohorts:
    """Queues a, b, ... that own nothing, beside one that lends 10 cores and uses none."""
    queues = [queue(name, weight=weight) for name, weight in zip("abcd", weights, strict=False)]
    return Cohorts(*queues, queue("lender", 10), **fields)  # type: ignore[arg-type]


def test_final_share_lets_both_sides_become_equal() -> None:
    """The newcomer's queue would hold 5 cores, b be left with 5: not less, and that is enough."""
    world = shared("1", "1", strategies=(TO_FINAL_SHARE,)).hold("b", "b1", "b2", "b3", "b4", "b5", "b6")
    assert world.hold("a", "a1", cpu=4).victims("a", cpu=1) == [("b6", FAIR)]


def test_final_share_refuses_a_victim_that_would_leave_the_other_side_with_less() -> None:
    """One job of 6 cores is all that b holds: without it nothing is left, and a would hold 5."""
    for strategies, expected in (((TO_FINAL_SHARE,), []), ((TO_INITIAL_SHARE,), [("b1", FAIR)])):
        world = shared("1", "1", strategies=strategies).hold("b", "b1", cpu=6).hold("a", "a1", cpu=4)
        assert world.victims("a", cpu=1) == expected


def test_initial_share_needs_a_strictly_smaller_share() -> None:
    """With the newcomer a would hold as much as b does: 5 of 10 cores each."""
    for held, expected in ((4, []), (3, [("b1", FAIR)])):
        world = shared("1", "1", strategies=(TO_INITIAL_SHARE,)).hold("b", "b1", cpu=5)
        world.hold("a", "a1", cpu=held).hold("lender", "l", cpu=5 - held)
        assert world.victims("a", cpu=1) == expected


def test_the_second_pass_takes_what_the_first_refused() -> None:
    """The first strategy finds no small enough victim; the second compares with the share before."""
    world = shared("1", "1").hold("b", "b1", cpu=6).hold("a", "a1", cpu=4)
    assert world.victims("a", cpu=1) == [("b1", FAIR)]


def test_the_second_pass_takes_at_most_one_victim_of_each_queue() -> None:
    """The newcomer needs 9 cores and would have a smaller share than b has: one job may go, not two."""
    assert shared("1", "1").hold("b", "b1", cpu=10).victims("a", cpu=9) == [("b1", FAIR)]
    assert shared("1", "1").hold("b", "b1", "b2", cpu=5).victims("a", cpu=9) == []


def test_each_further_strategy_considers_what_the_earlier_ones_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A third one is a row of its file: with as much as b has, the second refuses what this one allows."""
    third = Strategy("NotAbove", lambda new, old, final: new <= old, lambda *texts: " ".join(texts))
    monkeypatch.setattr(preemption_strategies, "STRATEGIES", (*preemption_strategies.STRATEGIES, third))
    for strategies, expected in (
        (DEFAULT_STRATEGIES, []),
        ((*DEFAULT_STRATEGIES, "NotAbove"), [("b1", FAIR)]),
    ):
        world = shared("1", "1", strategies=strategies).hold("b", "b1", cpu=5)
        world.hold("a", "a1", cpu=4).hold("lender", "l")
        assert (world.reasons.no_targets(world.incoming("a", cpu=1)) is None) is bool(expected)
        assert world.victims("a", cpu=1) == expected


def test_a_queue_within_its_nominal_quota_takes_back_without_comparing_shares() -> None:
    """With the gate off shares decide, as they do between queues that borrow."""
    for on, expected in ((True, [("b1", RECLAIMED)]), (False, [("b1", FAIR)])):
        world = Cohorts(queue("a", 4), queue("b", 6), within_nominal=on).hold("b", "b1", cpu=10)
        assert world.victims("a", cpu=4) == expected


def test_a_borrower_with_more_than_the_others_preempts_nobody() -> None:
    """Borrowing is no right: with the newcomer a would hold 6 cores, b has 5."""
    world = shared("1", "1").hold("a", "a1", cpu=5).hold("b", "b1", "b2", "b3", "b4", "b5")
    assert world.victims("a", cpu=1) == []


def test_weights_decide_who_has_too_much() -> None:
    """With three times the weight 6 cores are a smaller share than 4."""
    world = shared("3", "1").hold("a", "a1", cpu=6).hold("b", "b1", "b2", "b3", "b4")
    assert world.victims("a", cpu=1) == [("b4", FAIR)]
    assert world.victims("b", cpu=1) == []


def test_a_borrower_of_weight_zero_gives_way_to_all_others() -> None:
    """Its share is infinite, however little it holds."""
    world = shared("1", "0").hold("a", "a1", cpu=9).hold("b", "b1")
    assert world.victims("a", cpu=1) == [("b1", FAIR)]


def test_weight_zero_does_not_borrow_at_the_cost_of_others() -> None:
    """An infinite share passes no test against a finite one."""
    world = shared("0", "1").hold("b", "b1", "b2", cpu=5)
    assert world.victims("a", cpu=1) == []


def test_the_queue_with_the_largest_share_gives_first() -> None:
    """Queue c holds 5 cores and b 4: c gives until both have as much, then the newest goes."""
    world = shared("1", "1", "1").hold("lender", "l")
    world.hold("c", "c1", "c2", "c3", "c4", "c5").hold("b", "b1", "b2", "b3", "b4")
    assert world.victims("a", cpu=1) == [("c5", FAIR)]
    assert world.victims("a", cpu=2) == [("b4", FAIR), ("c5", FAIR)]


def test_the_newest_of_the_least_important_of_a_queue_goes_first() -> None:
    """Priority counts before age."""
    world = shared("1", "1").hold("b", "old", "older").hold("b", "vital", cpu=8, priority=1)
    assert world.victims("a", cpu=1) == [("older", FAIR)]


def test_what_is_not_needed_in_the_end_is_given_back() -> None:
    """The small job goes first because it is newer, but the large one makes room enough."""
    world = shared("1", "1").hold("b", "large", cpu=4).hold("b", "rest", cpu=5, priority=1).hold("b", "small")
    assert world.victims("a", cpu=4) == [("large", FAIR)]


def test_of_sibling_cohorts_the_one_with_the_larger_share_is_entered() -> None:
    """The queue with the most is safe in a cohort that as a whole takes less."""
    manifests = [cohort(name, "all") for name in ("left", "right")]
    manifests += [queue("a"), queue("l", 0, "left"), queue("r1", 0, "right"), queue("r2", 0, "right")]
    world = Cohorts(*manifests, queue("lender", 10))
    world.hold("l", "l1", "l2", "l3", "l4").hold("r1", "x1", "x2", "x3").hold("r2", "y1", "y2", "y3")
    assert world.victims("a", cpu=1) == [("y3", FAIR)]


def test_shares_are_compared_right_below_the_lowest_common_cohort() -> None:
    """Beside its sibling of 3 cores a has little; against the other cohort its own one has too much."""
    manifests = [cohort("left", "all"), queue("a", 0, "left"), queue("b", 0, "left"), queue("c")]
    world = Cohorts(*manifests, queue("lender", 8))
    world.hold("b", "b1", "b2", "b3", "b4", "b5").hold("c", "c1", "c2", "c3")
    assert world.victims("a", cpu=1) == [("b5", FAIR)]


def _divisions(*, cpu: int, gpu: int) -> Cohorts:
    """Queues a and b in one division, c and e in another, and who lends to all of them."""
    queues = [queue(name, cohort=division, gpu=0) for name, division in zip("abce", "1122", strict=True)]
    divisions = cohort("1", "all"), cohort("2", "all")
    return Cohorts(*divisions, *queues, queue("lender", cpu, gpu=gpu))


def test_another_division_gives_what_makes_no_difference_to_its_share() -> None:
    """Both divisions have half of the cores: e's holder may not go, c's gpu may."""
    world = _divisions(cpu=8, gpu=20)
    world.hold("a", "a1", cpu=4).hold("e", "e1", cpu=3, gpu=1).hold("c", "c1").hold("c", "c2", cpu=0, gpu=1)
    world.hold("lender", "l", cpu=0, gpu=18)
    targets = world.search.find_targets(world.incoming("a", cpu=0, gpu=1))
    assert [target.workload.name for target in targets] == ["c2"]


def test_another_division_stays_while_a_sibling_has_more() -> None:
    """C's large holder may not go; e's small one is still asked for, although b may give up some, too."""
    world = _divisions(cpu=6, gpu=4)
    world.hold("e", "e1").hold("b", "b1", gpu=1).hold("c", "c1", cpu=3, gpu=2)
    targets = world.search.find_targets(world.incoming("a", cpu=1))
    assert [target.workload.name for target in targets] == ["e1"]


def test_the_second_pass_may_take_from_a_sibling_and_then_from_another_division() -> None:
    """Without b's holder the own division has less than the other, whose two gpus may go then."""
    world = _divisions(cpu=1, gpu=5)
    world.hold("b", "b1", gpu=1).hold("e", "e1", "e2", cpu=0, gpu=2)
    targets = world.search.find_targets(world.incoming("a", cpu=0, gpu=2))
    assert [target.workload.name for target in targets] == ["e2"]


def test_of_cohorts_with_equal_shares_the_larger_name_gives_first() -> None:
    """Kueue leaves this to chance; the order of the manifests must not matter here."""
    sides = [(cohort(name, "all"), queue(f"{name}-q", 0, name)) for name in ("left", "right")]
    for order in (sides, sides[::-1]):
        world = Cohorts(*(each for side in order for each in side), queue("a"), queue("lender", 10))
        world.hold("left-q", "l1", "l2", "l3", "l4", "l5").hold("right-q", "r1", "r2", "r3", "r4", "r5")
        assert world.victims("a", cpu=1) == [("r5", FAIR)]


def test_of_queues_with_equal_shares_the_one_with_the_next_candidate_gives_first() -> None:
    """The newest reservation of all goes, whatever the queues' names."""
    for first, second in (("b", "c"), ("c", "b")):
        world = shared("1", "1", "1").hold(first, "w1", "w2", "w3", "w4", "w5")
        world.hold(second, "z1", "z2", "z3", "z4", "z5")
        assert world.victims("a", cpu=1) == [("z5", FAIR)]


def test_the_own_queue_gives_by_priority_when_it_has_the_largest_share() -> None:
    """No shares are compared within a queue."""
    world = shared("1", "1").hold("a", "a1", cpu=8).hold("b", "b1", cpu=2)
    assert world.victims("a", cpu=1, priority=1) == [("a1", OWN)]
