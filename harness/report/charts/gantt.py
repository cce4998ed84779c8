"""A Gantt chart: a row for each job, a bar for each span in which it held resources, one panel a run."""

from __future__ import annotations

import altair as alt
import polars as pl

from harness.metrics.levels import holder_of_jobs
from harness.report import palette
from harness.report.charts import axes
from harness.report.material import Material, distinct

_ROW = 11


def gantt(material: Material, width: int) -> alt.VConcatChart:
    """Jobs in order of arrival."""
    panels = []
    for number, (name, run) in enumerate(zip(material.names, material.runs, strict=True)):
        jobs = run.micros("jobs").select("job_id", time="submit_time").collect()
        labels = pl.Series(distinct(jobs["job_id"]))
        lanes = holder_of_jobs(run).replace_strict(
            list(material.places), list(material.places.values()), return_dtype=pl.Int32
        )
        stints = run.micros("stints").select("job", "start", "end", "state", "lost").collect()
        stints = stints.with_columns(
            name=labels.gather(stints["job"]),
            queue=axes.named(lanes.gather(stints["job"]), material.lane_keys),
            progress=pl.col("state") == "progress",
        )
        until = axes.timed(material, stints.select(time="end"))["at"]
        spans = axes.timed(material, stints.rename({"start": "time"})).with_columns(until=until)
        submitted = axes.timed(material, jobs.with_columns(name=labels))
        x = axes.time_axis(material, labels=number == len(material.runs) - 1)
        y = alt.Y(
            "name:N",
            sort=labels.to_list(),
            axis=alt.Axis(
                title=None, labelFontSize=9, labelLimit=axes.LEFT - 10, minExtent=axes.LEFT - 4,
                maxExtent=axes.LEFT - 4, ticks=False, domain=False,
            ),
        )  # fmt: skip
        opacity = alt.Opacity(
            "progress:O", scale=alt.Scale(domain=[False, True], range=[0.4, 1.0]), legend=None
        )
        colour = axes.coloured("queue:N", material.lane_keys)
        layers = [
            alt.Chart(spans).mark_bar(height=_ROW - 3).encode(x, y, colour, opacity, x2="until"),
            alt.Chart(submitted)
            .mark_tick(color=palette.INK.light, thickness=1.2, height=_ROW - 1)
            .encode(x, y),
            alt.Chart(spans.filter(pl.col("lost") > 0).with_columns(at="until"))
            .mark_point(shape="cross", angle=45, filled=True, color=palette.INK.light, size=28)
            .encode(x, y),
        ]
        panels.append(
            axes.panel(layers, title=name, width=axes.inner(width), height=_ROW * max(1, len(labels)))
        )
    return alt.vconcat(*panels, spacing=12)
