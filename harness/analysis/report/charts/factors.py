"""Draws an experiment's factors: effects with intervals, heat maps, and small multiples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import polars as pl

from harness.analysis.report import palette
from harness.analysis.report.blocks import Key
from harness.analysis.report.charts import axes
from harness.analysis.report.charts.levels import PANEL

_ROW = 20
_LABELS, _LETTERS = 200, 28
"""The space for the names of effects in pixels, and the number of letters that fit."""
_NARROW_LABELS, _NARROW_LETTERS = 130, 18
_NAMES, _NAME_LETTERS = 96, 14
"""The space for the names of a heat map's rows and columns in pixels, and the number of letters that fit."""
_PLACES, _PLACE_LETTERS = 70, 10
"""The space for the horizontal labels of small multiples in pixels, and the number of letters that fit."""
_CELL = 34
_MULTIPLE = 110
_PALEST, _FULLEST = 0.08, 0.75
_MEASURED = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "told": pl.String}


class Effect(NamedTuple):
    """The effect of one value of a factor.

    Attributes:
        name: the factor and its value.
        value: the difference that the value makes, in the unit of the axis.
        low: the lower end of the effect's interval, or None.
        high: the upper end of the interval, or None.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    told: str


def effects_chart(found: Sequence[Effect], *, title: str, shown_as: str, width: int) -> alt.LayerChart:
    """Returns a chart with a row for each effect, which is drawn as a point with its interval."""
    wide = width >= axes.NARROW
    room, letters = (_LABELS, _LETTERS) if wide else (_NARROW_LABELS, _NARROW_LETTERS)
    names = axes.endings((each.name for each in found), letters)
    frame = pl.DataFrame(found, schema={"name": pl.String, **_MEASURED}, orient="row").with_columns(
        name=pl.Series(names, dtype=pl.String)
    )
    x = alt.X(
        "value:Q", axis=alt.Axis(title=title, labelExpr=axes.written(shown_as), tickCount=5 if wide else 3)
    )
    y = alt.Y("name:N", sort=names, axis=axes.rows_axis(room))
    colour = palette.KINDS[0].light
    ends = frame.filter(pl.col("low").is_not_null())
    layers = [
        alt.Chart(pl.DataFrame({"value": [0.0]})).mark_rule(color=palette.INK.light).encode(x),
        alt.Chart(ends).mark_rule(color=colour, strokeWidth=2).encode(alt.X("low:Q"), y, alt.X2("high")),
        alt.Chart(frame)
        .mark_circle(color=colour, size=60, opacity=1, aria=True)
        .encode(x, y, alt.Description("told:N"), alt.Tooltip("told:N")),
    ]
    inside = width - room - axes.RIGHT - 12
    return axes.panel(layers, title="", width=inside, height=_ROW * len(found))


class Square(NamedTuple):
    """A cell of a heat map.

    Attributes:
        value: the value that the colour shows.
    """

    column: str
    row: str
    value: float
    text: str
    told: str


def heat_map(
    squares: Sequence[Square],
    columns: Sequence[str],
    rows: Sequence[str],
    *,
    titles: tuple[str, str],
    width: int,
) -> alt.LayerChart:
    """Returns a heat map. Higher values have stronger colours, and cells without a value stay empty."""
    values = [each.value for each in squares]
    low, span = min(values), max(values) - min(values)
    depth = [_PALEST + (_FULLEST - _PALEST) * ((each - low) / span if span else 0.0) for each in values]
    frame = pl.DataFrame(squares, schema=["column", "row", "value", "text", "told"], orient="row")
    told_columns, told_rows = (axes.endings(names, _NAME_LETTERS) for names in (columns, rows))
    frame = frame.with_columns(
        pl.col("column").replace(list(columns), told_columns),
        pl.col("row").replace(list(rows), told_rows),
        depth=pl.Series(depth, dtype=pl.Float64),
    )
    x_title, y_title = titles
    x = alt.X(
        "column:O",
        scale=alt.Scale(domain=told_columns),
        axis=alt.Axis(title=x_title, labelAngle=0, labelLimit=_NAMES, ticks=False, domain=False),
    )
    y = alt.Y("row:O", scale=alt.Scale(domain=told_rows), axis=axes.rows_axis(_NAMES, y_title))
    chart = alt.Chart(frame).encode(x, y)
    layers = [
        chart.mark_rect(color=palette.KINDS[3].light, aria=True).encode(
            alt.Opacity("depth:Q", scale=None, legend=None), alt.Description("told:N"), alt.Tooltip("told:N")
        ),
        chart.mark_text(fontSize=11, color=palette.INK.light).encode(alt.Text("text:N")),
    ]
    inside = min(axes.inner(width) - 20 - (_NAMES - axes.LEFT), 120 * len(columns))
    return axes.panel(layers, title="", width=inside, height=_CELL * len(rows))


class Dot(NamedTuple):
    """A point of small multiples.

    Attributes:
        panel: the number of the point's panel.
        place: the label of the point's place on the horizontal axis.
        key: the number of the point's line.
        value: the value, in the unit of the axis.
        low: the lower end of the value's interval, or None.
        high: the upper end of the interval, or None.
    """

    panel: int
    place: str
    key: int
    value: float
    low: float | None
    high: float | None
    told: str


def multiples(
    dots: Sequence[Dot],
    panels: Sequence[str],
    places: Sequence[str],
    keys: Sequence[Key],
    *,
    titles: tuple[str, str],
    shown_as: str,
    width: int,
) -> alt.ConcatChart:
    """Returns small multiples, which all have the same scale.

    There is a panel for each value of one factor, and a line for each value of a second factor. The
    horizontal axis shows a third factor.
    """
    columns = min(len(panels), max(1, width // PANEL))
    inside = axes.inner(width, columns=columns)
    x_title, y_title = titles
    reached = [end for each in dots for end in (each.value, each.low, each.high) if end is not None]
    low, high = min(reached), max(reached)
    room = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    frame = pl.DataFrame(
        dots, schema={"panel": pl.Int64, "place": pl.String, "key": pl.Int64, **_MEASURED}, orient="row"
    )
    # Lines have gaps where settings have no value.
    every = frame.select("panel", "key").unique(maintain_order=True)
    every = every.join(pl.DataFrame({"place": list(places)}, schema={"place": pl.String}), how="cross")
    frame = every.join(frame, on=["panel", "key", "place"], how="left", maintain_order="left_right")
    told = axes.endings(places, _PLACE_LETTERS)
    frame = frame.with_columns(pl.col("place").replace(list(places), told), of=axes.named(frame["key"], keys))
    x = alt.X(
        "place:O",
        scale=alt.Scale(domain=told),
        axis=alt.Axis(title=x_title, labelAngle=0, labelLimit=_PLACES),
    )
    scale = alt.Scale(
        domain=[min(0.0, low) if low < room else low - room, high + room], nice=False, zero=False
    )
    y = alt.Y(
        "value:Q", scale=scale, axis=axes.upright_axis(y_title, tickCount=4, labelExpr=axes.written(shown_as))
    )
    made = []
    for number, name in enumerate(panels):
        own = frame.filter(panel=number)
        chart = alt.Chart(own).encode(x, y, axes.coloured("of:N", keys))
        ends = alt.Chart(own.filter(pl.col("low").is_not_null()))
        layers = [
            chart.mark_line(strokeWidth=1.4).encode(axes.dashed("of:N", keys)),
            ends.mark_rule(strokeWidth=1.2).encode(
                x, alt.Y("low:Q", scale=scale), axes.coloured("of:N", keys), alt.Y2("high")
            ),
            chart.mark_circle(size=40, opacity=1, aria=True).encode(
                alt.Description("told:N"), alt.Tooltip("told:N")
            ),
        ]
        made.append(axes.panel(layers, title=name, width=inside, height=_MULTIPLE))
    return alt.concat(*made, columns=columns, spacing=14)
