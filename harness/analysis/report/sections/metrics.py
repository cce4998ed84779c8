"""The section with the comparison's table of all metrics."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.comparison.figures import name_of
from harness.analysis.comparison.headlines import unseen
from harness.analysis.comparison.notes import remarks
from harness.analysis.report.blocks import Block, Points, Table
from harness.analysis.report.compared import cells, compared_head, compared_row
from harness.analysis.report.material import Material


def blocks(material: Material) -> Iterator[Block]:
    """Yields the comparison over all jobs, and the notes that readers need to interpret it."""
    rows = [compared_row(name_of(line.measured), cells(line)) for line in material.table]
    yield Table(caption="Metrics over all jobs", head=compared_head(material, "metric"), rows=rows)
    notes = list(remarks(material.comparison, material.table))
    if material.comparison.shake is not None:
        notes.append("charts show the runs themselves, not their twins")
    yield Points([*notes, *unseen(line.measured.metric for line in material.table)])
