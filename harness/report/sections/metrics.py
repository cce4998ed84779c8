"""All figures: the comparison's table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.comparison.changes import Change, Verdict
from harness.comparison.table import SIGNS, lines, remarks
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
    notes = list(remarks(material.comparison, lines(material.comparison, (), "all")))
    if notes:
        yield Points(notes)


def rows(material: Material, *metrics: str) -> Iterator[Row]:
    """Metrics over all jobs, as the comparison's table has them; without names its headlines."""
    for line in lines(material.comparison, metrics, "all"):
        (base, _), *others = line.cells
        cells = [(base, Cell(""))]
        for (value, text), change in zip(others, line.row.changes, strict=True):
            cells.append((value, _cell(text, change)))
        yield Row(line.measured.metric, line.measured.resource, cells)


def _cell(text: str, change: Change) -> Cell:
    """A change as the table has it; its sign is the page's to draw."""
    if change.verdict is Verdict.BETTER:
        return Cell(text.rstrip(SIGNS), "better")
    if change.verdict is Verdict.WORSE:
        return Cell(text.rstrip(SIGNS), "worse")
    if change.verdict is Verdict.NONE:
        return Cell(text.rstrip(SIGNS) or "~", "same")
    return Cell(text)
