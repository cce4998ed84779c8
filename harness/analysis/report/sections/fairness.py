"""The section on fairness, which shows how far shares are from their ideals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from harness.analysis.metrics.exact import resource_time
from harness.analysis.metrics.levels import holders, pieces
from harness.analysis.metrics.shares import Sharing, changes_at_once
from harness.analysis.report import charts
from harness.analysis.report.amounts import percent
from harness.analysis.report.blocks import Block, Figure
from harness.analysis.report.material import Material
from harness.analysis.report.reduction import per_pixel
from harness.runs.run import Run

if TYPE_CHECKING:
    from altair.typing import ChartType


ONE = 10**9
"""The integer for a share of 1. Shares are in billionths, so that sums are the same on every machine."""


def blocks(material: Material) -> Iterator[Block]:
    """Yields a chart of the deviation from ideal shares over time, and a chart by queue or quota.

    The second chart shows how far the mean share of each queue or quota is above or below its ideal share. If
    there are fewer than two queues or quotas, there are no charts.
    """
    if len(material.places) < 2 or not any(run.capacity for run in material.runs):
        return
    found = material.of_runs(deviation)
    yield Figure(
        title=f"Share of the cluster that the wrong {material.holder}s hold",
        words=_words(material, found),
        draw=lambda width: _over_time(material, found, width),
        keys=material.run_keys,
        note=f"Half the sum of all differences between {material.holder}s' dominant shares and their ideal "
        "shares, which are weighted max-min fair; 0 % is ideal. Lines are means over three pixels, and bands "
        "show the lowest and highest value in these pixels.",
    )
    yield Figure(
        title=f"Share of each {material.holder} beyond its ideal share, on average",
        words=_excess_words(material, found),
        draw=lambda width: _excess(material, found, width),
        keys=material.run_keys,
        note="A bar to the right means more than the ideal share, and a bar to the left means less.",
    )


def _words(material: Material, found: Sequence[Deviation]) -> str:
    sentences = []
    for name, run, each in zip(material.names, material.runs, found, strict=True):
        whole = per_pixel(each.changes, run.window, 1)
        mean, most = whole.select("mean", "high").row(0) if whole.height else (0.0, 0)
        sentences.append(f"{name}: {percent(mean / ONE)} on average, at most {percent(most / ONE)}.")
    return " ".join(sentences)


def _of_lanes(material: Material, each: Deviation) -> list[float]:
    return [sum(each.excess.get(holder, 0.0) for holder in lane.holders) for lane in material.lanes]


def _excess_words(material: Material, found: Sequence[Deviation]) -> str:
    excess = [_of_lanes(material, each) for each in found]
    sentences = []
    for place, lane in enumerate(material.lanes):
        runs = zip(material.names, excess, strict=True)
        each = (f"{name} {100 * run[place]:+z.1f} %" for name, run in runs)
        sentences.append(f"{lane.name}: {', '.join(each)}.")
    return "In percentage points of the cluster. " + " ".join(sentences)


def _over_time(material: Material, found: Sequence[Deviation], width: int) -> ChartType:
    inside = charts.axes.inner(width)
    changes = material.on_axis(each.changes for each in found)
    frames = [
        reduced.with_columns(pl.col("low", "mean", "high") / ONE)
        for reduced in material.reduced(changes, inside // charts.levels.PIXELS_A_POINT)
    ]
    top = max(map(charts.levels.highest, frames)) * 1.04
    return charts.levels.lines(
        material,
        frames,
        material.run_keys,
        width=inside,
        height=170,
        title="of the cluster",
        top=top,
        shown_as=".0%",
    )


def _excess(material: Material, found: Sequence[Deviation], width: int) -> ChartType:
    rows = [
        (lane, run, value)
        for run, each in enumerate(found)
        for lane, value in enumerate(_of_lanes(material, each))
    ]
    return charts.bars.grouped(
        rows,
        [lane.name for lane in material.lanes],
        material.run_keys,
        width=width,
        title="points of the cluster",
        shown_as="+.1%",
    )


class Deviation(NamedTuple):
    """How far the shares of a run's quotas are from their ideal shares.

    A queue without a quota counts like a quota.

    Attributes:
        changes: the columns `series` (always 0), `time` and `level`. The level is half the sum of all
            absolute differences between shares and ideal shares. It is the share of the cluster that the
            wrong quotas have.
        excess: for each quota, `mean share - mean ideal share` over the run's window.
    """

    changes: pl.DataFrame
    excess: Mapping[str, float]


def deviation(run: Run) -> Deviation:
    """Computes how far the shares of a run's quotas are from their ideal shares."""
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
