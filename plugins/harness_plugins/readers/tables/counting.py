"""Selects rows of a table: those that meet all conditions, and only the last row of each job."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.base.errors import Fault, TraceError
from harness_plugins.readers.tables.doubts import Made, raise_doubts
from harness_plugins.readers.tables.joining import Rows
from harness_plugins.readers.tables.mapping import TableMapping
from harness_plugins.readers.tables.syntax import (
    Compared,
    Condition,
    IsIn,
    IsNull,
    IsTrue,
    LanguageError,
    Not,
    Term,
    Together,
    columns_of,
    parse_term,
)
from harness_plugins.readers.tables.terms import Terms
from harness_plugins.readers.tables.times import Clock
from harness_plugins.readers.tables.values import ROW, Kind, Value


def latest(rows: Rows, mapping: TableMapping, clock: Clock) -> tuple[pl.DataFrame, int]:
    """Returns one row for each job, and the number of dropped rows.

    It is the row with the greatest value of the mapping's `latest`. Among equal values, it is the last row.
    """
    term = parse_term(mapping.latest)
    terms = Terms(rows.columns, "", clock, instants=False)
    try:
        name, value = terms.text(mapping.columns["job_id"].term), terms.value(term)
        if value.kind is Kind.TEXT:
            value = _dated(rows, term, clock) or terms.number(value, term)
    except LanguageError as error:
        raise TraceError(mapping.name, [Fault("latest", str(error))]) from error
    if value.kind in (Kind.LIST, Kind.FLAG, Kind.NOTHING):
        what = f"{mapping.latest} is {value.kind.value}, which has no greatest value"
        raise TraceError(mapping.name, [Fault("latest", what)])
    found = terms.worked_out(rows.frame, name=name, by=value.expr)
    raise_doubts(rows, [Made("latest", mapping.latest, list(columns_of(term)), terms, found)])
    kept = (
        found.sort("by", ROW, nulls_last=False).unique("name", keep="last", maintain_order=True)[ROW].sort()
    )
    return rows.frame[kept], rows.frame.height - len(kept)


def _dated(rows: Rows, term: Term, clock: Clock) -> Value | None:
    """Converts text to times. If some text values are not times, the result is None."""
    terms = Terms(rows.columns, "", clock, instants=True)
    value = terms.instant(terms.value(term), term)
    found = terms.worked_out(rows.frame, at=value.expr)
    if any(found[str(place)].any() for place in range(len(terms.doubts))):
        return None
    series = found["at"]
    return Value(Kind.INSTANT, pl.lit(series))


def unmet(
    rows: Rows, frame: pl.DataFrame, mapping: TableMapping, clock: Clock
) -> Iterator[tuple[str, pl.Expr]]:
    """Yields two values for each condition: the reason for leaving out rows, and the rows to leave out.

    The latter are the rows that do not meet the condition.
    """
    terms = Terms(rows.columns, "", clock, instants=False)
    conditions = []
    for text, condition in mapping.where:
        try:
            conditions.append((text, _holds(condition, terms).fill_null(value=False)))
        except LanguageError as error:
            raise TraceError(mapping.name, [Fault("where", f"{text}: {error}")]) from error
    if not conditions:
        return
    named = {f"met {place}": holds for place, (_, holds) in enumerate(conditions)}
    found = terms.worked_out(frame, **named)
    names = [name for _, condition in mapping.where for name in columns_of(condition)]
    raise_doubts(rows, [Made("where", text_of(mapping), list(dict.fromkeys(names)), terms, found)])
    for place, (text, _) in enumerate(conditions):
        unmet = found.filter(~pl.col(f"met {place}"))[ROW]
        yield f"{text} does not hold", pl.col(ROW).is_in(unmet.implode())


def text_of(mapping: TableMapping) -> str:
    """Returns the conditions of a mapping as one text, joined by `and`."""
    return " and ".join(text for text, _ in mapping.where)


def _holds(condition: Condition, terms: Terms) -> pl.Expr:
    """Returns True if a condition holds, or null if one of its values is missing."""
    match condition:
        case IsNull(term):
            value = terms.value(term)
            return value.expr.is_null()
        case IsTrue(term):
            return terms.flag(terms.value(term), term)
        case Not(inner):
            return ~_holds(inner, terms)
        case Together(several, every):
            parts = [_holds(each, terms) for each in several]
            return pl.all_horizontal(parts) if every else pl.any_horizontal(parts)
        case IsIn(term, values):
            pairs = [terms.comparable(term, each) for each in values]
            return pl.any_horizontal(pl.lit(False), *(left == right for left, right in pairs))
        case Compared(left, operator, right):
            ordered = operator not in ("==", "!=")
            one, other = terms.comparable(left, right, ordered=ordered)
            return {
                "==": one == other, "!=": one != other, "<": one < other,
                "<=": one <= other, ">": one > other, ">=": one >= other,
            }[operator]  # fmt: skip
    raise AssertionError(condition)
