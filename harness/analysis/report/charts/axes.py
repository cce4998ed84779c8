"""Defines axes, sizes and panels for all charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import polars as pl

from harness.analysis.explanation.clock import Clock
from harness.analysis.report import palette
from harness.analysis.report.blocks import Key
from harness.analysis.report.material import Material, distinct
from harness.base.units import DAY, HOUR, MINUTE, SECOND
from harness.plugins.measurement import Window

LEFT = 58
"""The width of the vertical axis in pixels. It does not depend on labels, so that panels are aligned."""
RIGHT = 14
NARROW = 500

_WAITS = {0: "0", 1: "1m", 10: "10m", 60: "1h", 600: "10h", 1440: "1d", 10_080: "7d", 100_800: "70d"}
"""Maps minutes to the labels of an axis of waits."""

_UNITS = ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes"), (SECOND, "seconds"), (1, "microseconds"))


def inner(width: int, *, columns: int = 1) -> int:
    """Returns the width of each plot in a chart with several columns."""
    return width // columns - LEFT - RIGHT


def time_axis(material: Material, *, labels: bool = True, part: Window | None = None) -> alt.X:
    """Returns the time axis, which is the same for all runs. With `part`, it covers only that part."""
    shown = part or material.window
    domain = [_at(material, shown, time) for time in shown]
    if domain[0] == domain[1]:
        domain[1] += 1.0
    axis = alt.Axis(title=None, labels=labels, ticks=labels, grid=False, labelFlush=True, tickCount=6)
    if _dated(material):
        # The ends are expressions, because Vega-Lite converts plain times to a form that its expression
        # interpreter cannot read.
        ends = [alt.ExprRef(expr=f"{time:.0f}") for time in domain]
        scale = alt.Scale(type="utc", domain=ends, nice=False)
        if labels and not Clock(material.runs[0]).is_utc:
            axis.title = "UTC"  # texts, in contrast, use the trace's time zone
        return alt.X("at:T", scale=scale, axis=axis)
    axis.title = f"{_unit(shown)[1]} since the first submission" if labels else None
    return alt.X("at:Q", scale=alt.Scale(domain=domain, nice=False), axis=axis)


def timed(material: Material, frame: pl.DataFrame, part: Window | None = None) -> pl.DataFrame:
    """Replaces the column `time` by the column `at`, which contains positions on the time axis."""
    return frame.with_columns(at=_value(material, part or material.window, pl.col("time"))).drop("time")


def upright_axis(title: str, **settings: Any) -> alt.Axis:
    """Returns a vertical axis with space for numbers such as 12.5% between its line and its title."""
    extent = LEFT - 20
    return alt.Axis(title=title, titlePadding=6, minExtent=extent, maxExtent=extent, **settings)


def rows_axis(room: int, title: str | None = None) -> alt.Axis:
    """Returns a vertical axis of names, which are cut off if they need more than `room` pixels."""
    return alt.Axis(
        title=title, labelLimit=room - 4, minExtent=room, maxExtent=room, domain=False, ticks=False
    )


def amount_axis(title: str, *, top: float, shown_as: str = "", field: str = "mean:Q") -> alt.Y:
    """Returns a vertical axis that begins at 0. See `written` for the format of its numbers."""
    top = top or 1
    # The number of ticks is limited so that all ticks are at integers. A minimum step would not be enough,
    # because Vega may use a smaller step.
    ticks = 4 if shown_as or top < 1 else min(4, int(top))
    axis = upright_axis(title, tickCount=ticks, labelExpr=written(shown_as))
    return alt.Y(field, scale=alt.Scale(domain=[0, top], nice=False), axis=axis)


def wait_scale(top: float) -> alt.Scale:
    """Returns a scale of minutes that shows both short and long waits."""
    return alt.Scale(type="symlog", domain=[0, top], nice=False)


def wait_axis(title: str, *, top: float, upright: bool = False) -> alt.Axis:
    """Returns an axis for `wait_scale`, with marks at round waits such as 10m and 1d."""
    labels = f"({_WAITS})[format(datum.value, 'd')]"
    made = upright_axis if upright else alt.Axis
    return made(title=title, values=[each for each in _WAITS if each <= top], labelExpr=labels)


def written(shown_as: str) -> str:
    """Returns an expression that formats numbers in a d3 format, or else in a short form such as 15k."""
    if shown_as:
        return f"format(datum.value, '{shown_as}')"
    return "format(datum.value, abs(datum.value) < 1 ? '.2~g' : '~s')"


def coloured(field: str, keys: Sequence[Key]) -> alt.Color:
    """Returns an encoding that gives each key its colour."""
    return alt.Color(
        field,
        scale=alt.Scale(domain=[key.name for key in keys], range=[key.colour for key in keys]),
        legend=None,
    )


def dashed(field: str, keys: Sequence[Key]) -> alt.StrokeDash:
    """Returns an encoding that gives each key its dashes."""
    dashes = [list(key.dash) or [1, 0] for key in keys]
    return alt.StrokeDash(
        field, scale=alt.Scale(domain=[key.name for key in keys], range=dashes), legend=None
    )


def named(numbers: pl.Series, keys: Sequence[Key]) -> pl.Series:
    """Replaces each number by the name of the key with this index."""
    return pl.Series([key.name for key in keys], dtype=pl.String).gather(numbers)


def endings(names: Iterable[str], letters: int) -> list[str]:
    """Shortens long names at the beginning, because names differ more often at the end.

    Vega shortens names at the end, so names with the same beginning would look the same.
    """
    return distinct(name if len(name) <= letters else f"…{name[1 - letters :]}" for name in names)


def level(value: float, dash: Sequence[int]) -> alt.Chart:
    """Returns a horizontal reference line."""
    frame = pl.DataFrame({"mean": [float(value)]})
    rule: alt.Chart = alt.Chart(frame).mark_rule(
        color=palette.INK.light, strokeWidth=1.2, strokeDash=list(dash)
    )
    return rule.encode(alt.Y("mean:Q"))


def stepped(
    material: Material, steps: Sequence[tuple[int, float]], dash: Sequence[int], x: alt.X
) -> alt.Chart:
    """Returns a reference line whose level changes at given times.

    `steps` contains times on the time axis, each with the level that begins then.
    """
    if len(steps) == 1:
        return level(steps[0][1], dash)
    times = [*(time for time, _ in steps), material.window.end]
    levels = [float(amount) for _, amount in (*steps, steps[-1])]
    frame = timed(material, pl.DataFrame({"time": times, "mean": levels}))
    line: alt.Chart = alt.Chart(frame).mark_line(
        color=palette.INK.light, strokeWidth=1.2, strokeDash=list(dash), interpolate="step-after"
    )
    return line.encode(x, alt.Y("mean:Q"))


def panel(layers: Iterable[alt.Chart], *, title: str, width: int, height: int) -> alt.LayerChart:
    """Combines layers on the same axes into a panel with a title."""
    heading = alt.Title(title, anchor="start", limit=width + LEFT)  # the title begins to the left of the axis
    # Setting these properties later would copy all layers twice more.
    chart = alt.layer(*layers, width=width, height=height, title=heading)
    assert isinstance(chart, alt.LayerChart)  # layers of charts without facets always form a LayerChart
    return chart


def _dated(material: Material) -> bool:
    return str(material.runs[0].info["trace"]["times"]) == "timestamp"


def _unit(shown: Window) -> tuple[int, str]:
    span = shown.end - shown.start
    return next(unit for unit in _UNITS if span >= 4 * unit[0] or unit[0] == 1)


def _value(material: Material, shown: Window, time: pl.Expr) -> pl.Expr:
    if _dated(material):
        origin: int = material.runs[0].info["trace"]["origin_us"]
        return (time + origin) // 1000
    return (time - material.window.start) / _unit(shown)[0]


def _at(material: Material, shown: Window, time: int) -> float:
    return float(pl.select(_value(material, shown, pl.lit(time))).item())
