"""The distance of holders' shares from ideal at every instant, and the side of each on average."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from harness.analysis.metrics.exact import resource_time
from harness.analysis.metrics.levels import holders, pieces
from harness.analysis.metrics.shares import Sharing, changes_at_once
from harness.runs.run import Run

ONE = 10**9
"""A share of 1: shares are whole billionths here, so that sums are the same on every machine."""


class Deviation(NamedTuple):
    """The deviations of a run's shares.

    Attributes:
        changes: `series` (always 0), `time` and `level`: half the sum of all differences between the shares
            and the ideal ones. This is the part of the cluster that the wrong holders have.
        excess: holder -> its share minus its ideal share, on average over the run's window.
    """

    changes: pl.DataFrame
    excess: Mapping[str, float]


def deviation(run: Run) -> Deviation:
    """The distance of a run's holders from their ideal shares."""
    users = holders(run)
    levels: list[pl.DataFrame] = []
    sums = [0] * len(users)
    for piece, found in Sharing(run).of(pieces(run, run.window, changes=changes_at_once(users))):
        if found is None:
            levels.append(pl.DataFrame({"time": piece.times[:1], "level": pl.Series([0])}))
            continue
        off = (found.share - found.ideal) * ONE
        level = np.rint(found.askers.total(np.abs(off), slice(None)) / 2).astype(np.int64)
        levels.append(pl.DataFrame({"time": piece.times, "level": level}))
        for holder, of_holder in zip(found.holders.tolist(), np.rint(off).astype(np.int64), strict=True):
            sums[holder] += resource_time(of_holder, piece.spans)
    whole = max(1, (run.window.end - run.window.start)) * ONE
    excess = {user.name: off / whole for user, off in zip(users, sums, strict=True)}
    changes = pl.concat(levels).select(pl.lit(0, pl.Int32).alias("series"), "time", "level")
    return Deviation(changes, excess)
