"""Measures fairness across quotas: deviations from ideal shares, unmet guarantees, and unequal slowdowns.

A queue without a quota counts like a quota. Both are called holders. The share of a holder is its dominant
share: the largest fraction of any resource's capacity that the holder has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

import numpy as np
import polars as pl

from harness.analysis.metrics.daily import Daily
from harness.analysis.metrics.exact import exact_sums, resource_times
from harness.analysis.metrics.inequality import jain
from harness.analysis.metrics.levels import (
    Holder,
    holder_of_jobs,
    holders,
    nominals_then,
    pieces,
    quotas_named,
    unused_quotas,
)
from harness.analysis.metrics.pieces import Piece
from harness.analysis.metrics.shares import Shares, Sharing, changes_at_once
from harness.analysis.metrics.shown import SHARED, Shown
from harness.analysis.metrics.waiting import mean_slowdowns
from harness.base.arrays import Floats, Ints, codes, firsts, quotients
from harness.plugins.measurement import SHARE, Measurement, Window, resource_hours
from harness.runs.epochs import number_at
from harness.runs.run import Run

_NEAR = 1 << 15  # The number of holders multiplied by the number of change points.
_DEFICIT = "fairness.guarantee_deficit"

SHOWN = (
    Shown("fairness.share_deviation", "whether quotas below their ideal share catch up", SHARED, brief=True),
    Shown("fairness.share_deviation_daily", "differences that even out within a day"),
    Shown("fairness.jain_share", "how far all quotas are below their ideal shares"),
    Shown(
        "fairness.jain_share_daily",
        "how far all quotas are below their ideal shares, and differences that even out within a day",
    ),
    Shown("fairness.gini_share_daily", "which queues have more, and differences that even out within a day"),
)


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """Yields the fairness metrics across all quotas, and the resource-time that each quota was owed.

    A queue without a quota counts like a quota.
    """
    yield from measure_shares(run, window)
    yield from measure_slowdowns(run, window)


def measure_shares(run: Run, window: Window) -> Iterator[Measurement]:
    """Yields the metrics that are integrals over time: deviations from ideal shares, and resources owed."""
    users = holders(run)
    shares, owed = _Shares(window), _Owed(run, users)
    for piece, found in Sharing(run).of(pieces(run, window, changes=changes_at_once(users))):
        if found is not None:
            shares.add(piece, found)
        owed.add(piece)
    yield from shares.measurements()
    yield from owed.measurements(unused_quotas(run))


class _Shares:
    def __init__(self, window: Window) -> None:
        self._daily = Daily(window)
        self._off: list[float] = []
        self._ideal: list[float] = []
        self._jain: list[float] = []
        self._compared = 0

    def add(self, piece: Piece, found: Shares) -> None:
        self._daily.add(found, piece)
        span = piece.spans
        # Process as many change points at a time as fit into the processor's cache.
        step = max(1, _NEAR // len(found.holders))
        ideal = np.concatenate(
            [found.askers.total(found.ideal[:, some], some) for some in _cut(len(span), step)]
        )
        self._ideal += exact_sums(ideal * span, piece.parts)
        # If all holders have their ideal shares, the distance is 0. The index is then 1 if there are several
        # holders.
        several = found.even & (found.holding >= 2)
        alike = np.add.reduceat(np.where(several, span, 0), piece.parts)
        self._compared += int(alike.sum())
        uneven = np.flatnonzero(~found.even)
        if not len(uneven):
            self._jain += alike.astype(np.float64).tolist()
            return
        of_uneven = (uneven[some] for some in _cut(len(uneven), step))
        off, count, ratio, square = map(
            np.concatenate, zip(*(_compared(found, some) for some in of_uneven), strict=True)
        )
        span, begins = span[uneven], uneven.searchsorted(piece.parts)
        self._off += exact_sums(off / 2 * span, begins)
        several = (count >= 2) & (square > 0)
        index = quotients(ratio * ratio, count * square) * span
        begins = np.append(0, several.cumsum())[begins]
        of_parts = np.insert(index[several], begins, alike)
        self._jain += exact_sums(of_parts, begins + np.arange(len(begins)))
        self._compared += int(span[several].sum())

    def measurements(self) -> Iterator[Measurement]:
        ideal = fsum(self._ideal)
        deviation = fsum(self._off) / ideal if ideal else None
        yield Measurement("fairness.share_deviation", deviation, SHARE, "lower")
        index = fsum(self._jain) / self._compared if self._compared else None
        yield Measurement("fairness.jain_share", index, "ratio", "higher")
        yield from self._daily.measurements()


def _cut(length: int, step: int) -> Iterator[slice]:
    return (slice(start, start + step) for start in range(0, length, step))


def _compared(found: Shares, instants: Ints) -> tuple[Floats, ...]:
    share, ideal = found.share[:, instants], found.ideal[:, instants]
    ratio = quotients(share, ideal)
    each = (np.abs(share - ideal), (ideal > 0).astype(np.float64), ratio, ratio * ratio)
    return tuple(found.askers.total(cells, instants) for cells in each)


class _Owed:
    """Adds up the resource-time that holders requested within their own quotas but did not get."""

    def __init__(self, run: Run, users: Sequence[Holder]) -> None:
        self._resources = run.resources
        self._users = users
        self._epochs = run.epochs
        self._named = quotas_named(run)
        self._nominals = nominals_then(run)
        self._sums = [[0] * len(users) for _ in run.resources]

    def add(self, piece: Piece) -> None:
        begins = np.flatnonzero(firsts(piece.holder))
        nominals = self._nominals[number_at(self._epochs, int(piece.times[0]))]
        for number, (nominal, sums) in enumerate(zip(nominals, self._sums, strict=True)):
            due = np.minimum(nominal[piece.holder], piece.levels[f"demand{number}"])
            short = (due - piece.levels[f"allocated{number}"]).clip(0)
            for holder, owed in enumerate(resource_times(short, piece.span, begins)):
                sums[holder] += owed

    def measurements(self, unused: Sequence[Holder]) -> Iterator[Measurement]:
        every = sorted([*self._users, *unused])
        for resource, sums in zip(self._resources, self._sums, strict=True):
            owed = {user.name: amount for user, amount in zip(self._users, sums, strict=True)}
            of_each = [
                owed.get(each.name, 0) if resource in self._named.get(each.name, ()) else None
                for each in every
            ]
            known = [amount for amount in of_each if amount is not None]
            yield resource_hours(_DEFICIT, sum(known) if known else None, resource)
            for each, amount in zip(every, of_each, strict=True):
                yield resource_hours(_DEFICIT, amount, resource, each.scope)


def measure_slowdowns(run: Run, window: Window, only: pl.Series | None = None) -> Iterator[Measurement]:
    """Yields Jain's index of the quotas' mean slowdowns, and the ratio of the largest to the smallest mean.

    A queue without a quota counts like a quota. Jobs that are still running may raise or lower both values.
    `only` says for each job whether it counts.
    """
    means = sorted(mean_slowdowns(run, window, codes(holder_of_jobs(run)), only))
    yield Measurement("fairness.jain_slowdown", jain(means), "ratio", "higher", at_least=None)
    ratio = means[-1] / means[0] if means else None
    yield Measurement("fairness.max_min_slowdown", ratio, "factor", "lower", at_least=None)
