"""Draws a strip with the changes of a run's cluster, for use below a chart over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt
import polars as pl

from harness.analysis.explanation.clock import Clock
from harness.analysis.report import palette
from harness.analysis.report.charts import axes
from harness.analysis.report.marks import ROWS, Mark, by_kind, merged
from harness.analysis.report.material import Material
from harness.base.text import first_of

_ROW = 16
_APART = 26
"""The minimum distance in pixels between the beginnings of two marks. Closer marks of one row are merged."""

_NAMED = 3
"""The maximum number of objects that the text of a merged mark names."""

_PILL, _PILL_SIZE = "M-.5,-.55H.5A.55,.55,0,0,1,.5,.55H-.5A.55,.55,0,0,1,-.5,-.55Z", 12**2
"""The outline around a number, and its size. Vega scales the outline by the square root of the size."""


def strip(material: Material, place: int, *, width: int, labels: bool) -> alt.LayerChart:
    """Returns a strip with a row for each kind of change.

    Ticks show when changes begin, and bars show how long they last. If the beginnings of several changes are
    too close to each other, a single mark shows the number of changes. `place` is the index of the run.
    `width` is the width of the plot, without axes.
    """
    window, shift = material.windows[place], material.shifts[place]
    clock, span = Clock(material.runs[place]), max(1, material.window.end - material.window.start)
    rows = [sort for sort in ROWS if any(mark.sort == sort for mark in material.marks[place])]
    bars, groups = [], []
    for sort in rows:
        own = [mark for mark in material.marks[place] if mark.sort == sort]
        bars += [(sort, *each) for each in _lasting(own, window.end - shift, span // width)]
        for group in merged(own, span * _APART // width):
            middle = (group[0].begin + group[-1].begin) // 2
            groups.append((sort, middle, len(group), _short(len(group)), _told(group, clock)))

    def timed(time: str) -> pl.Series:
        inside = frame.select(time=(pl.col(time) + shift).clip(window.start, window.end))
        return axes.timed(material, inside)["at"]

    x = axes.time_axis(material, labels=labels)
    edge = axes.LEFT - 4
    axis = alt.Axis(title=None, labelFontSize=10, minExtent=edge, maxExtent=edge, ticks=False, domain=False)
    y = alt.Y("sort:N", sort=rows, scale=alt.Scale(domain=rows), axis=axis)
    frame = pl.DataFrame(bars, schema=["sort", "begin", "end"], orient="row")
    lasting = alt.Chart(frame.select("sort", at=timed("begin"), until=timed("end")))
    frame = pl.DataFrame(groups, schema=["sort", "time", "count", "number", "told"], orient="row")
    chart = alt.Chart(frame.with_columns(at=timed("time")).drop("time")).encode(x, y)
    one, more = (chart.transform_filter(f"datum.count {which} 1") for which in ("==", ">"))
    layers = [
        lasting.mark_bar(height=5, color=palette.GRID.light).encode(x, y, alt.X2("until")),
        one.mark_tick(color=palette.INK.light, thickness=2, opacity=1, height=_ROW - 5, aria=True).encode(
            alt.Description("told:N"), alt.Tooltip("told:N")
        ),
        more.mark_point(
            shape=_PILL, size=_PILL_SIZE, filled=True, opacity=1, color=palette.OTHER.light, aria=True
        ).encode(alt.Description("told:N"), alt.Tooltip("told:N")),
        more.mark_text(fontSize=9, color=palette.INK.light).encode(alt.Text("number:N")),
    ]
    return axes.panel(layers, title="", width=width, height=_ROW * len(rows))


def _lasting(marks: Sequence[Mark], last: int, least: int) -> Iterator[tuple[int, int]]:
    """Yields the spans in which any change lasts. Gaps that are shorter than `least` are closed."""
    begin = end = marks[0].begin
    for mark in marks:
        if mark.begin > end + least:
            yield begin, end
            begin = end = mark.begin
        end = max(end, last if mark.end is None else mark.end)
    yield begin, end


def _told(group: Sequence[Mark], clock: Clock) -> str:
    first, last = clock.text(group[0].begin), clock.text(group[-1].begin)
    if len(group) == 1:
        until = "" if group[0].end is None else f" to {clock.text(group[0].end)}"
        return f"{first}{until}: {group[0].told}"
    names = list(dict.fromkeys(mark.name for mark in group))
    return f"{first} to {last}: {by_kind(group)}: {first_of(names, _NAMED)}"


def _short(count: int) -> str:
    """Formats a count with at most four characters."""
    return str(count) if count < 1000 else f"{count / 1000:.{1 if count < 9950 else 0}f}k"
