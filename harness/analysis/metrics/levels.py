"""Reads how much of each resource the jobs of each quota hold and request over time.

The amounts are called levels. They are read in pieces of time, so that memory doesn't grow with a run's
length. A holder is either a quota that jobs count against (a ClusterQueue or an ElasticQuota), or it stands
for the jobs of a queue without a quota. See `harness.plugins.scopes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from harness.analysis.metrics.pieces import Moves, Piece, cut
from harness.base.arrays import NEVER, Groups, Ints, as_series, codes, next_of, numbers, short
from harness.base.tables.schemas import TIMELINE_QUEUE
from harness.base.units import INT64_MAX
from harness.plugins.measurement import Window
from harness.plugins.scopes import QUEUE, QUOTA, Scope
from harness.runs.known import meanwhile, once
from harness.runs.run import Run
from harness.runs.tenants import timeline_queues

USED = ("allocated", "demand")
"""The kinds of levels: what holders hold, and what they hold or request."""

_NAMED = ("namespace", "queue", TIMELINE_QUEUE)

_MOST_KEPT = 1 << 22
"""The maximum number of timeline rows that stay in memory while a run is measured many times."""

_COLUMNS: Mapping[str, list[str]] = {
    "allocated": ["allocated"],
    "demand": ["allocated", "pending"],
    "held": ["held"],
}
"""Maps each kind of level to the timeline columns whose sum it is."""


class Holder(NamedTuple):
    """A holder of resources: a quota, or the jobs of a queue that has no quota.

    Attributes:
        name: the quota's name, or the queue's name in the timeline.
        nominal: the nominal quota of each resource, or None for a queue without a quota.
        limited: True for a ClusterQueue, whose cohort limits its usage. False for an ElasticQuota or a queue.
    """

    name: str
    weight: float = 1.0
    nominal: Mapping[str, int] | None = None
    limited: bool = False

    @property
    def scope(self) -> str:
        """The scope of the holder's measurements, such as `quota=prod`."""
        return Scope(QUEUE if self.nominal is None else QUOTA, self.name).text


class _Steps(NamedTuple):
    """Changes in the levels of the timeline's queues, in order of time."""

    time: Ints
    tenant: Ints
    levels: Mapping[str, Ints]

    def short(self) -> _Steps:
        """Returns the same changes in smaller types, because changes are much smaller than levels."""
        levels = {name: short(level) for name, level in self.levels.items()}
        return _Steps(np.ascontiguousarray(self.time), short(self.tenant), levels)


def holders(run: Run) -> list[Holder]:
    """Returns all quotas that have jobs in a run, and all queues that have jobs but no quota.

    They are sorted by name. The index of a holder in this list is its number.
    """
    return [_holder(run, name) for name in sorted(set(holder_behind(run).values()))]


def unused_quotas(run: Run) -> list[Holder]:
    """Returns all quotas that no job counts against, sorted by name."""
    used = set(holder_behind(run).values())
    return [_holder(run, name) for name in sorted(run.info["cluster"]["queues"]) if name not in used]


@once
def names_of_jobs(run: Run) -> pl.DataFrame:
    """Returns a table with the queue and the quota of each job, in the jobs' order of arrival.

    All columns are enumerations whose values are sorted by name. The column `queue` contains the queue that
    the job names, as `namespace/queue` if the name stands for several quotas. The column `quota` contains the
    quota that the job counts against, or null. The column `holder` contains the quota, or the queue if there
    is no quota.
    """
    tenants, queues = _tenants_of_jobs(run)
    quotas, behind = run.info["cluster"]["quota_of"].values(), holder_behind(run).values()
    holders = pl.Enum(sorted(set(behind)))
    named = (("queue", queues, queue_names(run)), ("quota", quotas, holders), ("holder", behind, holders))
    number = as_series(tenants)
    return pl.DataFrame([pl.Series(name, list(texts), dtype)[number] for name, texts, dtype in named])


def holder_of_jobs(run: Run) -> pl.Series:
    """Returns the name of each job's quota, or of its queue if it has no quota, in order of arrival."""
    return names_of_jobs(run)["holder"]


def queue_behind(run: Run) -> Mapping[str, str]:
    """Maps each queue of `timeline.parquet` to a scope, such as `queue=prod`."""
    named = zip(holder_behind(run), _tenants_of_jobs(run)[1], strict=True)
    return {name: Scope(QUEUE, queue).text for name, queue in named if queue is not None}


@once
def queue_names(run: Run) -> pl.Enum:
    """Returns an enumeration of the queues that jobs name."""
    return pl.Enum(sorted({queue for queue in _tenants_of_jobs(run)[1] if queue is not None}))


@once
def _tenants_of_jobs(run: Run) -> tuple[Ints, list[str | None]]:
    """Returns the index of each job's queue in the timeline, and the names of these queues.

    If labels of pods name several quotas in one queue, the names are those that the jobs name.
    """
    every, known = list(holder_behind(run)), run.scan("jobs").collect_schema().names()
    queues: list[str | None] = [None] * len(every)
    parts = []
    for batch in run.batches("jobs", [each for each in _NAMED if each in known]):
        tenant = codes(timeline_queues(batch, every))
        some = np.full(len(queues), NEVER)
        some[tenant] = np.arange(len(tenant))
        for number in np.flatnonzero(some != NEVER).tolist():
            by_label = TIMELINE_QUEUE in known
            queues[number] = batch["queue"][int(some[number])] if by_label else every[number]
        parts.append(tenant)
    return np.concatenate(parts), queues


def pieces(run: Run, window: Window, *, changes: int) -> Iterator[Piece]:
    """Yields what the jobs of all holders hold and request over a window, in pieces of time.

    The pieces depend only on the contents of the timeline, not on how its file is divided. `changes` is the
    approximate number of changes in a piece.
    """
    users, names = len(holders(run)), level_names(run, USED)
    alike = {
        then.begin for old, then in pairwise(run.epochs) if then.cluster["queues"] is old.cluster["queues"]
    }
    found = moves(run, window)
    yield from cut(found, users, names, window, changes=changes, turns=turns_of(run), alike=alike)


def moves(
    run: Run, window: Window, kinds: Sequence[str] = USED, *, owner_of: Mapping[str, int] | None = None
) -> Iterator[Moves]:
    """Yields the changes of the amounts (levels) that jobs hold and request, in order of time.

    There is one row for each change of a queue in the timeline, even if several queues count against the same
    quota. The kinds of levels are `allocated`, `demand` (allocated and pending) and `held` (quota).
    `owner_of` maps each queue to the number of the owner whose levels change. By default, the owner is the
    queue's holder.
    """
    behind = holder_behind(run)
    if owner_of is None:
        places = {holder.name: number for number, holder in enumerate(holders(run))}
        owner_of = {name: places[holder] for name, holder in behind.items()}
    holder_of = np.array([owner_of[name] for name in behind], np.int64)
    names = level_names(run, kinds)
    kept = _kept_steps(run)
    for time, tenant, moved in _steps(run, kinds) if kept is None else kept:
        within = slice(int(time.searchsorted(window.end)))
        levels = {name: moved[name][within].astype(np.int64, copy=False) for name in names}
        yield Moves(time[within], holder_of[tenant[within]], levels)


@meanwhile
def _kept_steps(run: Run) -> list[_Steps] | None:
    """Returns the timeline of a run that is measured often, or None if the timeline is too long."""
    if run.memory is None or run.rows("timeline") > _MOST_KEPT:
        return None
    return [each.short() for each in _steps(run, tuple(_COLUMNS))]


def _steps(run: Run, kinds: Sequence[str]) -> Iterator[_Steps]:
    columns = tuple(dict.fromkeys(column for kind in kinds for column in _COLUMNS[kind]))
    behind, width = holder_behind(run), len(run.resources)
    tenants = pl.Enum(list(behind))
    before = {name: np.zeros(len(behind), np.int64) for name in level_names(run, kinds)}
    left: pl.DataFrame | None = None
    for batch in run.batches("timeline", ("time", "queue", *columns)):
        # Rows with the same time and tenant are adjacent. There is one row for each resource.
        long = batch if left is None else pl.concat([left, batch])
        whole = long.height // width * width
        left, long = long.slice(whole), long.slice(0, whole)
        tenant = codes(long["queue"].cast(tenants))[::width]
        time, *found = numbers(long, "time", *columns)
        of_columns = dict(zip(columns, found, strict=True))
        groups = Groups(tenant)
        moved = {}
        for number in range(width):
            for kind in kinds:
                parts = [of_columns[column][number::width] for column in _COLUMNS[kind]]
                name = f"{kind}{number}"
                moved[name] = _changes(sum(parts[1:], start=parts[0]), groups, before[name])
        yield _Steps(time[::width], tenant, moved)


def _changes(level: Ints, groups: Groups, before: Ints) -> Ints:
    """Returns the changes from the previous levels in `before`, and updates `before`."""
    ranked = level[groups.order]
    changes = np.empty_like(ranked)
    changes[1:] = ranked[1:] - ranked[:-1]
    begins, ends = groups.begins, next_of(groups.begins, len(ranked)) - 1
    owners = groups.keys[begins]
    changes[begins] = ranked[begins] - before[owners]
    before[owners] = ranked[ends]
    return groups.back(changes)


def level_names(run: Run, kinds: Sequence[str]) -> list[str]:
    """Returns the names of the columns with levels, such as `allocated0`: one for each kind and resource."""
    return [f"{kind}{number}" for number in range(len(run.resources)) for kind in kinds]


def holder_behind(run: Run) -> Mapping[str, str]:
    """Maps each queue of the timeline to the quota of its jobs, or to itself if its jobs have no quota."""
    quota_of: Mapping[str, str | None] = run.info["cluster"]["quota_of"]
    return {name: quota or name for name, quota in quota_of.items()}


def turns_of(run: Run) -> list[int]:
    """Returns the times at which the cluster's quotas, weights or capacities change, in order."""
    return [begin for begin, _ in run.epochs[1:]]


def holders_then(run: Run) -> list[list[Holder]]:
    """Returns the weights and nominal quotas of all holders in each epoch of a run; see `Run.epochs`.

    Consecutive epochs with the same holders share a single list.
    """
    names = [each.name for each in holders(run)]
    found: list[list[Holder]] = []
    for number, (_, cluster) in enumerate(run.epochs):
        same = number and cluster["queues"] is run.epochs[number - 1].cluster["queues"]
        found.append(found[-1] if same else [_holder(run, name, cluster) for name in names])
    return found


def nominals_then(run: Run) -> list[list[Ints]]:
    """Returns the nominal quota of each resource and holder, for each epoch of a run.

    Consecutive epochs with the same holders share a single list.
    """
    found: list[list[Ints]] = []
    before: list[Holder] | None = None
    for users in holders_then(run):
        found.append(found[-1] if users is before else _nominal_of(run, users))
        before = users
    return found


def _nominal_of(run: Run, users: Sequence[Holder]) -> list[Ints]:
    return [
        np.array([min((user.nominal or {}).get(each, 0), INT64_MAX) for user in users], np.int64)
        for each in run.resources
    ]


def quotas_named(run: Run) -> dict[str, set[str]]:
    """Maps each quota to the resources that it covers at any time."""
    found: dict[str, set[str]] = {}
    for _, same in groupby(run.epochs, lambda epoch: id(epoch.cluster["queues"])):
        for name, quota in next(same).cluster["queues"].items():
            found.setdefault(name, set()).update(quota["nominal"])
    return found


def _holder(run: Run, name: str, cluster: Mapping[str, Any] | None = None) -> Holder:
    quota = (run.info["cluster"] if cluster is None else cluster)["queues"].get(name)
    if quota is None:
        return Holder(name)
    return Holder(name, float(Fraction(quota["weight"])), quota["nominal"], "limits" in quota)
