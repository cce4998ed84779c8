"""Goodput, backlog, delay, weighted slowdowns and starvation worked by hand on tiny replays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from policies import scripted
from small_clusters import queues

Measured = Callable[..., Callable[..., float | None]]
POOL = queues({"a": {"cpu": "10"}, "b": {"cpu": "10"}})


def job(name: str, queue: str = "a", **fields: Any) -> dict[str, Any]:
    """A job of one core that is gone at once when it is preempted."""
    return {"job_id": name, "queue": queue, "grace_period": 0, "duration": 10, **fields}


def test_goodput_and_backlog(measured: Measured) -> None:
    """X runs 0-4 s in vain and 6-16 s; y of 2 cores never starts; 20 s of 20 cores.

    Useful are 10 core-seconds of 14 allocated, of 400 there were, of 10 + 2 * 30 that jobs need. x waits
    2 s, y 20 s with 2 cores: (2 + 40) / 20 cores wait on average.
    """
    steps = {0: [("admit", "x")], 4: [("preempt", "x", "y")], 6: [("admit", "x")], 20: []}
    jobs = (job("x"), job("y", "b", duration=30, **{"request.cpu": 2000}), job("z", submit_time=30))
    value = measured(*jobs, cluster=POOL, plugin=scripted(steps), until="20s")
    assert value("goodput.of_allocated", resource="cpu") == 10 / 14
    assert value("goodput.of_capacity", resource="cpu") == 10 / 400
    assert value("goodput.of_demand", resource="cpu") == 10 / 70
    assert value("backlog", resource="cpu") == 42 / 20


def test_redone_work_is_delay(measured: Measured) -> None:
    """X of 10 s is over after 16 s: delay 6 s, of which it waited 2 s; y is not delayed."""
    steps = {0: [("admit", "x"), ("admit", "y")], 4: [("preempt", "x", "y")], 6: [("admit", "x")]}
    value = measured(job("x"), job("y", "b"), cluster=POOL, plugin=scripted(steps))
    assert value("delay.mean") == 3
    assert value("delay.p95") == pytest.approx(0.95 * 6, abs=1e-12)
    assert value("delay.p50", "queue=a") == 6
    assert value("delay.mean", "queue=b") == 0


def test_slowdowns_of_queues_and_weighted_by_resource_time(measured: Measured) -> None:
    """a: 20 / 10 s with 1 core; b: 45 / 30 s with 2 cores: (2 * 10 + 1.5 * 60) / 70."""
    steps = {10: [("admit", "x")], 15: [("admit", "y")]}
    jobs = (job("x"), job("y", "b", duration=30, **{"request.cpu": 2000}, priority=3))
    value = measured(*jobs, cluster=POOL, plugin=scripted(steps))
    assert value("slowdown.bounded.mean") == (2 + 1.5) / 2
    assert value("slowdown.bounded.mean", "queue=a") == 2
    assert value("slowdown.bounded.p99", "priority=3") == 1.5
    assert value("slowdown.weighted") == pytest.approx(110 / 70, rel=1e-12)


def test_starvation_is_more_than_a_day_and_ten_times_the_length(measured: Measured) -> None:
    """At 25 h w of 10 s starves; x of 2.5 h waited exactly ten times that, y came 24 h ago, v ran first."""
    hour = 3600
    steps = {0: [("admit", "v")], 10: [], 3 * hour: [], 25 * hour: []}
    jobs = (
        job("v"),
        job("w"),
        job("x", duration=2.5 * hour),
        job("y", "b", submit_time=hour),
        job("z", "b", submit_time=26 * hour),
    )
    value = measured(*jobs, cluster=POOL, plugin=scripted(steps), until="25h")
    assert value("starvation") == 1
    assert value("starvation", "queue=a") == 1
    assert value("starvation", "queue=b") == 0
