"""Applies rules to rows, and reports the rows that break them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import polars as pl

from harness.base.errors import Fault
from harness.base.text import counted
from harness.base.units import format_duration

_ROW = re.compile(r"row ([0-9,]+)")
_LISTED = 1000
"""The maximum number of rows that are listed for each rule. Further violations are only counted."""


class Rule(NamedTuple):
    """A rule about rows.

    Attributes:
        column: the column whose value is shown.
        broken: true for rows that break the rule. Null means false.
        says: the description of the fault, which comes after the value in messages. The value is omitted if
            the description begins with "is missing" or "is empty".
        about: a column whose value replaces `{}` in `says`.
    """

    column: str
    broken: pl.Expr
    says: str
    about: str | None = None


def breaches(frame: pl.DataFrame, rules: Iterable[Rule], rows: pl.Series | None = None) -> list[Fault]:
    """Returns every violation of the rules, ordered by row and then by rule.

    The columns of `frame` have the schema's types. `job_id` may be absent. `rows` has the number of each row
    in the file, counted from 0. By default, this is the index of the row.
    """
    rules = list(rules)
    if not rules or not frame.height:
        return []
    broken = frame.select(
        rule.broken.fill_null(value=False).alias(str(number)) for number, rule in enumerate(rules)
    )
    found: list[tuple[int, int, Fault]] = []
    beyond: list[Fault] = []
    for number, rule in enumerate(rules):
        places = broken[str(number)].arg_true()
        for place in places[:_LISTED].to_list():
            row = place if rows is None else rows[place]
            found.append((row, number, _fault(frame, rule, place, row)))
        if len(places) > _LISTED:
            what = rule.says.replace("{}", rule.about or "")
            beyond.append(
                Fault(f"column {rule.column}", f"{counted(len(places) - _LISTED, 'more row')}: {what}")
            )
    found.sort(key=lambda item: item[:2])
    return [fault for _, _, fault in found] + beyond


def placed(fault: Fault, place: Callable[[int], str] | None) -> Fault:
    """Returns a copy of a fault in which the place in the source file replaces the row number.

    `place` returns the place in the file for a row number, counted from 0. If it is None, the row number
    stays.
    """
    found = None if place is None else _ROW.match(fault.where)
    if place is None or found is None:
        return fault
    return Fault(place(int(found[1].replace(",", "")) - 1) + fault.where[found.end() :], fault.what)


def shown(value: Any, dtype: pl.DataType | None = None) -> str:
    """Formats a value for a message."""
    if value is None:
        return "null"
    if isinstance(dtype, pl.Duration):
        return format_duration(value)
    if isinstance(dtype, pl.Datetime):
        return f"{value:,} µs since 1970"
    if isinstance(value, pl.Series):  # a value in a nested column
        value = value.to_list()
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fault(frame: pl.DataFrame, rule: Rule, place: int, row: int) -> Fault:
    job = frame["job_id"][place] if "job_id" in frame.columns else None
    name = f" (job {shown(job)})" if job else ""
    says = rule.says.replace("{}", _value(frame, rule.about, place)) if rule.about else rule.says
    if not says.startswith(("is missing", "is empty")):
        says = f"{_value(frame, rule.column, place)} {says}"
    return Fault(f"row {row + 1:,}{name}, {rule.column}", says)


def _value(frame: pl.DataFrame, column: str, place: int) -> str:
    series = frame[column]
    if isinstance(series.dtype, (pl.Duration, pl.Datetime)):
        return shown(series.slice(place, 1).to_physical()[0], series.dtype)
    return shown(series[place], series.dtype)
