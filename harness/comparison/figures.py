"""How single figures are written: a metric's name, its value, and how it changed."""

from __future__ import annotations

from math import isfinite

from harness.comparison.changes import PRACTICAL, Change, Verdict
from harness.metrics.measurement import Measurement
from harness.text import shortened
from harness.units import SECOND, format_duration

_SIGNS = {
    True: {Verdict.BETTER: "▲", Verdict.WORSE: "▼", Verdict.NONE: "~"},
    False: {Verdict.BETTER: "△", Verdict.WORSE: "▽", Verdict.NONE: "~"},
}
"""Whether a change was told from chance -> what is said of it -> its sign."""

_WIDEST_NAME = 60
_GIB = 2**30


def name_of(row: Measurement) -> str:
    """What a line is called: the metric, its resource, and its scope unless that is everything."""
    name = f"{row.metric} {row.resource}".rstrip()
    return name if row.scope == "all" else f"{name} {{{shortened(row.scope, _WIDEST_NAME)}}}"


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


def changed(change: Change) -> str:
    """How a value differs from the baseline's, its interval, and what is said of it."""
    return " ".join(filter(None, told(change)))


def told(change: Change) -> tuple[str, str]:
    """How a value differs from the baseline's, with its interval; and the sign for what is said of it."""
    if change.difference is None:
        return "", ""
    sign = _SIGNS[change.tested].get(change.verdict, "")
    if change.relative is None:
        return ("" if change.verdict is Verdict.NONE else "from 0"), sign
    if abs(change.relative) < PRACTICAL:
        return "", sign
    relative = f"{100 * change.relative:+,.1f} %"
    interval = change.relative_interval
    if interval is not None:
        relative += f" [{100 * interval[0]:+,.1f}, {100 * interval[1]:+,.1f}]"
    return relative, sign


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 10_000 else f"{value:,.2f}"
