"""All figures: the comparison's table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness import comparison_table
from harness.report.blocks import Block, Cell, Points, Table
from harness.report.material import Material


class Row(NamedTuple):
    """A metric of all runs.

    Attributes:
        metric: its name.
        resource: what it is about, or "".
        cells: for each run its value, and how that differs from the baseline's.
    """

    metric: str
    resource: str
    cells: Sequence[tuple[str, Cell]]


def blocks(material: Material) -> Iterator[Block]:
    """The comparison of all jobs together."""
    lines = comparison_table.lines(material.comparison, (), "all")
    head = ["metric", material.names[0]]
    for name in material.names[1:]:
        head += [name, "change"]
    table = []
    for row in rows(material):
        (value, _), *others = row.cells
        table.append(
            [f"{row.metric} {row.resource}".rstrip(), value, *(cell for pair in others for cell in pair)]
        )
    yield Table(caption="Metrics over all jobs", head=head, rows=table)
    remarks = list(comparison_table.remarks(material.comparison, lines))
    if remarks:
        yield Points(remarks)


def rows(material: Material, *metrics: str) -> Iterator[Row]:
    """Metrics over all jobs, as the comparison's table has them; without names its headlines."""
    for line in comparison_table.lines(material.comparison, metrics, "all"):
        cells = [(value, _cell(change)) for value, change in line.cells]
        yield Row(line.measured.metric, line.measured.resource, cells)


def _cell(change: str) -> Cell:
    for sign, verdict in (("▲", "better"), ("▼", "worse"), ("~", "same")):
        if change.endswith(sign):
            return Cell(change.removesuffix(sign).strip() or "~", verdict)  # type: ignore[arg-type]
    return Cell(change)
