"""Why pods and gangs wait: recorded once for each new reason."""

from __future__ import annotations

import pytest
from quota_worlds import Happened, Jobs, cluster, leaf, node, tree

from harness.units import SECOND


@pytest.mark.parametrize("pods", [1, 2])
@pytest.mark.parametrize("others", [0, 3])
def test_a_reason_that_comes_back_is_not_recorded_again(pods: int, others: int) -> None:
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
        ]
