"""Makes table rows that compare runs: the baseline's value, then the other runs' values and changes."""

from __future__ import annotations

from collections.abc import Sequence

from harness.analysis.comparison.changes import Change, Verdict
from harness.analysis.comparison.figures import digits_of, told
from harness.analysis.comparison.table import Line
from harness.analysis.report.amounts import number
from harness.analysis.report.blocks import Cell
from harness.analysis.report.blocks import Verdict as Judgement
from harness.analysis.report.material import Material
from harness.base.units import HOUR, SECOND
from harness.plugins.measurement import Measurement

_JUDGEMENTS: dict[Verdict, Judgement] = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.NONE: "same",
    Verdict.SAME: "equal",
    Verdict.OPEN: "open",
}


def compared_head(material: Material, first: str) -> list[str]:
    """Returns the head of a table that compares runs. `first` is the heading of the first column."""
    head = [first, material.names[0]]
    for name in material.names[1:]:
        head += [name, "change"]
    return head


def compared_row(name: str, pairs: Sequence[tuple[str, Cell]]) -> list[str | Cell]:
    """Returns a table row with a name, and then each run's value and change. The baseline has no change."""
    (value, _), *others = pairs
    return [name, value, *(cell for pair in others for cell in pair)]


def cells(line: Line) -> list[tuple[str, Cell]]:
    """Returns, for each run, its value and its difference from the baseline's value."""
    values = [value for value, _ in line.cells]
    digits = digits_of(*line.row.values)
    changes = [_cell(change, line.measured, digits) for change in line.row.changes]
    return list(zip(values, [Cell(""), *changes], strict=True))


def _cell(change: Change, measured: Measurement, digits: int) -> Cell:
    figure, sign = told(change, measured.unit, digits)
    return Cell(figure, _JUDGEMENTS.get(change.verdict, ""), sign)


def hours_waited(line: Line, jobs: Sequence[int]) -> list[float | None]:
    """Converts each run's mean wait into the sum over all of its jobs, in hours; see `so_far`."""
    seconds = zip(line.row.values, jobs, strict=True)
    return [None if mean is None else mean * count * SECOND / HOUR for mean, count in seconds]


def so_far(material: Material) -> str:
    """Returns a suffix for hours waited, which says that some jobs were still waiting; "" if none were."""
    shares = (value for line in material.lines("wait.never_started") for value in line.row.values)
    return " (so far)" if any(shares) else ""


def hours_cells(
    hours: Sequence[float | None], judged: Line, *, widest: float | None = None
) -> list[tuple[str, Cell]]:
    """Returns, for each run, the hours that its jobs waited, and the difference from the baseline's hours.

    `judged` is the line of the mean wait, whose verdict also applies to the sum. Bars show the differences,
    and a difference of `widest` hours has the longest bar. By default, there are no bars.
    """
    base, *others = hours
    found = [("-" if base is None else number(base), Cell(""))]
    for value, change in zip(others, judged.row.changes, strict=True):
        text, bar = "", None
        if value is not None and base is not None:
            difference = value - base
            text = f"{'-' if difference < 0 else '+'}{number(abs(difference))} h" if difference else ""
            bar = difference / widest if widest else None
        _, sign = told(change, judged.measured.unit)
        cell = Cell(text, _JUDGEMENTS.get(change.verdict, ""), sign, bar)
        found.append(("-" if value is None else number(value), cell))
    return found
