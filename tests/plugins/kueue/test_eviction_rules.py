"""What follows a preemption: how long it takes, who gets the quota, and loops that slow down."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import yaml
from kueue_worlds import Happened, Jobs, Manifest, cluster, flavor, manifest, queue

import harness

WITHIN = {"withinClusterQueue": "LowerPriority"}
RECLAIM = {"reclaimWithinCohort": "Any"}


def test_an_eviction_takes_the_grace_period_and_then_the_latency() -> None:
    """The victim keeps its quota until then, and waits again from that very moment."""
    where = cluster(queue("q", cpu=4, preemption=WITHIN))
    jobs = Jobs().add("low", "q", 4, grace=30).add("high", "q", 4, at=5, priority=1, seconds=10)
    happened = Happened(where, jobs, until=60)
    assert happened.lines("preempt", "gone", "admit", "finish") == [
        "0 admit low",
        "5 preempt low by high: InClusterQueue",
        "35 gone low",
        "36 admit high",
        "46 finish high",
        "46 admit low",
    ]
    at_once = Happened(where, jobs, until=60, evictionLatency="0s")
    assert at_once.lines("admit")[1] == "35 admit high"


def test_a_target_that_is_going_already_is_not_evicted_again() -> None:
    """The second preemptor waits for it too, and for nobody else."""
    where = cluster(
        queue("a", cpu=2, preemption=RECLAIM), queue("b", cpu=2, preemption=RECLAIM), queue("c", cpu=0)
    )
    jobs = Jobs().add("theirs", "c", 4, grace=30).add("a0", "a", 2, at=5).add("b0", "b", 2, at=6)
    happened = Happened(where, jobs, until=60)
    assert happened.preemptions == ["theirs by a0: InCohortReclamation"]
    assert happened.lines("admit") == ["0 admit theirs", "36 admit a0", "36 admit b0"]


def test_a_victim_returns_to_its_old_place_in_the_queue() -> None:
    """Its creation time counts, not the time of its eviction: it goes before `later`."""
    where = cluster(queue("q", cpu=4, preemption=WITHIN))
    jobs = Jobs().add("low", "q", 4, seconds=10).add("later", "q", 4, at=1, seconds=10)
    happened = Happened(where, jobs.add("high", "q", 4, at=5, priority=1, seconds=10))
    assert happened.lines("admit") == ["0 admit low", "6 admit high", "16 admit low", "26 admit later"]


def test_a_preemptor_within_its_quota_goes_before_a_victim_that_borrows() -> None:
    """Although the victim is older and more important: no loop arises."""
    where = cluster(queue("a", cpu=4, preemption=RECLAIM), queue("b", cpu=0))
    jobs = Jobs().add("theirs", "b", 4, priority=1).add("mine", "a", 4, at=5)
    happened = Happened(where, jobs)
    assert happened.lines("admit") == ["0 admit theirs", "6 admit mine"]
    assert happened.victims == ["theirs"]


def pinging() -> list[Manifest]:
    """Queues of a ping-pong: `a` borrows from far to admit `mine`, `theirs` of `b` only from near.

    Who borrows from nearer goes first, so the victim takes back what its preemptor freed.
    """
    policy = {"reclaimWithinCohort": "LowerPriority", "borrowWithinCohort": {"policy": "LowerPriority"}}
    return [
        *(manifest("Cohort", name, parentName="root") for name in ("near", "far")),
        queue("a", cohort="near", cpu=2, preemption=policy),
        queue("b", cohort="near", cpu=0),
        queue("c", cohort="far", cpu=1),
    ]


def test_a_loop_of_evictions_doubles_its_latency_up_to_10_minutes() -> None:
    """From 1 s on; each round is recorded with its number, and the replay comes to its end."""
    jobs = Jobs().add("theirs", "b", 1).add("mine", "a", 3, at=5, priority=1)
    happened = Happened(cluster(*pinging()), jobs, until=4000)
    times = [row.time // 10**6 for row in happened.decisions.of("preempt")]
    assert [after - before for before, after in pairwise(times)] == [2**n for n in range(10)] + [600] * 4
    rounds = [(row.detail or {}).get("round") for row in happened.decisions.of("preempt")]
    assert rounds == [None, *range(2, len(times) + 1)]


def test_a_loop_ends_at_every_instant_also_where_evictions_take_no_time() -> None:
    """From the second round on each takes time, 1 s at first."""
    jobs = Jobs().add("theirs", "b", 1, grace=0).add("mine", "a", 3, at=5, priority=1)
    happened = Happened(cluster(*pinging()), jobs, until=4000, evictionLatency="0s")
    times = [row.time // 10**6 for row in happened.decisions.of("preempt")]
    assert [after - before for before, after in pairwise(times)] == [0] + [2**n for n in range(10)] + [
        600
    ] * 4


def test_a_loop_goes_on_where_another_queue_takes_over() -> None:
    """What counts is that the one for which the victim went last was not admitted since."""
    policy = {"reclaimWithinCohort": "LowerPriority", "borrowWithinCohort": {"policy": "LowerPriority"}}
    where = cluster(*pinging(), queue("d", cohort="near", cpu=0, preemption=policy))
    jobs = Jobs().add("theirs", "b", 1).add("mine", "a", 3, at=5, priority=1)
    happened = Happened(where, jobs.add("others", "d", 3, at=9, priority=2), until=100)
    found = [(row.by, (row.detail or {}).get("round", 1)) for row in happened.decisions.of("preempt")]
    assert [number for _, number in found] == list(range(1, 8))
    assert [name for name, _ in found] == ["mine"] * 3 + ["others"] * 4


def test_the_gate_for_preemptors_ends_the_loop() -> None:
    """Its preemptor goes first then."""
    jobs = Jobs().add("theirs", "b", 1).add("mine", "a", 3, at=5, priority=1)
    happened = Happened(cluster(*pinging()), jobs, featureGates="PrioritizePreemptorWorkloads=true")
    assert happened.lines("admit") == ["0 admit theirs", "6 admit mine"]


def test_a_comparison_tells_of_loops(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """How often, between which queues, what they held, and where to read on; a run without says nothing."""
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([flavor(), *pinging()]))
    job = {"duration": 1000, "grace_period": 2}
    trace = write_trace(
        {**job, "queue": "b", "request.cpu": 1000, "priority": 0},
        {**job, "queue": "a", "request.cpu": 3000, "submit_time": 5, "priority": 1},
    )
    run = harness.replay(
        trace, plugin="kueue-classic", cluster=path, output=tmp_path / "results", until="60s"
    )
    told = harness.compare([run]).table()
    assert "5 times a job got resources and lost them again to the same queue" in told
    assert "jobs of b (5) lost them to jobs of a (5), after holding" in told
    calm = harness.replay(trace, plugin="none", cluster=path, output=tmp_path / "results", until="60s")
    assert "again to the same queue" not in harness.compare([calm]).table()
