"""Jobs that have not started or finished are censored: Kaplan and Meier's estimate, worked by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from policies import Greedy, scripted
from small_clusters import queues

from harness.metrics.survival import estimate
from harness.policy import Decision, Reject

Measured = Callable[..., Callable[..., float | None]]
STATISTICS = ("mean", "p25", "p50", "p90", "max")


def figures(ended: Sequence[float], so_far: Sequence[float]) -> tuple[float | None, ...]:
    """The statistics of times of which some have not ended."""
    known = [True] * len(ended) + [False] * len(so_far)
    return tuple(estimate(np.array([*ended, *so_far]), np.array(known), STATISTICS))


def test_what_is_censored_counts_as_the_rest_of_those_that_are_longer() -> None:
    """1, 2+, 3, 4: after 1 s 3/4 are longer, after 3 s 3/4 * 1/2; the mean is 1/4 * 1 + 3/8 * 3 + 3/8 * 4."""
    assert figures([1, 3, 4], [2]) == (2.875, 1, 3, 4, 4)


def test_a_quantile_that_is_not_reached_is_null() -> None:
    """1, 2, 3+, 5+: half is longer than 2, for nobody knows how long; at least as long as 5 in the mean."""
    assert figures([1, 2], [3, 5]) == (pytest.approx(1 / 4 + 2 / 4 + 5 / 2), 1, 2, None, None)


def test_what_ends_does_so_before_equal_times_are_censored() -> None:
    """2, 2+, 2: at 2 a third is left, whatever comes first; all count as 2."""
    assert figures([2, 2], [2]) == (2, 2, 2, None, None)


def test_of_what_never_ends_only_a_least_mean_is_known() -> None:
    """5+ and 7+ are at least 7 long, if what is longer than 5 is like what is longer than 5."""
    assert figures([], [5, 7]) == (7, None, None, None, None)


def test_what_has_not_come_to_the_least_says_nothing() -> None:
    """0, 0, 3 and -5+ are 0, 0 and 3; of -5+ and -2+ alone all that is known is that they are at least 0."""
    assert figures([0, 0, 3], [-5]) == (pytest.approx(1), 0, 0, 3, 3)
    assert figures([], [-5, -2]) == (0, None, None, None, None)
    assert estimate(np.array([0.25, 0.5]), np.array([False, False]), ("mean",), least=1) == [1]


ONE = queues({"a": {"cpu": "1"}, "b": {"cpu": "0"}})
JOBS = [{"job_id": name, "queue": "ab"[name == "z"], "grace_period": 0} for name in "wxyz"]
LATER = {"job_id": "later", "queue": "a", "submit_time": 60}


class Refusing(Greedy):
    """Refuses a job that is called `y`."""

    def cycle(self, now: int) -> Iterator[Decision]:
        refused = [job for job in self.waiting if job.id == "y"]
        self.waiting = [job for job in self.waiting if job not in refused]
        yield from (Reject(job, "not now") for job in refused)
        yield from super().cycle(now)


def test_leaving_jobs_unfinished_does_not_shorten_waits(measured: Measured) -> None:
    """Four jobs of 10 s on one core until 40 s: one after the other, or the first one and nothing else.

    The waits, and the delays, are 0, 10, 20 and 30 s, or 0 and three of which all that is known is that they
    are longer than 40 s, or 30.
    """
    steps: dict[int, list[tuple[str, ...]]] = {
        10 * place: [("admit", name)] for place, name in enumerate("wxyz")
    }
    works = measured(*JOBS, LATER, cluster=ONE, plugin=scripted(steps), until="40s")
    lazy = measured(*JOBS, LATER, cluster=ONE, plugin=scripted({0: [("admit", "w")], 40: []}), until="40s")
    for metric in ("wait.first_start", "delay"):
        assert (works(f"{metric}.mean"), works(f"{metric}.p50")) == (15, 15)
        assert (lazy(f"{metric}.p50"), lazy(f"{metric}.p95")) == (None, None)
    assert lazy("wait.first_start.mean") == 3 / 4 * 40
    assert lazy("wait.first_start.mean", "queue=b") == 40
    assert lazy("wait.first_start.max") is None
    assert lazy("delay.mean") == 3 / 4 * 30
    assert lazy("jct.mean") == 10 / 4 + 3 / 4 * 40
    assert lazy("slowdown.bounded.mean") == 1 / 4 + 3 / 4 * 4
    assert lazy("slowdown.bounded.p95", "queue=b") is None
    assert [value("wait.never_started") for value in (works, lazy)] == [0, 3 / 4]
    assert lazy("wait.never_started", "queue=b") == 1
    assert lazy("wait.never_started", "priority=0") == 3 / 4


def test_jobs_cut_off_before_their_duration_are_not_slow(measured: Measured) -> None:
    """Of four jobs on four cores three end at once, and the long one runs on at 40 s, as long as it should.

    It may yet come to a slowdown of 1 and a delay of 0, as the others have: nothing is longer.
    """
    jobs = [{**JOBS[place], "duration": 1000 if place == 0 else 20} for place in range(3)]
    jobs.append({"job_id": "z", "queue": "a", "duration": 20, "submit_time": 10})
    value = measured(*jobs, LATER, cluster=queues({"a": {"cpu": "4"}}), until="40s")
    assert [value(f"slowdown.bounded.{name}") for name in ("mean", "p50", "p95", "p99")] == [1, 1, 1, 1]
    assert [value(f"delay.{name}") for name in ("mean", "p50", "p95")] == [0, 0, 0]


def test_a_job_that_lasts_longer_than_it_should_is_slow(measured: Measured) -> None:
    """A job of 15 s that has never started: its slowdown is above 1 from 15 s on, before that it may be 1."""
    jobs = ({**JOBS[0], "duration": 15}, {**JOBS[1], "duration": 5})
    found = []
    for until in (14, 15):
        starts = scripted({0: [("admit", "x")], until: []})
        value = measured(*jobs, LATER, cluster=ONE, plugin=starts, until=f"{until}s")
        found.append((value("slowdown.bounded.p95"), value("delay.p95")))
    assert found == [(1, 0), (None, None)]


def test_where_no_job_has_lasted_its_duration_delays_are_not_below_0(measured: Measured) -> None:
    """Two jobs of 1000 s at 40 s: no delay is 960 s less than nothing, and how many have one is not known."""
    jobs = ({**JOBS[0], "duration": 1000}, {**JOBS[1], "duration": 1000})
    value = measured(*jobs, LATER, cluster=ONE, until="40s")
    assert (value("delay.mean"), value("delay.p50")) == (0, None)
    assert (value("slowdown.bounded.mean"), value("slowdown.bounded.p50")) == (1, None)


def test_refused_jobs_neither_wait_nor_are_late(measured: Measured) -> None:
    """`y` is refused at once; a queue of refused jobs has no share that never started."""
    jobs: list[dict[str, Any]] = [JOBS[0], {**JOBS[3], "job_id": "y"}]
    value = measured(*jobs, cluster=ONE, plugin=Refusing)
    assert value("wait.never_started") == 0
    assert value("jct.mean") == 10
    assert value("wait.never_started", "queue=b") is None
    assert value("slowdown.bounded.mean", "queue=b") is None
