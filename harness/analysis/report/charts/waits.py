"""Draws distributions of waits and slowdowns on logarithmic axes, and waits by the size of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10
from typing import NamedTuple

import altair as alt
import polars as pl

from harness.analysis.report.charts import axes
from harness.analysis.report.charts.levels import PANEL
from harness.analysis.report.material import Material
from harness.analysis.report.waits import Waited, Waits
from harness.base.units import DAY, HOUR, MINUTE, SECOND

_NO_LINE = {"x": pl.Float64, "mean": pl.Float64, "run": pl.String}
_SIZES_HEIGHT = 150


class _Scale(NamedTuple):
    """A logarithmic axis.

    Attributes:
        shortest: the value at which the axis begins. Smaller values are drawn there.
        least: the lowest value at which the axis may end.
        rough: the labels of the axis.
        fine: additional labels, which are shown if they fit.
    """

    shortest: int
    least: int
    rough: Mapping[int, str]
    fine: Mapping[int, str]

    def axis(self, longest: float, *, room: bool) -> alt.X:
        marks = {**self.rough, **(self.fine if room else {})}
        names = {mark // self.shortest: name for mark, name in sorted(marks.items()) if mark <= longest}
        return alt.X(
            "x:Q",
            scale=alt.Scale(type="log", domain=[1, longest / self.shortest], nice=False),
            axis=alt.Axis(
                title=None, values=list(names), labelExpr=f"({names})[format(datum.value, 'd')]", grid=False
            ),
        )


_WAITS = _Scale(
    SECOND,
    10 * MINUTE,
    {SECOND: "1s", MINUTE: "1m", HOUR: "1h", 2 * DAY: "2d", 10 * DAY: "10d", 100 * DAY: "100d"},
    {10 * SECOND: "10s", 10 * MINUTE: "10m", 10 * HOUR: "10h"},
)
_SLOWDOWNS = _Scale(1, 10, {10**power: f"{10**power:,} ×" for power in range(8)}, {2: "2 ×", 5: "5 ×"})


def wait_distribution(material: Material, found: Waits, width: int) -> alt.ConcatChart:
    """Returns a panel for each group, with a line for each run. Waits below 1 s are drawn as 1 s."""
    return _distribution(material, found, width, _WAITS, title="jobs started", height=80)


def slowdown_distribution(material: Material, found: Waits, width: int) -> alt.ConcatChart:
    """Returns a panel of slowdowns, with a line for each run.

    The slowdown of a job is its completion time divided by its run time.
    """
    return _distribution(material, found, width, _SLOWDOWNS, title="jobs finished", height=150)


def _distribution(
    material: Material, found: Waits, width: int, scale: _Scale, *, title: str, height: int
) -> alt.ConcatChart:
    columns = min(len(found.names), max(1, width // PANEL))
    inside = axes.inner(width, columns=columns)
    longest = max(found.longest, scale.least)
    steps, span = inside // 2, log10(longest / scale.shortest)
    grid = [scale.shortest * 10 ** (span * step / steps) for step in range(steps + 1)]
    grid[-1] = longest  # rounding must not move the last point below the longest value
    x = scale.axis(longest, room=inside >= axes.NARROW)
    panels = []
    for place, name in enumerate(found.names):
        frames = [pl.DataFrame(schema=_NO_LINE)]
        for key, of_run in zip(material.run_keys, found.of_runs, strict=True):
            if of_run[place].jobs:
                frames.append(_line(of_run[place], grid, scale).with_columns(run=pl.lit(key.name)))
        lines = (
            alt.Chart(pl.concat(frames))
            .mark_line(strokeWidth=1.4)
            .encode(
                x,
                axes.amount_axis(title, top=1.0, shown_as=".0%"),
                axes.coloured("run:N", material.run_keys),
                axes.dashed("run:N", material.run_keys),
            )
        )
        panels.append(axes.panel([lines], title=name, width=inside, height=height))
    return alt.concat(*panels, columns=columns, spacing=14)


def _line(waited: Waited, grid: Sequence[float], scale: _Scale) -> pl.DataFrame:
    values = waited.sorted.cast(pl.Float64)
    counts = values.search_sorted(pl.Series(grid, dtype=pl.Float64), side="right")
    return pl.DataFrame({"x": [each / scale.shortest for each in grid], "mean": counts / waited.jobs})


def by_size(
    material: Material, found: Waits, percents: Mapping[int, str], *, width: int, title: str
) -> alt.ConcatChart:
    """Returns a chart of waits by the size of jobs, on an axis that suits short and long waits.

    There is a panel for each percentile in `percents`, with a heading.
    """
    columns = 1 if width < axes.NARROW else len(percents)
    inside = axes.inner(width, columns=columns)
    # Lines have a gap where no wait is known for a size, because a continuous line would suggest one.
    rows = [
        (percent, name, key.name, None if (wait := waited.quantile(percent)) is None else wait / MINUTE)
        for key, of_run in zip(material.run_keys, found.of_runs, strict=True)
        for name, waited in zip(found.names, of_run, strict=True)
        for percent in percents
    ]
    frame = pl.DataFrame(
        rows,
        schema={"percent": pl.Int64, "size": pl.String, "run": pl.String, "wait": pl.Float64},
        orient="row",
    )
    top = max([1.0, *frame["wait"].drop_nulls()])
    y = alt.Y("wait:Q", scale=axes.wait_scale(top), axis=axes.wait_axis("wait", top=top, upright=True))
    x = alt.X(
        "size:O",
        sort=list(found.names),
        scale=alt.Scale(domain=list(found.names)),
        axis=alt.Axis(title=title, labelAngle=0, labelOverlap=True),
    )
    panels = []
    for percent, name in percents.items():
        chart = alt.Chart(frame.filter(percent=percent)).encode(
            x, y, axes.coloured("run:N", material.run_keys)
        )
        layers = [
            chart.mark_line(strokeWidth=1.4).encode(axes.dashed("run:N", material.run_keys)),
            chart.mark_circle(size=28, opacity=1),
        ]
        panels.append(axes.panel(layers, title=name, width=inside, height=_SIZES_HEIGHT))
    return alt.concat(*panels, columns=columns, spacing=14)
