"""Finds the queues that held the most of a scarce resource when a job was refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import polars as pl

from harness.analysis.explanation.history import Event
from harness.analysis.explanation.vocabulary import Units
from harness.runs.epochs import number_at
from harness.runs.folder import reading
from harness.runs.run import Run
from harness.runs.tenants import highest_cohort

_MOST = 3  # the maximum number of queues to name

_WANTED = (
    5_000  # times and resources of a scan, which bounds its memory, because each is joined with its queues
)

Held = dict[tuple[int, str, str], tuple[tuple[str, int], ...]]
"""Maps a time, a resource and a quota to the queues that held the most of the resource, with their amounts.

If the quota is a ClusterQueue, the queues are those of the same tree of cohorts. It is "" without a quota.
"""


class Holders:
    """Finds the queues that hold the most of a resource, according to a run's timeline."""

    def __init__(self, run: Run, units: Units) -> None:
        self._run = run
        self._units = units
        self._roots: dict[int, dict[str, str]] = {}  # by epoch
        self._trees: dict[tuple[int, str], int] = {}  # the numbers in `_members`, by epoch and root
        self._members: list[list[str]] = []

    def of(self, events: Iterable[Event]) -> Held:
        """Returns the holders for those refusals that do not record them."""
        resource = self._units.resource
        wanted = sorted(
            {(each.time, resource(label), each.figures.queue) for each in events for label in _short(each)}
        )
        held: Held = {}
        with reading(self._run.path):
            for start in range(0, len(wanted), _WANTED):
                held |= self._held(wanted[start : start + _WANTED])
        return held

    def _held(self, wanted: list[tuple[int, str, str]]) -> Held:
        found: Held = {}
        trees = [self._tree(quota, time) for time, _, quota in wanted]
        members = pl.DataFrame(
            [(tree, queue) for tree in sorted(set(trees)) for queue in self._members[tree]],
            schema={"tree": pl.Int64, "queue": pl.String},
            orient="row",
        )
        asked = pl.DataFrame(
            wanted, schema={"time": pl.Int64, "resource": pl.String, "quota": pl.String}, orient="row"
        ).with_columns(tree=pl.Series(trees, dtype=pl.Int64))
        rows = (
            asked.join(members, on="tree")
            .with_columns(pl.col("queue").cast(self._timeline.schema["queue"]))
            .sort("time")
            .join_asof(self._timeline, on="time", by=["queue", "resource"], check_sortedness=False)
            .filter(pl.col("allocated") > 0)
            .sort(pl.col("time", "resource", "quota"), -pl.col("allocated"), "queue")
            .group_by("time", "resource", "quota", maintain_order=True)
            .head(_MOST)
        )
        columns = rows.select("time", "resource", "quota", "queue", "allocated")
        for time, resource, quota, queue, allocated in columns.iter_rows():
            key = time, resource, quota
            found[key] = (*found.get(key, ()), (queue, allocated))
        return found

    def _tree(self, quota: str, time: int) -> int:
        """Returns the number of the queues whose ClusterQueues share a tree of cohorts with a ClusterQueue.

        For another quota, and without a quota, these are all queues of the run.
        """
        epoch = number_at(self._run.epochs, time)
        roots = self._roots.get(epoch)
        if roots is None:
            roots = self._roots[epoch] = _roots(self._run.epochs[epoch].cluster)
        root = roots.get(quota, "")
        if (epoch, root) not in self._trees:
            self._trees[epoch, root] = len(self._members)
            queues = self._run.info["cluster"]["quota_of"].items()
            self._members.append([each for each, of in queues if not root or roots.get(of, root) == root])
        return self._trees[epoch, root]

    @cached_property
    def _timeline(self) -> pl.DataFrame:
        columns = ["time", "queue", "resource", "allocated"]
        return self._run.micros("timeline").select(columns).collect().sort("time")


def with_holders(events: list[Event], units: Units, held: Held) -> list[Event]:
    """Adds the holders to those refusals that do not record them."""
    found = []
    for each in events:
        resources = dict.fromkeys(map(units.resource, _short(each)))
        keys = {resource: (each.time, resource, each.figures.queue) for resource in resources}
        there = {resource: held[key] for resource, key in keys.items() if key in held}
        found.append(replace(each, holders=there) if there else each)
    return found


def _roots(cluster: Mapping[str, Any]) -> dict[str, str]:
    """Maps each ClusterQueue to its highest cohort, or to its own name if it has no cohort."""
    cohorts, found = cluster.get("cohorts", {}), {}  # runs before schema 3 have no cohorts and no limits
    for name, facts in cluster["queues"].items():
        if "limits" in facts:  # only a ClusterQueue has limits
            found[name] = highest_cohort(cohorts, facts["cohort"]) or f"queue {name}"
    return found


def _short(event: Event) -> list[str]:
    """If the policy recorded the holders, the list is empty."""
    figures = event.figures
    if event.what != "refuse" or figures.holders is not None:
        return []
    return [*(figures.short or figures.most_free or figures.request)]
