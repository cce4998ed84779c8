"""Measures borrowed and lent quota, quota held beyond the limits, and quota of pods without a node.

Jobs hold quota from their admission on, even before they start and while they are being evicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import is_not
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from harness.analysis.metrics.exact import resource_times
from harness.analysis.metrics.flavor_levels import flavor_pieces, level_of
from harness.analysis.metrics.lending import ANY, Cell, Lending, Pool, cells_of, pools
from harness.analysis.metrics.levels import Holder, holders, level_names, unused_quotas
from harness.analysis.metrics.pieces import Piece, cut
from harness.analysis.metrics.quota_held import held_moves
from harness.analysis.metrics.quota_tree import QuotaTree, quota_trees
from harness.base.arrays import Bools, Groups, Ints, as_series, firsts, next_of
from harness.base.units import INT64_MAX
from harness.plugins.measurement import Measurement, Window, resource_hours
from harness.runs.epochs import number_at
from harness.runs.known import once
from harness.runs.run import Run

_OVER, _UNBOUND = "quota.over", "quota.held_unbound"
_BORROWED, _LENT = "quota.borrowed", "quota.lent"
_QUOTAS = ("queues", "cohorts")
_CHANGES = 1 << 16  # How many level changes are processed together.
# The maximum number of cells that are processed together; each cell is one queue at one time.
_CELLS = 1 << 20


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """Yields the quota metrics. The values are null if no quota is known or if nothing was admitted."""
    users = holders(run)
    every = sorted([*users, *unused_quotas(run)])
    names = [user.name for user in users]
    admits = _admits(run)
    quotas = [tuple(cluster.get(name) for name in _QUOTAS) for _, cluster in run.epochs]
    # A change of only the nodes does not begin an epoch here.
    epochs = [
        epoch
        for number, epoch in enumerate(run.epochs)
        if not number or any(map(is_not, quotas[number], quotas[number - 1]))
    ]
    turns = [begin for begin, _ in epochs[1:]]
    over = [
        [_Over(run, cluster, names, resource) for resource in run.resources if admits]
        for _, cluster in epochs
    ]
    lending = [
        {cell: Lending(some, names) for cell, some in _lent(run, cluster, admits=admits).items()}
        for _, cluster in epochs
    ]
    elastic = np.array([each.nominal is not None and not each.limited for each in users], np.bool_)
    whole = any(cell.flavor == ANY for then in lending for cell in then)
    if whole or any(of_resource.trees for then in over for of_resource in then):
        kinds = ("held", "allocated") if elastic.any() else ("held",)
        found, levels = held_moves(run, window, kinds), level_names(run, kinds)
        for piece in cut(found, len(users), levels, window, changes=_CHANGES, turns=turns):
            at = number_at(epochs, int(piece.times[0]))
            for of_resource in over[at]:
                of_resource.add(piece)
            for cell, of_cell in lending[at].items():
                if cell.flavor == ANY:
                    of_cell.add(piece, _quota_held(piece, run.resources.index(cell.resource), elastic))
    cells = list(dict.fromkeys(cell for then in lending for cell in then if cell.flavor != ANY))
    if cells:
        for piece in flavor_pieces(run, window, cells, changes=_CHANGES, turns=turns):
            for cell, of_cell in lending[number_at(epochs, int(piece.times[0]))].items():
                if cell.flavor != ANY:
                    of_cell.add(piece, piece.levels[level_of(cell)])
    yield from _measurements(_OVER, run, every, _over_sums(over), "lower")
    for metric, sums in _sums(lending).items():
        yield from _measurements(metric, run, every, sums, "")
    yield from _held_unbound(run, window, every)


def _measurements(
    metric: str, run: Run, every: Sequence[Holder], sums: Mapping[str, Mapping[str, float]], better: str
) -> Iterator[Measurement]:
    for resource in run.resources:
        known = sums.get(resource, {})
        yield resource_hours(metric, sum(known.values()) if known else None, resource, better=better)
        for each in every:
            yield resource_hours(metric, known.get(each.name), resource, each.scope, better=better)


def _lent(run: Run, cluster: Mapping[str, Any], *, admits: bool) -> dict[Cell, list[Pool]]:
    """Returns the quotas that lend to each other, for each resource and flavor that has quota.

    Pods count against an ElasticQuota no matter which component binds them. They count against a ClusterQueue
    only if they were admitted.
    """
    if "cohorts" not in cluster:
        return {}
    of_cells = {
        cell: [pool for pool in pools(cluster, cell) if admits or pool.elastic]
        for cell in cells_of(run, cluster)
    }
    return {cell: some for cell, some in of_cells.items() if some}


def _quota_held(piece: Piece, resource: int, elastic: Bools) -> Ints:
    """Returns how much quota of a resource holders hold.

    For an ElasticQuota, the quantity includes bound pods that were never admitted.
    """
    held = piece.levels[f"held{resource}"]
    if not elastic.any():
        return held
    bound = np.where(elastic[piece.holder], piece.levels[f"allocated{resource}"], 0)
    most: Ints = np.maximum(held, bound)
    return most


def _over_sums(over: Iterable[Iterable[_Over]]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for of_resource in (each for then in over for each in then):
        sums = found.setdefault(of_resource.resource, {})
        for name, amount in of_resource.sums.items():
            sums[name] = sums.get(name, 0) + amount
    return found


def _sums(lending: Iterable[Mapping[Cell, Lending]]) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {_BORROWED: {}, _LENT: {}}
    for cell, of_cell in (each for then in lending for each in then.items()):
        for metric, sums in ((_BORROWED, of_cell.borrowed), (_LENT, of_cell.lent)):
            of_resource = found[metric].setdefault(cell.resource, {})
            for name, amount in sums.items():
                of_resource[name] = of_resource.get(name, 0) + amount
    return found


def _held_unbound(run: Run, window: Window, every: Sequence[Holder]) -> Iterator[Measurement]:
    """Yields the quota held by pods without a node; null if there are no nodes or no admissions."""
    known = run.info["cluster"]["nodes"] and _admits(run)
    sums = _quota_without_pods(run, window) if known else {}
    for resource in run.resources:
        of_quotas = {
            each.name: sums.get((each.name, resource), 0)
            for each in every
            if known and each.nominal is not None and resource in each.nominal
        }
        total = sum(of_quotas.values()) if of_quotas else None
        yield resource_hours(_UNBOUND, total, resource)
        for each in every:
            yield resource_hours(_UNBOUND, of_quotas.get(each.name), resource, each.scope)


def _quota_without_pods(run: Run, window: Window) -> dict[tuple[str, str], int]:
    """Returns held quota minus the requests of bound pods, as resource-time by holder and resource."""
    names = [user.name for user in holders(run)]
    sums: dict[tuple[str, str], int] = {}
    for batch in held_moves(run, window, ("held", "allocated")):
        groups = Groups(batch.holder)
        # A change of a level counts from its time until the end of the window.
        left = (window.end - batch.time)[groups.order]
        for number, resource in enumerate(run.resources):
            unbound = (batch.levels[f"held{number}"] - batch.levels[f"allocated{number}"])[groups.order]
            amounts = resource_times(unbound, left, groups.begins)
            for holder, amount in zip(groups.keys[groups.begins].tolist(), amounts, strict=True):
                key = names[holder], resource
                sums[key] = sums.get(key, 0) + amount
    return sums


@once
def _admits(run: Run) -> bool:
    if "cohorts" not in run.info["cluster"]:
        return False
    batches = run.batches("jobs", ("admitted_time",))
    return any(batch["admitted_time"].null_count() < batch.height for batch in batches)


class _Over:
    """Adds up how much of one resource ClusterQueues hold beyond what they may use.

    The index of a holder in `users` is its number in a piece.

    Attributes:
        sums: the resource-time of each ClusterQueue that has a quota for the resource, which may be a quota
            of 0.
    """

    def __init__(self, run: Run, cluster: Mapping[str, Any], users: Sequence[str], resource: str) -> None:
        quotas = cluster["queues"]
        self.resource = resource
        self.sums = {
            name: 0 for name, quota in quotas.items() if "limits" in quota and resource in quota["nominal"]
        }
        self._held = f"held{run.resources.index(resource)}"
        self._numbers = {name: number for number, name in enumerate(users)}
        trees = quota_trees(cluster, resource)
        self.trees = [tree for tree in trees if any(node.queue in self._numbers for node in tree.nodes)]

    def add(self, piece: Piece) -> None:
        held = piece.levels[self._held]
        begins = np.flatnonzero(firsts(piece.holder))
        ends = next_of(begins, len(held))
        for tree in self.trees:
            used = {}
            for place, node in enumerate(tree.nodes):
                if node.queue in self._numbers:
                    number = self._numbers[node.queue]
                    rows = slice(begins[number], ends[number])
                    used[place] = _Level(piece.at[rows], held[rows])
            instants = self._suspicious(tree, used, len(piece.times))
            step = max(1, _CELLS // len(tree.nodes))
            for start in range(0, len(instants), step):
                self._add(piece, tree, used, instants[start : start + step])

    def _suspicious(self, tree: QuotaTree, used: Mapping[int, _Level], instants: int) -> Ints:
        """Returns the times at which a cohort or queue might exceed its limit; usually, there are none."""
        found = np.zeros(instants, np.bool_)
        for place, node in enumerate(tree.nodes):
            if node.bound is None:
                continue
            # The quota that queues keep is not available to their cohort. Cohorts in between may keep quota
            # as well. If their part is ignored, more times are checked, but none is missed.
            levels = [
                _Level(used[queue].at, (used[queue].held - min(kept, INT64_MAX)).clip(0))
                for queue in tree.below[place]
                if queue in used
                for kept in (0 if queue == place else tree.nodes[queue].kept,)
            ]
            if sum(int(each.held.max()) for each in levels) > node.bound:
                found |= _total(levels, instants) > node.bound
        return np.flatnonzero(found)

    def _add(self, piece: Piece, tree: QuotaTree, used: Mapping[int, _Level], instants: Ints) -> None:
        held = pl.DataFrame(
            {
                str(place): level.held[level.at.searchsorted(instants, side="right") - 1]
                for place, level in used.items()
            }
        )
        over = tree.over(held).select(pl.all() * as_series(piece.spans[instants])).sum()
        for place, amount in zip(over.columns, over.row(0), strict=True):
            name = tree.nodes[int(place)].queue
            if name in self.sums:
                self.sums[name] += amount


class _Level(NamedTuple):
    at: Ints
    held: Ints


def _total(levels: Sequence[_Level], instants: int) -> Ints:
    changes = np.zeros(instants, np.int64)
    for each in levels:
        changes[each.at] += np.diff(each.held, prepend=0)
    return changes.cumsum()
