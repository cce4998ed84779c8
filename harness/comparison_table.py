"""How a comparison looks: a table for terminals and notebooks, and what must be known to read it right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.text import aligned, columns, printable, shortened
from harness.units import SECOND, format_amount, format_duration

if TYPE_CHECKING:
    from harness.comparison import Comparison
    from harness.metrics.measurement import Measurement

_NAMED_GANGS = 3

HEADLINES = (
    "utilization.allocated",
    "utilization.useful",
    "utilization.lost",
    "utilization.idle_held",
    "utilization.of_demand",
    "wait.first_start.mean",
    "wait.first_start.p50",
    "wait.first_start.p95",
    "wait.total.p95",
    "slowdown.bounded.mean",
    "makespan",
    "jobs.finished",
    "jobs.unfinished",
    "jobs.rejected",
    "disruption.preemptions",
    "disruption.preempted_jobs",
    "disruption.lost",
)
"""The metrics that a table shows unless others are asked for."""

_PRACTICAL = 0.01  # a change below one per cent is not called one
_WIDEST_NAME = 60
_GIB = 2**30


class Line(NamedTuple):
    """One line of the table: what was measured, and for each run the value and how it changed."""

    measured: Measurement
    cells: list[tuple[str, str]]


def lines(comparison: Comparison, metrics: Sequence[str], scope: str | None) -> list[Line]:
    """The table's lines; without metrics those of the headlines that were measured, in their order."""
    found = list(comparison.select(*metrics, scope=scope))
    if not metrics:
        order = {name: place for place, name in enumerate(HEADLINES)}
        found = sorted(
            (each for each in found if each[0].metric in order), key=lambda each: order[each[0].metric]
        )
    return [Line(row, list(_cells(row, values))) for row, values in found]


def text(comparison: Comparison, metrics: Sequence[str], scope: str | None) -> str:
    """For a terminal."""
    shown = lines(comparison, metrics, scope)
    if not shown:
        return "no metric was measured"
    changes = [max(columns(line.cells[place][1]) for line in shown) for place in range(len(comparison.names))]
    rows = [
        [
            _name(line.measured),
            *(_joined(cell, width) for cell, width in zip(line.cells, changes, strict=True)),
        ]
        for line in shown
    ]
    table = aligned([["metric", *comparison.names], *rows])
    return "\n".join([table, *(printable(remark) for remark in remarks(comparison, shown))])


def html(comparison: Comparison) -> str:
    """For a notebook."""
    shown = lines(comparison, (), "all")
    base, *others = comparison.names
    head = f"<th>metric</th><th>{escape(base)}</th>"
    head += "".join(f'<th colspan="2">{escape(other)}</th>' for other in others)
    body = ""
    for line in shown:
        (value, _), *rest = line.cells
        cells = [_name(line.measured), value, *(text for cell in rest for text in cell)]
        body += "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    notes = "".join(f"<p>{escape(remark)}</p>" for remark in remarks(comparison, shown))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def remarks(comparison: Comparison, shown: Sequence[Line]) -> Iterator[str]:
    """What a reader must know to read the lines right."""
    runs, names = comparison.runs, comparison.names
    if len(runs) > 1:
        yield f"▲ better, ▼ worse, ~ within 1 %; changes are against {names[0]}"
    if not comparison.shares_window and any(
        line.measured.metric.startswith("utilization.") for line in shown
    ):
        end = format_duration(comparison.window.end - comparison.window.start)
        yield f"utilization: over the first {end}, which all runs share"
    yield from _about_settings(comparison)
    yield from _about_policies(comparison)
    for name, run in zip(names, runs, strict=True):
        gangs = run.info["outcome"]["half_bound_gangs"]
        if gangs:
            yield f"{name}: {_half_bound(gangs)}"


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


def _about_policies(comparison: Comparison) -> Iterator[str]:
    """Which plugin a run is of where its name does not say it, with the options in which such runs differ."""
    policies = [run.info["policy"] for run in comparison.runs]
    for name, policy in zip(comparison.names, policies, strict=True):
        same = [each["options"] for each in policies if each["name"] == policy["name"]]
        differing = [
            f"{key}={_plain(value)}"
            for key, value in policy["options"].items()
            if any(options.get(key) != value for options in same)
        ]
        if differing:
            yield f"{name}: plugin {policy['name']} with {', '.join(differing)}"
        elif name != policy["name"]:
            yield f"{name}: plugin {policy['name']}"


def _about_settings(comparison: Comparison) -> Iterator[str]:
    """Settings that the runs do not share: the table compares them as well as the plugins."""
    settings = [run.info["settings"] for run in comparison.runs]
    for key in settings[0]:
        values = [each.get(key) for each in settings]
        if any(value != values[0] for value in values):
            what = key.removesuffix("_us").replace("_", " ")
            each = (
                f"{name} {_setting(key, value)}" for name, value in zip(comparison.names, values, strict=True)
            )
            yield f"different {what}: {', '.join(each)}"


def _setting(key: str, value: Any) -> str:
    if value is None:
        return "none"
    return format_duration(value) if key.endswith("_us") else str(value)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _name(row: Measurement) -> str:
    name = f"{row.metric} {row.resource}".rstrip()
    return name if row.scope == "all" else f"{name} {{{shortened(row.scope, _WIDEST_NAME)}}}"


def _joined(cell: tuple[str, str], width: int) -> str:
    """Value and change side by side, the changes of a column equally wide."""
    value, changed = cell
    return f"{value}  {' ' * (width - columns(changed))}{changed}" if width else value


def _cells(row: Measurement, values: Sequence[float | None]) -> Iterator[tuple[str, str]]:
    base, *others = values
    yield shown(base, row.unit, row.resource), ""
    for value in others:
        yield shown(value, row.unit, row.resource), change(base, value, row.better)


def shown(value: float | None, unit: str, resource: str = "") -> str:
    """A value at a glance."""
    if value is None or not isfinite(value):
        return "-"
    if unit == "ratio":
        return f"{100 * value:.1f} %"
    if unit == "s":
        return format_duration(value * SECOND)
    if unit in ("core-hours", "resource-hours"):
        if resource in ("memory", "ephemeral-storage"):
            return f"{_number(value / _GIB)} GiB·h"
        return f"{_number(value)} {'core·h' if unit == 'core-hours' else 'h'}"
    return _number(value)


def change(base: float | None, value: float | None, better: str) -> str:
    """How a value differs from the baseline's, and whether that is good."""
    if base is None or value is None or not isfinite(base) or not isfinite(value):
        return ""
    difference = value - base
    if base == 0:
        if difference == 0:
            return "~"
        relative = "from 0"
    else:
        if abs(difference / base) < _PRACTICAL:
            return "~"
        relative = f"{100 * difference / abs(base):+,.1f} %"
    if not better:
        return relative
    return f"{relative} {'▲' if (difference > 0) == (better == 'higher') else '▼'}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 10_000 else f"{value:,.2f}"
