"""The distribution of waits: which part of the jobs had started after how long, on a logarithmic axis."""

from __future__ import annotations

from math import log10

import altair as alt
import polars as pl

from harness.report.charts import axes
from harness.report.material import Material
from harness.report.waits import Waits
from harness.units import DAY, HOUR, MINUTE, SECOND

_SHORTEST = SECOND
_MARKS = {SECOND: "1s", 10 * SECOND: "10s", MINUTE: "1m", 10 * MINUTE: "10m", HOUR: "1h", 10 * HOUR: "10h"}
_MARKS |= {2 * DAY: "2d", 10 * DAY: "10d", 100 * DAY: "100d"}
_PANEL = 280


def distribution(material: Material, found: Waits, width: int) -> alt.ConcatChart:
    """A panel for each lane with a line for each run; what waited less than a second is at one second."""
    columns = max(1, width // _PANEL)
    inside = axes.inner(width, columns=columns)
    waits = [each.sorted[-1] for run in found.of_runs for each in run if len(each.sorted)]
    longest = max([*waits, 10 * MINUTE])
    steps = inside // 2
    grid = [round(_SHORTEST * 10 ** (log10(longest / _SHORTEST) * step / steps)) for step in range(steps + 1)]
    grid[-1] = longest  # whatever rounding did, the last point counts every job that started
    ticks = [mark for mark in _MARKS if mark <= longest]
    if inside < axes.NARROW:
        ticks = [mark for mark in ticks if mark not in (10 * SECOND, 10 * MINUTE, 10 * HOUR)]
    names = ", ".join(f"'{mark / SECOND:g}': '{_MARKS[mark]}'" for mark in ticks)
    x = alt.X(
        "wait:Q",
        scale=alt.Scale(type="log", domain=[1, longest / SECOND], nice=False),
        axis=alt.Axis(
            title=None,
            values=[mark / SECOND for mark in ticks],
            labelExpr=f"({{{names}}})[format(datum.value, 'd')]",
            grid=False,
        ),
    )
    panels = []
    for place, lane in enumerate(found.lanes):
        frames = []
        for key, run in zip(material.run_keys, found.of_runs, strict=True):
            waited = run[place]
            if waited.jobs:
                parts = waited.sorted.search_sorted(pl.Series(grid), side="right") / waited.jobs
                frames.append(
                    pl.DataFrame({"wait": [each / SECOND for each in grid], "mean": parts}).with_columns(
                        run=pl.lit(key.name)
                    )
                )
        if not frames:
            continue
        chart = alt.Chart(pl.concat(frames)).mark_line(strokeWidth=1.4)
        panels.append(
            axes.panel(
                [
                    chart.encode(
                        x,
                        axes.amount_axis("jobs started", top=1.0, shown_as=".0%"),
                        axes.coloured("run:N", material.run_keys),
                        axes.dashed("run:N", material.run_keys),
                    )
                ],
                title=lane,
                width=inside,
                height=80,
            )
        )
    return alt.concat(*panels, columns=columns, spacing=14)
