"""What share of the cluster each holder has, and what share it ideally would have, over time.

A holder's share is its dominant share: the largest part of any resource's capacity that it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.arrays import Floats, Groups, Ints, quotients
from harness.metrics.ideal import Wants, ideal_shares
from harness.metrics.levels import Holder, Piece
from harness.runs.run import Run

_CELLS = 1 << 20  # holders times instants that are looked at together
_LEAST = 1 << 9
_MOST = 1 << 17
_FULL = 1 - 1e-6
"""How much of a resource may be asked for so that all get it, whatever rounding does to the sum."""


class Shares(NamedTuple):
    """The shares of holders over a piece of time.

    Attributes:
        holders: the number of each holder; those that ask for nothing throughout the piece are not there.
        share: a row for each of them, a column for each instant of the piece: what it holds, as a share.
        ideal: likewise, what it would hold if all was shared ideally.
    """

    holders: Ints
    share: Floats
    ideal: Floats


def changes_at_once(users: Sequence[Holder]) -> int:
    """How many changes of level are looked at together: memory does not follow the number of holders."""
    return min(_MOST, max(_LEAST, _CELLS // max(1, len(users))))


class Sharing:
    """Computes the shares of a run's holders.

    Args:
        run: the run.
        users: its holders; a place among them is the holder's number.
    """

    def __init__(self, run: Run, users: Sequence[Holder]) -> None:
        self._capacity = [
            (number, run.capacity[resource])
            for number, resource in enumerate(run.resources)
            if run.capacity.get(resource)
        ]
        self._weight = np.array([user.weight for user in users], np.float64)

    def of(self, piece: Piece) -> Shares | None:
        """The shares over a piece; None where nobody asks for anything, or no capacity is known."""
        if not self._capacity:
            return None
        every = [
            [piece.levels[f"{kind}{number}"] / capacity for number, capacity in self._capacity]
            for kind in ("allocated", "demand")
        ]
        top = np.maximum.reduce(every[1])
        asks = np.zeros(len(self._weight), np.bool_)
        asks[piece.holder[top > 0]] = True
        rows = np.flatnonzero(asks[piece.holder])
        if not len(rows):
            return None
        share = np.maximum.reduce(every[0])[rows]
        top, asked = top[rows], [part[rows] for part in every[1]]
        groups, at = Groups(piece.holder[rows]), piece.at[rows]
        shape = (len(groups.begins), len(piece.times))
        # The number of the row that says what a holder has at an instant.
        places = at + (groups.first.cumsum() - 1) * shape[1]
        cells = np.repeat(np.arange(len(rows)), np.diff(places, append=shape[0] * shape[1])).reshape(shape)
        weight = self._weight[groups.keys]
        rises = (top > 0) & (weight > 0)
        demand = np.where(rises, np.minimum(top, 1.0), 0.0)
        limit = np.where(rises, quotients(demand, weight), 0.0)
        rates = [np.where(rises, quotients(weight * part, top), 0.0) for part in asked]
        ideal = demand[cells]
        short = _contended(groups, at, shape[1], [rate * limit for rate in rates])
        if len(short):
            some = cells[:, short]
            of_rates = [rate[some] for rate in rates]
            wants = Wants((weight * rises)[some], demand[some], limit[some], of_rates)
            ideal[:, short] = ideal_shares(wants)
        return Shares(groups.keys[groups.begins], share[cells], ideal)


def _contended(groups: Groups, at: Ints, instants: int, asked: Sequence[Floats]) -> Ints:
    """The instants at which not all can have what they ask for, or nearly not.

    Args:
        groups: levels by their holders.
        at: the instant at which each begins.
        instants: how many there are.
        asked: of each resource, what part of it is asked for.
    """
    found = np.zeros(instants, np.bool_)
    for each in asked:
        changes = each - np.append(0.0, each[:-1]) * ~groups.first
        found |= np.bincount(at, changes, instants).cumsum() > _FULL
    return np.flatnonzero(found)
