"""How single figures are written: a metric's name, its value, and how it changed."""

from __future__ import annotations

from math import isfinite
from typing import TypeAlias

from harness.comparison.changes import PRACTICAL, Change, Ground, Verdict
from harness.metrics.measurement import Measurement
from harness.units import SECOND, format_duration

Key: TypeAlias = tuple[str, str, str]
"""Metric, scope and resource."""

_SIGNS = {Verdict.BETTER: "▲", Verdict.WORSE: "▼", Verdict.NONE: "~", Verdict.SAME: "="}
_EXACT = {Verdict.BETTER: "△", Verdict.WORSE: "▽"}
"""What is said of a change that is the same in every twin -> its sign: there is no chance in it."""

_REFUSED = (Ground.CONGESTED, Ground.CUT, Ground.FEW)

_RUN_TIMES = "run times unknown"
"""Stands where a verdict would, if nobody knows how long some jobs run."""
_GIB = 2**30


def key_of(row: Measurement) -> Key:
    """What tells a measured value from all others of a run."""
    return row.metric, row.scope, row.resource


def name_of(row: Measurement) -> str:
    """What a line is called: the metric, its resource, and its scope unless that is everything."""
    name = f"{row.metric} {row.resource}".rstrip()
    return name if row.scope == "all" else f"{name} {{{row.scope}}}"


def shown(value: float | None, unit: str, resource: str = "", *, at_least: bool = False) -> str:
    """A value at a glance; `at_least` if it is the least that it can become."""
    if value is None or not isfinite(value):
        return "-"
    return f"≥ {_shown(value, unit, resource)}" if at_least else _shown(value, unit, resource)


def _shown(value: float, unit: str, resource: str) -> str:
    if unit == "ratio":
        return f"{100 * value:.1f} %"
    if unit == "s":
        return format_duration(value * SECOND)
    if unit in ("core-hours", "resource-hours"):
        if resource in ("memory", "ephemeral-storage"):
            return f"{_number(value / _GIB)} GiB·h"
        return f"{_number(value)} {'core·h' if unit == 'core-hours' else 'h'}"
    return _number(value)


def changed(change: Change, unit: str, resource: str = "") -> str:
    """How a value differs from the baseline's, its interval, and what is said of it."""
    return " ".join(filter(None, told(change, unit, resource)))


def between(low: float, high: float, unit: str, resource: str = "") -> str:
    """An interval of values."""
    return f"[{shown(low, unit, resource)}, {shown(high, unit, resource)}]"


def change_between(low: float, high: float, unit: str, resource: str = "", *, relative: bool) -> str:
    """A change whose interval is this, in per cent or in the metric's unit."""
    middle, *ends = (
        f"{100 * each:+,.1f} %" if relative else _signed(each, unit, resource)
        for each in ((low + high) / 2, low, high)
    )
    return middle if low == high else f"[{ends[0]}, {ends[1]}]"


def told(change: Change, unit: str, resource: str = "") -> tuple[str, str]:
    """How a value differs from the baseline's, with its interval; and the sign for what is said of it.

    In per cent of the baseline; where that is 0, or the values are of both signs, in the metric's unit.
    """
    if change.ground is Ground.RUN_TIMES:
        return "", _RUN_TIMES
    if change.difference is None:
        return "", ""
    sign = _sign(change)
    tested = change.interval is not None
    if not change.difference or (tested and change.relative is not None and abs(change.relative) < PRACTICAL):
        return "", sign
    parts = [_difference(change, unit, resource)]
    if tested and not change.exact:
        low, high = _ends(change, unit, resource)
        parts.append(f"[{low}, {high}]")
    if change.misses:
        parts.append(f"p={change.p:.2g}")
    return " ".join(parts), sign


def _sign(change: Change) -> str:
    if change.verdict is Verdict.OPEN:
        return "?" if change.ground in _REFUSED else ""
    return (_EXACT if change.exact else _SIGNS).get(change.verdict, _SIGNS.get(change.verdict, ""))


def _in_units(change: Change) -> bool:
    """Whether a difference is told in the metric's unit: per cents are of what can only be above 0."""
    return change.relative is None or (change.interval is not None and not change.interval.ratio)


def _difference(change: Change, unit: str, resource: str) -> str:
    if _in_units(change):
        assert change.difference is not None
        return _signed(change.difference, unit, resource)
    assert change.relative is not None
    return f"{100 * change.relative:+,.1f} %"


def _ends(change: Change, unit: str, resource: str) -> tuple[str, str]:
    assert change.interval is not None
    ends = change.interval.low, change.interval.high
    if _in_units(change):
        low, high = (_signed(end, unit, resource).removesuffix(_suffix(unit, resource)) for end in ends)
    else:
        low, high = (f"{100 * (end - 1):+,.1f}" for end in ends)
    return low, high


def _suffix(unit: str, resource: str) -> str:
    """What stands behind a number of a unit, and need not be said three times."""
    return "" if unit == "s" else f" {_signed(1, unit, resource).partition(' ')[2]}"


def _signed(value: float, unit: str, resource: str) -> str:
    """A difference in the metric's unit; of a ratio in points, since per cents are of the baseline."""
    sign = "-" if value < 0 else "+"
    if unit == "ratio":
        return f"{sign}{100 * abs(value):.1f} points"
    return f"{sign}{shown(abs(value), unit, resource)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 10_000 else f"{value:,.2f}"
