"""What queues hold, wait for and hold quota for, after every change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from policies import scripted
from small_clusters import queues

import harness

QUOTAS = {"default": {"cpu": "8"}}


@pytest.fixture
def levels(tmp_path: Path, write_trace: Callable[..., Path]) -> Callable[..., list[tuple[float, ...]]]:
    """Replays jobs by a script; answers second, allocated, pending, held, jobs holding and waiting."""

    def play(
        steps: dict[float, list[tuple[Any, ...]]], *rows: Any, nodes: int = 0
    ) -> list[tuple[float, ...]]:
        (tmp_path / "cluster.yaml").write_text(queues(QUOTAS, nodes=nodes))
        run = harness.replay(
            write_trace(*rows),
            plugin=scripted(steps),
            cluster=tmp_path / "cluster.yaml",
            output=tmp_path / "results",
        )
        table = run.micros("timeline").collect()
        return [
            (row["time"] / 10**6, *(row[name] / 1000 for name in ("allocated", "pending", "held")),
             row["running_jobs"], row["pending_jobs"])
            for row in table.iter_rows(named=True)
        ]  # fmt: skip

    return play


def test_without_nodes_an_admitted_job_is_pending_until_it_starts(levels: Callable[..., Any]) -> None:
    """The victim holds 6 cores and its quota until it is gone at 12 s; both count for the queue meanwhile."""
    victim = {"job_id": "victim", "request.cpu": 6000, "duration": 50, "grace_period": 7}
    steps = {0: [("admit", "victim")], 5: [("preempt", "victim", "next"), ("admit", "next")]}
    assert levels(steps, victim, {"job_id": "next", "request.cpu": 4000, "submit_time": 5}) == [
        (0, 6, 0, 6, 1, 0),
        (5, 6, 4, 10, 1, 1),
        (12, 4, 6, 4, 1, 1),
        (22, 0, 6, 0, 0, 1),
    ]


def test_many_jobs_of_one_instant_are_all_counted(levels: Callable[..., Any]) -> None:
    """What moves by one a job is added up beyond what the columns of single decisions could hold."""
    rows = [{"job_id": f"j{number}", "request.cpu": 1000, "duration": 5} for number in range(300)]
    assert levels({0: []}, *rows) == [(0, 0, 300, 0, 0, 300)]


def test_evicted_before_it_started_it_gives_its_quota_back_at_once(levels: Callable[..., Any]) -> None:
    """Of two pods one was admitted; all of it is pending before, in between and after."""
    victim = {"job_id": "victim", "request.cpu": 6000, "duration": 50, "grace_period": 7}
    part = {"job_id": "part", "request.cpu": 4000, "submit_time": 5, "pods": 2, "min_pods": 1, "gang": True}
    steps = {
        0: [("admit", "victim")],
        5: [("preempt", "victim", "part"), ("admit", "part", {"main": 1})],
        6: [("preempt", "part", None)],
    }
    assert levels(steps, victim, part) == [
        (0, 6, 0, 6, 1, 0),
        (5, 6, 4, 10, 1, 1),
        (6, 6, 8, 6, 1, 1),
        (12, 0, 14, 0, 0, 2),
    ]


def test_with_nodes_quota_is_held_by_pods_that_are_not_bound_too(levels: Callable[..., Any]) -> None:
    """Two pods of three cores: one is bound, and both give their quota back when it is gone."""
    gang = {"job_id": "gang", "request.cpu": 3000, "pods": 2, "gang": True, "grace_period": 7}
    steps = {0: [("admit", "gang"), ("bind", "gang", 0, "n0")], 5: [("preempt", "gang", None)]}
    assert levels(steps, gang, nodes=2) == [(0, 3, 3, 6, 1, 0), (12, 0, 6, 0, 0, 1)]


def test_pods_that_end_one_by_one_give_quota_back_one_by_one(levels: Callable[..., Any]) -> None:
    """Two of three pods end; admitted again, the job holds quota for the third alone."""
    pods = {"job_id": "pods", "request.cpu": 2000, "pods": 3, "gang": False, "grace_period": 0, "duration": 4}
    steps = {
        0: [("admit", "pods"), ("bind", "pods", 0, "n0"), ("bind", "pods", 1, "n0")],
        5: [("preempt", "pods", None)],
        6: [("admit", "pods"), ("bind", "pods", 2, "n0")],
    }
    assert levels(steps, pods, nodes=2) == [
        (0, 4, 2, 6, 1, 0),
        (4, 0, 2, 2, 0, 1),
        (5, 0, 2, 0, 0, 1),
        (6, 2, 0, 2, 1, 0),
        (10, 0, 0, 0, 0, 0),
    ]
