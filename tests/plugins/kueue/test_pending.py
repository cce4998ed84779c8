"""Who is next in a ClusterQueue, against a list that is looked through from end to end each time."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st
from kueue_worlds import cluster, queue

from harness_plugins.kueue.rules.assignment import FIT, PREEMPT, Assignment
from harness_plugins.kueue.rules.entry import Entry
from harness_plugins.kueue.rules.heads import AllHeads, CycleHeads, Heads
from harness_plugins.kueue.shortcuts.resting_heads import RestingHeads
from harness_plugins.kueue.state.asks import Asks, Number
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.equivalence_class import EquivalenceClass
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import Workload


def queues(**cohort_of: str) -> list[PendingQueue]:
    """Queues by name, each in its cohort."""
    where = cluster(*(queue(name, cohort=cohort, cpu=1) for name, cohort in cohort_of.items()))
    return [PendingQueue(each) for each in Cache(where).queues.values()]


def waiting(pending: PendingQueue, asks: int, place: int) -> Workload:
    """A workload that waits in a queue at a place, asking for one of several things."""
    workload = Workload(f"w{place}", f"uid-{place}", 0, place)
    workload.cluster_queue = pending.queue
    workload.asks, workload.counts = Asks((), Number(asks), reclaims=True, valid=True), ()
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
            pending.set_class_inadmissible(first.place.equivalence_class)
            inadmissible.append(first.place.equivalence_class)
        elif step == 5 and place % 2:
            pending.requeue_inadmissible()
            inadmissible.clear()
        elif step == 5 and inadmissible:
            pending.undo_inadmissible()
            del inadmissible[-1]
        left = [each for each in present if each.place.equivalence_class not in inadmissible]
        assert pending.first() is min(left, key=lambda each: (each.timestamp, each.uid), default=None)
        assert set(pending.active()) == set(left)
        assert set(pending.inadmissible()) == {
            each for each in present if each.place.equivalence_class in inadmissible
        }


def test_a_class_that_is_inadmissible_takes_in_who_comes_after_all_have_left() -> None:
    """Until it is requeued, whoever is just like those that were inadmissible is so, too."""
    (pending,) = queues(q="c")
    first = waiting(pending, 0, 0)
    pending.set_class_inadmissible(first.place.equivalence_class)
    pending.remove(first)
    waiting(pending, 0, 1)
    assert pending.first() is None
    pending.requeue_inadmissible()
    assert pending.first() is not None


def nowhere(pending: PendingQueue) -> int:
    """Of no queue is known that all is in vain in it."""
    return 0


def resting(
    pending: list[PendingQueue], in_vain: set[Workload], *, by_name: bool = False, room: Collection[int] = ()
) -> RestingHeads:
    """The heads of queues that all have something to try; of some it is known that it is in vain."""
    heads = RestingHeads(pending, in_vain.__contains__, nowhere, by_name=by_name, by_class=True, room=room)
    for each in pending:
        heads.add(each)
    return heads


def entry(workload: Workload, *, reason: str = "FailedAfterNomination") -> Entry:
    """A head that was served, and of which nothing came but a reason."""
    assignment = Assignment(PREEMPT if reason else FIT, 0, (), 0, (), (), (), (), False, (), False, ())
    found = Entry(workload, assignment, resumed=False, marked=False)
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


def test_heads_of_several_trees_take_part_with_those_that_are_in_vain_where_names_tell_the_turn() -> None:
    trees = queues(a1="a", a2="a", b1="b", b2="b")
    workloads = [waiting(each, 0, 0) for each in trees]
    found = resting(trees, {workloads[1]}, by_name=True).take()
    assert found.workloads == workloads
    assert not workloads[1].place.equivalence_class.inadmissible


class _Cycles:
    """Two queues of one cohort, whose heads are all left to wait or made inadmissible.

    Args:
        passes_over: whether queues in which all is in vain are passed over.
    """

    def __init__(self, *, passes_over: bool) -> None:
        self.queues = queues(one="c", two="c")
        self.asks_in_vain: set[int] = set()
        self._turns = dict.fromkeys(self.queues, -1)
        where = self._classes if passes_over else nowhere
        self.heads = RestingHeads(self.queues, self._is_in_vain, where, by_name=True, by_class=True, room=())

    def _is_in_vain(self, workload: Workload) -> bool:
        return workload.asks.number in self.asks_in_vain

    def _classes(self, pending: PendingQueue) -> int:
        if pending.turns != self._turns[pending]:
            self._turns[pending] = pending.turns
            return 0
        heads = pending.in_turn()
        return 0 if heads is None or not all(map(self._is_in_vain, heads)) else len(heads)

    def add(self, queue: int, asks: int, place: int) -> None:
        workload = waiting(self.queues[queue], asks, place)
        if not workload.place.equivalence_class.inadmissible:
            self.heads.add(self.queues[queue])

    def take(self, *, marks: bool) -> tuple[list[str], bool, int, int, int]:
        """The heads of a cycle; what is looked at becomes inadmissible, or rests."""
        found = self.heads.take()
        entries = [entry(workload) for workload in found.workloads]
        for each in entries if marks else ():
            each.inadmissible = True
            pending = self.queues[each.workload.cluster_queue.number]
            pending.set_class_inadmissible(each.workload.place.equivalence_class)
        if found.workloads:
            self.heads.settle(entries, [])
        return [each.name for each in found.workloads], *found[1:], self.heads.resting


def test_what_was_not_passed_over_is_tried_once_not_all_is_in_vain() -> None:
    """In the cycle that looks at the head of the other queue, the first of three classes is passed over."""
    cycles = _Cycles(passes_over=True)
    cycles.asks_in_vain = {0, 1, 2}
    for asks in range(3):
        cycles.add(0, asks, asks)
    cycles.add(1, 4, 9)
    for _ in range(2):
        cycles.heads.requeue_inadmissible(cycles.queues[0].queue.root)
        assert cycles.take(marks=True) == (["w9"], True, 1, 2, 0)
        assert cycles.take(marks=True) == ([], True, 2, 2, 0)
    cycles.heads.requeue_inadmissible(cycles.queues[0].queue.root)
    assert cycles.take(marks=True) == (["w9"], True, 1, 2, 0)
    cycles.asks_in_vain.clear()
    assert cycles.take(marks=False) == (["w1"], False, 1, 1, 1)


_ARRIVALS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 4)), min_size=3, max_size=8)


@given(
    _ARRIVALS,
    st.lists(st.tuples(st.sampled_from("arrrttttv"), st.integers(0, 1), st.integers(0, 4)), max_size=40),
)
def test_queues_in_which_all_is_in_vain_count_as_if_all_in_them_was_tried(
    arrivals: list[tuple[int, int]], steps: list[tuple[str, int, int]]
) -> None:
    """Whoever arrives, is requeued or tried, and whatever is in vain meanwhile."""
    plain, short = both = _Cycles(passes_over=False), _Cycles(passes_over=True)
    for each in both:
        each.asks_in_vain = {0, 1, 2, 3}
        for place, (where, asks) in enumerate(arrivals):
            each.add(where, asks, place)
    for number, (step, where, asks) in enumerate(steps):
        for each in both:
            if step == "a":
                each.add(where, asks, -number if asks % 2 else 100 + number)
            elif step == "r":
                each.heads.requeue_inadmissible(each.queues[0].queue.root)
            elif step == "v":
                each.asks_in_vain ^= {asks}
        if step == "t":
            assert plain.take(marks=asks > 0) == short.take(marks=asks > 0)


def test_without_shortcuts_every_head_is_looked_at_in_every_cycle() -> None:
    """Of usable queues; what is inadmissible is tried again when its tree is requeued."""
    one, two, other = queues(one="c", two="c", other="d")
    heads: Heads = AllHeads([one, two, other])
    first, second, third = waiting(one, 0, 0), waiting(two, 0, 0), waiting(other, 0, 0)
    for _ in range(2):
        assert heads.take() == CycleHeads([first, second, third], False, 1, 3)
    one.set_class_inadmissible(first.place.equivalence_class)
    other.set_class_inadmissible(third.place.equivalence_class)
    heads.requeue_inadmissible(one.queue.root)
    assert heads.take() == CycleHeads([first, second], False, 1, 2)
