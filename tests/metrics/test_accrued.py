"""What jobs have come to that have not started or ended: it counts, and is told to be the least."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from policies import scripted
from small_clusters import queues

import harness
from harness.analysis.metrics.accrued import statistics

Found: TypeAlias = Callable[..., tuple[float | None, bool | None]]
POOL = queues({"a": {"cpu": "4"}, "b": {"cpu": "4"}})
NODES = queues({}, nodes=2)
_LATER = 10**7
"""A second at which the policy wakes, so that there is something that `until` cuts off."""


@pytest.fixture
def found(write_trace: Callable[..., Path], tmp_path: Path) -> Callable[..., Found]:
    """Replays jobs that a script decides about; answers a metric's value, and whether it is the least."""

    def replay(steps: dict[float, list[Any]], *jobs: dict[str, Any], cluster: str, **settings: Any) -> Found:
        path = tmp_path / "cluster.yaml"
        path.write_text(cluster)
        run = harness.replay(
            write_trace(*({"queue": "a", "grace_period": 0, **each} for each in jobs)),
            plugin=scripted({**steps, _LATER: []}),
            cluster=path,
            output=tmp_path / "results",
            **settings,
        )

        def of(metric: str, scope: str = "all", resource: str = "") -> tuple[float | None, bool | None]:
            (row,) = run.metrics.filter(metric=metric, scope=scope, resource=resource).to_dicts()
            return row["value"], row["at_least"]

        return of

    return replay


def test_a_job_that_never_starts_has_waited_until_the_end(found: Callable[..., Found]) -> None:
    """`x` starts at 10 s; `y` of 20 s has waited for 30 s, all of which is delay."""
    jobs = ({"job_id": "x", "duration": 10}, {"job_id": "y", "duration": 20, "queue": "b"})
    of = found({10: [("admit", "x")]}, *jobs, cluster=POOL, until="30s")
    assert of("wait.first_start.mean") == (20, True)
    assert of("wait.first_start.p50") == of("wait.first_start.mean")
    assert of("wait.first_start.max", "queue=a") == (10, False)
    assert of("delay.mean") == (20, True)
    assert of("jct.mean") == ((20 + 30 + 20) / 2, True)
    assert of("slowdown.bounded.mean", "queue=b") == (2.5, True)
    assert of("slowdown.weighted") == ((2 * 10 + 2.5 * 20) / 30, True)
    assert of("wait.total.mean") == (20, True)
    assert of("makespan") == (None, False)
    assert of("fairness.max_min_slowdown") == (1.25, None)


def test_a_percentile_below_all_that_goes_on_is_known(found: Callable[..., Found]) -> None:
    """Of waits of 0, 1, 2 and 9 s so far: half lies between 1 and 2 s, 95 of 100 between 2 and 9 s."""
    jobs = [{"job_id": name, "duration": 5} for name in "wxyz"]
    of = found({second: [("admit", "wxy"[second])] for second in range(3)}, *jobs, cluster=POOL, until="9s")
    assert of("wait.first_start.p50") == (1.5, False)
    assert of("wait.first_start.p95") == (pytest.approx(2 + 0.85 * 7), True)


def test_a_percentile_can_have_decimals() -> None:
    """Of the waits from 0 to 1000 s, one in a thousand is above 999 s, and only the longest goes on."""
    waits = np.arange(1001)
    assert statistics(waits, waits == 1000, ["p95", "p99_9", "max"]) == [
        (950, False), (999, False), (1000, True)
    ]  # fmt: skip


def test_who_may_start_soon_yet_is_counted_as_not_within(found: Callable[..., Found]) -> None:
    """Half of the jobs started within a minute; the other one can within ten minutes, but not within one."""
    jobs = [{"job_id": name, "duration": 900} for name in "xy"]
    of = found({60: [("admit", "x")]}, *jobs, cluster=POOL, until="90s")
    assert of("wait.within_1m") == (0.5, False)
    assert of("wait.within_10m", "priority=0") == (0.5, True)


def test_a_job_that_is_refused_after_it_waited_stays_unfinished(found: Callable[..., Found]) -> None:
    """It goes on to wait; one that is refused as it arrives counts nowhere but among the refused."""
    jobs = [{"job_id": name, "duration": 10} for name in "xyz"]
    steps = {0: [("reject", "z"), ("admit", "x")], 4: [("reject", "y")]}
    of = found(steps, *jobs, cluster=POOL)
    assert of("wait.first_start.mean") == (5, True)
    assert of("goodput.of_demand", resource="cpu") == (0.5, False)
    assert of("jobs.rejected") == (2, False)
    assert of("makespan") == (10, False)


def test_of_a_gang_that_is_bound_in_part_nothing_is_kept(found: Callable[..., Found]) -> None:
    """One of its two pods holds a node for 8 s: it has the 10 s of its work before it."""
    gang = {"job_id": "g", "pods": 2, "gang": True, "duration": 10}
    of = found({0: [("bind", "g", 0, "n0")]}, gang, cluster=NODES, until="8s")
    assert of("delay.mean") == (8, True)
    assert of("jct.mean") == (18, True)


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ({0: [("bind", "g", 0, "n0")]}, 0),
        ({0: [("bind", "g", 0, "n0")], 3: [("bind", "g", 1, "n1")]}, 5),
        (
            {
                0: [("bind", "g", 0, "n0"), ("bind", "g", 1, "n1")],
                6: [("preempt", "g", None, "X", 0), ("bind", "g", 0, "n0")],
            },
            2,
        ),
    ],
)
def test_of_pods_on_their_own_the_least_advanced_one_counts(
    found: Callable[..., Found], steps: dict[float, list[Any]], kept: int
) -> None:
    """One that has not started has nothing, and one that was evicted 2 s ago what it made since."""
    job = {"job_id": "g", "pods": 2, "gang": False, "duration": 10}
    of = found(steps, job, cluster=NODES, until="8s")
    assert of("delay.mean") == (8 - kept, True)
    assert of("jct.mean") == (8 + 10 - kept, True)


@pytest.mark.parametrize(("until", "kept"), [("25s", 25), ("30s", 20), ("37s", 25)])
def test_a_checkpoint_is_kept_once_an_eviction_begins(
    found: Callable[..., Found], until: str, kept: int
) -> None:
    """Every 10 s: all of 25 s while it runs, and 20 s from the eviction at 28 s on; from 32 s it goes on."""
    steps = {0: [("admit", "x")], 28: [("preempt", "x", None)], 32: [("admit", "x")]}
    job = {"job_id": "x", "duration": 100, "grace_period": 3}
    of = found(steps, job, cluster=POOL, until=until, on_preemption="checkpoint=10s")
    assert of("delay.mean") == (int(until[:-1]) - kept, True)


def test_who_starts_after_a_week_starves(found: Callable[..., Found]) -> None:
    """Of three jobs of a month one starts after eight days, and one has not started after nine."""
    day = 86_400
    jobs = [{"job_id": name, "duration": 30 * day} for name in "xyz"]
    of = found({0: [("admit", "z")], 8 * day: [("admit", "x")]}, *jobs, cluster=POOL, until="9d")
    assert of("starvation") == (2, False)


def test_a_victim_that_is_refused_does_not_wait_to_run_again(found: Callable[..., Found]) -> None:
    """Of two victims one is refused, and the other has waited for 6 s."""
    steps = {0: [("admit", "x"), ("admit", "y")], 2: [("preempt", "x", "p"), ("preempt", "y", "p")]}
    of = found(
        {**steps, 3: [("reject", "y")]}, *({"job_id": name} for name in "xyp"), cluster=POOL, until="8s"
    )
    assert of("disruption.time_to_restart.p95") == (6, True)


def test_only_a_job_that_preempted_itself_is_rework(found: Callable[..., Found]) -> None:
    """Within one queue: `y` hits back at `x`, which had preempted it; that it preempts `z` is none."""
    steps = {
        0: [("admit", "y"), ("admit", "z")],
        1: [("preempt", "y", "x"), ("admit", "x")],
        2: [("preempt", "x", "y"), ("preempt", "z", "y")],
    }
    of = found(steps, *({"job_id": name, "duration": 60} for name in "xyz"), cluster=POOL, until="9s")
    assert of("disruption.rework") == (1, False)


def test_what_hits_back_at_the_same_instant_is_neither_rework_nor_thrash(found: Callable[..., Found]) -> None:
    """Two jobs of two queues take turns within an instant, and once more a second later."""
    turn = [("admit", "x"), ("preempt", "x", "y"), ("admit", "y"), ("preempt", "y", "x")]
    jobs = ({"job_id": "x", "duration": 60}, {"job_id": "y", "duration": 60, "queue": "b"})
    assert found({0: turn}, *jobs, cluster=POOL, until="9s")("disruption.thrash") == (0, False)
    assert found({0: turn, 1: turn}, *jobs, cluster=POOL, until="9s")("disruption.thrash") == (2, False)
