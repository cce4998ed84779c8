"""The plugin `backfill` on nodes: who may pass whom, on which nodes, and what filters of pods say."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from batch_jobs import Batch, backfilled
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

from harness import Cluster, PodSet
from harness.base.errors import OptionError
from harness.base.units import SECOND
from harness.models.cluster import Node, Taint, frozen
from harness.testing import Decisions, nodes, pool
from harness.testing.worlds import random_world

NODES = 3
ALGORITHMS = st.sampled_from(["easy", "conservative"])
TIES = st.sampled_from(["ends-first", "submissions-first", "together"])
ORDERS = st.sampled_from(["fcfs", "sjf", "priority"])

JOBS = st.lists(
    st.tuples(st.integers(0, 10), st.integers(1, 9), st.integers(1, NODES), st.integers(0, 6)),
    min_size=1,
    max_size=12,
)
"""When each arrives, how long it runs, its pods, and by how much more it asks for."""


def where(happened: Decisions) -> dict[str, list[str]]:
    """Job -> the nodes of its pods."""
    found: dict[str, list[str]] = {}
    for row in happened.of("bind"):
        found.setdefault(row.job, []).extend([str(row.node)] * row.pods)
    return found


def labelled(**labels: str) -> Cluster:
    """Nodes of 2 cpu; `pool` is the label of each."""
    made = {
        name: Node(name, frozen({"cpu": 2}), labels=frozen({"pool": label})) for name, label in labels.items()
    }
    return Cluster(nodes=frozen(made))


def selecting(pool: str, *, pods: int = 1, cpu: int = 2, **spec: Any) -> tuple[PodSet, ...]:
    """Pods that run on nodes of one pool only."""
    container = {"name": "main", "resources": {"requests": {"cpu": f"{cpu}m"}}}
    spec = {**({"nodeSelector": {"pool": pool}} if pool else {}), **spec}
    template = json.dumps({"spec": {"containers": [container], **spec}})
    return (PodSet("main", pods, pods, frozen({"cpu": cpu}), pod_template=template),)


# --- the rules on small examples ----------------------------------------------------------------------------


def test_a_reservation_is_a_moment_at_which_all_pods_find_nodes() -> None:
    """3 cpu are free at 0, but nowhere 2 together: `wide` waits for a node, and `long` may not take it."""
    jobs = Batch().asks("a", cpu=3, seconds=10).asks("b", cpu=2, seconds=20)
    jobs.asks("wide", at=1, cpu=4, seconds=10).asks("long", at=2, cpu=1, seconds=50)
    happened = backfilled(jobs, nodes(n1={"cpu": 4}, n2={"cpu": 4}))
    assert happened.starts() == {"a": 0, "b": 0, "wide": 10, "long": 2}
    found = where(happened)
    assert found["wide"] == found["a"]
    assert found["long"] == found["b"]


def test_who_would_delay_the_first_one_on_the_best_node_gets_another_one() -> None:
    """By its score `long` belongs onto the emptier n1, which alone can hold `first`; n2 will do."""
    cluster = Cluster(
        nodes=frozen(
            {
                "n1": Node("n1", frozen({"cpu": 8}), labels=frozen({"pool": "big"})),
                "n2": Node("n2", frozen({"cpu": 4}), labels=frozen({"pool": "small"})),
            }
        )
    )
    jobs = Batch().asks("runs", pod_sets=selecting("big", cpu=2), seconds=10)
    jobs.asks("first", at=1, cpu=8, seconds=5).asks("long", at=2, cpu=1, seconds=50)
    alone = Batch().asks("runs", pod_sets=selecting("big", cpu=2), seconds=10).asks("long", at=2, cpu=1)
    happened = backfilled(jobs, cluster)
    assert happened.starts() == {"runs": 0, "first": 10, "long": 2}
    assert where(happened)["long"] == ["n2"]
    assert where(backfilled(alone, cluster))["long"] == ["n2"]


@pytest.mark.parametrize("algorithm", ["easy", "conservative"])
def test_jobs_that_select_other_nodes_pass_without_delaying_anybody(algorithm: str) -> None:
    """The first waits for pool a; one of pool b starts however long it runs, one of pool a does not."""
    jobs = Batch().asks("runs", pod_sets=selecting("a", cpu=1), seconds=10)
    jobs.asks("first", at=1, pod_sets=selecting("a"), seconds=10)
    jobs.asks("other", at=2, pod_sets=selecting("b"), seconds=100)
    jobs.asks("same", at=3, pod_sets=selecting("a", cpu=1), seconds=100)
    happened = backfilled(jobs, labelled(n1="a", n2="b"), algorithm=algorithm)
    assert happened.starts() == {"runs": 0, "first": 10, "other": 2, "same": 20}


@pytest.mark.parametrize("algorithm", ["easy", "conservative"])
def test_a_reservation_is_for_no_certain_nodes(algorithm: str) -> None:
    """`two` is to start at 10, on n1 first of all; `long` takes that when it comes free early."""
    jobs = Batch().asks("a", cpu=1, seconds=5, requested=10).asks("b", cpu=1, seconds=10)
    jobs.asks("c", cpu=1, seconds=10).asks("two", at=1, cpu=1, pods=2, seconds=5)
    jobs.asks("long", at=2, cpu=1, seconds=30)
    happened = backfilled(jobs, nodes(n1={"cpu": 1}, n2={"cpu": 1}, n3={"cpu": 1}), algorithm=algorithm)
    assert happened.starts() == {"a": 0, "b": 0, "c": 0, "two": 10, "long": 5}
    assert where(happened)["long"] == ["n1"]
    assert where(happened)["two"] == ["n2", "n3"]


def test_taints_keep_pods_away_from_now_and_from_later() -> None:
    """The only free node is tainted: who does not tolerate it has its reservation on the other."""
    taint = Taint("gpu", "", "NoSchedule")
    cluster = Cluster(
        nodes=frozen(
            {"n1": Node("n1", frozen({"cpu": 2}), taints=(taint,)), "n2": Node("n2", frozen({"cpu": 2}))}
        )
    )
    tolerating = selecting("", tolerations=[{"key": "gpu", "operator": "Exists"}])
    jobs = Batch().asks("runs", cpu=2, seconds=10).asks("plain", at=1, cpu=2, seconds=10)
    jobs.asks("special", at=2, pod_sets=tolerating, seconds=100)
    for algorithm in ("easy", "conservative"):
        happened = backfilled(jobs, cluster, algorithm=algorithm)
        assert happened.starts() == {"runs": 0, "plain": 10, "special": 2}
        assert where(happened)["special"] == ["n1"]


def test_the_larger_pods_of_a_job_are_placed_first() -> None:
    """In the order of the pod sets the small one would take the only node that can hold the large one."""
    sets = (PodSet("s", 1, 1, frozen({"cpu": 1})), PodSet("l", 1, 1, frozen({"cpu": 4})))
    jobs = Batch().asks("both", pod_sets=sets)
    happened = backfilled(jobs, nodes(n1={"cpu": 4}, n2={"cpu": 1}))
    assert where(happened) == {"both": ["n2", "n1"]}


def test_pods_of_a_job_that_is_no_gang_start_and_end_together() -> None:
    """All of them or none: the second job waits for two nodes, and the third for all that it held."""
    jobs = Batch().asks("a", cpu=1, seconds=5).asks("two", at=1, cpu=1, pods=2, gang=False, seconds=5)
    jobs.asks("after", at=2, cpu=1, pods=2, gang=False, seconds=5)
    starts = backfilled(jobs, nodes(n1={"cpu": 1}, n2={"cpu": 1})).starts()
    assert starts == {"a": 0, "two": 5, "after": 10}


@pytest.mark.parametrize("algorithm", ["easy", "conservative"])
def test_what_the_nodes_can_never_hold_is_rejected(algorithm: str) -> None:
    """A pod that fits no node, and pods that do not fit together though each would; the others go on."""
    jobs = Batch().asks("huge", cpu=5).asks("many", cpu=2, pods=4).asks("fits", cpu=2, pods=3)
    happened = backfilled(jobs, nodes(n1={"cpu": 4}, n2={"cpu": 3}), algorithm=algorithm)
    states = {name: job.state for name, job in happened.jobs.items()}
    assert states == {"huge": "rejected", "many": "rejected", "fits": "finished"}
    reasons = {row.job: str(row.reason) for row in happened.of("reject")}
    assert "0/2 nodes could run the pod even when empty" in reasons["huge"]
    assert reasons["many"] == "its 4 pods do not fit on the nodes together, even when all nodes are empty"


@pytest.mark.parametrize("algorithm", ["easy", "conservative"])
def test_who_waits_for_a_pod_that_never_comes_holds_back_nobody(algorithm: str) -> None:
    """Its pods have to be near pods of another app; when one of these starts, it does, too."""
    term = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"}
    near = selecting(
        "", cpu=1, affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    )
    named = {
        name: Node(name, frozen({"cpu": 4}), labels=frozen({"kubernetes.io/hostname": name}))
        for name in ("n1", "n2")
    }
    cache = (PodSet("main", 1, 1, frozen({"cpu": 1}), labels=frozen({"app": "cache"})),)
    jobs = Batch().asks("near", pod_sets=near, seconds=5).asks("big", at=1, cpu=4, pods=2, seconds=5)
    jobs.asks("cache", at=20, pod_sets=cache, seconds=50)
    happened = backfilled(jobs, Cluster(nodes=frozen(named)), algorithm=algorithm)
    starts = happened.starts()
    assert starts["big"] == 1
    assert starts["near"] == starts["cache"] == 20
    assert where(happened)["near"] == where(happened)["cache"]


def test_the_first_that_waits_is_told_what_the_nodes_lack() -> None:
    """Once, in kube-scheduler's figures, with the pod that finds no node."""
    jobs = Batch().asks("a", cpu=1, seconds=10).asks("two", at=1, cpu=2, pods=2, seconds=5)
    (row,) = backfilled(jobs, nodes(n1={"cpu": 2}, n2={"cpu": 2})).of("refuse")
    assert (row.job, row.time, row.reason) == ("two", SECOND, "Unschedulable")
    assert row.detail is not None
    assert row.detail["pod"] == "two-1"
    assert row.detail["nodes"] == {"Insufficient cpu": {"count": 2}}


def test_borrowing_means_nothing_on_nodes() -> None:
    """It is refused by name, because quotas do not count there."""
    with pytest.raises(OptionError, match="option borrow has no effect here: the cluster has nodes"):
        backfilled(Batch().asks("a", cpu=1), nodes(n1={"cpu": 1}), borrow="false")


# --- the same as on quotas, where nodes are as good as processors -------------------------------------------


def batch(asked: list[tuple[int, int, int, int]], *, pods: bool) -> Batch:
    """The jobs, named by number in order of arrival; what they ask for are pods, or cpu of one pod."""
    jobs = Batch()
    for number, (at, seconds, size, more) in enumerate(sorted(asked)):
        amount = {"pods": size, "cpu": 1} if pods else {"cpu": size}
        name, user = f"j{number}", f"u{number % 2}"
        jobs.asks(name, at=at, seconds=seconds, requested=seconds + more, priority=more, user=user, **amount)
    return jobs


@examples(50)
@given(JOBS, ALGORITHMS, TIES, ORDERS, st.sampled_from(["requested", "actual", "last-two"]))
def test_whole_nodes_of_one_size_are_given_as_processors_are(
    asked: list[tuple[int, int, int, int]], algorithm: str, ties: str, order: str, estimate: str
) -> None:
    """Every job starts just when it does where the same number of processors is counted."""
    options = {"algorithm": algorithm, "ties": ties, "order": order, "estimate": estimate}
    equal = nodes(**{f"n{number}": {"cpu": 1} for number in range(NODES)})
    placed = backfilled(batch(asked, pods=True), equal, **options)
    assert placed.starts() == backfilled(batch(asked, pods=False), pool(cpu=NODES), **options).starts()


@examples(30)
@given(JOBS, ALGORITHMS, TIES)
def test_one_node_is_a_pool(asked: list[tuple[int, int, int, int]], algorithm: str, ties: str) -> None:
    """Pods of any size on a single node start as within a quota."""
    jobs = batch(asked, pods=False)
    placed = backfilled(jobs, nodes(n1={"cpu": NODES}), algorithm=algorithm, ties=ties)
    assert placed.starts() == backfilled(jobs, pool(cpu=NODES), algorithm=algorithm, ties=ties).starts()


# --- the promises, checked the slow way ---------------------------------------------------------------------

SIZES = {"n1": ("a", 3), "n2": ("b", 2), "n3": ("b", 2)}
"""Node -> its pool and cpu."""

PLACED = st.lists(
    st.tuples(
        st.integers(0, 8),
        st.integers(1, 8),
        st.integers(1, 3),
        st.integers(1, 3),
        st.sampled_from(["a", "b", ""]),
        st.integers(0, 6),
    ),
    min_size=1,
    max_size=9,
)
"""When each arrives, how long it runs, its pods, their cpu and pool, and by how much more it asks for."""

Placed = tuple[int, int, int, int, str, int]


def uneven() -> Cluster:
    """The nodes of `SIZES`."""
    return Cluster(
        nodes=frozen(
            {
                name: Node(name, frozen({"cpu": cpu}), labels=frozen({"pool": pool}))
                for name, (pool, cpu) in SIZES.items()
            }
        )
    )


def placed(jobs: list[Placed]) -> Batch:
    """The jobs, named by number."""
    made = Batch()
    for number, (at, seconds, pods, cpu, label, more) in enumerate(jobs):
        sets = selecting(label, pods=pods, cpu=cpu)
        made.asks(f"j{number}", at=at, seconds=seconds, requested=seconds + more, pod_sets=sets)
    return made


def possible(asked: list[Placed]) -> list[Placed]:
    """Those that the empty nodes can hold, in order of arrival."""
    return [job for job in sorted(asked) if fitting(dict.fromkeys(SIZES, 0), job) >= job[2]]


def fitting(used: dict[str, int], job: Placed) -> int:
    """How many pods of a job have room beside what is used."""
    _, _, _, cpu, pool, _ = job
    return sum((there - used[name]) // cpu for name, (label, there) in SIZES.items() if pool in ("", label))


@examples(40)
@given(PLACED, TIES)
def test_easy_never_delays_the_first_that_waits(asked: list[Placed], ties: str) -> None:
    """It starts no later than the first moment at which its pods fit beside those that ran when it was first.

    Tried at every end that is expected, with every pod that then still runs where it is.
    """
    jobs = possible(asked)
    happened = backfilled(placed(jobs), uneven(), ties=ties)
    starts, spots = happened.starts(), where(happened)
    began = [starts[f"j{number}"] for number in range(len(jobs))]
    for number, job in enumerate(jobs):
        since = max([float(job[0]), *began[:number]])  # from now on it is the first that waits
        ends: dict[float, list[int]] = {since: []}
        for other, (begin, each) in enumerate(zip(began, jobs, strict=True)):
            runs = begin < since < begin + each[1] or (begin == since and begin < began[number])
            if runs:
                ends.setdefault(begin + each[1] + each[5], []).append(other)
        running = [other for others in ends.values() for other in others]
        moments = sorted(end for end in ends if end >= since)
        for moment in moments:
            running = [other for other in running if began[other] + jobs[other][1] + jobs[other][5] > moment]
            used = dict.fromkeys(SIZES, 0)
            for other in running:
                for name in spots[f"j{other}"]:
                    used[name] += jobs[other][3]
            if fitting(used, job) >= job[2]:
                assert began[number] <= moment
                break
        else:
            raise AssertionError("there is always a moment")


@examples(15)
@given(PLACED)
def test_conservative_delays_nobody(asked: list[Placed]) -> None:
    """No job starts later than it would if none came after it and all that runs ended as expected.

    That is what it is promised on arrival. A replay of those that came before, with the run times that are
    known then, says what it is.
    """
    jobs = possible(asked)
    starts = backfilled(placed(jobs), uneven(), algorithm="conservative").starts()
    for number, (at, *_) in enumerate(jobs):
        known = [
            job if starts[f"j{other}"] + job[1] <= at else (job[0], job[1] + job[5], *job[2:5], 0)
            for other, job in enumerate(jobs[: number + 1])
        ]
        promised = backfilled(placed(known), uneven(), algorithm="conservative").starts()[f"j{number}"]
        assert starts[f"j{number}"] <= promised


@examples(30)
@given(PLACED, ALGORITHMS, ORDERS)
def test_no_node_holds_more_than_it_has_and_everybody_starts(
    asked: list[Placed], algorithm: str, order: str
) -> None:
    """Counted from the bindings and the ends."""
    jobs = possible(asked)
    happened = backfilled(placed(jobs), uneven(), algorithm=algorithm, order=order)
    starts, spots = happened.starts(), where(happened)
    assert len(starts) == len(jobs)
    for name, (_, there) in SIZES.items():
        changes = [
            (time, change * jobs[number][3])
            for number in range(len(jobs))
            for spot in spots[f"j{number}"]
            if spot == name
            for time, change in ((starts[f"j{number}"], 1), (starts[f"j{number}"] + jobs[number][1], -1))
        ]
        held = 0
        for (time, change), (after, _) in pairwise([*sorted(changes), (float("inf"), 0)]):
            held += change
            assert held <= there or time == after


@pytest.mark.parametrize("algorithm", ["easy", "conservative"])
def test_random_worlds_with_nodes_are_replayed_without_a_fault(algorithm: str, tmp_path: Any) -> None:
    """Zones, taints, affinities, host ports, several pod sets: checked from outside."""
    worlds = [world for world in map(random_world, range(24)) if not world.pooled][:1]
    assert worlds
    for number, world in enumerate(worlds):
        run = world.replay(
            "backfill", tmp_path / str(number), options={"algorithm": algorithm, "unstated": "1h"}
        )
        assert world.faults(run) == []
