"""The distribution of waits: which part of the jobs had started after how long, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

import altair as alt
import polars as pl

from harness.report.charts import axes
from harness.report.charts.levels import PANEL
from harness.report.material import Material
from harness.report.waits import Waited, Waits
from harness.units import DAY, HOUR, MINUTE, SECOND

_SHORTEST = SECOND
_ROUGH_MARKS = {SECOND: "1s", MINUTE: "1m", HOUR: "1h", 2 * DAY: "2d", 10 * DAY: "10d", 100 * DAY: "100d"}
_FINE_MARKS = {10 * SECOND: "10s", 10 * MINUTE: "10m", 10 * HOUR: "10h"}


def distribution(material: Material, found: Waits, width: int) -> alt.ConcatChart:
    """A panel for each lane with a line for each run; what waited less than a second is at one second."""
    columns = max(1, width // PANEL)
    inside = axes.inner(width, columns=columns)
    waits = [each.sorted[-1] for run in found.of_runs for each in run if len(each.sorted)]
    longest = max([*waits, 10 * MINUTE])
    steps = inside // 2
    grid = [round(_SHORTEST * 10 ** (log10(longest / _SHORTEST) * step / steps)) for step in range(steps + 1)]
    grid[-1] = longest  # whatever rounding did, the last point counts every job that started
    x = _axis(longest, fine=inside >= axes.NARROW)
    return alt.concat(
        *(
            _panel(material, [run[place] for run in found.of_runs], grid, x, title=lane, width=inside)
            for place, lane in enumerate(found.lanes)
        ),
        columns=columns,
        spacing=14,
    )


def _axis(longest: int, *, fine: bool) -> alt.X:
    """A logarithmic axis of waits in seconds, marked as people say them."""
    marks = _ROUGH_MARKS | (_FINE_MARKS if fine else {})
    names = {mark // SECOND: name for mark, name in sorted(marks.items()) if mark <= longest}
    return alt.X(
        "wait:Q",
        scale=alt.Scale(type="log", domain=[1, longest / SECOND], nice=False),
        axis=alt.Axis(
            title=None,
            values=list(names),
            labelExpr=f"({names})[format(datum.value, 'd')]",
            grid=False,
        ),
    )


def _panel(
    material: Material, waited: Sequence[Waited], grid: Sequence[int], x: alt.X, *, title: str, width: int
) -> alt.LayerChart:
    """The lines of one lane; a run in which it has no jobs has none."""
    seconds = [each / SECOND for each in grid]
    frames = [
        pl.DataFrame(
            {"wait": seconds, "mean": each.sorted.search_sorted(pl.Series(grid), side="right") / each.jobs}
        ).with_columns(run=pl.lit(key.name))
        for key, each in zip(material.run_keys, waited, strict=True)
        if each.jobs
    ]
    nothing = pl.DataFrame(schema={"wait": pl.Float64, "mean": pl.Float64, "run": pl.String})
    lines = (
        alt.Chart(pl.concat([nothing, *frames]))
        .mark_line(strokeWidth=1.4)
        .encode(
            x,
            axes.amount_axis("jobs started", top=1.0, shown_as=".0%"),
            axes.coloured("run:N", material.run_keys),
            axes.dashed("run:N", material.run_keys),
        )
    )
    return axes.panel([lines], title=title, width=width, height=80)
