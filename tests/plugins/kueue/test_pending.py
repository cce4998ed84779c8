"""Who is next in a ClusterQueue, against a list that is looked through from end to end each time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kueue_worlds import cluster, queue

from harness_plugins.kueue.asks import Asks
from harness_plugins.kueue.cache import Cache
from harness_plugins.kueue.heads import Heads, Taken
from harness_plugins.kueue.pending import Kin, Pending
from harness_plugins.kueue.workload import Workload


def queues(**cohort_of: str) -> list[Pending]:
    """Queues by name, each in its cohort."""
    where = cluster(*(queue(name, cohort=cohort, cpu=1) for name, cohort in cohort_of.items()))
    return [Pending(each, number) for number, each in enumerate(Cache(where).queues.values())]


def waiting(pending: Pending, kin: Kin, place: int) -> Workload:
    """A workload that waits in a queue at a place."""
    workload = Workload(f"w{place}", f"uid-{place}", 0, place)
    workload.home, workload.kin = pending, kin
    pending.add(workload)
    return workload


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 50)), max_size=60))
def test_the_first_one_is_the_oldest_of_all_that_are_not_parked(steps: list[tuple[int, int, int]]) -> None:
    (pending,) = queues(q="c")
    kins = [pending.kin_of(0, Asks((), number, reclaims=True, valid=True), ()) for number in range(5)]
    present: dict[Workload, None] = {}
    parked: list[Kin] = []
    for step, kin, place in steps:
        first = pending.first()
        if step <= 2:
            present[waiting(pending, kins[kin], place)] = None
        elif step == 3 and present:
            gone = list(present)[place % len(present)]
            pending.remove(gone)
            del present[gone]
        elif step == 4 and first is not None:
            pending.park_kin(first.kin)
            parked.append(first.kin)
        elif step == 5 and place % 2:
            pending.wake()
            parked.clear()
        elif step == 5:
            back = min(place % 3, len(parked))
            pending.unpark(back)
            del parked[len(parked) - back :]
        left = [each for each in present if each.kin not in parked]
        assert pending.first() is min(left, key=lambda each: (each.timestamp, each.uid), default=None)
        assert set(pending.active()) == set(left)
        assert set(pending.inadmissible()) == {each for each in present if each.kin in parked}


def taken(pending: list[Pending], in_vain: set[Workload], *, by_name: bool = False) -> tuple[Heads, Taken]:
    heads = Heads(pending, by_name=by_name)
    for each in pending:
        heads.add(each)
    return heads, heads.take(in_vain.__contains__)


def test_cycles_in_which_heads_are_only_parked_are_gone_through_up_to_the_first_head_to_look_at() -> None:
    one, two = queues(one="c", two="c")
    first = [waiting(one, Kin(), place) for place in range(4)]
    second = [waiting(two, Kin(), place) for place in range(3)]
    _, found = taken([one, two], {*first, *second[:1]})
    # cycle 0: first[0] and second[0] are parked; cycle 1: first[1] is parked, second[1] is to be looked at
    assert found == Taken([second[1]], True, 2, 4)
    assert one.first() is first[2]


def test_a_queue_in_which_all_are_parked_is_head_in_no_later_cycle() -> None:
    one, two = queues(one="c", two="c")
    first = [waiting(one, Kin(), 0)]
    second = [waiting(two, Kin(), place) for place in range(3)]
    _, found = taken([one, two], {*first, *second[:2]})
    assert found == Taken([second[2]], False, 3, 4)


def test_where_nothing_has_to_be_looked_at_all_are_parked_cycle_by_cycle() -> None:
    one, two = queues(one="c", two="c")
    first = [waiting(one, Kin(), 0)]
    second = [waiting(two, Kin(), place) for place in range(3)]
    heads, found = taken([one, two], {*first, *second})
    assert found == Taken([], True, 3, 4)
    assert heads.take(lambda _: True) == Taken([], False, 0, 0)


def test_heads_that_rest_count_but_are_not_looked_at_again() -> None:
    one, two = queues(one="c", two="c")
    first, second = waiting(one, Kin(), 0), waiting(two, Kin(), 0)
    heads, found = taken([one, two], set())
    assert found.workloads == [first, second]
    heads.settle(())
    assert heads.resting == 2
    assert heads.take(lambda _: False).workloads == []


def test_heads_that_rest_are_looked_at_together_with_a_new_one_of_their_tree() -> None:
    one, two, other = queues(one="c", two="c", other="d")
    first = waiting(one, Kin(), 0)
    heads, _ = taken([one, two, other], set())
    heads.settle(())
    second = waiting(two, Kin(), 0)
    heads.add(two)
    found = heads.take(lambda _: False)
    assert found.workloads == [first, second]
    assert (found.number, heads.resting) == (2, 0)


def test_a_head_rests_although_another_of_its_tree_was_parked() -> None:
    one, two = queues(one="c", two="c")
    first, second = waiting(one, Kin(), 0), waiting(two, Kin(), 0)
    heads, found = taken([one, two], {first})
    assert found == Taken([second], True, 1, 2)
    heads.settle(())
    assert heads.resting == 1
    assert heads.take(lambda _: False).workloads == []


def test_nobody_rests_in_a_tree_in_which_something_happened() -> None:
    one, two = queues(one="c", two="c")
    first, second = waiting(one, Kin(), 0), waiting(two, Kin(), 0)
    heads, _ = taken([one, two], set())
    heads.settle({one.queue.root})
    assert heads.resting == 0
    assert heads.take(lambda _: False).workloads == [first, second]


def test_heads_of_several_trees_take_part_with_those_that_are_in_vain_where_names_tell_the_turn() -> None:
    trees = queues(a1="a", a2="a", b1="b", b2="b")
    workloads = [waiting(each, Kin(), 0) for each in trees]
    _, found = taken(trees, {workloads[1]}, by_name=True)
    assert found.workloads == workloads
    assert not workloads[1].kin.parked
