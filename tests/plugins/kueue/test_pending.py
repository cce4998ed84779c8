"""Who is next in a ClusterQueue, against a list that is looked through from end to end each time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st
from kueue_worlds import cluster, queue

from harness_plugins.kueue.rules.entry import Entry
from harness_plugins.kueue.rules.feature_gates import gates_from
from harness_plugins.kueue.rules.flavor_assigner import FIT, PREEMPT, Assignment
from harness_plugins.kueue.shortcuts.bystanders import Bystander
from harness_plugins.kueue.shortcuts.heads import CycleHeads, EveryCycle
from harness_plugins.kueue.shortcuts.in_vain import Run
from harness_plugins.kueue.shortcuts.resting_heads import RestingHeads
from harness_plugins.kueue.state.asks import Asks, Number
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import EquivalenceClass, Workload


def queues(**cohort_of: str) -> list[PendingQueue]:
    """Queues by name, each in its cohort."""
    where = cluster(*(queue(name, cohort=cohort, cpu=1) for name, cohort in cohort_of.items()))
    return [PendingQueue(each) for each in Cache(where).queues.values()]


def waiting(pending: PendingQueue, asks: int, place: int) -> Workload:
    """A workload that waits in a queue at a place, asking for one of several things."""
    workload = Workload(f"w{place}", f"uid-{place}", 0, place)
    workload.cluster_queue = pending.queue
    workload.asks, workload.counts = Asks((), Number(asks), reclaims=True), ()
    pending.add(workload)
    return workload


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 50)), max_size=60))
def test_the_first_one_is_the_oldest_of_all_that_are_not_inadmissible(
    steps: list[tuple[int, int, int]],
) -> None:
    """Whoever comes, goes, becomes inadmissible with its class, or is requeued."""
    (pending,) = queues(q="c")
    present: dict[Workload, None] = {}
    inadmissible: list[EquivalenceClass] = []
    for step, asks, place in steps:
        first = pending.first()
        if step <= 2:
            present[waiting(pending, asks, place)] = None
        elif step == 3 and present:
            gone = list(present)[place % len(present)]
            pending.remove(gone)
            del present[gone]
        elif step == 4 and first is not None:
            pending.set_class_inadmissible(first.equivalence_class)
            inadmissible.append(first.equivalence_class)
        elif step == 5 and place % 2:
            pending.requeue_inadmissible()
            inadmissible.clear()
        left = [each for each in present if each.equivalence_class not in inadmissible]
        assert pending.first() is min(left, key=lambda each: (each.timestamp, each.uid), default=None)
        assert set(pending.active()) == set(left)
        assert set(pending.inadmissible()) == {
            each for each in present if each.equivalence_class in inadmissible
        }


def test_a_class_that_is_inadmissible_takes_in_who_comes_after_all_have_left() -> None:
    """Until it is requeued, whoever is just like those that were inadmissible is so, too."""
    (pending,) = queues(q="c")
    first = waiting(pending, 0, 0)
    pending.set_class_inadmissible(first.equivalence_class)
    pending.remove(first)
    waiting(pending, 0, 1)
    assert pending.first() is None
    pending.requeue_inadmissible()
    assert pending.first() is not None


def never(runs: Collection[Run], head: Workload) -> int:
    """Nobody is known to be kept out."""
    return 0


def resting(
    pending: list[PendingQueue],
    in_vain: Collection[Workload],
    *,
    reserving: Collection[Workload] = (),
    kept_out: Callable[[Collection[Run], Workload], int] = never,
    by_name: bool = False,
    room: Collection[int] = (),
    bystanders: list[Bystander] | None = None,
) -> RestingHeads:
    """The heads of queues that all have something to try; of some it is known that it is in vain."""

    def futile(of: PendingQueue, head: Workload) -> Run | None:
        found = of.ahead()
        assert found is not None
        block, at = found
        places = list(takewhile(lambda place: place[4] in in_vain, block.entries[at:]))
        reserves = any(place[4] in reserving for place in places)
        number = len(places)
        return Run(of, head, {}, reserves=reserves, block=block, at=at, number=number) if places else None

    def forget(workload: Workload) -> None:
        """Nothing is forgotten."""

    around, gates = [] if bystanders is None else bystanders, gates_from({})
    heads = RestingHeads(pending, futile, forget, kept_out, (), around, gates, by_name=by_name, room=room)
    for each in pending:
        heads.add(each)
    return heads


def entry(workload: Workload, *, reason: str = "FailedAfterNomination") -> Entry:
    """A head that was served, and of which nothing came but a reason."""
    assignment = Assignment(PREEMPT if reason else FIT, 0, (), 0, (), (), (), (), False, (), False, ())
    found = Entry(workload, assignment, marked=False)
    found.reason = reason
    return found


def test_cycles_that_only_mark_heads_inadmissible_are_gone_through_up_to_a_head_to_look_at() -> None:
    one, two = queues(one="c", two="c")
    first = [waiting(one, place, place) for place in range(4)]
    second = [waiting(two, place, place) for place in range(3)]
    found = resting([one, two], {*first, *second[:1]}).take()
    # cycle 0 marks first[0] and second[0]; cycle 1 marks first[1], and second[1] is to be looked at
    assert found == CycleHeads([second[1]], True, 2, 4)
    assert one.first() is first[2]


def test_a_queue_in_which_all_are_inadmissible_is_head_in_no_later_cycle() -> None:
    one, two = queues(one="c", two="c")
    first = [waiting(one, 0, 0)]
    second = [waiting(two, place, place) for place in range(3)]
    found = resting([one, two], {*first, *second[:2]}).take()
    assert found == CycleHeads([second[2]], False, 3, 4)


def test_where_nothing_has_to_be_looked_at_all_are_inadmissible_cycle_by_cycle() -> None:
    one, two = queues(one="c", two="c")
    first = [waiting(one, 0, 0)]
    second = [waiting(two, place, place) for place in range(3)]
    heads = resting([one, two], {*first, *second})
    found = heads.take()
    assert found == CycleHeads([], True, 3, 4)
    assert heads.take() == CycleHeads([], False, 0, 0)


def test_cycles_of_requeued_queues_in_which_all_fail_again_are_only_counted() -> None:
    one, two, other = queues(one="c", two="c", other="c")
    first = [waiting(one, place, place) for place in range(3)]
    second = [waiting(two, place, place) for place in range(2)]
    heads = resting([one, two, other], {*first, *second})
    assert heads.take() == CycleHeads([], True, 3, 5)
    heads.requeue_inadmissible(one.queue.root)
    assert heads.take() == CycleHeads([], True, 3, 5)
    assert not one.active()
    assert one.requeued
    third = waiting(other, 0, 0)
    heads.add(other)
    heads.requeue_inadmissible(one.queue.root)
    assert heads.take() == CycleHeads([third], True, 1, 3)
    assert set(one.active()) == {*first[1:]}
    assert one.first() is first[1]
    other.remove(third)
    heads.settle([entry(third, reason="")], [])
    assert heads.take() == CycleHeads([], True, 2, 3)
    heads.requeue_inadmissible(one.queue.root)
    assert heads.take() == CycleHeads([], True, 3, 5)


def test_heads_that_rest_count_but_are_not_looked_at_again() -> None:
    one, two = queues(one="c", two="c")
    first, second = waiting(one, 0, 0), waiting(two, 0, 0)
    heads = resting([one, two], set())
    found = heads.take()
    assert found.workloads == [first, second]
    heads.settle([], [])
    assert heads.resting == 2
    assert heads.take().workloads == []


def test_heads_that_rest_are_looked_at_together_with_a_new_one_of_their_tree() -> None:
    one, two, other = queues(one="c", two="c", other="d")
    first = waiting(one, 0, 0)
    heads = resting([one, two, other], set())
    heads.take()
    heads.settle([], [])
    second = waiting(two, 0, 0)
    heads.add(two)
    found = heads.take()
    assert found.workloads == [first, second]
    assert (found.number, heads.resting) == (2, 0)


def test_a_head_rests_although_another_of_its_tree_became_inadmissible() -> None:
    one, two = queues(one="c", two="c")
    first, second = waiting(one, 0, 0), waiting(two, 0, 0)
    heads = resting([one, two], {first})
    found = heads.take()
    assert found == CycleHeads([second], True, 1, 2)
    heads.settle([], [])
    assert heads.resting == 1
    assert heads.take().workloads == []


def test_nobody_rests_in_a_tree_in_which_something_happened() -> None:
    one, two = queues(one="c", two="c")
    first, second = waiting(one, 0, 0), waiting(two, 0, 0)
    heads = resting([one, two], set())
    heads.take()
    heads.settle([entry(first, reason=""), entry(second)], [])
    assert heads.resting == 0
    assert heads.take().workloads == [first, second]


def test_heads_of_trees_that_take_room_from_each_other_rest_and_are_looked_at_as_if_of_one() -> None:
    one, two, other = queues(one="c", two="d", other="e")
    first, second, third = (waiting(each, 0, 0) for each in (one, two, other))
    heads = resting([one, two, other], set(), room={one.queue.root, two.queue.root})
    heads.take()
    heads.settle([entry(first, reason=""), entry(second), entry(third)], [])
    assert heads.resting == 1
    assert heads.take().workloads == [first, second]
    heads.settle([entry(first), entry(second)], [])
    assert heads.resting == 3
    heads.reactivate(two.queue.root)
    assert heads.take().workloads == [first, second]


def test_heads_in_vain_only_stand_by_where_names_tell_the_turn_of_several_trees() -> None:
    trees = queues(a1="a", a2="a", b1="b", b2="b")
    workloads = [waiting(each, 0, 0) for each in trees]
    bystanders: list[Bystander] = []
    found = resting(trees, {workloads[1]}, by_name=True, bystanders=bystanders).take()
    assert found == CycleHeads([workloads[0], *workloads[2:]], True, 1, 4)
    assert bystanders == [(workloads[1], None)]
    assert workloads[1].equivalence_class.inadmissible


def test_heads_in_vain_that_keep_quota_are_looked_at_together_with_others_of_their_tree() -> None:
    """In the second cycle of q's and two's heads; in the first one nobody is there from whom to keep it."""
    one, two, other = queues(one="c", two="c", other="d")
    first = [waiting(one, place, place) for place in range(3)]
    second = [waiting(two, place, place) for place in range(2)]
    third = [waiting(other, place, place) for place in range(2)]
    in_vain = {*first, second[0], *third}
    found = resting([one, two, other], in_vain, reserving={*first, *third}).take()
    assert found == CycleHeads([first[1], second[1]], True, 2, 6)
    assert other.first() is None


def test_cycles_in_which_others_keep_a_head_out_are_passed_over() -> None:
    """The head of two fits, and is kept out by three of one; the fourth is looked at with it."""
    one, two = queues(one="c", two="c")
    first = [waiting(one, place, place) for place in range(4)]
    fits = waiting(two, 0, 0)

    def kept_out(runs: Collection[Run], head: Workload) -> int:
        assert head is fits
        (run,) = runs
        return min(run.number, 1) if one.first() is not first[3] else 0

    found = resting([one, two], set(first), reserving=set(first), kept_out=kept_out).take()
    assert found == CycleHeads([first[3], fits], False, 4, 8)


def test_heads_in_vain_that_keep_quota_wake_those_of_their_tree_that_rest() -> None:
    one, two = queues(one="c", two="c")
    first = waiting(one, 0, 0)
    arrived: set[Workload] = set()
    heads = resting([one, two], arrived, reserving=arrived)
    heads.take()
    heads.settle([], [])
    assert heads.resting == 1
    second = waiting(two, 0, 0)
    arrived.add(second)
    heads.add(two)
    assert heads.take() == CycleHeads([first, second], False, 1, 2)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400)), max_size=600))
def test_a_long_queue_keeps_its_order_in_blocks(steps: list[tuple[int, int]]) -> None:
    """Those ahead are those that are not inadmissible, whoever comes and goes before or behind them."""
    (pending,) = queues(q="c")
    present = [waiting(pending, place, place) for place in range(0, 400, 2)]
    for number, (step, place) in enumerate(steps):
        first = pending.first()
        if step == 0:
            present.append(waiting(pending, 1000 + number, place))
        elif step == 1 and present:
            pending.remove(present.pop(place % len(present)))
        elif step == 2 and first is not None:
            found = pending.ahead()
            if found is None:
                pending.set_class_inadmissible(first.equivalence_class)
            else:
                block, at = found
                pending.set_ahead_inadmissible(block.entries[at : at + place % 50])
        elif step == 3 and place % 4 == 0:
            pending.requeue_inadmissible()
        left = [each for each in present if not each.equivalence_class.inadmissible]
        left.sort(key=lambda each: (each.timestamp, each.uid, each.ticket))
        assert pending.first() is next(iter(left), None)
        found = pending.ahead()
        if left and found is not None:
            block, at = found
            ahead = [place[4] for place in block.entries[at:]]
            assert ahead == left[: len(ahead)]
        for each in present[::7]:
            where = pending.find(each)
            assert where is not None
            block, at = where
            assert block.entries[at][4] is each
            assert len(block.notes) == len(block.entries)


def test_without_shortcuts_every_head_is_looked_at_in_every_cycle() -> None:
    """Of usable queues; what is inadmissible is tried again when its tree is requeued."""
    one, two, other = queues(one="c", two="c", other="d")
    heads = EveryCycle([one, two, other])
    first, second, third = waiting(one, 0, 0), waiting(two, 0, 0), waiting(other, 0, 0)
    for _ in range(2):
        assert heads.take() == CycleHeads([first, second, third], False, 1, 3)
    one.set_class_inadmissible(first.equivalence_class)
    other.set_class_inadmissible(third.equivalence_class)
    heads.requeue_inadmissible(one.queue.root)
    assert heads.take() == CycleHeads([first, second], False, 1, 2)
