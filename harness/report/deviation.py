"""How far holders' shares were from ideal at every instant, and on which side each was on average."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from harness.metrics.levels import holders, pieces
from harness.metrics.shares import Sharing, changes_at_once
from harness.runs.run import Run

ONE = 10**9
"""What a share of 1 is: shares are whole billionths here, which add up to the same on every machine."""


class Deviation(NamedTuple):
    """What there is to say of a run's shares.

    Attributes:
        changes: `series` (always 0), `time` and `level`, half the sum of all differences between the shares
            and the ideal ones: the part of the cluster that is with the wrong holders.
        excess: holder -> its share minus its ideal share, on average over the run's window.
    """

    changes: pl.DataFrame
    excess: Mapping[str, float]


def deviation(run: Run) -> Deviation:
    """How far a run's holders were from their ideal shares."""
    users = holders(run)
    sharing = Sharing(run, users)
    levels: list[pl.DataFrame] = []
    sums: list[pl.DataFrame] = []
    for piece in pieces(run, run.window, changes=changes_at_once(users)):
        found = sharing.of(piece)
        if found is None:
            levels.append(pl.DataFrame({"time": piece.times[:1], "level": pl.Series([0])}))
            continue
        grid = found.grid
        off = (found.share - found.ideal) * ONE
        levels.append(
            pl.DataFrame({"time": piece.times, "level": (grid.total(off.abs()) / 2).round().cast(pl.Int64)})
        )
        span = piece.times.shift(-1, fill_value=piece.end) - piece.times
        cells = pl.DataFrame({"off": off.round().cast(pl.Int64), "span": grid.spread(span)})
        number = pl.int_range(pl.len()) // grid.instants
        sums.append(
            cells.group_by(number.alias("place"), maintain_order=True)
            .agg((pl.col("off").cast(pl.Int128) * pl.col("span")).sum())
            .select(found.holders.alias("holder"), "off")
        )
    total = max(1, (run.window.end - run.window.start)) * ONE
    excess = dict.fromkeys((user.name for user in users), 0.0)
    if sums:
        for holder, off in pl.concat(sums).group_by("holder").agg(pl.col("off").sum()).iter_rows():
            excess[users[holder].name] = off / total
    changes = pl.concat(levels).select(pl.lit(0, pl.Int32).alias("series"), "time", "level")
    return Deviation(changes, excess)
