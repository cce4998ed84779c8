"""Why pods and gangs wait: recorded when it is another reason than before."""

from __future__ import annotations

import pytest
from quota_worlds import Happened, Jobs, cluster, leaf, node, tree

from harness.base.units import SECOND


@pytest.mark.parametrize("pods", [1, 2])
@pytest.mark.parametrize("others", [0, 3])
def test_a_reason_that_comes_back_is_recorded_at_its_first_and_fourth_return(pods: int, others: int) -> None:
    """Quota, nodes, and quota again: each time another job of the quota comes or goes, others wait or not."""
    jobs = Jobs().add("big", "other", 9).add("first", "own", 1, seconds=10)
    for number in range(1 + others):
        jobs.add(f"w{number}", "own", 2 // pods, pods=pods, at=1)
    for number in range(3):
        jobs.add(f"again-{number}", "own", 1, priority=9, at=20 * number + 12, seconds=8)
        jobs.add(f"gone-{number}", "other", 0, at=20 * number + 13, seconds=2)
    quotas = tree(99, leaf("own", 0, 2), leaf("other", 99, 99))
    happened = Happened(cluster(node("n1", 10), quotas), jobs, until=90)
    for number in range(1 + others):
        said = [row for row in happened.decisions.of("refuse") if row.job == f"w{number}"]
        assert [(row.time // SECOND, bool(row.detail and "message" in row.detail)) for row in said] == [
            (1, True),
            (10, False),
            (15, True),
            (40, False),
        ]


def test_pods_of_one_job_that_wait_for_one_reason_say_so_once() -> None:
    """The first is tried and the others are spared that; which of them are tried is no matter."""
    jobs = Jobs().add("big", "q", 4).add("j", "q", 1, pods=3, gang=False, at=1)
    happened = Happened(cluster(node("n1", 4), tree(9, leaf("q", 0, 9))), jobs, until=20)
    assert happened.lines("refuse") == ["1 refuse j"]


def test_what_a_pod_preempted_for_is_a_reason_when_it_comes_back() -> None:
    """Its quota was full, a pod had to go, and another took the place; that it is full again is said."""
    jobs = Jobs().add("victim", "q", 2, grace=10, seconds=5000)
    jobs.add("p", "q", 2, at=1, priority=5, seconds=10)
    jobs.add("high", "q", 2, at=2, priority=9, seconds=40)
    jobs.add("other", "o", 10, at=3, seconds=60)
    jobs.add("last", "q", 2, at=104, priority=9, seconds=5000)
    quotas = tree(99, leaf("q", 0, 2), leaf("o", 99, 99))
    refused = Happened(cluster(node("n1", 10), quotas), jobs, until=4000).decisions.of("refuse")
    said = [(row.time // SECOND, (row.detail or {}).get("message", "")) for row in refused if row.job == "p"]
    full = "quota q would use more cpu than its max"
    assert said == [(11, full), (11, ""), (71, full)]
