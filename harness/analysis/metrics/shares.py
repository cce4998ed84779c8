"""Computes the share of the cluster that each holder has over time, and its ideal share.

A holder is a quota, or a queue without a quota. The share of a holder is its dominant share: the largest
fraction of any resource's capacity that the holder has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.analysis.metrics.ideal import Wants, ideal_shares, total
from harness.analysis.metrics.levels import Holder, holders_then
from harness.analysis.metrics.pieces import Piece
from harness.base.arrays import Bools, Floats, Groups, Ints, distinct, next_of, quotients
from harness.base.grouping import grouped
from harness.runs.epochs import number_at
from harness.runs.run import Run

# The maximum number of cells that are processed together; each cell is one holder at one time.
_CELLS = 1 << 20
_LEAST = 1 << 9
_MOST = 1 << 12  # A table with more columns than this does not fit into the processor's cache.
_PIECES = 32  # The maximum number of pieces that wait for their ideal shares.
_AT_ONCE = 1 << 15  # This many ideal shares fit into the processor's cache.
_FULL = 1 - 1e-6
"""If requests stay below this fraction of a capacity, all are met. The margin covers rounding errors."""


class Askers(NamedTuple):
    """The holders that have requests in each part of a period.

    A holder is a quota, or a queue without a quota. The period's times are divided into parts; see
    `harness.analysis.metrics.pieces`.

    Attributes:
        order: a table with one column for each part. A column contains the numbers of all holders, and begins
            with the holders that have requests.
        counts: for each part, the number of holders that have requests.
    """

    part: Ints
    order: Ints
    counts: Ints

    @classmethod
    def of(cls, asks: Bools, piece: Piece) -> Askers:
        """Finds the holders that have requests in each part of `piece`.

        `asks` has a row for each holder and a column for each part.
        """
        lengths = next_of(piece.parts, len(piece.times)) - piece.parts
        part = np.repeat(np.arange(len(lengths)), lengths)
        return cls(part, np.argsort(~asks, axis=0, kind="stable"), asks.sum(axis=0))

    def tables(self, instants: Ints | slice) -> Iterator[tuple[Ints, Ints]]:
        """Groups times by how many holders have requests then.

        Yields the indexes of each group's times, and a table with the holders that have requests at these
        times. The table has one column for each time.
        """
        part = self.part[instants]
        counts = self.counts[part]
        for count in distinct(counts).tolist():
            some = np.flatnonzero(counts == count)
            yield some, self.order[:count, part[some]]

    def total(self, cells: Floats, instants: Ints | slice) -> Floats:
        """Adds up the values of all holders at each of the given times.

        `cells` has a row for each holder and a column for each time. Values of holders without requests must
        be 0, because they are left out. The rounding of a sum depends on the number of its terms, but not on
        how many parts a piece has.
        """
        if self.counts.min() == len(cells):
            return total(cells)
        found = np.zeros(cells.shape[1])
        for some, rows in self.tables(instants):
            if len(rows):
                found[some] = total(cells[rows, some])
        return found


class Shares(NamedTuple):
    """The shares of the cluster that holders have during a period.

    A holder is a quota, or a queue without a quota.

    Attributes:
        holders: the numbers of the holders that request anything during the period.
        share: the share of each of these holders (rows) at each time of the period (columns).
        ideal: the ideal shares in the same layout. If all holders always have their ideal share, this is the
            same array as `share`.
        even: for each time, True if all holders are known to have exactly their ideal share.
        holding: for each time, the number of holders that hold anything.
        askers: the holders that request anything in each part of the period.
    """

    holders: Ints
    share: Floats
    ideal: Floats
    even: Bools
    holding: Floats
    askers: Askers


def changes_at_once(users: Sequence[Holder]) -> int:
    """Returns how many changes to process together. The more holders there are, the fewer changes.

    This keeps the size of tables with a row for each holder almost constant.
    """
    return min(_MOST, max(_LEAST, _CELLS // max(1, len(users))))


class Sharing:
    """Computes the shares of the cluster that a run's quotas, and queues without a quota, have over time."""

    def __init__(self, run: Run) -> None:
        self._epochs = run.epochs
        self._begins = np.array([begin for begin, _ in run.epochs], np.int64)
        # A capacity of 0 is treated as no capacity, because no holder has a share of it.
        capacities = [[then["capacity"].get(each) or 0 for _, then in run.epochs] for each in run.resources]
        self._capacities = np.array(capacities, np.float64).reshape(len(run.resources), -1)
        self._weights = [np.array([user.weight for user in users], np.float64) for users in holders_then(run)]

    def of(self, found: Iterable[Piece]) -> Iterator[tuple[Piece, Shares | None]]:
        """Yields each piece of time with its shares.

        The shares are None if nothing is requested or no capacity is known. The ideal shares of several
        pieces are computed together, because computing them for a thousand times takes about as long as for
        ten times.
        """
        waiting: list[tuple[Piece, _Begun | None]] = []
        for piece in found:
            begun = self._begun(piece)
            cells = sum(each.cells for _, each in waiting if each is not None)
            if cells and begun is not None and cells + begun.cells > _AT_ONCE:
                yield from _ended(waiting)
                waiting = []
            waiting.append((piece, begun))
            if len(waiting) == _PIECES:
                yield from _ended(waiting)
                waiting = []
        yield from _ended(waiting)

    def _begun(self, piece: Piece) -> _Begun | None:
        """Computes everything except the ideal shares at contended times."""
        weights = self._weights[number_at(self._epochs, int(piece.times[0]))]
        then = self._begins.searchsorted(piece.times[piece.parts], "right") - 1
        capacities = [
            (number, of_parts) for number, of_parts in enumerate(self._capacities[:, then]) if of_parts.any()
        ]
        if not capacities:
            return None
        part = piece.parts.searchsorted(piece.at, "right") - 1  # The part to which each level belongs.
        every = [
            [quotients(piece.levels[f"{kind}{number}"], of_parts[part]) for number, of_parts in capacities]
            for kind in ("allocated", "demand")
        ]
        top = np.maximum.reduce(every[1])
        asks = np.zeros((len(weights), len(piece.parts)), np.bool_)
        asks[piece.holder[top > 0], part[top > 0]] = True
        some: Bools = np.logical_or.reduce(asks, axis=1)
        rows = np.flatnonzero(some[piece.holder])
        if not len(rows):
            return None
        share = np.maximum.reduce(every[0])[rows]
        top, asked = top[rows], [each[rows] for each in every[1]]
        groups, at = Groups(piece.holder[rows]), piece.at[rows]
        instants = len(piece.times)
        # The time from a level to the holder's next level, or to the end.
        begins = at + (groups.first.cumsum() - 1) * instants
        lasts = next_of(begins, len(groups.begins) * instants) - begins
        weight = weights[groups.keys]
        rises = (top > 0) & (weight > 0)
        demand = np.where(rises, np.minimum(top, 1.0), 0.0)
        limit = np.where(rises, quotients(demand, weight), 0.0)
        rates = [np.where(rises, quotients(weight * each, top), 0.0) for each in asked]
        asked_for = [_together(rate * limit, groups, at, instants) > _FULL for rate in rates]
        contended = np.logical_or.reduce(asked_for)
        even = ~contended & (_together((share != demand) * 1.0, groups, at, instants) == 0)
        holding = _together((share > 0) * 1.0, groups, at, instants)
        askers, tables = Askers.of(asks[some], piece), []
        instant = np.flatnonzero(contended)
        if len(instant):
            # The index of each holder's level at each time.
            cells = np.repeat(np.arange(len(rows)), lasts).reshape(-1, instants)[:, contended]
            for places, holders in askers.tables(instant):
                at_once, when = cells[holders, places], instant[places]
                wants = Wants(
                    (weight * rises)[at_once],
                    demand[at_once],
                    limit[at_once],
                    [rate[at_once] for rate in rates],
                )
                tables.append(_Table(when, holders, wants, np.bincount(askers.part[when]).tolist()))
        of_holders = groups.keys[groups.begins]
        return _Begun(of_holders, share, demand, lasts, even, holding, tables, askers)


class _Table(NamedTuple):
    """The demands at contended times of a piece. At each time, the same number of holders have requests.

    Attributes:
        instants: the index of each time in the piece.
        rows: the rows of the holders in the piece, for each of these times.
        wants: the demands of these holders.
        lengths: the number of times in each part.
    """

    instants: Ints
    rows: Ints
    wants: Wants
    lengths: Sequence[int]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of holders and of resources. Tables of the same shape are computed together."""
        return len(self.rows), len(self.wants.rates)


class _Begun(NamedTuple):
    """The shares of a piece before the ideal shares at contended times are computed.

    Attributes:
        holders, even, holding, askers: see `Shares`.
        share: the share that corresponds to each level.
        demand: the share that the holder would have without contention.
        lasts: the number of times for which the level lasts.
        tables: the demands at the times at which not all requests can be met.
    """

    holders: Ints
    share: Floats
    demand: Floats
    lasts: Ints
    even: Bools
    holding: Floats
    tables: Sequence[_Table]
    askers: Askers

    @property
    def cells(self) -> int:
        return sum(each.rows.size for each in self.tables)

    def shares(self, found: Mapping[tuple[int, int], Iterator[Floats]]) -> Shares:
        held = self._at_instants(self.share)
        ideal = held
        if not self.even.all():
            ideal = self._at_instants(self.demand)
            for each in self.tables:
                ideal[each.rows, each.instants] = next(found[each.shape])
        return Shares(self.holders, held, ideal, self.even, self.holding, self.askers)

    def _at_instants(self, levels: Floats) -> Floats:
        cells: Floats = np.repeat(levels, self.lasts).reshape(-1, len(self.even))
        return cells


def _ended(waiting: Sequence[tuple[Piece, _Begun | None]]) -> Iterator[tuple[Piece, Shares | None]]:
    """Yields shares after the ideal shares of several pieces were computed together."""
    tables = grouped((each.shape, each) for _, begun in waiting if begun is not None for each in begun.tables)
    found = {
        shape: iter(ideal_shares([each.wants for each in some], [each.lengths for each in some]))
        for shape, some in tables.items()
    }
    for piece, begun in waiting:
        yield piece, None if begun is None else begun.shares(found)


def _together(levels: Floats, groups: Groups, at: Ints, instants: int) -> Floats:
    """Returns the approximate sum of all holders' levels at each time, from the differences of levels.

    The sum is exact if the levels are small integers.
    """
    changes = levels.copy()
    changes[1:] -= levels[:-1] * ~groups.first[1:]
    return np.bincount(at, changes, instants).cumsum()
