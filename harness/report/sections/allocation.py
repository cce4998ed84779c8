"""Who held what, when: what quotas or queues held over time, beside what is their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from harness.report.amounts import number, percent, unit_of
from harness.report.blocks import Block, Figure, Text
from harness.report.material import Lane, Material

if TYPE_CHECKING:
    from altair.typing import ChartType


def blocks(material: Material) -> Iterator[Block]:
    """All lanes on top of each other for each run, then each lane by itself with all runs."""
    unit = unit_of(material.resource)
    others = [resource for resource in material.runs[0].resources if resource != material.resource]
    if others:
        yield Text(
            f"These charts show {material.resource}, which the baseline uses most of; the table of all "
            f"figures has {', '.join(others)} too."
        )
    lines = ["the dashed line is all that there is"] if material.capacity else []
    if material.capacity and _nominal(material) not in (None, material.capacity):
        lines.append("the dotted line is what all quotas come to")
    yield Figure(
        title=f"{unit.name} held, by {material.holder}",
        words=_words(material),
        draw=lambda width: _stacked(material, width),
        keys=material.lane_keys,
        note="Areas are means over three pixels, the thin line is their peak"
        + "".join(f"; {line}" for line in lines)
        + ".",
    )
    if len(material.lanes) > 1:
        quotas = any(lane.nominal is not None for lane in material.lanes)
        yield Figure(
            title=f"{unit.name} held by each {material.holder}" + (", and what is its own" if quotas else ""),
            words=_lane_words(material),
            draw=lambda width: _each(material, width),
            keys=material.run_keys,
            note="Lines are means over three pixels, bands go from the lowest to the highest level in them"
            + ("; the dashed line is the nominal quota." if quotas else "."),
        )


def _words(material: Material) -> str:
    unit, sentences = unit_of(material.resource), []
    peaks = material.per_pixel("allocated", 1, together=True)
    for name, held, peak in zip(material.names, material.held, peaks, strict=True):
        highest = max(peak["high"], default=0) / unit.size
        total = sum(held)
        of = f" of {number(material.capacity / unit.size)}" if material.capacity else ""
        share = f" ({percent(total / material.capacity)})" if material.capacity else ""
        ranked = sorted(zip(held, material.lanes, strict=True), key=lambda each: -each[0])
        most = ", ".join(f"{lane.name} {number(mean / unit.size)}" for mean, lane in ranked[:3])
        sentences.append(
            f"{name}: on average {number(total / unit.size)}{of} {unit.name} were held{share}, at most "
            f"{number(highest)}; most by {most}."
        )
    return " ".join(sentences)


def _lane_words(material: Material) -> str:
    unit, sentences = unit_of(material.resource), []
    for place, lane in enumerate(material.lanes):
        means = ", ".join(
            f"{name} {number(held[place] / unit.size)}"
            for name, held in zip(material.names, material.held, strict=True)
        )
        own = f" (own quota {number(lane.nominal / unit.size)})" if lane.nominal is not None else ""
        sentences.append(f"{lane.name}{own}: {means}.")
    return f"Mean {unit.name} held. " + " ".join(sentences)


def _nominal(material: Material) -> int | None:
    known = [lane.nominal for lane in material.lanes if lane.nominal is not None]
    return sum(known) if known else None


def _stacked(material: Material, width: int) -> ChartType:
    from harness.report.charts import axes, levels

    unit = unit_of(material.resource)
    pixels = axes.inner(width) // levels.PIXELS_A_POINT
    references = []
    if material.capacity:
        references.append(levels.Reference(material.capacity / unit.size, (6, 3)))
    nominal = _nominal(material)
    if nominal is not None and nominal != material.capacity:
        references.append(levels.Reference(nominal / unit.size, (2, 3)))
    return levels.stacked(
        material,
        material.names,
        [_scaled(each, unit.size) for each in material.per_pixel("allocated", pixels)],
        [_scaled(each, unit.size) for each in material.per_pixel("allocated", pixels, together=True)],
        material.lane_keys,
        references,
        width=width,
        title=unit.name,
    )


def _each(material: Material, width: int) -> ChartType:
    from harness.report.charts import levels

    unit = unit_of(material.resource)

    def references(lane: Lane) -> list[levels.Reference]:
        return [levels.Reference(lane.nominal / unit.size, (6, 3))] if lane.nominal is not None else []

    return levels.by_lane(
        material,
        lambda pixels: [_scaled(each, unit.size) for each in material.per_pixel("allocated", pixels)],
        width=width,
        title=unit.name,
        references=references,
    )


def _scaled(frame: pl.DataFrame, size: int) -> pl.DataFrame:
    return frame.with_columns(pl.col("low", "mean", "high") / size)
