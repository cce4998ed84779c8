"""Runs as points between utilization and fairness; the larger a point, the more work was thrown away."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Literal

import altair as alt
import polars as pl

from harness.report.charts import axes
from harness.report.material import Material

if TYPE_CHECKING:
    from harness.report.sections.tradeoff import Point

_SMALLEST, _LARGEST = 90, 900
_BESIDE: Sequence[tuple[Literal["left", "center", "right"], int, int]] = (
    ("center", 0, -24),
    ("center", 0, 24),
    ("left", 22, 0),
    ("right", -22, 0),
)
"""Where names stand, run by run, so that those of runs in one place can be read."""


def scatter(material: Material, points: Sequence[Point], width: int) -> alt.LayerChart:
    """One point a run, with its name beside it."""
    frame = pl.DataFrame(points, schema=["useful", "deviation", "lost"], orient="row").with_columns(
        name=pl.Series(material.names)
    )
    lost = max(frame["lost"])
    x = alt.X(
        "useful:Q",
        scale=alt.Scale(domain=_around(frame["useful"]), nice=True, zero=False),
        axis=alt.Axis(title=f"useful utilization of {material.resource} →", format=".1%", tickCount=4),
    )
    y = alt.Y(
        "deviation:Q",
        scale=alt.Scale(domain=_around(frame["deviation"]), nice=True, zero=False, reverse=True),
        axis=alt.Axis(
            title="share deviation (up is fairer)",
            format=".1%",
            tickCount=4,
            minExtent=axes.LEFT - 20,
            maxExtent=axes.LEFT - 20,
        ),
    )
    size = alt.Size(
        "lost:Q", scale=alt.Scale(domain=[0, lost or 1], range=[_SMALLEST, _LARGEST]), legend=None
    )
    dots = (
        alt.Chart(frame)
        .mark_circle(opacity=0.75)
        .encode(x, y, size, axes.coloured("name:N", material.run_keys))
    )
    names = [
        alt.Chart(frame[place])
        .mark_text(align=align, baseline="middle", dx=dx, dy=dy, fontSize=11, limit=200)
        .encode(x, y, alt.Text("name:N"), axes.coloured("name:N", material.run_keys))
        for place, (align, dx, dy) in zip(range(len(points)), cycle(_BESIDE), strict=False)
    ]
    return axes.panel([dots, *names], title="", width=axes.inner(width), height=260)


def _around(values: pl.Series) -> list[float]:
    """An axis that has all values well inside, and nothing below 0."""
    low, high = min(values), max(values)
    room = max((high - low) * 0.25, 0.01)
    return [max(low - room, 0.0), high + room]
