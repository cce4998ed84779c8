"""What share of the cluster each holder has, and what share it ideally would have, over time.

A holder's share is its dominant share: the largest part of any resource's capacity that it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.analysis.metrics.ideal import Wants, ideal_shares
from harness.analysis.metrics.levels import Holder, Piece, holders_then
from harness.base.arrays import Bools, Floats, Groups, Ints, quotients
from harness.runs.epochs import number_at
from harness.runs.run import Run

_CELLS = 1 << 20  # holders times instants that are looked at together
_LEAST = 1 << 9
_MOST = 1 << 12  # tables of more instants than this leave the processor's cache
_FULL = 1 - 1e-6
"""How much of a resource may be asked for so that all get it, whatever rounding does to the sum."""


class Shares(NamedTuple):
    """The shares of holders over a piece of time.

    Attributes:
        holders: the number of each holder; those that ask for nothing throughout the piece are not there.
        share: a row for each of them, a column for each instant of the piece: what it holds, as a share.
        ideal: likewise, what it would hold if all was shared ideally; the same array where all do throughout.
        even: of each instant, whether it is known that all hold just what is ideal.
        holding: at each instant, how many hold anything.
    """

    holders: Ints
    share: Floats
    ideal: Floats
    even: Bools
    holding: Floats


def changes_at_once(users: Sequence[Holder]) -> int:
    """How many changes of level are looked at together: memory does not follow the number of holders."""
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

    def of(self, piece: Piece) -> Shares | None:
        """The shares over a piece; None where nobody asks for anything, or no capacity is known."""
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
        lasts = np.diff(begins, append=len(groups.begins) * instants)
        weight = weights[groups.keys]
        rises = (top > 0) & (weight > 0)
        demand = np.where(rises, np.minimum(top, 1.0), 0.0)
        limit = np.where(rises, quotients(demand, weight), 0.0)
        rates = [np.where(rises, quotients(weight * part, top), 0.0) for part in asked]
        asked_for = [_together(rate * limit, groups, at, instants) > _FULL for rate in rates]
        contended = np.logical_or.reduce(asked_for)
        even = ~contended & (_together((share != demand) * 1.0, groups, at, instants) == 0)
        holding = _together((share > 0) * 1.0, groups, at, instants)
        of_holders = groups.keys[groups.begins]
        held = np.repeat(share, lasts).reshape(-1, instants)
        if even.all():
            return Shares(of_holders, held, held, even, holding)
        ideal = np.repeat(demand, lasts).reshape(-1, instants)
        if contended.any():
            # The number of the level that a holder has at an instant.
            cells = np.repeat(np.arange(len(rows)), lasts).reshape(-1, instants)[:, contended]
            of_rates = [rate[cells] for rate in rates]
            wants = Wants((weight * rises)[cells], demand[cells], limit[cells], of_rates)
            ideal[:, contended] = ideal_shares(wants)
        return Shares(of_holders, held, ideal, even, holding)


def _together(levels: Floats, groups: Groups, at: Ints, instants: int) -> Floats:
    """What levels of all holders come to at each instant, nearly: by how far each goes beyond the one before.

    It is exact where they are small whole numbers.

    Args:
        levels: holder by holder.
        groups: the same by their holders.
        at: the instant at which each begins.
        instants: how many there are.
    """
    changes = levels - np.append(0.0, levels[:-1]) * ~groups.first
    return np.bincount(at, changes, instants).cumsum()
