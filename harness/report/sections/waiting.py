"""Who waited, and how long: waiting jobs over time, and how long jobs of each lane waited to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from harness.report.amounts import number, percent
from harness.report.blocks import Block, Figure
from harness.report.material import Material
from harness.report.waits import Waits, waits
from harness.units import HOUR, format_duration

if TYPE_CHECKING:
    from altair.typing import ChartType


def blocks(material: Material) -> Iterator[Block]:
    """Waiting jobs of all lanes and of each, then waits of all lanes and of each."""
    several = len(material.lanes) > 1
    yield Figure(
        title="Waiting jobs",
        words=_depth_words(material),
        draw=lambda width: _depth(material, width),
        keys=material.run_keys,
        note="Lines are means over three pixels, bands go from the lowest to the highest number within them.",
    )
    if several:
        yield Figure(
            title=f"Waiting jobs of each {material.holder}",
            words=_depth_by_lane_words(material),
            draw=lambda width: _depth_by_lane(material, width),
            keys=material.run_keys,
        )
    found = waits(material)
    yield Figure(
        title="Jobs that had started, by how long they had waited"
        + (f", for each {material.holder}" if several else ""),
        words=_wait_words(material, found),
        draw=lambda width: _distribution(material, found, width),
        keys=material.run_keys,
        note="The higher a line, the sooner jobs started; those that never did keep it below 100 %.",
    )


def _depth_words(material: Material) -> str:
    sentences = []
    for name, frame in zip(material.names, material.per_pixel("pending_jobs", 1, together=True), strict=True):
        mean, most = frame.select("mean", "high").row(0) if frame.height else (0.0, 0)
        sentences.append(f"{name}: {number(mean)} jobs waited on average, at most {number(most)}.")
    return " ".join(sentences)


def _depth_by_lane_words(material: Material) -> str:
    frames = material.per_pixel("pending_jobs", 1)
    sentences = []
    for place, lane in enumerate(material.lanes):
        each = []
        for name, frame in zip(material.names, frames, strict=True):
            own = frame.filter(pl.col("series") == place)
            mean, most = own.select("mean", "high").row(0) if own.height else (0.0, 0)
            each.append(f"{name} {number(mean)} (at most {number(most)})")
        sentences.append(f"{lane.name}: {', '.join(each)}.")
    return "Waiting jobs on average. " + " ".join(sentences)


def _wait_words(material: Material, found: Waits) -> str:
    sentences = []
    for place, lane in enumerate(found.lanes):
        each = []
        for name, run in zip(material.names, found.of_runs, strict=True):
            own = run[place]
            if not own.jobs:
                continue
            share = percent(own.started_within(HOUR))
            never = own.jobs - len(own.sorted)
            text = f"{name} {share} within {format_duration(HOUR)}"
            text += f", half within {format_duration(own.median)}" if own.median is not None else ""
            each.append(text + (f", {never:,} never" if never else ""))
        if each:
            sentences.append(f"{lane}: {'; '.join(each)}.")
    return "Jobs that had started: " + " ".join(sentences)


def _depth(material: Material, width: int) -> ChartType:
    from harness.report.charts import axes, levels

    inside = axes.inner(width)
    frames = material.per_pixel("pending_jobs", inside // levels.PIXELS_A_POINT, together=True)
    top = max(map(levels.highest, frames)) * 1.04
    return levels.lines(
        material, frames, material.run_keys, width=inside, height=170, title="waiting jobs", top=top
    )


def _depth_by_lane(material: Material, width: int) -> ChartType:
    from harness.report.charts import levels

    return levels.by_lane(
        material,
        lambda pixels: material.per_pixel("pending_jobs", pixels),
        width=width,
        title="waiting jobs",
    )


def _distribution(material: Material, found: Waits, width: int) -> ChartType:
    from harness.report.charts.waits import distribution

    return distribution(material, found, width)
