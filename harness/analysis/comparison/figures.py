"""Selects the figures to show, and formats a metric's name, its value, and its change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from math import floor, isfinite, log10

from harness.analysis.comparison.changes import PRACTICAL, Change, Ground, Verdict
from harness.base.errors import RunError
from harness.base.options import did_you_mean
from harness.base.units import HOURS_OF_RESOURCES, SECOND, format_duration
from harness.plugins.measurement import SHARE, Measurement
from harness.plugins.scopes import ALL, hint_at, parse_scope
from harness.runs.measuring import Key

_SIGNS = {Verdict.BETTER: "▲", Verdict.WORSE: "▼", Verdict.NONE: "~", Verdict.SAME: "="}
_EXACT = {Verdict.BETTER: "△", Verdict.WORSE: "▽"}
"""The signs for a change that is the same in every twin."""

_REFUSED = (Ground.CONGESTED, Ground.CUT, Ground.FEW)

_RUN_TIMES = "run times unknown"
"""The text that replaces a verdict if the run times of some jobs are unknown."""
PARTS = (SHARE, "ratio")
"""The units that a table shows as percentages."""

_NAMED = (*HOURS_OF_RESOURCES, "cores", "GiB", "devices")
"""The units that a table shows next to a number. For other metrics, the name already says what is counted."""

_MOST_DIGITS = 6


def chosen(keys: Mapping[Key, Measurement], metrics: Sequence[str], scope: str | None) -> list[Key]:
    """Returns the keys that match the metrics and the scope; see `Comparison.to_polars` for errors."""
    for pattern in metrics:
        if not any(fnmatchcase(name, pattern) for name, _, _ in keys):
            hint = did_you_mean(pattern, {name for name, _, _ in keys})
            raise RunError(f"no run has a metric {pattern!r}", hint=hint)
    of_metrics = [
        key for key in keys if not metrics or any(fnmatchcase(key[0], pattern) for pattern in metrics)
    ]
    if scope is None:
        return of_metrics
    wanted = parse_scope(scope)
    chosen = [key for key in of_metrics if wanted.holds(key[1])]
    if not chosen and (metrics or wanted.kind != ALL):
        what = f" of {', '.join(metrics)}" if metrics else ""
        hint = hint_at(wanted, {known for _, known, _ in of_metrics})
        raise RunError(f"nothing{what} was measured for scope {scope!r}", hint=hint)
    return chosen


def name_of(row: Measurement) -> str:
    """Returns the label of a line: the metric, its resource, and its scope unless the scope is `all`."""
    name = f"{row.metric} {row.resource}".rstrip()
    return name if row.scope == "all" else f"{name} {{{row.scope}}}"


def digits_of(*values: float | None) -> int:
    """Returns the number of decimal places for a column of numbers.

    The result is 0 if all values are integers or if the largest value is at least 10,000. Otherwise, the
    result is 2. If the largest value is below 1, more places are used to show three of its digits.
    """
    known = [abs(value) for value in values if value is not None and isfinite(value)]
    top = max(known, default=0.0)
    if top >= 10_000 or all(value == int(value) for value in known):
        return 0
    return 2 if top >= 1 else min(_MOST_DIGITS, 2 - floor(log10(top)))


def shown(value: float | None, unit: str, digits: int | None = None, *, at_least: bool = False) -> str:
    """Formats a value.

    `digits` is the number of decimal places; by default, it depends on the value. If `at_least` is true, the
    text starts with `≥`, because the value is a lower bound that can still grow.
    """
    if value is None or not isfinite(value):
        return "-"
    text = _shown(value, unit, digits)
    return f"≥ {text}" if at_least else text


def _shown(value: float, unit: str, digits: int | None) -> str:
    if unit in PARTS:
        return f"{100 * value:.1f} %"
    if unit == "s":
        return format_duration(value * SECOND)
    number = f"{value:,.{digits_of(value) if digits is None else digits}f}"
    return f"{number} {unit}" if unit in _NAMED else number


def changed(change: Change, unit: str, digits: int | None = None) -> str:
    """Formats the difference from the baseline's value, with its interval and the sign of the verdict."""
    return " ".join(filter(None, told(change, unit, digits)))


def between(low: float, high: float, unit: str) -> str:
    """Formats an interval of values."""
    digits = digits_of(low, high)
    return f"[{shown(low, unit, digits)}, {shown(high, unit, digits)}]"


def change_between(low: float, high: float, unit: str, *, relative: bool) -> str:
    """Formats the interval of a change, or a single number if both ends are equal.

    If `relative` is true, the numbers are percentages of the baseline's value. Otherwise, they are in the
    metric's unit.
    """
    values = (low + high) / 2, low, high
    digits = digits_of(*values)
    middle, *ends = (_of_baseline(each, unit) if relative else _signed(each, unit, digits) for each in values)
    return middle if low == high else f"[{ends[0]}, {ends[1]}]"


def _of_baseline(part: float, unit: str) -> str:
    """If the value itself is a percentage, the text marks the change as relative."""
    return f"{100 * part:+z,.1f} %{' relative' if unit in PARTS else ''}"


def told(change: Change, unit: str, digits: int | None = None) -> tuple[str, str]:
    """Returns the difference from the baseline's value with its interval, and the sign of the verdict.

    The difference is a percentage of the baseline's value. If the value itself is a percentage, the text
    marks the difference as relative. If the baseline's value is 0 or the values have different signs, the
    difference is in the metric's unit, or in percentage points.
    """
    if change.ground is Ground.RUN_TIMES:
        return "", _RUN_TIMES
    if change.difference is None:
        return "", ""
    sign = _sign(change)
    tested = change.interval is not None
    if not change.difference or (tested and change.relative is not None and abs(change.relative) < PRACTICAL):
        return "", sign
    parts = [_difference(change, unit, digits)]
    if tested and not change.exact:
        low, high = _ends(change, unit, digits)
        parts.append(f"[{low}, {high}]")
    if change.misses:
        parts.append(f"p={change.p:.2g}")
    return " ".join(parts), sign


def within(change: Change, unit: str) -> str:
    """Returns the range of a change from its interval, or just the change if it is the same in every twin."""
    if change.interval is None or change.exact:
        return "" if change.difference is None else _difference(change, unit, None)
    low, high = _ends(change, unit, None)
    whole = _difference(change, unit, None)
    return f"{low} to {high} {whole.partition(' ')[2]}".rstrip()


def _sign(change: Change) -> str:
    if change.verdict is Verdict.OPEN:
        return "?" if change.ground in _REFUSED else ""
    return (_EXACT if change.exact else _SIGNS).get(change.verdict, _SIGNS.get(change.verdict, ""))


def _in_units(change: Change) -> bool:
    """A percentage is possible only if all values are above 0."""
    return change.relative is None or (change.interval is not None and not change.interval.ratio)


def _difference(change: Change, unit: str, digits: int | None) -> str:
    if _in_units(change):
        assert change.difference is not None
        return _signed(change.difference, unit, digits)
    assert change.relative is not None
    return _of_baseline(change.relative, unit)


def _ends(change: Change, unit: str, digits: int | None) -> tuple[str, str]:
    assert change.interval is not None
    ends = change.interval.low, change.interval.high
    if _in_units(change):
        low, high = (_signed(end, unit, digits).removesuffix(_suffix(unit)) for end in ends)
    else:
        low, high = (f"{100 * (end - 1):+z,.1f}" for end in ends)
    return low, high


def _suffix(unit: str) -> str:
    """Returns the unit that follows the last of several numbers."""
    return "" if unit == "s" else f" {_signed(1, unit, 0).partition(' ')[2]}"


def _signed(value: float, unit: str, digits: int | None) -> str:
    sign = "-" if value < 0 else "+"
    if unit in PARTS:
        return f"{sign}{100 * abs(value):.1f} points"
    return f"{sign}{shown(abs(value), unit, digits)}"
