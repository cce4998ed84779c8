"""How a comparison looks: a table for terminals and notebooks, and what must be known to read it right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import chain
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.analysis.comparison.changes import Row
from harness.analysis.comparison.figures import changed, digits_of, key_of, name_of, shown
from harness.analysis.comparison.head_text import head_html, head_lines, head_markdown
from harness.analysis.comparison.headlines import ALARMS, BRIEF, SHOWN
from harness.analysis.comparison.missing import about_missing, about_unshaken
from harness.analysis.comparison.ping_pong import about_loops
from harness.analysis.comparison.recommendation import recommendation
from harness.analysis.comparison.samples import LOST
from harness.analysis.metrics.finish_time import FINISH_TIMES
from harness.analysis.metrics.idle import METRICS as IDLE_METRICS
from harness.analysis.metrics.unseen import does_not_see
from harness.analysis.metrics.utilization import HOURS
from harness.base.markdown import plain
from harness.base.text import aligned, columns, counted, printable, told_apart
from harness.base.units import format_amount, format_duration
from harness.plugins.scopes import ALL

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison
    from harness.analysis.comparison.changes import Change
    from harness.plugins.measurement import Measurement
    from harness.runs.run import Run

_NAMED_GANGS = 3
_NAMED_VALUES = 12
_SHORTEST_NAME = 8

_ON_REQUEST = {"--isolated": FINISH_TIMES, "--idle-causes": IDLE_METRICS}
"""Options of replays -> what is measured where they are given only."""

_OF_CAPACITY = ("utilization.", "goodput.", "backlog", "fairness.")
_OF_WINDOW = (*_OF_CAPACITY, "fragmentation", "quota.", "reclaim.owed")
_NOTHING = "no metric was measured"
_LOST_PART = f"{LOST}_of_allocated"
_INTERVAL = re.compile(r" \[[^\]]*\]")
_NARROWED = "too narrow for intervals: a wider terminal, a pipe and --format csv have them"


class Line(NamedTuple):
    """One line of the table: what was measured, and for each run the value and how it changed."""

    row: Row
    cells: list[tuple[str, str]]

    @property
    def measured(self) -> Measurement:
        """The metric, its scope, resource and unit."""
        return self.row.measured


def lines(
    comparison: Comparison, metrics: Sequence[str], scope: str | None, *, brief: bool = False
) -> list[Line]:
    """The table's lines; without metrics those of `SHOWN` that were measured, in that order.

    Args:
        comparison: the runs.
        metrics: which; all of `SHOWN` by default.
        scope: as in `Comparison.to_polars`.
        brief: of all of `SHOWN` only the most important ones, and what is alarming.
    """
    found = _selected(comparison, metrics, scope)
    if brief:
        found = [(row, values) for row, values in found if _comes_first(comparison, row, values)]
    return [Line(row, list(_cells(row))) for row in comparison.judge(found)]


def _selected(
    comparison: Comparison, metrics: Sequence[str], scope: str | None
) -> list[tuple[Measurement, list[float | None]]]:
    """What a table is about."""
    found = list(comparison.select(*metrics, scope=scope))
    if metrics:
        return found
    order = {name: place for place, name in enumerate(SHOWN)}
    return sorted(
        (each for each in found if each[0].metric in order and says_something_new(comparison, each[0])),
        key=lambda each: order[each[0].metric],
    )


def _comes_first(comparison: Comparison, measured: Measurement, values: Sequence[float | None]) -> bool:
    """Whether a line is among the most important ones."""
    if measured.metric in ALARMS:
        return any(values)
    return measured.metric in BRIEF and measured.resource in ("", comparison.fullest)


def says_something_new(comparison: Comparison, measured: Measurement) -> bool:
    """Whether a headline says something new: resource-hours do where capacities differ."""
    return not measured.metric.endswith(HOURS) or measured.resource in comparison.differing_capacities


def text(
    comparison: Comparison,
    metrics: Sequence[str],
    scope: str | None,
    width: int | None = None,
    *,
    brief: bool = False,
) -> str:
    """For a terminal of so many columns; None for any number.

    Where the table is too wide, it goes without intervals, then run by run beside the baseline, and then with
    metrics above their values. A brief one begins with what to take, and ends with how to see the rest.
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
        head = [*([printable(answer.sentence), ""] if answer else []), *head]
        left = len(_selected(comparison, metrics, scope)) - len(shown)
        notes = [*notes, *([f"--all shows {left:,} more lines"] if left else [])]
    elif not metrics:
        notes = [*notes, *_unseen(shown)]
    return "\n".join([*_wrapped(head, width), "\n\n".join(parts), *_wrapped(notes, width)])


def _unseen(shown: Sequence[Line]) -> Iterator[str]:
    """What the metrics of some lines do not see, each once."""
    found = (does_not_see(line.measured.metric) for line in shown)
    yield from filter(None, dict.fromkeys(found))


def _wrapped(sentences: Iterable[str], width: int | None) -> Iterator[str]:
    """Sentences in lines of at most so many columns."""
    for sentence in sentences:
        indent = "  " if sentence.startswith("  ") else ""
        rows = (
            wrap(sentence, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
            if width
            else []
        )
        yield from rows or [sentence]


def _tables(names: Sequence[str], shown: Sequence[Line], width: int | None) -> tuple[list[str], bool]:
    """One table, or one for each run, so that no line is too long; and whether they have all intervals."""
    together = [range(len(names))]
    apart = [(0, place) for place in range(1, len(names))] or together
    for runs in (together, apart):
        for whole in (True, False):
            tables = [_table(names, shown, places, intervals=whole) for places in runs]
            if width is None or all(_widest(each) <= width for each in tables):
                return tables, whole
    assert width is not None
    return [_upright(names, shown, places, width) for places in apart], False


def _widest(table: str) -> int:
    return max(map(columns, table.split("\n")))


def _table(names: Sequence[str], shown: Sequence[Line], places: Sequence[int], *, intervals: bool) -> str:
    """The lines with the columns of some runs."""
    rows = zip(shown, _values(shown, places, intervals=intervals), strict=True)
    head = ["metric", *(names[place] for place in places)]
    return aligned([head, *([name_of(line.measured), *row] for line, row in rows)])


def _upright(names: Sequence[str], shown: Sequence[Line], places: Sequence[int], width: int) -> str:
    """The same without intervals and with metrics above their values, so that it is as narrow as these."""
    most = max(_SHORTEST_NAME, width // len(places) - 2)
    labels = told_apart(names, most)
    head = [labels[place] for place in places]
    table = aligned([head, *_values(shown, places, intervals=False)], left=())
    first, rule, *rows = table.split("\n")
    titles = told_apart((name_of(line.measured) for line in shown), width)
    titled = ([title, row] for title, row in zip(titles, rows, strict=True))
    return "\n".join([first, rule, *chain.from_iterable(titled)])


def _values(shown: Sequence[Line], places: Sequence[int], *, intervals: bool) -> list[list[str]]:
    """The values and changes of some runs, line by line."""
    cells = [[line.cells[place] for place in places] for line in shown]
    if not intervals:
        cells = [[(value, _INTERVAL.sub("", change)) for value, change in row] for row in cells]
    widths = [max(columns(row[place][1]) for row in cells) for place in range(len(places))]
    return [[_joined(cell, width) for cell, width in zip(row, widths, strict=True)] for row in cells]


def markdown(
    comparison: Comparison, metrics: Sequence[str], scope: str | None, *, brief: bool = False
) -> str:
    """For a pull request.

    A brief one has what to take, the most important lines, which runs were stopped, what differs, and the
    legend.
    """
    shown = lines(comparison, metrics, scope, brief=brief)
    if not shown:
        return _NOTHING
    head, body = _columns(comparison, shown)
    rule = ["---", *["---:"] * (len(head) - 1)]
    table = ["| " + " | ".join(map(plain, row)) + " |" for row in (head, *body)]
    table.insert(1, "| " + " | ".join(rule) + " |")
    absent = comparison.absent(*metrics, scope=scope)
    notes = [f"- {plain(remark)}" for remark in (*absent, *remarks(comparison, shown))]
    if not brief:
        notes += [f"- {plain(clause)}" for clause in (() if metrics else _unseen(shown))]
        return "\n".join([*head_markdown(comparison.head, comparison.head.title), *table, "", *notes])
    answer = recommendation(comparison)
    first = [plain(answer.sentence), ""] if answer else []
    cut = [f"- {plain(each)}" for each in _stopped(comparison)]
    return "\n".join([*first, *table, "", *cut, *head_markdown(comparison.head), *notes[:1]])


def html(comparison: Comparison) -> str:
    """For a notebook."""
    shown = lines(comparison, (), "all")
    head, body = _columns(comparison, shown)
    rows = [_html_row("th", head), *(_html_row("td", row) for row in body)]
    notes = "".join(f"<p>{escape(remark)}</p>" for remark in remarks(comparison, shown))
    table = f"<table><thead>{rows[0]}</thead><tbody>{''.join(rows[1:])}</tbody></table>"
    return f"{head_html(comparison.head)}{table}{notes}"


def _columns(comparison: Comparison, shown: Sequence[Line]) -> tuple[list[str], list[list[str]]]:
    """The head and the lines with a column for each run's values, and for each but the first its changes."""
    base, *others = comparison.names
    head = ["metric", base, *(cell for other in others for cell in (other, f"{other} against {base}"))]
    body = []
    for line in shown:
        (value, _), *rest = line.cells
        body.append([name_of(line.measured), value, *(text for cell in rest for text in cell)])
    return head, body


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def remarks(comparison: Comparison, shown: Sequence[Line]) -> Iterator[str]:
    """What a reader must know to read the lines right."""
    runs, names = comparison.runs, comparison.names
    if len(runs) > 1:
        yield from _about_changes(comparison, shown)
    elif not names[0].startswith(runs[0].info["policy"]["name"]):
        yield f"{names[0]}: plugin {runs[0].info['policy']['name']}"
    yield from about_missing([line.row for line in shown], comparison.lack, names)
    if comparison.shake is not None:
        yield from about_unshaken(runs, comparison.measured, _ON_REQUEST)
    yield from _about_windows(comparison, shown)
    if any(line.measured.metric.startswith(_OF_CAPACITY) for line in shown):
        yield from _about_capacity(comparison)
    yield from _stopped(comparison)
    for name, run in zip(names, runs, strict=True):
        if run.is_record:
            yield f"{name}: a record of what happened, no simulation"
        if run.without_run_times:
            yield f"{name}: {run.without_run_times}; waits and losses have no verdict"
        yield from (f"{name}: {sentence}" for sentence in (*run.unmeasured.values(), *run.remarks))
        gangs = run.info["outcome"]["half_bound_gangs"]
        if gangs:
            yield f"{name}: {_half_bound(gangs)}"
        loops = about_loops(run)
        if loops is not None:
            yield f"{name}: {loops}"


def _stopped(comparison: Comparison) -> Iterator[str]:
    """Which runs were ended where they went nowhere."""
    for name, run in zip(comparison.names, comparison.runs, strict=True):
        if run.stopped is not None:
            yield f"{name}: {run.stopped.told()}"


def _about_windows(comparison: Comparison, shown: Sequence[Line]) -> Iterator[str]:
    """What is measured over what time and which jobs, where runs differ in that."""
    if comparison.shake is not None:
        found = [list(_over_own_window(comparison, shown, place)) for place in range(len(comparison.runs))]
        if any(found):
            yield "all but waits of jobs that ended: of each twin over the windows that its runs share"
        yield from chain.from_iterable(found)
        return
    window, windows = comparison.window, [run.window for run in comparison.runs]
    if window is None:
        spans = [format_duration(each.end - each.start) for each in windows]
        each = ", ".join(f"{name} {span}" for name, span in zip(comparison.names, spans, strict=True))
        yield f"arrivals differ, so each run is measured over its own window: {each}"
    elif not comparison.shares_window:
        end = format_duration(window.end - window.start)
        if comparison.shares[0].cut:
            yield f"a run was cut short, so all is measured over the first {end}"
        elif any(line.measured.metric.startswith(_OF_WINDOW) for line in shown):
            yield f"utilization, goodput, fairness and quota: over the first {end}, which all runs share"
        for place in range(len(windows)):
            yield from _over_own_window(comparison, shown, place)
    pairs = comparison.pairs
    if not pairs.whole:
        left = [
            f"{jobs - pairs.count:,} only in {name}"
            for name, jobs in zip(comparison.names, pairs.jobs, strict=True)
            if jobs > pairs.count
        ]
        if window is not None:
            yield f"jobs that arrive after that do not count: {', '.join(left)}"
            return
        yield (
            f"waits, jct, slowdown and lost work: of the {pairs.count:,} jobs that all runs have in common; "
            f"left out are {', '.join(left)}; all else is of each run's own jobs"
        )


def _over_own_window(comparison: Comparison, of_table: Sequence[Line], place: int) -> Iterator[str]:
    """What a run's own files have, over its own window, where the table has other values."""
    own = comparison.over_own_window(place)
    told = []
    for line in of_table:
        each = line.measured
        value = own.get(key_of(each), line.row.values[place])
        if value != line.row.values[place]:
            told.append(f"{name_of(each)} {shown(value, each.unit)}")
    if told:
        name, window = comparison.names[place], comparison.runs[place].window
        span = format_duration(window.end - window.start)
        over = f"over its own {span}, as its metrics.parquet has it"
        over = over if comparison.shake is None else "over the own windows of its twins"
        more = f" and {len(told) - _NAMED_VALUES:,} more" if len(told) > _NAMED_VALUES else ""
        yield f"{name} {over}: {', '.join(told[:_NAMED_VALUES])}{more}"


def _about_capacity(comparison: Comparison) -> Iterator[str]:
    """What shares are shares of: the capacity of what jobs ask for."""
    capacities = [_capacity(run) for run in comparison.runs]
    if not any(capacities):
        return
    on_nodes = [bool(run.info["cluster"]["nodes"]) for run in comparison.runs]
    if not comparison.differing_capacities and len(set(on_nodes)) == 1:
        yield f"shares are of a capacity of {capacities[0]}"
        return
    each = "; ".join(f"{name} {text}" for name, text in zip(comparison.names, capacities, strict=True))
    yield f"shares are of each run's own capacity: {each}"
    without = [name for name, nodes in zip(comparison.names, on_nodes, strict=True) if not nodes]
    if 0 < len(without) < len(on_nodes):
        yield f"{', '.join(without)}: there are no nodes: jobs start as a whole, within quotas"


def _capacity(run: Run) -> str:
    """The capacity of what jobs of a run ask for, and what makes it up."""
    known = [
        f"{format_amount(each, run.capacity[each])} {each}" for each in run.resources if each in run.capacity
    ]
    nodes = run.info["cluster"]["nodes"]
    return f"{', '.join(known)} ({counted(nodes, 'node') if nodes else 'nominal quotas'})" if known else ""


def _half_bound(gangs: Sequence[Mapping[str, Any]]) -> str:
    """What gangs held in vain at the end, and the first of them by name."""
    held: dict[str, int] = {}
    for gang in gangs:
        for resource, amount in gang["held"].items():
            held[resource] = held.get(resource, 0) + amount
    amounts = ", ".join(f"{format_amount(each, held[each])} of {each}" for each in sorted(held))
    named = [f"{printable(gang['job'])} ({gang['bound']} of {gang['pods']})" for gang in gangs[:_NAMED_GANGS]]
    more = ", ..." if len(gangs) > len(named) else ""
    what = f"{len(gangs):,} gang{'s' if len(gangs) > 1 else ''} held {amounts or 'nodes'} at the end"
    return f"{what} without all pods being bound: {', '.join(named)}{more}"


def _about_changes(comparison: Comparison, shown: Sequence[Line]) -> Iterator[str]:
    """What signs mean, where intervals come from, and what is not judged."""
    changes = [change for line in shown for change in line.row.changes]
    exact = ", △ ▽ the same in every twin" if any(map(_is_sure, changes)) else ""
    against = f"changes are against {comparison.names[0]}"
    yield f"▲ better, ▼ worse, ~ neither can be said, = equal{exact}; {against}"
    yield from comparison.remarks(changes)
    yield from _about_lost_work(comparison, shown)


def _is_sure(change: Change) -> bool:
    return change.exact and bool(change.difference)


def _about_lost_work(comparison: Comparison, listed: Sequence[Line]) -> Iterator[str]:
    """What part of the work is lost, where the baseline loses none, so that no percentage says it."""
    from_nothing = [
        line.measured.resource
        for line in listed
        if line.measured.metric == LOST and line.measured.scope == ALL
        if line.row.values[0] == 0 and any(line.row.values[1:])
    ]
    for measured, parts in comparison.select() if from_nothing else ():
        if measured.metric == _LOST_PART and measured.resource in from_nothing:
            each = [
                f"{name} {shown(part, measured.unit)}"
                for name, part in zip(comparison.names[1:], parts[1:], strict=True)
            ]
            yield f"of what was allocated, {LOST} {measured.resource} is: {', '.join(each)}"


def _joined(cell: tuple[str, str], width: int) -> str:
    """Value and change side by side, the changes of a column equally wide."""
    value, changed = cell
    return f"{value}  {' ' * (width - columns(changed))}{changed}" if width else value


def _cells(row: Row) -> Iterator[tuple[str, str]]:
    base, *others = row.values
    unit, digits = row.measured.unit, digits_of(*row.values)
    yield shown(base, unit, digits, at_least=row.is_least(0)), ""
    for place, (value, change) in enumerate(zip(others, row.changes, strict=True), start=1):
        text = shown(value, unit, digits, at_least=row.is_least(place))
        yield text, changed(change, unit, digits)
