"""All figures: the comparison's table."""

from __future__ import annotations

from collections.abc import Iterator

from harness.comparison.changes import Change, Verdict
from harness.comparison.figures import name_of, told
from harness.comparison.table import Line, remarks
from harness.metrics.measurement import Measurement
from harness.report.blocks import Block, Cell, Points, Table
from harness.report.blocks import Verdict as Judgement
from harness.report.material import Material

_JUDGEMENTS: dict[Verdict, Judgement] = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.NONE: "same",
    Verdict.SAME: "equal",
    Verdict.OPEN: "open",
}


def blocks(material: Material) -> Iterator[Block]:
    """The comparison of all jobs together, and what must be known to read it right."""
    head = ["metric", material.names[0]]
    for name in material.names[1:]:
        head += [name, "change"]
    rows = []
    for line in material.table:
        (value, _), *others = cells(line)
        rows.append([name_of(line.measured), value, *(cell for pair in others for cell in pair)])
    yield Table(caption="Metrics over all jobs", head=head, rows=rows)
    notes = list(remarks(material.comparison, material.table))
    if notes:
        yield Points(notes)


def cells(line: Line) -> list[tuple[str, Cell]]:
    """For each run the value, and how it differs from the baseline's."""
    values = [value for value, _ in line.cells]
    changes = [_cell(change, line.measured) for change in line.row.changes]
    return list(zip(values, [Cell(""), *changes], strict=True))


def _cell(change: Change, measured: Measurement) -> Cell:
    figure, sign = told(change, measured.unit, measured.resource)
    return Cell(figure, _JUDGEMENTS.get(change.verdict, ""), sign)
