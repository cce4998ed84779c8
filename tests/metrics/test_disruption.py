"""Disruption worked by hand on tiny replays in which a script decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from policies import scripted
from small_clusters import queues

Measured = Callable[..., Callable[..., float | None]]
POOL = queues({"a": {"cpu": "10"}, "b": {"cpu": "10"}})
NODES = queues({}, nodes=2)


def job(name: str, queue: str = "a", **fields: Any) -> dict[str, Any]:
    """A job of one core that is gone at once when it is preempted."""
    return {"job_id": name, "queue": queue, "grace_period": 0, "duration": 100, **fields}


def test_preemptions_by_reason_and_by_queue(measured: Measured) -> None:
    """Three preemptions: 2 for one reason, 1 for another; victims of a twice; b gains twice.

    1 s: b1 takes from a1 (X), 2 s: a2 takes from b1 (Y), 3 s: b1 takes from a1 again (X).
    An eviction without a preemptor is no preemption.
    """
    steps = {
        0: [("admit", "a1"), ("admit", "a2")],
        1: [("preempt", "a1", "b1", "X"), ("admit", "a1")],
        1.5: [("preempt", "a2", None, "Drained"), ("admit", "b1")],
        2: [("preempt", "b1", "a2", "Y")],
        3: [("preempt", "a1", "b1", "X")],
    }
    value = measured(job("a1"), job("a2"), job("b1", "b"), cluster=POOL, plugin=scripted(steps))
    assert value("disruption.preemptions") == 3
    assert value("disruption.preemptions", "reason=X") == 2
    assert value("disruption.preemptions", "reason=Y") == 1
    assert value("disruption.preemptions", "queue=a") == 2
    assert value("disruption.preemptions", "queue=b") == 1
    assert value("disruption.preemptions", "beneficiary=b") == 2
    assert value("disruption.preemptions", "beneficiary=a") == 1
    assert value("disruption.preempted_jobs") == 2
    assert value("disruption.repeat_victims") == 1
    assert value("disruption.max_preemptions_of_a_job") == 2
    assert value("disruption.preemptions_per_1000_jobs") == 1000 * 3 / 3
    # One core: a1 0-1 s and 1-3 s, a2 0-1.5 s, b1 1.5-2 s.
    assert value("disruption.preemptions_per_1000_hours") == pytest.approx(1000 * 3 / (5 / 3600), rel=1e-12)


def test_only_pods_that_hold_something_are_preempted_pods(measured: Measured) -> None:
    """Of 3 admitted pods of a 2 are bound; none of b's 2 is: 2 pods in 2 preemptions."""
    steps = {
        0: [("admit", "a"), ("bind", "a", 0, "n0"), ("bind", "a", 1, "n0"), ("admit", "b")],
        1: [("preempt", "a", "c"), ("preempt", "b", "c")],
    }
    jobs = (job("a", pods=3), job("b", pods=2), job("c"))
    value = measured(*jobs, cluster=NODES, plugin=scripted(steps))
    assert value("disruption.preemptions") == 2
    assert value("disruption.preempted_pods") == 2


def test_a_loss_is_divided_among_the_preemptors_of_one_instant(measured: Measured) -> None:
    """Pods 0 and 1 ran 10 s, 2 ran 4 s; b took 0 and 2, c took 1: 14 and 10 core-seconds."""
    steps = {
        0: [("bind", "v", 0, "n0"), ("bind", "v", 1, "n0")],
        6: [("bind", "v", 2, "n1")],
        10: [("preempt", "v", "b", "X", 0), ("preempt", "v", "c", "X", 1), ("preempt", "v", "b", "X", 2)],
    }
    jobs = (job("v", pods=3, gang=False), job("b", "b"), job("c", "c"))
    value = measured(*jobs, cluster=NODES, plugin=scripted(steps))
    assert value("disruption.lost", resource="cpu") == 24 / 3600
    assert value("disruption.lost", "beneficiary=b", "cpu") == 14 / 3600
    assert value("disruption.lost", "beneficiary=c", "cpu") == 10 / 3600


def test_what_a_gang_loses_is_divided_by_the_pods_that_each_took(measured: Measured) -> None:
    """It progressed 6 s, from the last bind on: 18 core-seconds, 12 for b, which took two pods, 6 for c."""
    steps = {
        0: [("bind", "v", 0, "n0"), ("bind", "v", 1, "n0")],
        4: [("bind", "v", 2, "n1")],
        10: [("preempt", "v", "b", "X", 0), ("preempt", "v", "c", "X", 2), ("preempt", "v", "b", "X", 1)],
    }
    jobs = (job("v", pods=3), job("b", "b"), job("c", "c"))
    value = measured(*jobs, cluster=NODES, plugin=scripted(steps))
    assert value("disruption.lost", "beneficiary=b", "cpu") == 12 / 3600
    assert value("disruption.lost", "beneficiary=c", "cpu") == 6 / 3600


def test_a_gang_taken_apart_pod_by_pod_is_no_ping_pong(measured: Measured) -> None:
    """A half-bound gang loses pod 0, then pod 1: nothing came back. Pod 0 bound again and taken again: 1."""
    steps = {
        0: [("bind", "v", 0, "n0"), ("bind", "v", 1, "n0")],
        1: [("preempt", "v", "b", "X", 0)],
        2: [("preempt", "v", "b", "X", 1)],
        3: [("bind", "v", 0, "n0")],
        4: [("preempt", "v", "b", "X", 0)],
    }
    value = measured(job("v", pods=3), job("b", "b"), cluster=NODES, plugin=scripted(steps))
    assert value("disruption.preemptions") == 3
    assert value("disruption.ping_pong") == 1


def test_pods_of_one_preemption_count_once(measured: Measured) -> None:
    """Two pods of a job for one preemptor at one instant are one preemption; at the next it is another."""
    steps = {
        0: [("bind", "a", 0, "n0"), ("bind", "a", 1, "n0"), ("bind", "a", 2, "n0")],
        1: [("preempt", "a", "b", "X", 0), ("preempt", "a", "b", "X", 1)],
        2: [("preempt", "a", "b", "X", 2)],
    }
    jobs = (job("a", pods=3, gang=False), job("b", "b", pods=1, gang=False))
    value = measured(*jobs, cluster=NODES, plugin=scripted(steps))
    assert value("disruption.preemptions") == 2
    assert value("disruption.preempted_pods") == 3
    assert value("disruption.preempted_jobs") == 1


def test_victims_per_preemptor(measured: Measured) -> None:
    """One took 3 and one took 1: mean 2, p95 = 1 + 0.95 * (3 - 1) = 2.9, most 3."""
    steps = {
        0: [("admit", name) for name in "rstu"],
        1: [("preempt", name, "x") for name in "rst"] + [("preempt", "u", "y")],
    }
    value = measured(*(job(name) for name in "rstuxy"), cluster=POOL, plugin=scripted(steps))
    assert value("disruption.victims_per_preemptor.mean") == 2
    assert value("disruption.victims_per_preemptor.p95") == pytest.approx(2.9, abs=1e-12)
    assert value("disruption.victims_per_preemptor.max") == 3


def test_a_cascade_is_forgotten_after_a_mean_duration(measured: Measured) -> None:
    """Mean duration 10 s: x takes from w 10 s after it was preempted, depth 1; z 11 s after it was, 0."""
    steps = {
        0: [("admit", name) for name in "xzwv"],
        1: [("preempt", "x", "y"), ("preempt", "z", "y")],
        11: [("preempt", "w", "x")],
        12: [("preempt", "v", "z")],
    }
    jobs = (job(name, duration=duration) for name, duration in zip("vwxyz", (20, 20, 4, 2, 4), strict=True))
    value = measured(*jobs, cluster=POOL, plugin=scripted(steps))
    assert value("disruption.cascade_depth.max") == 1
    assert value("disruption.cascade_depth.mean") == 1 / 4


def test_cascades_follow_the_latest_preemption_of_the_preemptor(measured: Measured) -> None:
    """Depths 0, 1, 2, 0, 1: mean 4 / 5, most 2.

    1 s: y takes from x: y was never preempted, 0.    2 s: x takes from w: 0 + 1.
    3 s: w takes from v: 1 + 1.                       4 s: z takes from x: z was never preempted, 0.
    5 s: x takes from u: its latest preemption is the one at 4 s, 0 + 1.
    """
    steps = {
        0: [("admit", name) for name in "xwvu"],
        1: [("preempt", "x", "y"), ("admit", "x")],
        2: [("preempt", "w", "x")],
        3: [("preempt", "v", "w")],
        4: [("preempt", "x", "z")],
        5: [("preempt", "u", "x")],
    }
    value = measured(*(job(name) for name in "uvwxyz"), cluster=POOL, plugin=scripted(steps))
    assert value("disruption.cascade_depth.mean") == 4 / 5
    assert value("disruption.cascade_depth.max") == 2


def test_thrash_is_hitting_back_within_a_mean_duration(measured: Measured) -> None:
    """Mean duration 10 s. Only what comes within it, and the other way round, counts: 2 times.

    1 s:  b takes from a.
    11 s: a takes from b, exactly 10 s after b took from a: 1.
    12 s: a takes from b again, 11 s after b took from a: not again.
    13 s: b takes from a, 1 s after a took from b: 2.
    14 s: c takes from a: a never took from c.
    """
    jobs = [
        job(name, queue, duration=10)
        for name, queue in zip(["a1", "a2", "b1", "b2", "c1"], "aabbc", strict=True)
    ]
    steps = {
        0: [("admit", "a1")],
        1: [("preempt", "a1", "b2")],
        9: [("admit", "a2"), ("admit", "b1"), ("admit", "b2")],
        11: [("preempt", "b1", "a1")],
        12: [("preempt", "b2", "a1")],
        13: [("preempt", "a2", "b1"), ("admit", "a2")],
        14: [("preempt", "a2", "c1")],
    }
    cluster = queues({name: {"cpu": "10"} for name in "abc"})
    value = measured(*jobs, cluster=cluster, plugin=scripted(steps))
    assert value("disruption.preemptions") == 5
    assert value("disruption.thrash") == 2
    assert value("disruption.rework") == 0


def test_hitting_back_within_a_queue_is_rework(measured: Measured) -> None:
    """Mean duration 100 s: y takes from x, x from y a second later, both of one queue."""
    steps = {0: [("admit", "x")], 1: [("preempt", "x", "y"), ("admit", "y")], 2: [("preempt", "y", "x")]}
    value = measured(job("x"), job("y"), cluster=POOL, plugin=scripted(steps))
    assert value("disruption.thrash") == 0
    assert value("disruption.rework") == 1


def test_the_mean_duration_is_of_jobs_that_have_not_arrived_too(measured: Measured) -> None:
    """Of 2 and 200 s it is 101 s, though the second job comes after the end: 50 s later is within it."""
    steps = {0: [("admit", "x")], 1: [("preempt", "x", "y"), ("admit", "y")], 51: [("preempt", "y", "x")]}
    jobs = (job("x", duration=2), job("y", "b", duration=101), job("z", submit_time=70, duration=200))
    value = measured(*jobs, cluster=POOL, plugin=scripted(steps), until="60s")
    assert value("disruption.thrash") == 1


def test_time_to_restart(measured: Measured) -> None:
    """From preemption to progress: x 2 s, y 6 s; z never, which is 106 s when y, and the run, have ended."""
    steps = {
        0: [("admit", name) for name in "xyz"],
        1: [("preempt", name, "p") for name in "xyz"],
        3: [("admit", "x")],
        7: [("admit", "y")],
    }
    value = measured(*(job(name) for name in "pxyz"), cluster=POOL, plugin=scripted(steps))
    assert value("disruption.time_to_restart.p50") == 6
    assert value("disruption.time_to_restart.p95") == pytest.approx(6 + 0.9 * 100, abs=1e-12)
    assert value("disruption.not_restarted") == 1


def test_a_job_runs_again_when_it_progresses(measured: Measured) -> None:
    """Loading its checkpoint takes 3 s: preempted at 5 s, admitted at 6 s, running at 9 s."""
    steps = {0: [("admit", "x")], 5: [("preempt", "x", "p")], 6: [("admit", "x")]}
    jobs = (job("x"), job("p"))
    losses = "checkpoint=1s,restore=3s"
    value = measured(*jobs, cluster=POOL, plugin=scripted(steps), on_preemption=losses)
    assert value("disruption.time_to_restart.p50") == 4


def test_a_preemption_of_pods_is_over_when_all_are_back(measured: Measured) -> None:
    """Independent pods 0 and 1 go at 1 s and are bound again at 2 and 5 s: 4 s; pod 2 is another matter."""
    steps = {
        0: [("bind", "a", 0, "n0"), ("bind", "a", 1, "n0")],
        1: [("preempt", "a", "b", "X", 0), ("preempt", "a", "b", "X", 1)],
        2: [("bind", "a", 0, "n0"), ("bind", "a", 2, "n1")],
        5: [("bind", "a", 1, "n1")],
    }
    jobs = (job("a", pods=3, gang=False), job("b", "b", pods=1, gang=False))
    value = measured(*jobs, cluster=NODES, plugin=scripted(steps))
    assert value("disruption.time_to_restart.p50") == 4
    assert value("disruption.not_restarted") == 0


def test_ping_pong(measured: Measured) -> None:
    """Two loops of victim v, which holds 2 cores and 3 GPUs for 5 s of grace in each.

    0 s: v progresses until p preempts it at 10 s; it is gone at 15 s.
    20 s: v is admitted and at once preempted again for p: neither had progressed since 10 s. 1.
    30 s: the same for q, of p's queue. 2. What v held from 20 to 30 s: 2 cores for 5 s, as from 10 to 20 s.
    40 s: v is admitted, progresses, and goes at 41 s: no loop.
    50 s: v is admitted and goes for w, of another queue: no loop.
    60 s: w progresses until 61 s, v goes for it at 62 s without progress of its own: no loop.
    """
    steps = {
        0: [("admit", "v")],
        10: [("preempt", "v", "p")],
        20: [("admit", "v"), ("preempt", "v", "p")],
        30: [("admit", "v"), ("preempt", "v", "q")],
        40: [("admit", "v")],
        41: [("preempt", "v", "p")],
        50: [("admit", "v"), ("preempt", "v", "w")],
        60: [("admit", "w")],
        62: [("admit", "v"), ("preempt", "v", "u")],
    }
    jobs = [job("v", grace_period=5, **{"request.cpu": 2000, "request.gpu": 3})]
    jobs += [job(name, "b") for name in "pq"] + [job("w", "c", duration=1), job("u", "c")]
    cluster = queues({name: {"cpu": "10", "gpu": "4"} for name in "abc"})
    value = measured(*jobs, cluster=cluster, plugin=scripted(steps))
    assert value("disruption.ping_pong") == 2
    assert value("disruption.ping_pong", "queue=a") == 2
    assert value("disruption.ping_pong", "beneficiary=b") == 2
    assert value("disruption.ping_pong_held", resource="cpu") == 2 * 2 * 5 / 3600
    assert value("disruption.ping_pong_held", resource="gpu") == 2 * 3 * 5 / 3600


def test_a_loss_is_divided_by_what_the_pods_that_were_taken_asked_for(measured: Measured) -> None:
    """A gang of a worker of 3 cores and a launcher of one, taken at 10 s by b and by c: 30 and 10 of 40.

    Neither of the two asks for the memory that the third pod held, 5 GiB for 10 s: it is divided by time.
    """
    rows = {"worker": (3000, 0), "launcher": (1000, 0), "cache": (0, 5 * 2**30)}
    jobs = [
        job("m", pod_set=name, gang=True, **{"request.cpu": cpu, "request.memory": memory})
        for name, (cpu, memory) in rows.items()
    ]
    jobs += [job("b", "b"), job("c", "c")]
    steps = {
        0: [("bind", "m", pod, "n0") for pod in range(3)],
        10: [("preempt", "m", "b", "X", 0), ("preempt", "m", "c", "X", 1)],
    }
    value = measured(*jobs, cluster=NODES, plugin=scripted(steps), until="20s")
    lost = {name: value("disruption.lost", f"beneficiary={name}", "cpu") for name in "bc"}
    assert lost == {"b": pytest.approx(30 / 3600), "c": pytest.approx(10 / 3600)}
    assert [value("disruption.lost", f"beneficiary={name}", "memory") for name in "bc"] == [25 / 3600] * 2


def test_budgets_are_counted_as_the_policy_tells(measured: Measured) -> None:
    """A decision that breaks 2 budgets tells so with each of its 2 victims, another breaks 1: 3."""
    both, one = {"pdb_violations": 2, "victims": ["x", "y"]}, {"pdb_violations": 1, "victims": ["z"]}
    steps = {
        0: [("admit", name) for name in "xyz"],
        1: [("preempt", name, "p", "X", None, both) for name in "xy"]
        + [("preempt", "z", "p", "X", None, one)],
    }
    value = measured(*(job(name) for name in "pxyz"), cluster=POOL, plugin=scripted(steps))
    assert value("disruption.pdb_violations") == 3


def test_a_victim_that_is_leaving_breaks_its_budget_once(measured: Measured) -> None:
    """A decision to evict x for a pod of p breaks 1, one to evict y for another tells of x again: 2."""
    first, second = {"pdb_violations": 1, "victims": ["x"]}, {"pdb_violations": 2, "victims": ["x", "y"]}
    steps = {
        0: [("admit", name) for name in "xy"],
        1: [("preempt", "x", "p", "X", None, first), ("preempt", "y", "p", "X", None, second)],
    }
    value = measured(*(job(name) for name in "pxy"), cluster=POOL, plugin=scripted(steps))
    assert value("disruption.pdb_violations") == 2


def test_budgets_that_nobody_tells_of_are_not_known(measured: Measured) -> None:
    """Preemptions that say nothing of budgets give null; without preemptions there are no violations."""
    steps = {0: [("admit", "x")], 1: [("preempt", "x", "p")]}
    jobs = (job("x"), job("p"))
    value = measured(*jobs, cluster=POOL, plugin=scripted(steps), label="silent")
    assert value("disruption.pdb_violations") is None
    value = measured(*jobs, cluster=POOL, plugin=scripted({}), label="peaceful")
    assert value("disruption.pdb_violations") == 0


def test_what_was_lost_by_whom_and_for_whom(measured: Measured) -> None:
    """Queue a loses 1 core for 10 s to b, b loses 2 cores for 5 s to a, and 1 core for 20 s to nobody.

    Held are a1 0-10 s, b1 0-5 s with 2 cores, b2 0-20 s, and nothing after that:
    lost (10 + 10 + 20) of 40 core-seconds.
    """
    steps = {
        0: [("admit", "a1"), ("admit", "b1"), ("admit", "b2")],
        5: [("preempt", "b1", "a2")],
        10: [("preempt", "a1", "b1")],
        20: [("preempt", "b2", None)],
    }
    jobs = [job("a1"), job("a2"), job("b1", "b", **{"request.cpu": 2000}), job("b2", "b")]
    value = measured(*jobs, cluster=POOL, plugin=scripted(steps))
    assert value("disruption.lost", resource="cpu") == 40 / 3600
    assert value("disruption.lost_of_allocated", resource="cpu") == 1
    assert value("disruption.lost", "queue=a", "cpu") == 10 / 3600
    assert value("disruption.lost", "queue=b", "cpu") == 30 / 3600
    assert value("disruption.lost", "beneficiary=b", "cpu") == 10 / 3600
    assert value("disruption.lost", "beneficiary=a", "cpu") == 10 / 3600


def test_without_preemptions_counts_are_zero_and_shapes_are_null(measured: Measured) -> None:
    """Nothing happened, so there is nothing to take a mean of."""
    value = measured(job("x"), cluster=POOL)
    for name in ("preemptions", "preempted_jobs", "preempted_pods", "repeat_victims", "thrash", "ping_pong"):
        assert value(f"disruption.{name}") == 0
    for name in ("victims_per_preemptor.p95", "cascade_depth.mean", "time_to_restart.p50"):
        assert value(f"disruption.{name}") is None
    assert value("disruption.not_restarted") == 0
