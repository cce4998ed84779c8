"""Groups jobs by their owners, which are queues and users.

The values of all queues add up to the value for all jobs, and so do the values of all users. An owner has no
value if all of its jobs are left out of the metrics. A run may have as many users as jobs, so only the users
with the largest requests have separate values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from harness.analysis.metrics.arrivals import counted, needs, request_columns
from harness.analysis.metrics.levels import names_of_jobs
from harness.base.arrays import Ints, codes
from harness.plugins.measurement import Window
from harness.plugins.scopes import QUEUE, USER, Scope
from harness.runs.known import once
from harness.runs.run import Run

MOST_USERS = 200
"""The maximum number of users that have separate values."""

NOBODY = "(none)"
"""The name of a user that stands for all jobs without a user."""


class Owners(NamedTuple):
    """The owners of one kind that have separate values, which are queues or users.

    Attributes:
        scopes: the scope of each owner, sorted by name. An owner's index is its number.
        of_jobs: the index of each job's owner, in the jobs' order of arrival. All owners without separate
            values share one number, which follows all other numbers.
        asked: for each owner, the total need of the selected jobs, in resource-microseconds of each resource;
            empty in runs of schema 2.
        several: whether there are several owners. If not, the only owner has the same values as all jobs.
    """

    scopes: Sequence[str]
    of_jobs: Ints
    asked: Sequence[Sequence[int]]
    several: bool


def owners(run: Run, window: Window, only: pl.Series | None = None) -> Mapping[str, Owners]:
    """Returns the queues and the users of a run's jobs, keyed by the kind of scope.

    `only` says for each job whether it counts.
    """
    names = {QUEUE: names_of_jobs(run)[QUEUE], USER: _users(run)}
    demand = _demand(run, window, names, only)
    return {kind: _told_apart(kind, each, demand) for kind, each in names.items()}


def _told_apart(kind: str, names: pl.Series, demand: pl.DataFrame) -> Owners:
    """Returns the owners of those jobs that count.

    If there are too many users, the result contains only the users with the largest requests of any resource.
    """
    amounts = [name for name in demand.columns if name not in (QUEUE, USER)]
    of_owners = demand.group_by(kind).agg(pl.col(amounts).sum()).sort(kind)
    several = of_owners.height > 1
    if kind == USER and of_owners.height > MOST_USERS:
        parts = [pl.col(name) / pl.max_horizontal(pl.col(name).sum(), 1) for name in amounts]
        of_owners = (
            of_owners.with_columns(_part=pl.max_horizontal(pl.lit(0.0), *parts))
            .sort("_part", kind, descending=[True, False])
            .head(MOST_USERS)
            .sort(kind)
        )
    texts = of_owners[kind].cast(pl.String).to_list()
    number = {text: place for place, text in enumerate(texts)}
    assert isinstance(names.dtype, pl.Enum)
    place = np.array([number.get(name, len(texts)) for name in names.dtype.categories], np.int64)
    columns = [of_owners[name].to_list() for name in amounts]
    return Owners(
        [Scope(kind, text).text for text in texts],
        place[codes(names)],
        [[column[place] for column in columns] for place in range(len(texts))],
        several,
    )


def _users(run: Run) -> pl.Series:
    users = run.columns("jobs", "user")["user"]
    if not names_users(run):
        return pl.Series([NOBODY], dtype=pl.Enum([NOBODY])).new_from_index(0, len(users))
    users = users.cast(pl.String)
    users = users.set(users.fill_null("") == "", NOBODY)
    return users.cast(pl.Enum(users.unique().sort()))


@once
def names_users(run: Run) -> bool:
    """Returns True if any job has a user."""
    return any((batch["user"].cast(pl.String).max() or "") != "" for batch in run.batches("jobs", ("user",)))


def _demand(run: Run, window: Window, names: Mapping[str, pl.Series], only: pl.Series | None) -> pl.DataFrame:
    counts = (pl.col("submit_time") <= window.end) & pl.lit(counted(run, only))
    jobs = needs(run, window).with_columns(**names)
    return jobs.filter(counts).group_by(list(names)).agg(pl.col(request_columns(run)).sum())
