"""The share of the cluster that each holder has, and its ideal share, over time.

A holder's share is its dominant share: the largest part of any resource's capacity that it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from harness.analysis.metrics.ideal import Wants, ideal_shares
from harness.analysis.metrics.levels import Holder, Piece, holders_then
from harness.base.arrays import Bools, Floats, Groups, Ints, next_of, quotients
from harness.runs.epochs import number_at
from harness.runs.run import Run

_CELLS = 1 << 20  # holders times instants that are looked at together
_LEAST = 1 << 9
_MOST = 1 << 12  # tables of more instants than this leave the processor's cache
_PIECES = 32  # that wait for their ideal shares
_AT_ONCE = 1 << 15  # ideal shares that are worked out together stay near the processor
_FULL = 1 - 1e-6
"""The part of a resource that may be asked for so that all get it; it leaves room for rounding errors."""


class Shares(NamedTuple):
    """The shares of holders over a piece of time.

    Attributes:
        holders: the number of each holder; those that ask for nothing throughout the piece are left out.
        share: a row for each of them, a column for each instant of the piece: what it holds, as a share.
        ideal: likewise, its ideal share; the same array as `share` if all hold their ideal share throughout.
        even: for each instant, True if all are known to hold exactly their ideal share.
        holding: at each instant, the number of holders that hold anything.
    """

    holders: Ints
    share: Floats
    ideal: Floats
    even: Bools
    holding: Floats


def changes_at_once(users: Sequence[Holder]) -> int:
    """The number of level changes to process together, so that memory does not grow with the holders."""
    return min(_MOST, max(_LEAST, _CELLS // max(1, len(users))))


class Sharing:
    """Computes the shares of a run's holders.

    Args:
        run: the run.
    """

    def __init__(self, run: Run) -> None:
        self._epochs = run.epochs
        self._capacities = [
            [
                (number, cluster["capacity"][resource])
                for number, resource in enumerate(run.resources)
                if cluster["capacity"].get(resource)
            ]
            for _, cluster in run.epochs
        ]
        self._weights = [np.array([user.weight for user in users], np.float64) for users in holders_then(run)]

    def of(self, found: Iterable[Piece]) -> Iterator[tuple[Piece, Shares | None]]:
        """Each piece with its shares; None if no holder asks for anything, or no capacity is known.

        Ideal shares take as long for a thousand contended instants as for ten. So those of neighbouring
        pieces of the same holders are computed together.
        """
        waiting: list[tuple[Piece, _Begun | None]] = []
        for piece in found:
            begun = self._begun(piece)
            others = [each for _, each in waiting if each is not None]
            if others and begun is not None and not _go_together(others, begun):
                yield from _ended(waiting)
                waiting = []
            waiting.append((piece, begun))
            if len(waiting) == _PIECES:
                yield from _ended(waiting)
                waiting = []
        yield from _ended(waiting)

    def _begun(self, piece: Piece) -> _Begun | None:
        """All but the ideal shares at contended instants."""
        epoch = number_at(self._epochs, int(piece.times[0]))
        capacities, weights = self._capacities[epoch], self._weights[epoch]
        if not capacities:
            return None
        every = [
            [piece.levels[f"{kind}{number}"] / capacity for number, capacity in capacities]
            for kind in ("allocated", "demand")
        ]
        top = np.maximum.reduce(every[1])
        asks = np.zeros(len(weights), np.bool_)
        asks[piece.holder[top > 0]] = True
        rows = np.flatnonzero(asks[piece.holder])
        if not len(rows):
            return None
        share = np.maximum.reduce(every[0])[rows]
        top, asked = top[rows], [part[rows] for part in every[1]]
        groups, at = Groups(piece.holder[rows]), piece.at[rows]
        instants = len(piece.times)
        # From a level to the next one of its holder, or the end.
        begins = at + (groups.first.cumsum() - 1) * instants
        lasts = next_of(begins, len(groups.begins) * instants) - begins
        weight = weights[groups.keys]
        rises = (top > 0) & (weight > 0)
        demand = np.where(rises, np.minimum(top, 1.0), 0.0)
        limit = np.where(rises, quotients(demand, weight), 0.0)
        rates = [np.where(rises, quotients(weight * part, top), 0.0) for part in asked]
        asked_for = [_together(rate * limit, groups, at, instants) > _FULL for rate in rates]
        contended = np.logical_or.reduce(asked_for)
        even = ~contended & (_together((share != demand) * 1.0, groups, at, instants) == 0)
        holding = _together((share > 0) * 1.0, groups, at, instants)
        wants = None
        if contended.any():
            # The number of the level that a holder has at an instant.
            cells = np.repeat(np.arange(len(rows)), lasts).reshape(-1, instants)[:, contended]
            of_rates = [rate[cells] for rate in rates]
            wants = Wants((weight * rises)[cells], demand[cells], limit[cells], of_rates)
        of_holders = groups.keys[groups.begins]
        return _Begun(len(capacities), of_holders, share, demand, lasts, even, holding, contended, wants)


class _Begun(NamedTuple):
    """The shares of a piece before the ideal ones at contended instants are computed.

    Attributes:
        resources: the number of resources with a capacity.
        holders, even, holding: see `Shares`.
        share: for each level, its holder's share from then on.
        demand: the share that the holder would have without contention.
        lasts: the number of instants for which the level lasts.
        contended: the instants at which not all can have what they ask for.
        wants: the demands of holders at these; None if there are none.
    """

    resources: int
    holders: Ints
    share: Floats
    demand: Floats
    lasts: Ints
    even: Bools
    holding: Floats
    contended: Bools
    wants: Wants | None

    @property
    def cells(self) -> int:
        """The number of ideal shares still to be computed."""
        return 0 if self.wants is None else self.wants.weight.size

    def shares(self, of_contended: Floats) -> Shares:
        """With the ideal shares at contended instants."""
        held = self._at_instants(self.share)
        if self.even.all():
            return Shares(self.holders, held, held, self.even, self.holding)
        ideal = self._at_instants(self.demand)
        if self.wants is not None:
            ideal[:, self.contended] = of_contended
        return Shares(self.holders, held, ideal, self.even, self.holding)

    def _at_instants(self, levels: Floats) -> Floats:
        cells: Floats = np.repeat(levels, self.lasts).reshape(-1, len(self.contended))
        return cells


def _go_together(some: Sequence[_Begun], other: _Begun) -> bool:
    """Returns True if ideal shares of pieces can be computed at once.

    They have as many resources, the same holders, and not too many cells.
    """
    first = some[0]
    same = first.resources == other.resources and np.array_equal(first.holders, other.holders)
    return same and sum(each.cells for each in some) + other.cells <= _AT_ONCE


def _ended(waiting: Sequence[tuple[Piece, _Begun | None]]) -> Iterator[tuple[Piece, Shares | None]]:
    """Pieces with their shares, for pieces that are computed together."""
    wanted = [each.wants for _, each in waiting if each is not None and each.wants is not None]
    parts = iter(ideal_shares(wanted) if wanted else ())
    for piece, begun in waiting:
        if begun is None:
            yield piece, None
        else:
            yield piece, begun.shares(begun.share if begun.wants is None else next(parts))


def _together(levels: Floats, groups: Groups, at: Ints, instants: int) -> Floats:
    """The approximate sum of all holders' levels at each instant, from the differences between levels.

    It is exact if the levels are small whole numbers.

    Args:
        levels: holder by holder.
        groups: the same by their holders.
        at: the instant at which each begins.
        instants: how many there are.
    """
    changes = levels.copy()
    changes[1:] -= levels[:-1] * ~groups.first[1:]
    return np.bincount(at, changes, instants).cumsum()
