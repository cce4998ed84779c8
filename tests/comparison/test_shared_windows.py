"""Runs that end at different times: what each of them is measured over, and of which jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from policies import scripted
from small_clusters import queues

import harness

ONE = queues({"a": {"cpu": "1"}}, nodes=1)
POOL = queues({"a": {"cpu": "4"}})


@pytest.fixture
def replayed(write_trace: Callable[..., Path], tmp_path: Path) -> Callable[..., harness.Run]:
    """Replays jobs of a queue with a core each, which are gone at once when they are evicted."""

    def run(label: str, *jobs: dict[str, Any], cluster: str = POOL, **settings: Any) -> harness.Run:
        path = tmp_path / "cluster.yaml"
        path.write_text(cluster)
        trace = write_trace(*({"queue": "a", "grace_period": 0, **each} for each in jobs))
        return harness.replay(trace, cluster=path, label=label, output=tmp_path / "results", **settings)

    return run


def values(comparison: harness.Comparison, metric: str) -> list[float | None]:
    """What all runs have of a metric of everything."""
    (row,) = comparison.rows(metric)
    return row.values


def test_a_run_that_ends_two_seconds_earlier_takes_nothing_from_another(
    replayed: Callable[..., harness.Run],
) -> None:
    """One server, jobs of 100 s and 1,000 s, which start up for 1 s each in one run: 99.8 %, not 9.1 %."""
    jobs = [
        {"job_id": name, "duration": time, "request.cpu": 3000} for name, time in (("x", 100), ("y", 1000))
    ]
    runs = [
        replayed(label, *jobs, cluster=ONE.replace("'1'", "'3'"), plugin="kueue-classic", startup=startup)
        for label, startup in (("at-once", "0s"), ("later", "1s"))
    ]
    assert runs[1].window.end - runs[0].window.end == 2_000_000
    comparison = harness.compare(runs)
    assert values(comparison, "goodput.of_allocated") == [1, pytest.approx(1098 / 1100, abs=1e-12)]
    assert values(comparison, "utilization.unfinished") == [0, 0]


def test_a_run_that_is_cut_cuts_all_others(replayed: Callable[..., harness.Run]) -> None:
    """At 5 s: jobs that come later count in none, and those that go on have come as far in both."""
    jobs = [
        {"job_id": "x", "duration": 10},
        {"job_id": "y", "duration": 3},
        {"job_id": "z", "submit_time": 7},
    ]
    starts = scripted({0: [("admit", "x"), ("admit", "y")], 7: [("admit", "z")]})
    runs = [replayed("whole", *jobs, plugin=starts), replayed("cut", *jobs, plugin=starts, until="5s")]
    comparison = harness.compare(runs)
    for row in comparison.rows(scope=None):
        assert row.values[0] == row.values[1], row.measured
        assert row.at_least[0] == row.at_least[1], row.measured
    assert values(comparison, "jobs.finished") == [1, 1]
    assert values(comparison, "jct.mean") == [(10 + 3) / 2] * 2
    assert "a run was cut short, so all metrics cover the first 5s" in comparison.table()


def test_what_is_thrown_away_after_the_first_run_has_ended_is_not_finished(
    replayed: Callable[..., harness.Run],
) -> None:
    """Of 10 s that `x` ran by then it keeps nothing; what it makes later is beyond the window."""
    jobs = [{"job_id": "x", "duration": 10}, {"job_id": "p", "duration": 5}]
    quick = scripted({0: [("admit", "x"), ("admit", "p")]})
    slow = scripted(
        {0: [("admit", "p")], 3: [("admit", "x")], 12: [("preempt", "x", None, "Drained"), ("admit", "x")]}
    )
    comparison = harness.compare(
        [replayed("quick", *jobs, plugin=quick), replayed("slow", *jobs, plugin=slow)]
    )
    assert comparison.window == (0, 10_000_000)
    span = 4 * 10
    assert values(comparison, "utilization.useful") == [15 / span, 5 / span]
    assert values(comparison, "utilization.unfinished") == [0, 7 / span]
    assert values(comparison, "utilization.lost") == [0, 0]
    assert values(comparison, "disruption.lost") == [0, pytest.approx(9 / 3600)]


def test_a_job_that_its_run_left_goes_on_to_wait(replayed: Callable[..., harness.Run]) -> None:
    """Until the last run ends, at 20 s: 20 s and 0 s, and of ten seconds' work a delay of 20 s."""
    jobs = [{"job_id": "x", "duration": 10}, {"job_id": "y", "duration": 10}]
    left = scripted({0: [("admit", "x")]})
    late = scripted({0: [("admit", "x")], 10: [("admit", "y")]})
    comparison = harness.compare([replayed("left", *jobs, plugin=left), replayed("late", *jobs, plugin=late)])
    assert values(comparison, "wait.first_start.max") == [20, 10]
    assert values(comparison, "delay.mean") == [10, 5]
    (row,) = comparison.rows("wait.first_start.mean")
    assert (row.values, list(row.at_least)) == ([10, 5], [True, False])
    assert values(comparison, "makespan") == [None, 20]


def test_a_job_that_one_run_refuses_at_once_counts_in_none(replayed: Callable[..., harness.Run]) -> None:
    """What it waits where it runs counts neither; of the other job all is done in both."""
    jobs = [{"job_id": "x", "duration": 10}, {"job_id": "y", "duration": 10}]
    runs = [
        replayed("refuses", *jobs, plugin=scripted({0: [("reject", "x"), ("admit", "y")]})),
        replayed("runs", *jobs, plugin=scripted({0: [("admit", "y")], 4: [("admit", "x")]})),
    ]
    comparison = harness.compare(runs)
    assert values(comparison, "wait.first_start.max") == [0, 0]
    assert values(comparison, "goodput.of_demand") == [1, 1]
    assert values(comparison, "jobs.rejected") == [1, 0]
