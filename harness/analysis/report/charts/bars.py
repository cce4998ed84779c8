"""Draws horizontal bars on both sides of a zero line, with a row for each label and a bar for each key."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from harness.analysis.report import palette
from harness.analysis.report.blocks import Key
from harness.analysis.report.charts import axes

_LABEL, _LETTERS = 130, 18
"""The space for the names of rows in pixels, and the number of letters that fit."""
_NARROW_LABEL, _NARROW_LETTERS = 92, 12


def grouped(
    rows: Sequence[tuple[int, int, float]],
    labels: Sequence[str],
    keys: Sequence[Key],
    *,
    width: int,
    title: str,
    shown_as: str = "",
    name: str = "",
    limit: float | None = None,
) -> alt.LayerChart:
    """Returns a chart with groups of horizontal bars.

    Each row has the number of its label, the number of its key, and a value. The axis extends to `limit` on
    either side of zero, or as far as necessary. `shown_as` is a format as in `axes.written`.
    """
    wide = width >= axes.NARROW
    room, letters = (_LABEL, _LETTERS) if wide else (_NARROW_LABEL, _NARROW_LETTERS)
    labels = axes.endings(labels, letters)
    frame = pl.DataFrame(rows, schema={"row": pl.Int64, "key": pl.Int64, "value": pl.Float64}, orient="row")
    most = limit or max((abs(value) for _, _, value in rows), default=1.0) * 1.05 or 1.0
    frame = frame.with_columns(
        row=pl.Series(labels, dtype=pl.String).gather(frame["row"]), of=axes.named(frame["key"], keys)
    )
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            alt.X(
                "value:Q",
                scale=alt.Scale(domain=[-most, most], nice=False),
                axis=alt.Axis(title=title, labelExpr=axes.written(shown_as), tickCount=6 if wide else 3),
            ),
            alt.Y("row:N", sort=labels, axis=axes.rows_axis(room)),
            axes.coloured("of:N", keys),
            yOffset=alt.YOffset("key:O", scale=alt.Scale(domain=list(range(len(keys))))),
        )
    )
    zero = (
        alt.Chart(pl.DataFrame({"value": [0.0]})).mark_rule(color=palette.INK.light).encode(alt.X("value:Q"))
    )
    height = len(labels) * max(14, 7 * len(keys) + 4)
    inside = width - room - axes.RIGHT - 12
    return axes.panel([bars, zero], title=name, width=inside, height=height)
