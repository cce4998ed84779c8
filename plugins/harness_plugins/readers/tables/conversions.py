"""Converts a table's cells and the values of terms to numbers, times, durations, or true and false."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from harness.base.units import SECOND
from harness_plugins.readers.tables.syntax import LanguageError, Term
from harness_plugins.readers.tables.texts import DECIMALS, Keep, fixed, flagged, text_number
from harness_plugins.readers.tables.times import INSTANT_UNITS, Clock
from harness_plugins.readers.tables.values import ROW, WIDE, Columns, Doubt, Kind, Value, named, only

_MOST = 2**62
"""The largest integer that is in range. The difference of two such numbers still fits into 64 bits."""


class Conversions:
    """Converts values of a table to other kinds, such as text to times, to compute one column of a trace.

    A value that depends on another value is a separate step, which is computed once. As a result, the cost
    grows only with the number of terms.

    Args:
        table: the columns of the table, with their types.
        unit: the unit of the source, or "".
        clock: the clock that reads times without a zone.
        instants: whether the text and numbers in differences are times.

    Attributes:
        doubts: the checks for invalid cells, in the order in which they were added.
        twice: maps a column to an expression that selects its times in an hour that occurs twice.
        lost: maps a reason to an expression that selects the amounts that are lost for this reason.
    """

    def __init__(self, table: Columns, unit: str, clock: Clock, *, instants: bool) -> None:
        self.table, self.unit, self.clock = table, unit, clock
        self.instants = instants
        self._steps: list[pl.Expr] = []
        self.doubts: list[Doubt] = []
        self.twice: dict[str, pl.Expr] = {}
        self.lost: dict[str, pl.Expr] = {}

    def worked_out(self, frame: pl.DataFrame, **found: pl.Expr) -> pl.DataFrame:
        """Returns a table with the row numbers, the given expressions, and the results of all checks.

        The results of `doubts` are in the columns `0`, `1` and so on.
        """
        plan = frame.lazy()
        for step in self._steps:
            plan = plan.with_columns(step)
        doubts = (doubt.rows.alias(str(place)) for place, doubt in enumerate(self.doubts))
        twice = (rows.alias(f"twice {name}") for name, rows in self.twice.items())
        lost = (rows.fill_null(value=False).alias(f"lost {why}") for why, rows in self.lost.items())
        return plan.select(
            ROW, *(expr.alias(name) for name, expr in found.items()), *doubts, *twice, *lost
        ).collect()

    def kept(self, expr: pl.Expr) -> pl.Expr:
        """Adds an expression as a separate step, which is computed once. Returns the column of its result."""
        name = f"\0{len(self._steps)}"
        self._steps.append(expr.alias(name))
        return pl.col(name)

    def number(self, value: Value, term: Term) -> Value:
        """Converts a value to a number. Text is parsed."""
        if value.kind is Kind.TEXT:
            if self.unit == "%":
                value = replace(value, expr=value.expr.str.strip_chars().str.strip_suffix("%"))
            return Value(Kind.NUMBER, self.read(value, term, text_number, "is not a number"), DECIMALS)
        if value.kind is Kind.NOTHING:
            return Value(Kind.NUMBER, value.expr.cast(WIDE))
        if value.kind is not Kind.NUMBER:
            raise LanguageError(f"{named(term)} is {value.kind.value}, but must be a number")
        return value

    def instant(self, value: Value, term: Term) -> Value:
        """Converts a value to a time. The unit says how to read text, and how to count numbers since 1970."""
        if value.kind is Kind.NOTHING:
            return Value(Kind.INSTANT, value.expr.cast(pl.Int64))
        if value.kind is Kind.TEXT and self.unit.partition("-")[0] != "unix":
            return Value(Kind.INSTANT, self._moment(value, term))
        if value.kind in (Kind.NUMBER, Kind.TEXT):
            scale = INSTANT_UNITS.get(self.unit, SECOND * 1000)
            return Value(Kind.INSTANT, self.scaled(self.number(value, term), scale, 1000, term))
        if value.kind is not Kind.INSTANT:
            raise LanguageError(f"{named(term)} is {value.kind.value}, but must be a time")
        return value

    def span(self, value: Value, term: Term, scale: int) -> Value:
        """Converts a value to a duration in microseconds. A number is multiplied by `scale`."""
        if value.kind in (Kind.NUMBER, Kind.TEXT):
            return Value(Kind.SPAN, self.scaled(self.number(value, term), scale, 1, term))
        if value.kind is Kind.NOTHING:
            return Value(Kind.SPAN, value.expr.cast(pl.Int64))
        if value.kind is not Kind.SPAN:
            raise LanguageError(f"{named(term)} is {value.kind.value}, but must be a duration")
        return value

    def flag(self, value: Value, term: Term) -> pl.Expr:
        """Converts a value to true or false. Text must be a word in `texts.TRUE` or `texts.FALSE`."""
        if value.kind is Kind.TEXT:
            return self.kept(self.read(value, term, flagged, "is neither true nor false"))
        if value.kind is Kind.NOTHING:
            return value.expr.cast(pl.Boolean)
        if value.kind is not Kind.FLAG:
            raise LanguageError(f"{named(term)} is {value.kind.value}, but must be true or false")
        return value.expr

    def column(self, name: str) -> Value:
        """Returns the value of a column of the table in each row."""
        dtype, cell = self.table.types[name], pl.col(self.table.names[name])
        if dtype.is_integer():
            return Value(Kind.NUMBER, cell.cast(WIDE))
        if dtype.is_float():
            exact = self.kept(fixed(cell))
            self.doubt(cell.is_not_null() & exact.is_null(), name, "is out of range")
            return Value(Kind.NUMBER, exact, DECIMALS)
        match dtype:
            case pl.String():
                return Value(Kind.TEXT, pl.when(cell.str.strip_chars() != "").then(cell))
            case pl.Datetime():
                return Value(Kind.INSTANT, cell.dt.timestamp("us"))
            case pl.Duration():
                return Value(Kind.SPAN, cell.dt.total_microseconds())
            case pl.Boolean():
                return Value(Kind.FLAG, cell)
            case pl.Struct():
                return Value(Kind.LIST, cell)
        return Value(Kind.NOTHING, cell)

    def scaled(self, value: Value, scale: int, by: int, term: Term) -> pl.Expr:
        """Returns a number times `scale` and divided by `by`, as the nearest 64-bit integer."""
        below = by * 10**value.decimals
        found = self.bounded(value.expr, scale, term)
        return self.fitting(found if below == 1 else (found + below // 2) // below, term)

    def bounded(self, expr: pl.Expr, scale: int, term: Term) -> pl.Expr:
        """Returns `expr * scale`. A row in which the product doesn't fit into 128 bits is a fault."""
        good = expr.abs() <= 2**126 // scale
        self.doubt(expr.is_not_null() & ~good, only(term), "is out of range")
        return pl.when(good).then(expr) * scale

    def fitting(self, expr: pl.Expr, term: Term) -> pl.Expr:
        """Returns `expr` as 64-bit integers. A row is a fault if differences would not fit into 64 bits."""
        expr = self.kept(expr)
        good = expr.abs() <= _MOST
        self.doubt(expr.is_not_null() & ~good, only(term), "is out of range")
        return self.kept(pl.when(good).then(expr).cast(pl.Int64))

    def read(self, value: Value, term: Term, read: Callable[[pl.Expr, Keep], pl.Expr], says: str) -> pl.Expr:
        """Reads text with a function that returns null for invalid text."""
        cell = self.kept(value.expr.str.strip_chars())
        found = self.kept(read(cell, self.kept))
        self.doubt(cell.is_not_null() & found.is_null(), only(term), says)
        return found

    def _moment(self, value: Value, term: Term) -> pl.Expr:
        """Reads text in its unit as microseconds since 1970. Text without a zone has the clock's zone."""
        cell = self.kept(value.expr.str.strip_chars())
        when = self.clock.read(cell, self.unit)
        local, moment = self.kept(when.local), self.kept(when.fixed)
        earlier, later = (self.kept(each) for each in self.clock.moments(local))
        says = f"is not a time such as {self.clock.example(self.unit)}"
        self.doubt(cell.is_not_null() & local.is_null() & moment.is_null(), only(term), says)
        says = f"does not exist in {self.clock.zone}, because the clocks skip it"
        self.doubt(local.is_not_null() & earlier.is_null(), only(term), says)
        self.twice[only(term)] = (earlier != later).fill_null(value=False)
        return self.kept(pl.coalesce(moment, earlier))

    def doubt(self, rows: pl.Expr, column: str, says: str) -> None:
        """Adds a check. The cells of a column are invalid in the rows where the expression `rows` is true.

        `says` is the message about such a cell.
        """
        self.doubts.append(Doubt(rows.fill_null(value=False), column, says))
