"""Draws Gantt charts with a panel for each run, a row for each job, and bars while it holds resources."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from harness.analysis.report import palette
from harness.analysis.report.charts import axes
from harness.analysis.report.material import Material
from harness.plugins.measurement import Window

_ROW = 11
_LEFT = 98
"""The space for names beside the rows, in pixels."""
_LETTERS = 14
"""The number of letters of a name that fit beside a row."""


def gantt(material: Material, shown: Sequence[pl.Series], part: Window, width: int) -> alt.VConcatChart:
    """Returns a chart with a row for each job, in order of arrival.

    `shown` contains, for each run, the rows of its jobs in `jobs.parquet`, in ascending order.
    """
    panels = []
    of_runs = zip(material.names, material.runs, material.shifts, shown, strict=True)
    for number, (name, run, shift, rows) in enumerate(of_runs):
        every = run.micros("jobs").select("job_id", time=pl.col("submit_time") + shift).collect()
        jobs = every.with_row_index("job").filter(pl.col("job").is_in(rows.implode()))
        labels = axes.endings(jobs["job_id"], _LETTERS)
        names = pl.DataFrame({"job": jobs["job"].cast(pl.Int32), "name": pl.Series(labels, dtype=pl.String)})
        lanes = material.lanes_of_jobs(run)
        stints = (
            run.micros("stints")
            .with_columns(pl.col("start", "end") + shift)
            .filter((pl.col("start") < part.end) & (pl.col("end") > part.start))
            .select("job", "start", "end", "state", "lost")
            .collect()
            .join(names, on="job", how="inner", maintain_order="left")
        )
        ended = stints.filter((pl.col("lost") > 0) & (pl.col("end") <= part.end))
        stints = stints.with_columns(
            pl.col("start").clip(part.start),
            pl.col("end").clip(None, part.end),
            queue=axes.named(lanes.gather(stints["job"]), material.lane_keys),
            progress=pl.col("state") == "progress",
        )
        until = axes.timed(material, stints.select(time="end"), part)["at"]
        spans = axes.timed(material, stints.rename({"start": "time"}), part).with_columns(until=until)
        arrived = jobs.with_columns(names["name"]).filter(pl.col("time").is_between(part.start, part.end))
        x = axes.time_axis(material, labels=number == len(material.runs) - 1, part=part)
        y = alt.Y(
            "name:N",
            sort=labels, scale=alt.Scale(domain=labels),
            axis=alt.Axis(
                title=None, labelFontSize=9, labelLimit=_LEFT, minExtent=_LEFT, maxExtent=_LEFT, ticks=False,
                domain=False,
            ),
        )  # fmt: skip
        opacity = alt.Opacity(
            "progress:O", scale=alt.Scale(domain=[False, True], range=[0.4, 1.0]), legend=None
        )
        colour = axes.coloured("queue:N", material.lane_keys)
        layers = [
            alt.Chart(spans).mark_bar(height=_ROW - 3).encode(x, y, colour, opacity, alt.X2("until")),
            alt.Chart(axes.timed(material, arrived, part))
            .mark_tick(color=palette.INK.light, thickness=1.2, height=_ROW - 1)
            .encode(x, y),
            alt.Chart(axes.timed(material, ended.select("name", time="end"), part))
            .mark_point(shape="cross", angle=45, filled=True, color=palette.INK.light, size=28)
            .encode(x, y),
        ]
        inside = width - _LEFT - axes.RIGHT
        panels.append(axes.panel(layers, title=name, width=inside, height=_ROW * max(1, len(labels))))
    return alt.vconcat(*panels, spacing=12)
