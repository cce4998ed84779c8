"""What follows a preemption: how long it takes, who gets the quota, and loops that slow down."""

from __future__ import annotations

from kueue_worlds import Happened, Jobs, cluster, queue

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
