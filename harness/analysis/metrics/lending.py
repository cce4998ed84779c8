"""Measures how much quotas borrow, and how much other quotas in the same cohort tree lend.

What a quota holds beyond its nominal quota is borrowed. The cohorts' own quota is borrowed first. The rest
comes from quotas that hold less than their nominal quota, in proportion to how much each of them can lend at
the time. Each flavor is computed separately, and the results are added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.analysis.metrics.exact import exact_sum, resource_times
from harness.analysis.metrics.pieces import Piece
from harness.base.arrays import Bools, Floats, Groups, Ints, Numbers, firsts, next_of, quotients
from harness.base.units import INT64_MAX
from harness.runs.run import Run
from harness.runs.tenants import highest_cohort

_HALF = 32  # The number of bits in each half of a quantity.

ANY = ""


class Cell(NamedTuple):
    """A resource in a flavor, for which quotas are defined."""

    resource: str
    flavor: str


class Pool(NamedTuple):
    """Quotas that lend one resource of one flavor to each other.

    Attributes:
        own: the cohorts' own quota, which belongs to no single queue.
        lendable: how much each quota lends at most.
        elastic: whether the quotas are ElasticQuotas.
    """

    own: int
    nominal: dict[str, int]
    lendable: dict[str, int]
    elastic: bool = False


def cells_of(run: Run, cluster: Mapping[str, Any]) -> list[Cell]:
    """Returns the resources for which quotas borrow and lend, each with a flavor.

    The flavor is `ANY` for ElasticQuotas, and if no resource has several flavors.
    """
    found: dict[Cell, None] = {}
    for spec in (*cluster["queues"].values(), *cluster["cohorts"].values()):
        for flavor, of_flavor in spec.get("flavors", {}).items():
            found.update(dict.fromkeys(Cell(each, flavor) for each in of_flavor if each in run.resources))
    # ElasticQuotas have no flavors, even in a cluster whose ClusterQueues have flavors.
    return [*(Cell(each, ANY) for each in run.resources), *sorted(found)]


def pools(cluster: Mapping[str, Any], cell: Cell) -> list[Pool]:
    """Returns the groups of quotas that lend to each other: all ElasticQuotas, and each cohort tree."""
    cohorts = cluster["cohorts"]
    found: dict[tuple[str, str], Pool] = {}

    for name, quota in cluster["queues"].items():
        own = _own(quota, cell)
        if own is None:
            continue
        tree = ("queue", name)
        if "limits" not in quota:
            tree = ("elastic", "")
        elif quota["cohort"]:
            tree = ("cohort", highest_cohort(cohorts, quota["cohort"]))
        pool = found.setdefault(tree, Pool(0, {}, {}, elastic="limits" not in quota))
        pool.nominal[name], kept = own
        pool.lendable[name] = pool.nominal[name] - kept
    for name, cohort in cohorts.items():
        tree, own = ("cohort", highest_cohort(cohorts, name)), _own(cohort, cell)
        if own is not None and tree in found:
            found[tree] = found[tree]._replace(own=found[tree].own + own[0])
    return list(found.values())


def _own(spec: Mapping[str, Any], cell: Cell) -> tuple[int, int] | None:
    """Returns a queue's or cohort's quota for a cell and how much of it is never lent, or None."""
    if "flavors" in spec:
        of_cell = spec["flavors"].get(cell.flavor, {}).get(cell.resource)
        return None if of_cell is None else (of_cell["nominal"], of_cell["kept"])
    if cell.flavor != ANY or cell.resource not in spec["nominal"]:
        return None
    return spec["nominal"][cell.resource], spec.get("limits", {}).get("kept", {}).get(cell.resource, 0)


class Lending:
    """Adds up the resource-time that quotas borrow and lend, for one resource in one flavor.

    `users` contains the names of all quotas that have jobs, and of the queues without a quota. The index of a
    name is the number that pieces use.
    """

    def __init__(self, some: Iterable[Pool], users: Sequence[str]) -> None:
        self._users = users
        self._own: list[int] = []
        self._pool = np.full(len(users), -1)
        self._nominal, self._lendable = (np.zeros(len(users), np.int64) for _ in range(2))
        self.borrowed: dict[str, int] = {}
        self._lent: dict[str, list[float]] = {}
        numbers = {name: number for number, name in enumerate(users)}
        # The name of each quota without jobs, its pool, and how much it can always lend.
        self._without_jobs: list[tuple[str, int, int]] = []
        for place, pool in enumerate(some):
            self._own.append(min(pool.own, INT64_MAX))
            for name, nominal in pool.nominal.items():
                self.borrowed[name] = 0
                self._lent[name] = []
                lendable = min(nominal, pool.lendable[name], INT64_MAX)
                if name not in numbers:
                    self._without_jobs.append((name, place, lendable))
                    continue
                number = numbers[name]
                self._pool[number] = place
                self._nominal[number], self._lendable[number] = min(nominal, INT64_MAX), lendable

    @property
    def lent(self) -> dict[str, float]:
        """The resource-time that each quota lent."""
        return {name: exact_sum(np.array(parts, np.float64)) for name, parts in self._lent.items()}

    def add(self, piece: Piece, held: Ints) -> None:
        """Adds what quotas borrow and lend during the period of a piece.

        `held` contains, for each level in `piece`, the amount of quota that is held.
        """
        rows = np.flatnonzero(self._pool[piece.holder] >= 0)
        if not len(rows):
            return
        holder, at, held = piece.holder[rows], piece.at[rows], held[rows]
        more = (held - self._nominal[holder]).clip(0)
        begins = np.flatnonzero(firsts(holder))
        sums = resource_times(more, piece.span[rows], begins)
        for number, amount in zip(holder[begins].tolist(), sums, strict=True):
            self.borrowed[self._users[number]] += amount
        if any(sums):
            spare = np.minimum(self._nominal[holder] - held, self._lendable[holder]).clip(0)
            self._lend(piece, holder, at, more, spare)

    def _lend(self, piece: Piece, holder: Ints, at: Ints, more: Ints, spare: Ints) -> None:
        """Divides what is borrowed among the quotas that can lend.

        For each level, `holder` has the index of its quota, in ascending order, and `at` the index of the
        time at which the level begins. From then on, the quota borrows `more` and can lend `spare`.
        """
        first = firsts(holder)
        pool = self._pool[holder]
        order = Groups(pool * len(piece.times) + at).order
        groups = Groups(pool[order])  # The keys are already in order.
        time = piece.times[at[order]]
        each = groups.keys
        own, idle = np.array(self._own), np.zeros(len(self._own))
        for _, place, lendable in self._without_jobs:
            idle[place] += lendable
        asked = groups.running(_steps(more, first)[order]) - own[each]
        there = idle[each]
        # Sums of integers are exact. The high and low bits are added up separately, so that the sums fit into
        # 64 bits even if quotas are unlimited.
        for half, unit in ((spare >> _HALF, 1 << _HALF), (spare & (1 << _HALF) - 1, 1)):
            there += groups.running(_steps(half, first)[order]) * float(unit)
        rate = quotients(asked.clip(0).astype(np.float64), there)
        until = next_of(time, piece.end)
        until[groups.last] = piece.end
        # Nothing is lent after the last row.
        passed = np.append(rate * (until - time), 0.0)
        # Find each level's row among the rows of its pool. The level lasts until the next row of its quota.
        since = np.empty(len(order), np.intp)
        since[order] = np.arange(len(order))
        ends = np.zeros(len(own), np.intp)
        ends[each[groups.begins]] = next_of(groups.begins, len(order))
        then = next_of(since, 0)
        last = next_of(first, end=True)
        then[last] = ends[pool[last]]
        # The quantity between two rows is added up directly, because the difference of two running sums may
        # be too inexact.
        meanwhile: Floats = np.add.reduceat(passed, np.stack((since, then), axis=1).ravel())[::2]
        parts = spare * meanwhile
        of_quotas = np.add.reduceat(parts, np.flatnonzero(first)).tolist()
        for number, part in zip(holder[first].tolist(), of_quotas, strict=True):
            self._lent[self._users[number]].append(part)
        of_pool = np.zeros(len(own))
        of_pool[each[groups.begins]] = np.add.reduceat(passed, groups.begins)
        for name, place, lendable in self._without_jobs:
            self._lent[name].append(float(lendable * of_pool[place]))


def _steps(levels: Numbers, first: Bools) -> Numbers:
    """Returns the difference between each level and the same owner's previous level, which is 0 at first."""
    before = np.zeros_like(levels)
    before[1:] = levels[:-1]
    before[first] = 0
    return levels - before
