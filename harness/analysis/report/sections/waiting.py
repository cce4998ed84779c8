"""The section on waits, with waiting jobs over time, distributions, and waits by size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from harness.analysis.report import charts
from harness.analysis.report.amounts import number, percent, shown_in
from harness.analysis.report.blocks import Block, Figure
from harness.analysis.report.material import Material
from harness.analysis.report.waits import Waits, slowdowns, waits, waits_by_size
from harness.base.units import HOUR, format_duration

if TYPE_CHECKING:
    from altair.typing import ChartType


_BANDS = "Lines are means over three pixels, and bands show the lowest and highest number in these pixels."
_PERCENTS = {50: "half of the jobs start within", 95: "95 of 100 start within"}


def blocks(material: Material) -> Iterator[Block]:
    """Yields charts of waiting jobs and waits, then of slowdowns, and then of waits by size."""
    several = len(material.lanes) > 1
    yield Figure(
        title="Waiting jobs",
        words=_depth_words(material),
        draw=lambda width: _depth(material, width),
        keys=material.run_keys,
        note=_BANDS,
    )
    if several:
        yield Figure(
            title=f"Waiting jobs of each {material.holder}",
            words=_depth_by_lane_words(material),
            draw=lambda width: charts.levels.by_lane(
                material,
                lambda pixels: material.per_pixel("pending_jobs", pixels),
                width=width,
                title="waiting jobs",
            ),
            keys=material.run_keys,
            note=_BANDS,
        )
    found = waits(material)
    yield Figure(
        title="Jobs that had started, by how long they had waited"
        + (f", for each {material.holder}" if several else ""),
        words=_wait_words(material, found),
        draw=lambda width: charts.waits.wait_distribution(material, found, width),
        keys=material.run_keys,
        note="The higher a line, the sooner jobs started; jobs that never started keep the line below 100 %."
        + material.own_jobs,
    )
    slow = slowdowns(material)
    if slow.longest:
        yield Figure(
            title="Jobs that had finished, by their total time as a multiple of their run time",
            words=_slowdown_words(material, slow),
            draw=lambda width: charts.waits.slowdown_distribution(material, slow, width),
            keys=material.run_keys,
            note="Jobs shorter than 10 s count as 10 s long. The higher a line, the better."
            + material.own_jobs,
        )
    sizes = waits_by_size(material)
    if len(sizes.names) > 1:
        unit = shown_in(material.resource).name
        yield Figure(
            title=f"Waits by requested {unit}",
            words=_size_words(material, sizes),
            draw=lambda width: charts.waits.by_size(material, sizes, _PERCENTS, width=width, title=unit),
            keys=material.run_keys,
            note="A size has a point only if enough of its jobs started." + material.own_jobs,
        )


def _depth_words(material: Material) -> str:
    sentences = []
    for name, frame in zip(material.names, material.over_all("pending_jobs", together=True), strict=True):
        mean, most = frame.select("mean", "high").row(0) if frame.height else (0.0, 0)
        sentences.append(f"{name}: {number(mean)} jobs waited on average, at most {number(most)}.")
    return " ".join(sentences)


def _depth_by_lane_words(material: Material) -> str:
    frames = material.over_all("pending_jobs")
    sentences = []
    for place, lane in enumerate(material.lanes):
        each = []
        for name, frame in zip(material.names, frames, strict=True):
            own = frame.filter(pl.col("series") == place)
            mean, most = own.select("mean", "high").row(0) if own.height else (0.0, 0)
            each.append(f"{name} {number(mean)} (at most {number(most)})")
        sentences.append(f"{lane.name}: {', '.join(each)}.")
    return "Mean number of waiting jobs. " + " ".join(sentences)


def _wait_words(material: Material, found: Waits) -> str:
    sentences = []
    for place, lane in enumerate(found.names):
        each = []
        for name, run in zip(material.names, found.of_runs, strict=True):
            own = run[place]
            if not own.jobs:
                continue
            share = percent(own.within(HOUR))
            never = own.jobs - len(own.sorted)
            text = f"{name} {share} within {format_duration(HOUR)}"
            half = own.quantile(50)
            text += f", half within {format_duration(half)}" if half is not None else ""
            each.append(text + (f", {never:,} never" if never else ""))
        if each:
            sentences.append(f"{lane}: {'; '.join(each)}.")
    return "Jobs that had started: " + " ".join(sentences)


def _slowdown_words(material: Material, found: Waits) -> str:
    sentences = []
    for name, (every,) in zip(material.names, found.of_runs, strict=True):
        parts = [
            f"{part} of 100 at most {number(factor)} times"
            for part in _PERCENTS
            if (factor := every.quantile(part)) is not None
        ]
        never = every.jobs - len(every.sorted)
        sentences.append(
            f"{name}: {', '.join(parts) or 'few finished'}" + (f", {never:,} not finished." if never else ".")
        )
    return "Total time of jobs as a multiple of their run time: " + " ".join(sentences)


def _size_words(material: Material, found: Waits) -> str:
    sentences = []
    for place, size in enumerate(found.names):
        each = []
        for name, of_run in zip(material.names, found.of_runs, strict=True):
            waits = [of_run[place].quantile(part) for part in _PERCENTS]
            told = " and ".join("-" if wait is None else format_duration(wait) for wait in waits)
            each.append(f"{name} {told}")
        jobs = max(of_run[place].jobs for of_run in found.of_runs)
        sentences.append(f"{size} ({jobs:,} jobs): {', '.join(each)}.")
    return "Half of the jobs, and 95 of 100, start within: " + " ".join(sentences)


def _depth(material: Material, width: int) -> ChartType:
    inside = charts.axes.inner(width)
    frames = material.per_pixel("pending_jobs", inside // charts.levels.PIXELS_A_POINT, together=True)
    top = max(map(charts.levels.highest, frames)) * 1.04
    return charts.levels.lines(
        material, frames, material.run_keys, width=inside, height=170, title="waiting jobs", top=top
    )
