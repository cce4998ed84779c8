"""The section on the trade-off between waits and costs, such as lost work or unequal shares.

It shows which runs no other run beats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from harness.analysis.comparison.figures import shown
from harness.analysis.comparison.recommendation import SHARES, WAITS
from harness.analysis.comparison.samples import LOST
from harness.analysis.report import charts
from harness.analysis.report.amounts import Scale, scale_of, shown_in
from harness.analysis.report.blocks import Block, Figure, Text
from harness.analysis.report.choices import Axis, Choice, unbeaten
from harness.analysis.report.material import Material
from harness.plugins.measurement import Measurement

if TYPE_CHECKING:
    from altair.typing import ChartType


class _Side(NamedTuple):
    about: str
    measured: Measurement
    values: Sequence[float]
    at_least: Sequence[bool | None]

    @property
    def scale(self) -> Scale:
        return scale_of(self.measured.unit, self.values)

    @property
    def axis(self) -> Axis:
        unit = self.scale.unit
        told = f"{self.about}, {unit}" if unit and unit not in self.about else self.about
        return Axis(told, self.scale.shown_as)

    def told(self, place: int) -> str:
        least = bool(self.at_least[place])
        return f"{self.about} {shown(self.values[place], self.measured.unit, at_least=least)}"


def blocks(material: Material) -> Iterator[Block]:
    """Yields a chart with a point for each run, or a sentence if the runs differ too little."""
    if len(material.runs) < 2:
        return
    unit = shown_in(material.resource)
    waits = _differing(material, [(WAITS[0], "wait of 95 of 100 jobs", ""), (WAITS[1], "mean delay", "")])
    costs = _differing(
        material,
        [(LOST, f"{unit.hours} lost", material.resource), (SHARES, "distance from ideal shares", "")],
    )
    if waits is None or costs is None:
        yield Text("The runs do not differ in both waits and costs, so there is no trade-off.")
        return
    yield Figure(
        title=f"{waits.about[0].upper()}{waits.about[1:]}, against {costs.about}",
        words=_words(material, costs, waits),
        draw=lambda width: _chart(material, costs, waits, width),
        keys=[replace(key, line=False) for key in material.run_keys],
        note="Points further to the left and further down are better. No other run beats a filled point: "
        "none is at least as good on both axes and better on one."
        + (
            " The dashed line joins the filled points."
            if len(unbeaten(_choices(material, costs, waits), costs.axis, waits.axis)) > 1
            else ""
        )
        + ("" if material.comparison.shake else " Each run is a single replay, so luck may move the points.")
        + (f" Waits and lost work cover {material.common_jobs}." if material.common_jobs else ""),
    )


def _differing(material: Material, wanted: Sequence[tuple[str, str, str]]) -> _Side | None:
    known = {(row.metric, row.resource): (row, values) for row, values in material.comparison.select()}
    for metric, about, resource in wanted:
        if (metric, resource) in known:
            measured, values = known[metric, resource]
            whole = [value for value in values if value is not None]
            if len(whole) == len(values) and len(set(whole)) > 1:
                return _Side(about, measured, whole, material.comparison.at_least(measured))
    return None


def _choices(material: Material, costs: _Side, waits: _Side) -> list[Choice]:
    points = zip(material.names, costs.scale.of(costs.values), waits.scale.of(waits.values), strict=True)
    return [
        Choice(name, x, y, f"{name}: {waits.told(place)}, {costs.told(place)}", place)
        for place, (name, x, y) in enumerate(points)
    ]


def _words(material: Material, costs: _Side, waits: _Side) -> str:
    choices = _choices(material, costs, waits)
    best = unbeaten(choices, costs.axis, waits.axis)
    names = ", ".join(each.name for place, each in enumerate(choices) if place in best)
    return f"{'. '.join(each.told for each in choices)}. No other run beats: {names}."


def _chart(material: Material, costs: _Side, waits: _Side, width: int) -> ChartType:
    choices = _choices(material, costs, waits)
    return charts.frontier.frontier(choices, material.run_keys, costs.axis, waits.axis, width)
