"""What is traded for what: utilization, fairness and disruption of all runs in one chart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from harness.report.amounts import percent
from harness.report.blocks import Block, Figure
from harness.report.material import Material

if TYPE_CHECKING:
    from altair.typing import ChartType


class Point(NamedTuple):
    """Where a run stands: useful utilization, share deviation, and what was lost of what was allocated."""

    useful: float
    deviation: float
    lost: float


def blocks(material: Material) -> Iterator[Block]:
    """One chart of several runs; nothing where a figure is not known."""
    columns = [
        _values(material, "utilization.useful", material.resource),
        _values(material, "fairness.share_deviation", ""),
        _values(material, "disruption.lost_of_allocated", material.resource),
    ]
    points = [Point(*row) for row in zip(*columns, strict=True) if None not in row]
    if len(material.runs) < 2 or len(points) < len(material.runs):
        return
    yield Figure(
        title="Utilization, fairness and disruption",
        words=_words(material, points),
        draw=lambda width: _chart(material, points, width),
        keys=[replace(key, line=False) for key in material.run_keys],
        note="Better is to the right (more of the capacity became finished work), up (shares closer to "
        "ideal), and smaller (less of what was allocated was thrown away).",
    )


def _values(material: Material, metric: str, resource: str) -> Sequence[float | None]:
    """A metric over all jobs in each run."""
    for measured, values in material.comparison.select():
        if (measured.metric, measured.resource) == (metric, resource):
            return values
    return [None] * len(material.runs)


def _words(material: Material, points: Sequence[Point]) -> str:
    return " ".join(
        f"{name}: {percent(point.useful)} of {material.resource} became finished work, shares were "
        f"{percent(point.deviation)} away from ideal, {percent(point.lost)} of what was allocated was lost."
        for name, point in zip(material.names, points, strict=True)
    )


def _chart(material: Material, points: Sequence[Point], width: int) -> ChartType:
    from harness.report.charts.scatter import scatter

    return scatter(material, points, width)
