"""How long quotas wait for what is theirs, worked by hand."""

from __future__ import annotations

from collections.abc import Callable

from policies import scripted
from small_clusters import queues

Measured = Callable[..., Callable[..., float | None]]
HALVES = {"a": {"cpu": "2"}, "b": {"cpu": "2"}, "idle": {"cpu": "0"}}
JOBS = (
    {"queue": "a", "request.cpu": 4000, "duration": 10},
    {"queue": "b", "request.cpu": 2000, "duration": 5, "submit_time": 5},
)
"""Of 4 cores a holds all from 0 to 10 s; b asks for its 2 from 5 s on and has them from 10 to 15 s."""


def test_from_asking_for_what_is_its_own_to_having_it(measured: Measured) -> None:
    """`a` has its own at once and b after 5 s; of both the median lies between."""
    value = measured(*JOBS, cluster=queues(HALVES))
    assert value("reclaim_latency.p50", "quota=a") == 0
    assert value("reclaim_latency.p95", "quota=b") == 5
    assert value("reclaim_latency.p50") == 2.5
    assert value("reclaim_latency.p50", "quota=idle") is None


def test_what_still_waits_at_the_end_has_waited_so_far(measured: Measured) -> None:
    """Of two episodes one is over at once, and the other has lasted 3 of 8 s: the median lies between."""
    value = measured(*JOBS, cluster=queues(HALVES), until="8s")
    assert value("reclaim_latency.p50") == 1.5
    assert value("reclaim_latency.max") == value("reclaim_latency.p50", "quota=b") == 3
    assert value("reclaim.owed", "quota=b") == 3 / 8
    assert value("reclaim.owed", "quota=a") == value("reclaim.owed", "quota=idle") == 0


def test_what_is_served_and_reopens_at_one_instant_is_one_episode(measured: Measured) -> None:
    """`y` arrives as `x` starts, 5 s after that had asked: the quota has waited for 9 s when `y` starts."""
    jobs = [
        {"job_id": name, "queue": "a", "submit_time": at, "duration": 20} for name, at in (("x", 0), ("y", 5))
    ]
    steps = {5: [("admit", "x")], 9: [("admit", "y")]}
    value = measured(*jobs, cluster=queues(HALVES), plugin=scripted(steps))
    assert value("reclaim_latency.p50") == value("reclaim_latency.max") == 9
    assert value("reclaim.owed", "quota=a") == 9 / 29


def test_beyond_its_own_quota_nothing_is_waited_for(measured: Measured) -> None:
    """`a` holds its 2 cores; that it asks for 2 more, and waits for them, is none of it."""
    jobs = [{"job_id": name, "queue": "a", "request.cpu": 2000, "duration": 10} for name in "xy"]
    value = measured(
        *jobs, cluster=queues(HALVES), plugin=scripted({0: [("admit", "x")], 9: [("admit", "y")]})
    )
    assert value("reclaim_latency.p95", "quota=a") == 0


def test_what_a_partial_admission_gives_up_is_not_asked_for(measured: Measured) -> None:
    """Three pods of one core are admitted with two of them, which run; the quota has what is its own."""
    job = {"queue": "a", "pods": 3, "min_pods": 2, "duration": 10}
    later = {"queue": "a", "submit_time": 20}
    value = measured(
        job, later, cluster=queues({"a": {"cpu": "2"}}), plugin="kueue-classic", grace_period="0s"
    )
    assert value("reclaim_latency.p95") == 0


def test_a_quota_holds_what_the_pod_sets_that_run_ask_for(measured: Measured) -> None:
    """A worker of 3 cores runs, and a launcher of one waits: the quota of 3 has what is its own."""
    jobs = [
        {"job_id": "m", "queue": "a", "pod_set": name, "request.cpu": cpu, "gang": False}
        for name, cpu in (("worker", 3000), ("launcher", 1000))
    ]
    steps = {0: [("bind", "m", 0, "n0")], 10: [("bind", "m", 1, "n0")]}
    cluster = queues({"a": {"cpu": "3"}}, nodes=1)
    value = measured(*jobs, cluster=cluster, plugin=scripted(steps))
    assert value("reclaim_latency.p95", "quota=a") == 0


def test_without_quotas_nothing_is_reclaimed(measured: Measured) -> None:
    """On bare nodes there is no value."""
    value = measured({"queue": "a"}, cluster=queues({}, nodes=1))
    assert value("reclaim_latency.p50") is None
    assert value("reclaim_latency.p50", "queue=a") is None
