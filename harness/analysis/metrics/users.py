"""Measures how evenly useful work is spread over users, relative to their requests.

Jobs without a user are left out. A user with small requests counts as much as a user with large requests. The
metrics do not show whether work was done early or late.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.analysis.metrics.arrivals import counted, needs, request_columns
from harness.analysis.metrics.exact import resource_times
from harness.analysis.metrics.inequality import gini, jain
from harness.analysis.metrics.owners import names_users
from harness.analysis.metrics.resource_time import stints_within
from harness.analysis.metrics.shown import Shown
from harness.base.arrays import Groups, Ints, as_series, codes, ranked
from harness.plugins.measurement import Measurement, Window
from harness.runs.run import Run

SHOWN = (
    Shown("fairness.jain_users", "how much a user requested"),
    Shown("fairness.gini_users", "how much a user requested, and who has more"),
)


def measure(
    run: Run, window: Window, *, until: int | None = None, only: pl.Series | None = None
) -> Iterator[Measurement]:
    """Yields the Gini coefficient and Jain's index over users by resource, or null if no job has a user.

    Work counts as useful if its job finishes by `until`; by default, by the end of the window. `only` says
    for each job whether it counts.
    """
    parts: list[list[float]] = [[] for _ in run.resources]
    if request_columns(run) and names_users(run):
        named = pl.when(pl.lit(counted(run, only))).then("user").fill_null("")
        users = run.columns("jobs", "user").select(named)["user"]
        parts = _parts(run, window, until or window.end, users)
    for resource, values in zip(run.resources, parts, strict=True):
        yield Measurement("fairness.gini_users", gini(values), "ratio", "lower", resource=resource)
        yield Measurement("fairness.jain_users", jain(values), "ratio", "higher", resource=resource)


def _parts(run: Run, window: Window, until: int, users: pl.Series) -> list[list[float]]:
    """Returns the useful fraction of each user's requested resource-time, by resource."""
    columns = request_columns(run)
    there, of_jobs = ranked(codes(users.cast(pl.Categorical)))
    useful = _useful(run, window, until, of_jobs, len(there))
    counts = (pl.col("submit_time") <= window.end) & pl.lit(users != "")
    asked = needs(run, window).with_columns(user=as_series(of_jobs)).filter(counts).group_by("user")
    rows = asked.agg(pl.col(columns).sum()).rows()
    return [
        [of_user[user] / int(asks[place]) for user, *asks in rows if asks[place]]
        for place, of_user in enumerate(useful)
    ]


def _useful(run: Run, window: Window, until: int, of_jobs: Ints, users: int) -> list[list[int]]:
    """Returns the resource-time of the progress that completed jobs kept, by resource and user."""
    sums = [[0] * users for _ in run.resources]
    for piece in stints_within(run, window, until):
        groups = Groups(of_jobs[piece.job])
        useful, begins = piece.useful[groups.order], groups.begins
        for of_user, held in zip(sums, piece.held, strict=True):
            amounts = resource_times(held[groups.order], useful, begins)
            for user, amount in zip(groups.keys[begins].tolist(), amounts, strict=True):
                of_user[user] += amount
    return sums
