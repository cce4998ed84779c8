"""Draws choices as points with names. Points that no other point beats are filled and joined."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import altair as alt
import polars as pl

from harness.analysis.report import palette
from harness.analysis.report.blocks import Key
from harness.analysis.report.charts import axes, labels
from harness.analysis.report.choices import Axis, Choice, unbeaten

_HEIGHT = 300


def frontier(
    choices: Sequence[Choice],
    keys: Sequence[Key],
    x_axis: Axis,
    y_axis: Axis,
    width: int,
    *,
    best: Collection[int] | None = None,
) -> alt.LayerChart:
    """Returns a chart with a point for each choice. A name that does not fit appears only in the tooltip.

    `best` contains the indexes of the choices that no other choice beats. By default, the function finds
    these choices by the values on the two axes, and joins them with a line.
    """
    joins = best is None
    best = unbeaten(choices, x_axis, y_axis) if best is None else best
    inside = axes.inner(width)
    x_ends, y_ends = (_around([getattr(each, of) for each in choices]) for of in ("x", "y"))

    def pixel(each: Choice) -> tuple[float, float]:
        return (
            (each.x - x_ends[0]) / (x_ends[1] - x_ends[0]) * inside,
            (y_ends[1] - each.y) / (y_ends[1] - y_ends[0]) * _HEIGHT,
        )

    ranked = sorted(range(len(choices)), key=lambda at: (at not in best, choices[at].x, choices[at].y, at))
    chosen = [choices[at] for at in ranked]
    pixels = [pixel(each) for each in chosen]
    lines = list(pairwise(pixels[: len(best)])) if joins else []
    found = labels.placed(pixels, [each.name for each in chosen], lines, width=inside, height=_HEIGHT)
    frame = pl.DataFrame(
        {
            "x": [each.x for each in chosen],
            "y": [each.y for each in chosen],
            "of": [keys[each.key].name for each in chosen],
            "told": [each.told for each in chosen],
            "best": [at in best for at in ranked],
        }
    )
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=x_ends, nice=False, zero=False),
        axis=alt.Axis(title=x_axis.title, tickCount=5, labelExpr=axes.written(x_axis.shown_as)),
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=y_ends, nice=False, zero=False),
        axis=axes.upright_axis(y_axis.title, tickCount=5, labelExpr=axes.written(y_axis.shown_as)),
    )
    chart = alt.Chart(frame).encode(x, y)
    colour = axes.coloured("of:N", keys)
    dots = [
        chart.transform_filter("datum.best")
        .mark_circle(size=110, opacity=1, aria=True)
        .encode(colour, alt.Description("told:N"), alt.Tooltip("told:N")),
        chart.transform_filter("!datum.best")
        .mark_point(size=80, opacity=1, strokeWidth=1.6, filled=False, aria=True)
        .encode(colour, alt.Description("told:N"), alt.Tooltip("told:N")),
    ]
    joined = (
        chart.transform_filter("datum.best")
        .mark_line(color=palette.INK.light, strokeWidth=1, strokeDash=[4, 3])
        .encode(order=alt.Order("x:Q"))
    )
    names = _names(chosen, found, pixels, x, y, x_ends, y_ends, inside)
    return axes.panel([*([joined] if joins else []), *names, *dots], title="", width=inside, height=_HEIGHT)


def _names(
    chosen: Sequence[Choice],
    found: Sequence[labels.Label | None],
    pixels: Sequence[tuple[float, float]],
    x: alt.X,
    y: alt.Y,
    x_ends: Sequence[float],
    y_ends: Sequence[float],
    inside: int,
) -> list[alt.Chart]:
    def back(across: float, down: float) -> tuple[float, float]:
        return (
            x_ends[0] + across / inside * (x_ends[1] - x_ends[0]),
            y_ends[1] - down / _HEIGHT * (y_ends[1] - y_ends[0]),
        )

    texts, lines = [], []
    for each, label, (across, down) in zip(chosen, found, pixels, strict=True):
        if label is None:
            continue
        texts.append((*back(label.x, label.y), each.name))
        if label.far:
            box = labels.box_of(each.name, label.x, label.y)
            edge = min(max(across, box.left), box.right), min(max(down, box.top), box.bottom)
            lines.append((*back(across, down), *back(*edge)))
    made = []
    if lines:
        frame = pl.DataFrame(lines, schema=["x", "y", "to_x", "to_y"], orient="row")
        rule = alt.Chart(frame).mark_rule(color=palette.GRID.light)
        made.append(rule.encode(x, y, alt.X2("to_x"), alt.Y2("to_y")))
    if texts:
        frame = pl.DataFrame(texts, schema=["x", "y", "name"], orient="row")
        text = alt.Chart(frame).mark_text(
            align="center", baseline="middle", fontSize=labels.SIZE, color=palette.INK.light
        )
        made.append(text.encode(x, y, alt.Text("name:N")))
    return made


def _around(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    room = (high - low) * 0.15 or abs(high) * 0.1 or 1.0
    return [low - room, high + room]
