"""Draws levels over time: as stacked areas for each run, or as lines for all runs in a panel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import altair as alt
import polars as pl

from harness.analysis.report import palette
from harness.analysis.report.blocks import Key
from harness.analysis.report.charts import axes, events
from harness.analysis.report.material import Lane, Material

PIXELS_A_POINT = 3
PANEL = 280
_LETTER = 7


class Reference(NamedTuple):
    """A reference line.

    Attributes:
        steps: times on the time axis, each with the level that begins then. If the level never changes, there
            is a single step.
    """

    steps: Sequence[tuple[int, float]]
    dash: Sequence[int]

    @property
    def highest(self) -> float:
        """The highest level of the line."""
        return max(level for _, level in self.steps)


def stacked(
    material: Material,
    titles: Sequence[str],
    areas: Sequence[pl.DataFrame],
    peaks: Sequence[pl.DataFrame],
    keys: Sequence[Key],
    references: Sequence[Sequence[Reference]],
    *,
    width: int,
    title: str,
) -> alt.VConcatChart:
    """Returns one panel per run, with the mean of each series as a stacked area, and the peaks of the sum.

    If a run's cluster changes, a strip below the run's panel shows the changes. For each panel, `areas` and
    `peaks` contain results of `per_pixel` for the series and for their sum, in the unit of the axis.
    """
    top = max([*map(highest, peaks), *(each.highest for own in references for each in own)]) * 1.04
    inside = axes.inner(width)
    panels = []
    changed = [bool(each) for each in material.marks]
    of_panels = zip(axes.endings(titles, inside // _LETTER), areas, peaks, references, strict=True)
    for number, (name, area, peak, own) in enumerate(of_panels):
        last = number == len(titles) - 1
        x, y = axes.time_axis(material, labels=last and not changed[number]), axes.amount_axis(title, top=top)
        layers = [
            alt.Chart(
                axes.timed(
                    material, area.select("series", "time", "mean", queue=axes.named(area["series"], keys))
                )
            )
            .mark_area()
            .encode(x, y.stack("zero"), axes.coloured("queue:N", keys), order=alt.Order("series:O"))
        ]
        limits = axes.timed(material, peak.select("time", "high"))
        layers.append(
            alt.Chart(limits).mark_line(strokeWidth=0.6, color=palette.INK.light).encode(x, alt.Y("high:Q"))
        )
        layers += [axes.stepped(material, each.steps, each.dash, x) for each in own]
        panels.append(axes.panel(layers, title=name, width=inside, height=100))
        if changed[number]:
            panels.append(events.strip(material, number, width=inside, labels=last))
    return alt.vconcat(*panels, spacing=12)


def by_lane(
    material: Material,
    reduced: Callable[[int], Sequence[pl.DataFrame]],
    *,
    width: int,
    title: str,
    references: Callable[[Lane], Sequence[Reference]] = lambda _: (),
) -> alt.ConcatChart:
    """Returns a panel for each of the material's lanes, which stand for queues; see `panels`."""
    names = [lane.name for lane in material.lanes]
    return panels(material, names, reduced, list(map(references, material.lanes)), width=width, title=title)


def panels(
    material: Material,
    names: Sequence[str],
    reduced: Callable[[int], Sequence[pl.DataFrame]],
    references: Sequence[Sequence[Reference]],
    *,
    width: int,
    title: str,
) -> alt.ConcatChart:
    """Returns a panel for each series, with a line for each run. All panels have the same time axis.

    `reduced` returns the results of `per_pixel` for each run, given a number of pixels.
    """
    columns = max(1, width // PANEL)
    inside = axes.inner(width, columns=columns)
    frames = reduced(inside // PIXELS_A_POINT)
    names = axes.endings(names, inside // _LETTER)
    found = []
    for place, (name, lines_of_reference) in enumerate(zip(names, references, strict=True)):
        own = [frame.filter(pl.col("series") == place) for frame in frames]
        tops = [highest(each) for each in own] + [each.highest for each in lines_of_reference]
        found.append(
            lines(
                material,
                own,
                material.run_keys,
                width=inside,
                height=80,
                title=title,
                name=name,
                top=max(tops) * 1.04 or 1,
                references=lines_of_reference,
            )
        )
    return alt.concat(*found, columns=columns, spacing=14)


def highest(frame: pl.DataFrame) -> float:
    """Returns the highest level in a result of `per_pixel`."""
    return max(frame["high"], default=0.0)


def lines(
    material: Material,
    frames: Sequence[pl.DataFrame],
    keys: Sequence[Key],
    *,
    width: int,
    height: int = 150,
    title: str,
    name: str = "",
    top: float,
    shown_as: str = "",
    references: Sequence[Reference] = (),
) -> alt.LayerChart:
    """Returns a panel with a line and a band for each run.

    The line shows the mean of each pixel, and the band shows the range from the lowest to the highest value.
    `frames` contains the result of `per_pixel` for one series of each run, in the unit of the axis. The
    vertical axis ends at `top`. `width` is the width of the plot, without axes.
    """
    frame = axes.timed(
        material,
        pl.concat(
            each.select("time", "low", "mean", "high", run=pl.lit(key.name))
            for key, each in zip(keys, frames, strict=True)
        ),
    )
    x = axes.time_axis(material)
    chart = alt.Chart(frame).encode(x, axes.coloured("run:N", keys))
    layers = [
        chart.mark_area(opacity=0.16).encode(
            axes.amount_axis(title, top=top, shown_as=shown_as, field="low:Q"), alt.Y2("high:Q")
        ),
        chart.mark_line(strokeWidth=1.4).encode(alt.Y("mean:Q"), axes.dashed("run:N", keys)),
        *(axes.stepped(material, each.steps, each.dash, x) for each in references),
    ]
    return axes.panel(layers, title=name, width=width, height=height)
