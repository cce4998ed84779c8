"""The section on allocation, which shows what quotas or queues held over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from harness.analysis.explanation.clock import Clock
from harness.analysis.report import charts
from harness.analysis.report.amounts import number, percent, shown_in
from harness.analysis.report.blocks import Block, Figure, Table, Text
from harness.analysis.report.marks import by_kind
from harness.analysis.report.material import Lane, Material
from harness.base.grouping import grouped
from harness.runs.epochs import Step

if TYPE_CHECKING:
    from altair.typing import ChartType

    from harness.analysis.report.charts.levels import Reference


_NONE = "none"
_MOST, _SHORT = 300, 12
"""The maximum number of changes in a table, and the maximum in a table that is not folded."""

_TOLD = 3
"""If a quota has more levels, the text names only the lowest and the highest level."""


def blocks(material: Material) -> Iterator[Block]:
    """Yields a chart for each run in which queues or quotas are stacked, then a chart for each of them.

    The later charts have a line for each run.
    """
    unit = shown_in(material.resource)
    others = [resource for resource in material.runs[0].resources if resource != material.resource]
    if others:
        yield Text(
            f"These charts show {material.resource}, the resource that the baseline uses most. Other "
            f"resources are in the table of all figures: {', '.join(others)}."
        )
    lines = ["the dashed line is the whole capacity"] if any(material.capacities) else []
    courses = zip(material.nominal_steps(material.lanes), material.capacity_steps, strict=True)
    if any(nominal and capacity and nominal != capacity for nominal, capacity in courses):
        lines.append("the dotted line is the sum of all quotas")
    if any(material.marks):
        lines.append(
            "the strip below shows how the cluster changes: a tick is one change, a number is several "
            "changes, and grey bars show how long they last"
        )
    yield Figure(
        title=f"{unit.name} held, by {material.holder}",
        words=_words(material),
        draw=lambda width: _stacked(material, width),
        keys=material.lane_keys,
        note="Areas are means over three pixels, and the thin line is the peak of their sum"
        + "".join(f"; {line}" for line in lines)
        + ".",
    )
    yield from _changes(material)
    if len(material.lanes) > 1:
        quotas = any(each is not None for lane in material.lanes for each in lane.nominal)
        several = any(len(_distinct(material, lane)) > 1 for lane in material.lanes)
        yield Figure(
            title=f"{unit.name} held by each {material.holder}"
            + (", and its nominal quota" if quotas else ""),
            words=_lane_words(material),
            draw=lambda width: _each(material, width),
            keys=material.run_keys,
            note="Lines show means over three pixels, and bands show the range of levels within these pixels"
            + ("; the dashed line is the nominal quota" if quotas else "")
            + (", which differs between runs, so there are several lines." if several else "."),
        )


def _changes(material: Material) -> Iterator[Block]:
    alike = grouped((tuple(marks), place) for place, marks in enumerate(material.marks))
    for own, places in alike.items():
        if not own:
            continue
        clock = Clock(material.runs[places[0]])
        rows = [
            [clock.text(mark.begin), "" if mark.end is None else clock.text(mark.end), mark.told]
            for mark in own[:_MOST]
        ]
        if len(own) > _MOST:
            rows.append(["…", "", f"and {len(own) - _MOST:,} more, which run.json lists"])
        names = ", ".join(material.names[place] for place in places)
        yield Table(
            caption=f"Changes of the cluster{f' of {names}' if len(alike) > 1 else ''}: {by_kind(own)}",
            head=["from", "until", "change"],
            rows=rows,
            prose=True,
            folded=len(rows) > _SHORT,
        )


def _words(material: Material) -> str:
    unit, sentences = shown_in(material.resource), []
    peaks = material.over_all("allocated", together=True)
    of_runs = zip(material.names, material.held, peaks, material.capacities, material.marks, strict=True)
    for name, held, peak, capacity, marks in of_runs:
        highest = max(peak["high"], default=0) / unit.size
        mean = sum(held)
        of = f" of {number(capacity / unit.size)}" if capacity else ""
        share = f" ({percent(mean / capacity)})" if capacity else ""
        ranked = sorted(zip(held, material.lanes, strict=True), key=lambda each: -each[0])
        most = ", ".join(f"{lane.name} {number(part / unit.size)}" for part, lane in ranked[:3])
        sentences.append(
            f"{name}: on average {number(mean / unit.size)}{of} {unit.name} were held{share}, at most "
            f"{number(highest)}. These held the most: {most}."
            + (f" Changes of the cluster: {by_kind(marks)}." if marks else "")
        )
    return " ".join(sentences)


def _lane_words(material: Material) -> str:
    unit, sentences = shown_in(material.resource), []
    for place, lane in enumerate(material.lanes):
        means = ", ".join(
            f"{name} {number(held[place] / unit.size)}"
            for name, held in zip(material.names, material.held, strict=True)
        )
        known = [_course(each, unit.size) for each in material.nominal_steps([lane])]
        has_some = set(known) != {_NONE}
        if len(set(known)) > 1:
            known = [f"{name} {each}" for name, each in zip(material.names, known, strict=True)]
        own = f" (own quota {', '.join(dict.fromkeys(known))})" if has_some else ""
        sentences.append(f"{lane.name}{own}: {means}.")
    return f"Mean {unit.name} held. " + " ".join(sentences)


def _course(steps: Sequence[Step], size: int) -> str:
    amounts = [(each.amount or 0) / size for each in steps]
    if len(amounts) <= _TOLD:
        return ", then ".join(map(number, amounts)) or _NONE
    return f"{number(min(amounts))} to {number(max(amounts))} in {len(amounts) - 1:,} changes"


def _distinct(material: Material, lane: Lane) -> list[list[Step]]:
    found: list[list[Step]] = []
    for each in material.nominal_steps([lane]):
        if each and each not in found:
            found.append(each)
    return found


def _reference(steps: Sequence[Step], size: int, dash: tuple[int, int]) -> Reference:
    return charts.levels.Reference([(time, (amount or 0) / size) for time, amount in steps], dash)


def _stacked(material: Material, width: int) -> ChartType:
    unit = shown_in(material.resource)
    pixels = charts.axes.inner(width) // charts.levels.PIXELS_A_POINT
    references = []
    for nominal, capacity in zip(
        material.nominal_steps(material.lanes), material.capacity_steps, strict=True
    ):
        own = [_reference(capacity, unit.size, (6, 3))] if capacity else []
        if nominal and nominal != capacity:
            own.append(_reference(nominal, unit.size, (2, 3)))
        references.append(own)
    return charts.levels.stacked(
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
    unit = shown_in(material.resource)

    def references(lane: Lane) -> list[Reference]:
        courses = sorted(_distinct(material, lane), key=lambda steps: [each.amount or 0 for each in steps])
        return [_reference(each, unit.size, (6, 3)) for each in courses]

    return charts.levels.by_lane(
        material,
        lambda pixels: [_scaled(each, unit.size) for each in material.per_pixel("allocated", pixels)],
        width=width,
        title=unit.name,
        references=references,
    )


def _scaled(frame: pl.DataFrame, size: int) -> pl.DataFrame:
    return frame.with_columns(pl.col("low", "mean", "high") / size)
