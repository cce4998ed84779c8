"""Fairness between users, and between quotas over whole days, worked by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from policies import scripted
from small_clusters import queues

from harness.analysis.metrics.inequality import gini, jain

Measured = Callable[..., Callable[..., float | None]]
HOUR = 3600


def test_gini_and_jain_of_a_few_values() -> None:
    """1 and 3: |1 − 3| twice over 2 * 2 * 4, and 16 / (2 * 10); of one that has everything 2/3 and 1/3."""
    assert (gini([1, 3]), jain([1, 3])) == (1 / 4, 0.8)
    assert (gini([0, 5, 0]), jain([0, 5, 0])) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert (gini([2, 2]), jain([2, 2])) == (0, 1)
    assert (gini([0, 0]), jain([])) == (None, None)


def test_users_are_compared_by_the_part_of_their_work_that_became_useful(measured: Measured) -> None:
    """User u asks for 10 + 30 core-seconds and gets 10, v for 10 and gets 10: parts of 1/4 and 1.

    Who it was that the last job is of, the trace does not say.
    """
    jobs = (
        {"job_id": "x", "queue": "a", "user": "u", "duration": 10},
        {"job_id": "y", "queue": "a", "user": "u", "duration": 15, "request.cpu": 2000},
        {"job_id": "z", "queue": "a", "user": "v", "duration": 10},
        {"job_id": "w", "queue": "a", "user": "", "duration": 10},
    )
    steps = {0: [("admit", "x"), ("admit", "z")], 20: []}
    late = {"queue": "a", "user": "late", "submit_time": 99}
    where = queues({"a": {"cpu": "4"}})
    value = measured(*jobs, late, cluster=where, plugin=scripted(steps), until="20s")
    assert value("fairness.gini_users", resource="cpu") == pytest.approx((3 / 4) / (2 * 5 / 4))
    assert value("fairness.jain_users", resource="cpu") == pytest.approx((5 / 4) ** 2 / (2 * (1 + 1 / 16)))


def test_a_user_without_jobs_that_count_has_no_row_and_no_part_in_fairness(measured: Measured) -> None:
    """All jobs of `rejected` are rejected at their arrival, and all of `late` arrive after the window.

    `waits`, whose job never starts, gets nothing of what it asks for, as `later`, who is rejected at 4 s.
    """
    jobs = (
        {"job_id": "x", "queue": "a", "user": "u", "duration": 10},
        {"job_id": "y", "queue": "a", "user": "waits", "duration": 10},
        {"job_id": "z", "queue": "a", "user": "later", "duration": 10},
        {"job_id": "r", "queue": "a", "user": "rejected", "duration": 10},
        {"job_id": "l", "queue": "a", "user": "late", "submit_time": 99},
    )
    steps = {0: [("reject", "r"), ("admit", "x")], 4: [("reject", "z")], 20: []}
    value = measured(*jobs, cluster=queues({"a": {"cpu": "4"}}), plugin=scripted(steps), until="20s")
    for user, part in (("u", 1), ("waits", 0), ("later", 0)):
        assert value("goodput.of_demand", f"user={user}", "cpu") == part
    for user in ("rejected", "late"):
        with pytest.raises(KeyError):
            value("goodput.of_demand", f"user={user}", "cpu")
    assert value("fairness.jain_users", resource="cpu") == pytest.approx(1 / 3)
    assert value("fairness.gini_users", resource="cpu") == pytest.approx(2 / 3)
    assert value("goodput.of_demand", resource="cpu") == pytest.approx(1 / 3)


def test_without_users_nothing_is_compared(measured: Measured) -> None:
    """A trace without them has no value."""
    value = measured({"queue": "a"}, cluster=queues({"a": {"cpu": "4"}}))
    assert value("fairness.gini_users", resource="cpu") is None
    assert value("fairness.jain_users", resource="cpu") is None


def test_who_gets_it_back_within_a_day_was_treated_fairly(measured: Measured) -> None:
    """Queue a holds everything for 12 h and b for the next 12 h, while both ask for everything all the time.

    At every instant half of it is where it should not be and x = (2, 0) or (0, 2); over the day it is even.
    On the second day a has everything for its 6 h.
    """
    jobs = (
        {"job_id": "x", "queue": "a", "duration": 12 * HOUR},
        {"job_id": "y", "queue": "b", "duration": 12 * HOUR},
        {"job_id": "more", "queue": "a", "duration": 12 * HOUR},
        {"job_id": "last", "queue": "b", "duration": 12 * HOUR},
        {"job_id": "late", "queue": "b", "submit_time": 99 * HOUR},
    )
    steps = {0: [("admit", "x")], 12 * HOUR: [("admit", "y")], 24 * HOUR: [("admit", "more")], 30 * HOUR: []}
    where = queues({"a": {"cpu": "1"}, "b": {"cpu": "0"}})
    value = measured(*jobs, cluster=where, plugin=scripted(steps), until="30h")
    assert value("fairness.share_deviation") == pytest.approx(1 / 2)
    assert value("fairness.jain_share") == pytest.approx(1 / 2)
    assert value("fairness.share_deviation_daily") == pytest.approx(1 / 2 * 6 / 30)
    assert value("fairness.jain_share_daily") == pytest.approx((24 * 1 + 6 / 2) / 30)
    assert value("fairness.gini_share_daily") == pytest.approx(6 / 2 / 30)
