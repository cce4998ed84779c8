"""When a search for somebody to preempt is known to be in vain: until others would give up more."""

from __future__ import annotations

from functools import partial

from fair_worlds import Cohorts, cohort, queue
from hypothesis import given
from hypothesis import strategies as st
from kueue_worlds import Jobs, cluster, configuration
from kueue_worlds import queue as kueue_queue
from more_examples import examples

from harness.cluster.kinds.preemption_strategies import (
    DEFAULT_STRATEGIES,
    TO_FINAL_SHARE,
    TO_INITIAL_SHARE,
    strategies_of,
)
from harness_plugins.kueue.machinery import Machinery, Settings
from harness_plugins.kueue.rules.classical import ClassicPreemption
from harness_plugins.kueue.rules.device_claims import asking_of
from harness_plugins.kueue.rules.entry import FAILED_AFTER_NOMINATION, Admitted
from harness_plugins.kueue.rules.feature_gates import gates_from
from harness_plugins.kueue.scheduler import Scheduler
from harness_plugins.kueue.shortcuts.no_targets import ClassicReasons
from harness_plugins.kueue.shortcuts.recorded_oracle import RecordedOracle
from harness_plugins.kueue.shortcuts.shortcuts import Shortcuts
from harness_plugins.kueue.state.local_queue_usage import LocalQueueUsage
from harness_plugins.kueue.state.workload import Workload


def test_a_search_that_takes_too_little_is_in_vain_while_others_give_up_no_more() -> None:
    """Of b, which holds 6 of 10 cores, two may go until a would hold as much: the newcomer needs three."""
    world = Cohorts(queue("a"), queue("b"), queue("lender", 10))
    world.hold("b", *(f"b{number}" for number in range(6))).hold("a", "a1")
    world.hold("lender", "l1", cpu=2).hold("lender", "l2")
    three = world.incoming("a", cpu=3)
    assert world.search.find_targets(three) == []
    why = world.reasons.no_targets(three)
    assert why is not None
    assert world.reasons.still_no_targets(why)
    world.cache.drop(world.holders("lender")[0])
    world.hold("b", "b6")
    assert not world.reasons.still_no_targets(why)
    assert len(world.search.find_targets(three)) == 3


def test_what_becomes_free_counts_with_what_others_give_up() -> None:
    """Two of b's cores may go; the third that the newcomer needs is free once the lender gives it back."""
    world = Cohorts(queue("a"), queue("b"), queue("lender", 10))
    world.hold("b", *(f"b{number}" for number in range(6))).hold("a", "a1")
    world.hold("lender", "l1", cpu=2).hold("lender", "l2")
    three = world.incoming("a", cpu=3)
    why = world.reasons.no_targets(three)
    assert why is not None
    world.cache.drop(world.holders("lender")[0])
    assert not world.reasons.still_no_targets(why)
    assert len(world.search.find_targets(three)) == 2


def test_a_queue_that_gives_up_enough_may_give_up_more() -> None:
    """One core of b is enough while another one is free; once it is not b has to give up two, and does."""
    world = Cohorts(queue("a"), queue("b"), queue("lender", 10))
    world.hold("b", *(f"b{number}" for number in range(6))).hold("a", "a1").hold("lender", "l1", cpu=2)
    two = world.incoming("a", cpu=2)
    assert world.reasons.no_targets(two) is None
    world.hold("lender", "l2")
    assert world.reasons.no_targets(two) is None
    assert len(world.search.find_targets(two)) == 2


def test_what_others_give_up_depends_on_what_the_own_queue_holds() -> None:
    """With a2 gone a would hold 3 cores with the newcomer, which b may be left with too."""
    world = Cohorts(queue("a"), queue("b"), queue("lender", 10))
    world.hold("b", *(f"b{number}" for number in range(5))).hold("a", "a1", "a2").hold("lender", "l", cpu=3)
    two = world.incoming("a", cpu=2)
    assert world.reasons.no_targets(two) is not None
    world.cache.drop(world.holders("a")[0])
    world.hold("lender", "l2")
    assert world.reasons.no_targets(two) is None
    assert len(world.search.find_targets(two)) == 2


def test_a_queue_may_give_up_what_its_share_does_not_come_from() -> None:
    """Both would have 4 of 10 cores; the gpu that b gives up makes no difference to that."""
    world = Cohorts(queue("a", gpu=0), queue("b", gpu=0), queue("lender", 10, gpu=4))
    world.hold("a", "a1", cpu=4).hold("b", "b1", cpu=4).hold("b", "b2", cpu=0, gpu=1)
    one = world.hold("lender", "l", cpu=0, gpu=3).incoming("a", cpu=0, gpu=1)
    assert world.reasons.no_targets(one) is None
    assert [target.workload.name for target in world.search.find_targets(one)] == ["b2"]


def test_own_candidates_and_all_that_others_hold_may_be_too_little() -> None:
    """A's own core may go; without it a newcomer of four leaves a a larger share than b has with its two."""
    world = Cohorts(queue("a"), queue("b"), queue("lender", 10))
    world.hold("a", "a1", priority=-1).hold("b", "b1", "b2").hold("lender", "l", cpu=7)
    four = world.incoming("a", cpu=4)
    assert world.search.find_targets(four) == []
    why = world.reasons.no_targets(four)
    assert why is not None
    assert world.reasons.still_no_targets(why)
    world.cache.drop(world.holders("lender")[0])
    world.hold("b", *(f"b{number}" for number in range(3, 10)))
    assert not world.reasons.still_no_targets(why)
    assert len(world.search.find_targets(four)) == 4


def test_own_candidates_that_are_enough_are_no_reason() -> None:
    """Two of a's own cores may go for a newcomer of two."""
    world = Cohorts(queue("a"), queue("b"), queue("lender", 10))
    world.hold("a", "a1", "a2", priority=-1).hold("lender", "l", cpu=8)
    assert world.reasons.no_targets(world.incoming("a", cpu=2)) is None
    assert world.reasons.no_targets(world.incoming("a", cpu=3)) is not None


def test_what_others_of_the_cohort_give_up_depends_on_which_own_candidates_are_gone() -> None:
    """A would have 3 of 5 cores without a1, and b would first give up b1. With a1 there, b2 goes instead."""
    queues = queue("a", 0, "left"), queue("b", 0, "left"), queue("lender", 5)
    world = Cohorts(cohort("left", "all"), *queues)
    world.hold("a", "a1", priority=-1).hold("b", "b1").hold("b", "b2", cpu=3)
    three = world.incoming("a", cpu=3)
    assert world.reasons.no_targets(three) is None
    assert [target.workload.name for target in world.search.find_targets(three)] == ["b2"]


def test_what_a_cohort_gives_up_is_not_known() -> None:
    """It depends on how its queues share; where none has enough of a share it gives nothing."""
    world = Cohorts(queue("a"), cohort("left", "all"), queue("b", 0, "left"), queue("lender", 10))
    world.hold("b", "b1", cpu=5).hold("a", "a1", cpu=2).hold("lender", "l", cpu=3)
    assert world.victims("a", cpu=8) == []
    assert world.reasons.no_targets(world.incoming("a", cpu=2)) is None
    assert world.reasons.no_targets(world.incoming("a", cpu=4)) is not None


def test_below_cohorts_a_search_is_in_vain_while_the_own_side_has_the_largest_share_at_each() -> None:
    """Of 10 cores a would hold 4; b beside it and c, in another cohort, hold 1 each, until one holds 7."""
    for other, cohorts in (("b", "left"), ("c", "right")):
        world = Cohorts(
            cohort("left", "all"), cohort("right", "all"), queue("a", 0, "left"), queue("b", 0, "left"),
            queue("c", 0, "right"), queue("lender", 10),
        )  # fmt: skip
        world.hold("a", "a1", cpu=2).hold("b", "b1").hold("c", "c1").hold("lender", "l", cpu=6)
        two = world.incoming("a", cpu=2)
        why = world.reasons.no_targets(two)
        assert why is not None
        assert world.search.find_targets(two) == []
        assert world.reasons.still_no_targets(why)
        world.cache.drop(world.holders("lender")[0])
        for number in range(6):
            world.hold(other, f"{cohorts}{number}")
        assert not world.reasons.still_no_targets(why)
        assert len(world.search.find_targets(two)) == 2


def test_within_a_cycle_the_reservations_below_other_cohorts_count() -> None:
    """What c reserves counts for the share of right: 1 core more is too little, 7 more are enough."""
    world = Cohorts(
        cohort("left", "all"), cohort("right", "all"), queue("a", 0, "left"), queue("c", 0, "right"),
        queue("lender", 11),
    )  # fmt: skip
    world.hold("a", "a1", cpu=2).hold("c", "c1")
    seven, node = world.incoming("c", cpu=7).requests, world.cache.queues["c"].node
    two = world.incoming("a", cpu=2)
    world.cache.tree.charge(node, world.incoming("c", cpu=1).requests)
    assert world.reasons.in_vain(two)
    world.cache.tree.refund(node, world.incoming("c", cpu=1).requests)
    world.cache.tree.charge(node, seven)
    assert not world.reasons.in_vain(two)
    world.cache.tree.refund(node, seven)
    world.hold("c", *(f"c{number}" for number in range(2, 9)))
    assert not world.reasons.in_vain(two)
    assert len(world.search.find_targets(two)) == 1


def test_a_queue_of_the_same_cohort_counts_with_what_it_gives_up() -> None:
    """Of 3 cores b gives a one, so that left borrows as much as right; without all 3 it borrows none."""
    world = Cohorts(
        cohort("left", "all", 4), cohort("right", "all", 4), queue("a", 0, "left"), queue("b", 0, "left"),
        queue("d", 0, "left"), queue("c", 0, "right"), queue("lender", 1),
    )  # fmt: skip
    world.hold("b", "b1", "b2", "b3").hold("d", "d1").hold("c", "c1", "c2", "c3", "c4", "c5")
    two = world.incoming("a", cpu=2)
    assert world.search.find_targets(two) == []
    assert world.reasons.no_targets(two) is not None
    assert [target.workload.name for target in world.search.find_targets(world.incoming("a", cpu=1))]


def test_what_a_queue_of_several_local_queues_gives_up_is_not_known() -> None:
    """Of b, which holds 4 of 10 cores, one or two may go; whose turn comes first changes with their usage."""
    shared = queue("b")
    shared["spec"]["admissionScope"] = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    modest = queue("a")
    modest["spec"]["preemption"]["reclaimWithinCohort"] = "LowerPriority"
    sharing = {"usageHalfLifeTime": "10s", "usageSamplingInterval": "5s"}
    manifests = (modest, shared, queue("lender", 10), configuration(admissionFairSharing=sharing))
    world = Cohorts(*manifests, strategies=[TO_FINAL_SHARE])
    world.hold("b", "small").hold("b", "large", cpu=2).hold("b", "safe", priority=9)
    world.hold("lender", "l", cpu=6)
    small, large = (
        LocalQueueUsage(name, name, 1, {}, 0, sampled=True, begun=True) for name in ("small", "large")
    )
    holders = {each.name: each for each in world.holders("b")}
    holders["small"].local_queue, holders["large"].local_queue = small, large
    small.usage = 2.0
    two = world.incoming("a", cpu=2, priority=1)
    assert world.search.find_targets(two) == []
    assert world.reasons.no_targets(two) is None
    large.usage = 3.0
    world.cache.reorder(world.cache.queues["b"])
    assert [target.workload.name for target in world.search.find_targets(two)] == ["large"]


def test_a_queue_that_would_borrow_reaches_only_its_own_candidates() -> None:
    """A has a nominal quota of 4 cores and uses 3. B borrows the other one, and gives it back to a."""
    world = Cohorts(queue("a", 4), queue("b", 4))
    world.hold("a", "a1", cpu=2).hold("a", "a2", priority=-1).hold("b", "b1", "b2", "b3", "b4", "b5")
    one = world.incoming("a", cpu=1)
    reach = partial(ClassicReasons(world.cache).reach, one.queue, one.workload, one.need[0], free=0)
    assert reach(amount=2000)
    assert not reach(amount=3000)
    targets = [len(_classic(world).find_targets(world.incoming("a", cpu=cores))) for cores in (1, 2, 3)]
    assert targets == [1, 2, 0]


def test_queues_reach_what_those_with_a_larger_share_hold() -> None:
    """With 3 of 10 cores, a has a smaller share than b, which holds 4, and a larger one than c with its 2."""
    world = Cohorts(queue("a"), queue("b"), queue("c"), queue("lender", 10))
    world.hold("a", "a1").hold("b", "b1", cpu=4).hold("c", "c1", cpu=2).hold("lender", "l", cpu=3)
    one = world.incoming("a", cpu=1)
    reach = partial(world.reasons.reach, one.queue, one.workload, one.need[0], free=0)
    assert reach(amount=2000)
    assert not reach(amount=4000)


def _classic(world: Cohorts) -> ClassicPreemption:
    return ClassicPreemption(world.cache)


def test_a_head_that_lacks_quota_again_after_it_fitted_is_tried_only_if_that_is_recorded() -> None:
    """Its two reasons were recorded before; the first return is recorded again, the second is not."""
    jobs = [job for chunk in Jobs().add("J", "a", 2).add("K", "a", 2).chunks() for job, *_ in chunk]
    scheduler = Scheduler(cluster(kueue_queue("a", cpu=2)), gates_from({}), None)
    pending = scheduler.pending["a"]
    first, second = (scheduler.workload_of(job, pending) for job in jobs)
    for each in (first, second):
        scheduler.enqueue(each)
    (admitted,) = scheduler.cycle()
    assert isinstance(admitted, Admitted)
    scheduler.reserve(admitted, 0)
    assert not list(scheduler.cycle())
    lacking = second.told
    for returns in (0, 1):
        second.told = lacking.then(FAILED_AFTER_NOMINATION)._replace(returns=returns)
        scheduler.requeue_all()
        scheduler.refused.clear()
        list(cycle := scheduler.cycle())
        assert (cycle == (), len(scheduler.refused)) == (bool(returns), 1 - returns)
        assert second.told == (lacking.last, {lacking.last, FAILED_AFTER_NOMINATION}, returns + 1)
        assert pending.first() is None


def test_a_workload_that_fails_in_two_ways_in_turn_is_assigned_once_in_each_way() -> None:
    """It needs all 4 cores of its queue, and borrows only while another workload of the queue holds one."""
    world, gates = cluster(kueue_queue("a", cpu=4), kueue_queue("b", cpu=4)), gates_from({})
    machinery = Machinery(world, Settings(gates, None, {}, (), Shortcuts()))
    cache, pending = machinery.cache, machinery.pending["a"]
    ((job, *_),) = next(iter(Jobs().add("J", "a", 4).chunks()))
    waiting, borrower, other = (Workload(name, name, 0, 0) for name in ("J", "borrower", "other"))
    waiting.job, waiting.asks, waiting.cluster_queue = job, asking_of(world, gates).of(job), pending.queue
    waiting.counts = waiting.asks.counts
    pending.add(waiting)
    cache.hold(borrower, cache.queues["b"], ((0, 5000),), 1, 0)
    found = []
    for cycle in range(4):
        assert not list(machinery.cycle.run([waiting], cycle))
        found.append(machinery.cycle.entries[0].assignment)
        pending.requeue_inadmissible()
        if cycle % 2:
            cache.drop(other)
        else:
            cache.hold(other, pending.queue, ((0, 1000),), 1, 0)
    assert [each.borrowing for each in found] == [0, 1, 0, 1]
    assert found[2] is found[0]
    assert found[3] is found[1]


_STRATEGIES = ((TO_FINAL_SHARE, TO_INITIAL_SHARE), (TO_FINAL_SHARE,), (TO_INITIAL_SHARE,))
_AMOUNTS = st.tuples(st.integers(0, 4), st.integers(0, 3)).filter(any)


@examples(150)
@given(
    st.sampled_from(_STRATEGIES),
    st.booleans(),
    st.sampled_from(("all", "all", "left")),
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from("0121")), min_size=2, max_size=4
    ),
    st.lists(st.tuples(st.sampled_from("hhhde"), st.integers(0, 99), _AMOUNTS), max_size=25),
    _AMOUNTS,
)
def test_what_is_said_to_be_in_vain_is(
    strategies: tuple[str, ...],
    within_nominal: bool,
    side: str,
    queues: list[tuple[int, int, str]],
    steps: list[tuple[str, int, tuple[int, int]]],
    asked: tuple[int, int],
) -> None:
    """Whatever others hold, give back or are told to give back; every third holder has a lower priority."""
    others = [
        queue(f"q{at}", cpu, side if at % 2 == 0 else "all", weight=weight, gpu=gpu)
        for at, (cpu, gpu, weight) in enumerate(queues)
    ]
    others += [cohort("left", "all", len(steps) % 3), queue("own", 1, side, gpu=0)]
    world = Cohorts(*others, strategies=strategies, within_nominal=within_nominal)
    cpu, gpu = asked
    asker = world.incoming("own", cpu=cpu, gpu=gpu)
    tree, own, classic = world.cache.tree, world.cache.queues["own"], ClassicReasons(world.cache)
    why, generation = None, -1
    for number, (step, where, amounts) in enumerate(steps):
        at = world.cache.queues[f"q{where % len(queues)}" if where % 7 else "own"]
        holders: list[Workload] = world.holders(at.name)
        if step == "h":
            priority = -1 if number % 3 == 0 else 0
            world.hold(at.name, f"w{number}", cpu=amounts[0], gpu=amounts[1], priority=priority)
        elif holders and step == "d":
            world.cache.drop(holders[where % len(holders)])
        elif holders and not holders[where % len(holders)].evicted:
            world.cache.evict(holders[where % len(holders)])
        if all(amount <= tree.available(own.node, cell) for cell, amount in asker.requests):
            continue
        if why is None or generation != own.generation or not world.reasons.still_no_targets(why):
            why, generation = world.reasons.no_targets(asker), own.generation
        incoming = world.incoming("own", cpu=cpu, gpu=gpu)
        found = world.search.find_targets(incoming)
        assert not (why and found)
        for reasons, targets in ((world.reasons, found), (classic, _classic(world).find_targets(incoming))):
            for cell, amount in incoming.requests:
                free = max(0, tree.available(own.node, cell))
                if amount > free and not reasons.reach(own, incoming.workload, cell, amount, free):
                    assert not targets
                    assert not reasons.reach(own, incoming.workload, cell, amount + 1, free)


def test_a_cohort_is_left_out_only_if_each_usage_below_it_is_refused() -> None:
    """With 3 cores of the left side, b1 may go by its share before; c1 by the share without it, too."""
    final, initial = strategies_of(DEFAULT_STRATEGIES)
    queues = queue("a", 0, "left"), queue("b", 0, "right"), queue("c", 0, "below"), queue("rest", 10)
    world = Cohorts(cohort("left", "all"), cohort("right", "all"), cohort("below", "right"), *queues)
    world.hold("a", "a1", cpu=3).hold("b", "b1", cpu=4)
    left, right = (world.cache.tree.cohorts[side] for side in ("left", "right"))
    assert world.sides.refuses(final, left, right)
    assert not world.sides.refuses(initial, left, right)
    assert world.sides.refuses(initial, right, left)
    assert not world.hold("c", "c1", cpu=1).sides.refuses(final, left, right)


def test_quota_that_a_queue_keeps_does_not_count_against_its_cohort() -> None:
    """Queue b keeps 4 of the 6 cores of b1. Without b1, the right side holds 5; the left one holds 3."""
    keeper = queue("b", 4, "right")
    keeper["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] = "0"
    queues = queue("a", 0, "left"), keeper, queue("c", 0, "right"), queue("rest", 10)
    world = Cohorts(cohort("left", "all"), cohort("right", "all"), *queues)
    world.hold("a", "a1", cpu=3).hold("b", "b1", cpu=6).hold("c", "c1", cpu=5)
    left, right = (world.cache.tree.cohorts[side] for side in ("left", "right"))
    assert not world.sides.refuses(strategies_of(DEFAULT_STRATEGIES)[0], left, right)


def test_quota_that_a_reservation_took_from_a_queue_does_not_count_against_its_cohort() -> None:
    """B uses 8 cores and may use 3, so a head reserves -5 there. Without b1 the right side still has 5."""
    limited = queue("b", 0, "right")
    limited["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = "3"
    queues = queue("a"), limited, queue("lender", 10)
    world = Cohorts(cohort("right", "all"), *queues, strategies=(TO_FINAL_SHARE,))
    world.hold("b", "b1", cpu=8).hold("lender", "l1", cpu=2)
    assert world.victims("a", cpu=2) == []
    world.cache.tree.charge(world.cache.queues["b"].node, ((0, -5000),))
    assert world.victims("a", cpu=2) == [("b1", "InCohortFairSharing")]


def test_an_eviction_puts_the_queue_of_the_evicted_workload_before_queues_with_equal_shares() -> None:
    """B and c are equal, and c1 reserved last, so it goes; once b1 is evicted anyway, b is ahead of c."""
    world = Cohorts(queue("a"), queue("b"), queue("c"), queue("lender", 10))
    world.hold("b", "b2", "b1", cpu=2).hold("c", "c2", "c1", cpu=2)
    assert world.victims("a", cpu=2) == [("c1", "InCohortFairSharing")]
    world.cache.evict(world.holders("b")[0])
    assert world.victims("a", cpu=2) == [("b1", "InCohortFairSharing")]


def test_a_queue_that_may_preempt_nobody_is_never_searched_for() -> None:
    """Queue a could reclaim from b, but b may neither reclaim nor preempt its own b1, so only a searches."""
    owner = queue("b", 4)
    owner["spec"]["preemption"] = {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"}
    world = Cohorts(queue("a"), owner).hold("b", "b1", cpu=4)
    tried = []
    for name in ("a", "b"):
        incoming = world.incoming(name, cpu=5)
        oracle = RecordedOracle(world.cache, world.search, incoming.workload, None)
        assert oracle.targets(incoming.requests, incoming.need) == []
        tried.append(len(oracle.failed))
    assert tried == [1, 0]
