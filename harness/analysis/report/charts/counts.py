"""Draws numbers of preemptions in equal parts of the window, stacked by kind, with one panel per run."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from harness.analysis.report.blocks import Key
from harness.analysis.report.charts import axes
from harness.analysis.report.material import Material


def counts(
    material: Material, events: Sequence[pl.DataFrame], keys: Sequence[Key], *, bins: int, width: int
) -> alt.VConcatChart:
    """Returns a chart whose bars show numbers of preemptions.

    `events` has, for each run, the `time` of each preemption and its `reason`, which is the number of a key.
    """
    start, span = material.window.start, material.window.end - material.window.start
    step = span // bins + 1
    inside = axes.inner(width)
    counted = [
        each.group_by((pl.col("time") - start) // step, "reason").len().sort("time", "reason")
        for each in events
    ]
    totals = [each.group_by("time").agg(pl.col("len").sum())["len"] for each in counted]
    top = max(max(each, default=0) for each in totals) * 1.04
    panels = []
    for number, (name, each) in enumerate(zip(material.names, counted, strict=True)):
        stacks = each.with_columns(high=pl.col("len").cum_sum().over("time"))
        stacks = stacks.with_columns(
            low=pl.col("high") - pl.col("len"), kind=axes.named(each["reason"], keys)
        )
        middle = stacks.with_columns(time=pl.col("time") * step + start + step // 2)
        bars = (
            alt.Chart(axes.timed(material, middle))
            .mark_bar(orient="vertical", width=inside * step / max(1, span))
            .encode(
                axes.time_axis(material, labels=number == len(counted) - 1),
                axes.amount_axis("preemptions", top=top, field="low:Q"),
                axes.coloured("kind:N", keys),
                alt.Y2("high"),
            )
        )
        panels.append(axes.panel([bars], title=name, width=inside, height=80))
    return alt.vconcat(*panels, spacing=12)
