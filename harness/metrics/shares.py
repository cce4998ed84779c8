"""What share of the cluster each holder has, and what share it ideally would have, over time.

A holder's share is its dominant share: the largest part of any resource's capacity that it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from harness.metrics.ideal import Grid, Wants, ideal_shares
from harness.metrics.levels import Holder, Piece
from harness.runs.run import Run

_CELLS = 1 << 20  # holders times instants that are looked at together
_LEAST = 1 << 9
_MOST = 1 << 17


class Shares(NamedTuple):
    """The shares of holders over a piece of time.

    Attributes:
        grid: the shape of the columns: holders times the instants of the piece.
        holders: the number of each holder, in the order of the columns; those that ask for nothing throughout
            the piece are not there.
        share: what a holder holds at an instant, as a share.
        ideal: what it would hold if all was shared ideally.
    """

    grid: Grid
    holders: pl.Series
    share: pl.Series
    ideal: pl.Series


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
        self._weight = pl.Series([user.weight for user in users], dtype=pl.Float64)

    def of(self, piece: Piece) -> Shares | None:
        """The shares over a piece; None where nobody asks for anything, or no capacity is known."""
        if not self._capacity:
            return None
        rows = self._wanting(piece.rows)
        if rows.is_empty():
            return None
        holders = rows["holder"].unique(maintain_order=True)
        grid = Grid(len(holders), len(piece.times))
        place = rows["holder"].rle_id().cast(pl.Int64) * grid.instants + rows["at"]
        first = pl.Series([0], dtype=pl.UInt32).new_from_index(0, grid.holders * grid.instants)
        cells = first.scatter(place, 1).cum_sum() - 1
        share, weight, demand, limit = (
            rows[name].gather(cells) for name in ("share", "weight", "demand", "limit")
        )
        rates = [rows[f"rate{number}"].gather(cells) for number, _ in self._capacity]
        return Shares(grid, holders, share, ideal_shares(grid, Wants(weight, demand, limit, rates)))

    def _wanting(self, rows: pl.DataFrame) -> pl.DataFrame:
        """What each level means as shares, without the holders that ask for nothing in this piece."""
        parts = [pl.col(f"demand{number}") / capacity for number, capacity in self._capacity]
        held = [pl.col(f"allocated{number}") / capacity for number, capacity in self._capacity]
        rows = rows.with_columns(
            top=pl.max_horizontal(parts),
            share=pl.max_horizontal(held),
            weight=self._weight.gather(rows["holder"]),
        )
        top, weight = pl.col("top"), pl.col("weight")
        asking = rows.filter(top > 0)["holder"].unique()
        rises = (top > 0) & (weight > 0)
        demand = pl.min_horizontal(top, pl.lit(1.0))
        wants = {"demand": demand, "limit": demand / weight}
        wants |= {
            f"rate{number}": weight * part / top
            for part, (number, _) in zip(parts, self._capacity, strict=True)
        }
        return rows.filter(pl.col("holder").is_in(asking.implode())).with_columns(
            pl.when(rises).then(want).otherwise(0.0).alias(name) for name, want in wants.items()
        )
