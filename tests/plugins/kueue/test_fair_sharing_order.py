"""Fair sharing's order of admission over several levels of cohorts, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kueue_worlds import Happened, Jobs, Manifest, cluster, manifest, queue

from harness_plugins.kueue.rules.dominant_resource_share import Shares, weights_of
from harness_plugins.kueue.rules.entry import Entry
from harness_plugins.kueue.rules.entry_order import FairOrder
from harness_plugins.kueue.rules.feature_gates import gates_from
from harness_plugins.kueue.rules.flavor_assigner import FIT, Assignment
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.workload import Workload


def cohort(name: str, parent: str = "", *, weight: str = "1") -> Manifest:
    """A Cohort without a quota of its own."""
    above = {"parentName": parent} if parent else {}
    return manifest("Cohort", name, fairSharing={"weight": weight}, **above)


def member(name: str, parent: str = "all", cpu: int = 0, *, weight: str = "1") -> Manifest:
    """A ClusterQueue that preempts nobody; one by one, so that order is all that counts."""
    return queue(name, cohort=parent, cpu=cpu, fairSharing={"weight": weight}, queueingStrategy="StrictFIFO")


def admitted(*manifests: Manifest, held: dict[str, int], asked: dict[str, Any], **options: Any) -> list[str]:
    """The queues in the order in which one job of each is admitted, all in one cycle.

    Args:
        manifests: the cohorts and queues.
        held: queue -> cores that it uses before.
        asked: queue -> the cores of its job, or several fields of it.
        options: the plugin's options.
    """
    jobs = Jobs()
    for name, cpu in held.items():
        jobs.add(f"held-{name}", name, cpu)
    for name, fields in asked.items():
        jobs.add(name, name, at=1, **(fields if isinstance(fields, dict) else {"cpu": fields}))
    happened = Happened(cluster(*manifests), jobs, plugin="fairsharing", until=1, **options)
    return [name for name in happened.admitted if not name.startswith("held-")]


LEFT_AND_RIGHT = (
    cohort("left", "all"),
    cohort("right", "all"),
    member("l1", "left"),
    member("l2", "left"),
    member("r1", "right"),
    member("lender", cpu=20),
)


def test_cohorts_meet_by_their_own_shares_whatever_their_queues_have() -> None:
    """Queue l2 has nothing, but its cohort has more than the other one."""
    assert admitted(*LEFT_AND_RIGHT, held={"l1": 6, "r1": 4}, asked={"l2": 1, "r1": 1}) == ["r1", "l2"]


def test_within_a_cohort_the_queue_with_the_smallest_share_wins() -> None:
    """The cohort's turn goes to l2, which has less than l1."""
    order = admitted(*LEFT_AND_RIGHT, held={"l1": 2, "r1": 6}, asked={"l1": 1, "l2": 1, "r1": 1})
    assert order == ["l2", "l1", "r1"]


def test_shares_count_with_the_job_admitted() -> None:
    """Queue r1 has less, but its job would give it more."""
    assert admitted(*LEFT_AND_RIGHT, held={"l1": 3, "r1": 1}, asked={"l1": 1, "r1": 4}) == ["l1", "r1"]


def test_every_draw_sees_what_those_before_took() -> None:
    """With 3 for l1 the left cohort has more than the right one with 2: l2 goes last, not second."""
    order = admitted(*LEFT_AND_RIGHT, held={}, asked={"l1": 1, "l2": 2, "r1": 2})
    assert order == ["l1", "r1", "l2"]


@pytest.mark.parametrize(
    ("gates", "expected"),
    [("", ["owner", "poor"]), ("FairSharingPrioritizeNonBorrowing=false", ["poor", "owner"])],
)
def test_who_would_not_borrow_what_it_asks_for_goes_first(gates: str, expected: list[str]) -> None:
    """Queue owner has borrowed half of the gpus, which is a large share, but asks for a core of its own."""
    gpu = "nvidia.com/gpu"
    queues = [
        queue("owner", flavors={"f": {"cpu": 4, gpu: 0}}),
        queue("poor", flavors={"f": {"cpu": 0, gpu: 0}}),
        queue("lender", flavors={"f": {"cpu": 20, gpu: 10}}),
    ]
    jobs = Jobs().add("held", "owner", 0, gpu=5).add("poor", "poor", 1, at=1).add("owner", "owner", 1, at=1)
    happened = Happened(cluster(*queues), jobs, plugin="fairsharing", until=1, featureGates=gates)
    assert happened.admitted == ["held", *expected]


def test_whether_it_would_borrow_is_asked_of_the_node_that_meets_the_others() -> None:
    """Queue l1 stays within its own quota, but its cohort borrows, and more than the other one."""
    manifests = (*LEFT_AND_RIGHT[:2], member("l1", "left", 2), *LEFT_AND_RIGHT[3:])
    assert admitted(*manifests, held={"l2": 10, "r1": 2}, asked={"l1": 1, "r1": 1}) == ["r1", "l1"]


@pytest.mark.parametrize(
    ("weight", "expected"), [("1", ["r1", "l1"]), ("4", ["l1", "r1"]), ("250m", ["r1", "l1"])]
)
def test_a_cohorts_weight_counts_where_it_meets_others(weight: str, expected: list[str]) -> None:
    """Six cores over a weight of 4 are less than three."""
    manifests = (cohort("left", "all", weight=weight), *LEFT_AND_RIGHT[1:])
    assert admitted(*manifests, held={"l1": 5, "r1": 2}, asked={"l1": 1, "r1": 1}) == expected


def test_infinite_shares_go_last_and_the_smaller_of_them_first() -> None:
    """Weight zero borrows after everybody else."""
    manifests = [member("z1", weight="0"), member("z2", weight="0"), member("a"), member("lender", cpu=20)]
    order = admitted(*manifests, held={"z1": 2, "z2": 1, "a": 9}, asked={"z1": 1, "z2": 1, "a": 1})
    assert order == ["a", "z2", "z1"]


def test_equal_shares_fall_by_priority() -> None:
    """Between the cohorts as within them."""
    asked = {"l1": {"cpu": 1}, "l2": {"cpu": 1, "priority": 1}, "r1": {"cpu": 1, "priority": 2}}
    assert admitted(*LEFT_AND_RIGHT, held={}, asked=asked) == ["r1", "l2", "l1"]
    off = "PrioritySortingWithinCohort=false"
    assert admitted(*LEFT_AND_RIGHT, held={}, asked=asked, featureGates=off) == ["l1", "r1", "l2"]


@given(st.data())
def test_heads_with_a_reason_only_delay_heads_and_are_left_out_where_they_cannot(data: st.DataObject) -> None:
    """Those that wait are drawn in the same order as if every head were drawn, and charge what they get."""
    names = "abc"
    where = cluster(
        *(cohort(each, data.draw(st.sampled_from(["all", *names[:at]]))) for at, each in enumerate(names)),
        *(member(f"q{at}", data.draw(st.sampled_from(["all", *names])), cpu=1) for at in range(9)),
    )
    few = st.integers(0, 9)
    held, asked = (data.draw(st.lists(few, min_size=9, max_size=9)) for _ in range(2))
    refused = data.draw(st.lists(st.booleans(), min_size=9, max_size=9))

    def order(*, knows: bool) -> list[str]:
        cache = Cache(where)
        shares = Shares(cache.tree, weights_of(cache.tree, where, {}))
        entries = []
        for at, state in enumerate(cache.queues.values()):
            cache.tree.charge(state.node, ((0, 1000 * held[at]),))
            workload = Workload(state.name, state.name, 0, 0)
            workload.cluster_queue = state
            usage = ((0, 1000 * asked[at]),)
            assignment = Assignment(FIT, 0, usage, 1, (), (), (), (), False, (), False, ())
            entries.append(Entry(workload, assignment, marked=False))
            if knows and refused[at]:
                entries[-1].reason = "NoFit"
        drawn = []
        for entry in FairOrder(cache, shares, gates_from({}))(entries):
            state = entry.workload.cluster_queue
            if not refused[state.number]:
                cache.tree.charge(state.node, entry.assignment.usage)
                drawn.append(state.name)
        return drawn

    assert order(knows=True) == order(knows=False)
