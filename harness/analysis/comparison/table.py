"""The layout of a comparison: a table for terminals and notebooks, and the notes below it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from harness.analysis.comparison.changes import Row
from harness.analysis.comparison.figures import changed, digits_of, name_of, shown
from harness.analysis.comparison.head import head_html, head_lines, head_markdown
from harness.analysis.comparison.headlines import SHOWN, comes_first, unseen
from harness.analysis.comparison.notes import remarks, stopped
from harness.analysis.comparison.recommendation import Recommendation, recommendation
from harness.analysis.metrics.utilization import HOURS
from harness.base.grouping import grouped
from harness.base.markdown import pipe_table, plain, plain_html
from harness.base.text import aligned, columns, counted, folded, printable, told_apart

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison
    from harness.plugins.measurement import Measurement

_MOST_NOTES, _FIRST_WARNINGS = 4, 5
_SHORTEST_NAME = 8

_NOTHING = "no metric was measured"
_INTERVAL = re.compile(r" \[[^\]]*\]")
_NARROWED = "the terminal is too narrow for intervals: widen it, or use a pipe or --format csv"


class Line(NamedTuple):
    """One line of the table, with the metric, its value in each run, and the changes."""

    row: Row
    cells: list[tuple[str, str]]

    @property
    def measured(self) -> Measurement:
        """The metric with its scope, resource and unit."""
        return self.row.measured


def lines(
    comparison: Comparison, metrics: Sequence[str], scope: str | None, *, brief: bool = False
) -> list[Line]:
    """Returns the lines of the table. By default, these are the measured metrics of `SHOWN`, in that order.

    `metrics` has names or patterns. For `scope`, see `Comparison.to_polars`. If `brief` is true, only the
    most important lines of `SHOWN` and the lines that signal problems are included.
    """
    found = _selected(comparison, metrics, scope)
    if brief:
        found = [
            (row, values) for row, values in found if comes_first(row, values, fullest=comparison.fullest)
        ]
    return list(map(line_of, comparison.judge(found)))


def line_of(row: Row) -> Line:
    """Returns the line of the table for a metric."""
    return Line(row, list(_cells(row)))


def _selected(
    comparison: Comparison, metrics: Sequence[str], scope: str | None
) -> list[tuple[Measurement, list[float | None]]]:
    found = list(comparison.select(*metrics, scope=scope))
    if metrics:
        return found
    order = {name: place for place, name in enumerate(SHOWN)}
    return sorted(
        (each for each in found if each[0].metric in order and says_something_new(comparison, each[0])),
        key=lambda each: order[each[0].metric],
    )


def says_something_new(comparison: Comparison, measured: Measurement) -> bool:
    """Returns False if a metric is redundant, as resource-hours are if all runs have equal capacities."""
    return not measured.metric.endswith(HOURS) or measured.resource in comparison.differing_capacities


def text(
    comparison: Comparison,
    metrics: Sequence[str],
    scope: str | None,
    width: int | None = None,
    *,
    brief: bool = False,
    every_note: bool = False,
) -> str:
    """Returns the comparison as text for a terminal. A `width` of None means no limit.

    If the table is too wide, it drops the intervals. If the table is still too wide, each other run gets its
    own table, which repeats the baseline. As a last resort, each metric is put above its values. A brief text
    begins with the recommendation. It contains only the first notes unless `every_note` is true, and ends
    with the options that show the rest.
    """
    shown = lines(comparison, metrics, scope, brief=brief)
    if not shown:
        return _NOTHING
    parts, whole = _tables(comparison.names, shown, width)
    absent = comparison.absent(*metrics, scope=scope)
    narrowed = [] if whole else [_NARROWED]
    notes = [printable(remark) for remark in (*absent, *remarks(comparison, shown), *narrowed)]
    head = list(head_lines(comparison.head, comparison.head.title))
    if brief:
        answer = recommendation(comparison)
        head = [*([*map(printable, answer.lines), ""] if answer else []), *head]
        left = len(_selected(comparison, metrics, scope)) - len(shown)
        hidden = 0 if every_note else max(0, len(notes) - _MOST_NOTES)
        more = [
            f"{option} shows {counted(count, f'more {what}')}"
            for option, count, what in (("--all", left, "line"), ("--notes", hidden, "note"))
            if count
        ]
        notes = [*notes[: len(notes) - hidden], *([", ".join(more)] if more else [])]
    elif not metrics:
        notes = [*notes, *unseen(line.measured.metric for line in shown)]
    return "\n".join([*folded(head, width), "\n\n".join(parts), *folded(notes, width)])


def _tables(names: Sequence[str], shown: Sequence[Line], width: int | None) -> tuple[list[str], bool]:
    """Returns one table, or one table for each run if a single table would be too wide.

    The second result says whether all intervals are shown.
    """
    together = [range(len(names))]
    apart = [(0, place) for place in range(1, len(names))] or together
    for runs in (together, apart):
        for whole in (True, False):
            tables = [_table(names, shown, places, intervals=whole) for places in runs]
            if width is None or all(columns(line) <= width for each in tables for line in each.split("\n")):
                return tables, whole
    assert width is not None
    return [_upright(names, shown, places, width) for places in apart], False


def _table(names: Sequence[str], shown: Sequence[Line], places: Sequence[int], *, intervals: bool) -> str:
    rows = zip(shown, _values(shown, places, intervals=intervals), strict=True)
    head = ["metric", *(names[place] for place in places)]
    return aligned([head, *([name_of(line.measured), *row] for line, row in rows)])


def _upright(names: Sequence[str], shown: Sequence[Line], places: Sequence[int], width: int) -> str:
    """Formats the table without intervals, with each metric above its values, for a narrow terminal."""
    most = max(_SHORTEST_NAME, width // len(places) - 2)
    labels = told_apart(names, most)
    head = [labels[place] for place in places]
    table = aligned([head, *_values(shown, places, intervals=False)], left=())
    first, rule, *rows = table.split("\n")
    titles = told_apart((name_of(line.measured) for line in shown), width)
    titled = ([title, row] for title, row in zip(titles, rows, strict=True))
    return "\n".join([first, rule, *chain.from_iterable(titled)])


def _values(shown: Sequence[Line], places: Sequence[int], *, intervals: bool) -> list[list[str]]:
    cells = [[line.cells[place] for place in places] for line in shown]
    if not intervals:
        cells = [[(value, _INTERVAL.sub("", change)) for value, change in row] for row in cells]
    widths = [max(columns(row[place][1]) for row in cells) for place in range(len(places))]
    return [[_joined(cell, width) for cell, width in zip(row, widths, strict=True)] for row in cells]


def markdown(
    comparison: Comparison, metrics: Sequence[str], scope: str | None, *, brief: bool = False
) -> str:
    """Returns the comparison as Markdown for a pull request.

    A brief comparison begins with the recommendation, the first warnings and the most important lines. They
    are followed by the runs that were stopped, the differences, the legend, and the gains and losses.
    """
    shown = lines(comparison, metrics, scope, brief=brief)
    if not shown:
        return _NOTHING
    table = markdown_table(comparison.names, shown)
    absent = comparison.absent(*metrics, scope=scope)
    notes = [f"- {plain(remark)}" for remark in (*absent, *remarks(comparison, shown))]
    if not brief:
        notes += [
            f"- {plain(clause)}"
            for clause in (() if metrics else unseen(line.measured.metric for line in shown))
        ]
        title = head_markdown(comparison.head, comparison.head.title)
        return "\n".join([*title, *_warnings(comparison, brief=False), *table, "", *notes])
    answer = recommendation(comparison)
    first = [*([plain(answer.sentence), ""] if answer else []), *_warnings(comparison, brief=True)]
    cut = [f"- {plain(each)}" for each in stopped(comparison)]
    last = _prices(answer) if answer else ()
    return "\n".join([*first, *table, "", *cut, *head_markdown(comparison.head), *notes[:1], *last])


def _warnings(comparison: Comparison, *, brief: bool) -> list[str]:
    """Returns the distinct warnings as a single line of HTML, or an empty list if there are none.

    Each warning names its runs unless it applies to all. A brief line has the first warnings and a count.
    """
    whose = grouped(
        (sentence, name)
        for name, run in zip(comparison.names, comparison.runs, strict=True)
        for sentence in dict.fromkeys(run.info["cluster"].get("warnings", []))
    )
    every = [
        sentence if len(names) == len(comparison.runs) else f"{', '.join(names)}: {sentence}"
        for sentence, names in whose.items()
    ]
    if not every:
        return []
    shown = every[:_FIRST_WARNINGS] if brief else every
    more = [f"and {len(every) - len(shown):,} more"] if len(shown) < len(every) else []
    items = "".join(f"<li>{plain_html(each)}</li>" for each in (*shown, *more))
    title = f"{counted(len(every), 'warning')} of the replays"
    return [f"<details><summary>{title}</summary><ul>{items}</ul></details>", ""]


def markdown_table(names: Sequence[str], shown: Sequence[Line]) -> list[str]:
    """Returns the lines as a Markdown table, with one column for each run and one for its changes."""
    head, body = _columns(names, shown)
    return pipe_table([head, *body])


def _prices(answer: Recommendation) -> Iterator[str]:
    for name in answer.weighed:
        yield from ("", f"Gains and losses of {plain(name)}:", "")
        yield from (f"- {plain(price)}" for price in answer.prices[name])


def html(comparison: Comparison) -> str:
    """Returns the comparison as HTML for a notebook."""
    from html import escape

    shown = lines(comparison, (), "all")
    head, body = _columns(comparison.names, shown)
    rows = [_html_row("th", map(escape, head)), *(_html_row("td", map(escape, row)) for row in body)]
    told = (*remarks(comparison, shown), *unseen(line.measured.metric for line in shown))
    notes = "".join(f"<p>{escape(remark)}</p>" for remark in told)
    table = f"<table><thead>{rows[0]}</thead><tbody>{''.join(rows[1:])}</tbody></table>"
    return f"{head_html(comparison.head)}{table}{notes}"


def _columns(names: Sequence[str], shown: Sequence[Line]) -> tuple[list[str], list[list[str]]]:
    base, *others = names
    head = ["metric", base, *(cell for other in others for cell in (other, f"{other} against {base}"))]
    body = []
    for line in shown:
        (value, _), *rest = line.cells
        body.append([name_of(line.measured), value, *(text for cell in rest for text in cell)])
    return head, body


def _html_row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _joined(cell: tuple[str, str], width: int) -> str:
    """Aligns a value and its change, so that all changes in a column have the same width."""
    value, changed = cell
    return f"{value}  {' ' * (width - columns(changed))}{changed}" if width else value


def _cells(row: Row) -> Iterator[tuple[str, str]]:
    base, *others = row.values
    unit, digits = row.measured.unit, digits_of(*row.values)
    yield shown(base, unit, digits, at_least=row.is_least(0)), ""
    for place, (value, change) in enumerate(zip(others, row.changes, strict=True), start=1):
        text = shown(value, unit, digits, at_least=row.is_least(place))
        yield text, changed(change, unit, digits)
