"""Draws comparisons of simulations with a record: waits as points, and errors over time as lines."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from harness.analysis.report import palette
from harness.analysis.report.blocks import Key
from harness.analysis.report.charts import axes
from harness.analysis.report.material import Material
from harness.base.units import MINUTE

_HEIGHT = 260


def scatter(keys: Sequence[Key], pairs: Sequence[pl.DataFrame], width: int) -> alt.LayerChart:
    """Plots simulated waits against recorded waits, in minutes, on axes that suit short and long waits."""
    frame = pl.concat(
        each.select(
            (pl.col("wait") / MINUTE).alias("recorded"),
            (pl.col("simulated_wait") / MINUTE).alias("simulated"),
            pl.lit(key.name).alias("name"),
        )
        for key, each in zip(keys, pairs, strict=True)
    )
    top = max(1.0, *(float(frame[name].max() or 0) for name in ("recorded", "simulated")))  # type: ignore[arg-type]
    x = alt.X("recorded:Q", scale=axes.wait_scale(top), axis=axes.wait_axis("recorded wait", top=top))
    y = alt.Y(
        "simulated:Q",
        scale=axes.wait_scale(top),
        axis=axes.wait_axis("simulated wait", top=top, upright=True),
    )
    dots = alt.Chart(frame).mark_circle(opacity=0.35, size=14).encode(x, y, axes.coloured("name:N", keys))
    ends = pl.DataFrame({"recorded": [0.0, top], "simulated": [0.0, top]})
    equal = alt.Chart(ends).mark_line(color=palette.INK.light, strokeDash=[4, 3], strokeWidth=1).encode(x, y)
    return axes.panel([dots, equal], title="", width=axes.inner(width), height=_HEIGHT)


def over_time(
    material: Material, keys: Sequence[Key], medians: Sequence[pl.DataFrame], width: int
) -> alt.LayerChart:
    """Plots median errors, in minutes, over time. Each frame has the columns `time` and `error`."""
    frame = pl.concat(
        each.select("time", (pl.col("error") / MINUTE).alias("mean"), pl.lit(key.name).alias("name"))
        for key, each in zip(keys, medians, strict=True)
    )
    most = float(frame["mean"].abs().max() or 0) or 1.0  # type: ignore[arg-type]
    y = alt.Y(
        "mean:Q",
        scale=alt.Scale(domain=[-most, most], nice=True),
        axis=axes.upright_axis("error, minutes", tickCount=5, labelExpr=axes.written("")),
    )
    lines = (
        alt.Chart(axes.timed(material, frame))
        .mark_line(strokeWidth=1.5)
        .encode(axes.time_axis(material), y, axes.coloured("name:N", keys), axes.dashed("name:N", keys))
    )
    return axes.panel([lines, axes.level(0.0, [2, 3])], title="", width=axes.inner(width), height=160)
