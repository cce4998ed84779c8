"""Detects that the last week of a history requests more work than any earlier week.

The width of intervals is derived from past errors. If load grows, waits grow as well, and past errors are too
small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from harness.runs.estimates.coming_jobs import Past
from harness.studies.forecasting.baselines import WEEK

LEAST_GROWTH = 0.2
"""The growth that must be reached, as a share of the largest earlier week. Most weeks differ by less."""


class Growth(NamedTuple):
    """The growth of the requested work in the last week.

    Attributes:
        resource: the resource that grew most.
        share: how much the last week exceeds the largest earlier week, as a share of that earlier week.
    """

    resource: str
    share: float


def growth(jobs: Sequence[Past], first: int, last: int) -> Growth | None:
    """Returns the growth of the load in the last week, or None if it is less than `LEAST_GROWTH`.

    The result is also None if the history is shorter than two weeks.

    The work of a job is its requests multiplied by its run time. In each week, only the jobs that were
    submitted in the week count, with their work until the end of the week. Weeks are therefore comparable,
    and the result depends only on facts that are known at `last`. A resource is left out if fewer than half
    of the jobs request it, because a single job could then double the work.

    The jobs are in order of submission. `first` is the beginning of the history, in microseconds on its
    clock, and `last` is the end of the last week.
    """
    weeks = (last - first) // WEEK
    count, asked = 0, Counter[str]()
    work: dict[str, list[int]] = {}
    for job in jobs:
        back, left = divmod(last - job.submit, WEEK)
        if 0 <= back < weeks:
            count, one = count + 1, job.arrival[0]
            for resource, amount in one.requests_of(range(one.pods)).items():
                asked[resource] += 1
                of_weeks = work.setdefault(resource, [0] * weeks)
                of_weeks[back] += amount * min(job.run_time, left)
    found = [
        Growth(resource, of_weeks[0] / max(of_weeks[1:]) - 1)
        for resource, of_weeks in sorted(work.items())
        if any(of_weeks[1:]) and 2 * asked[resource] >= count
    ]
    most = max(found, key=lambda each: each.share, default=None)
    return most if most is not None and most.share >= LEAST_GROWTH else None
