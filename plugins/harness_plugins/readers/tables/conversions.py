"""Converts a table's cells and the values of terms to numbers, instants, spans, true or false."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from harness.base.units import SECOND
from harness_plugins.readers.tables.syntax import LanguageError, Term
from harness_plugins.readers.tables.texts import DECIMALS, Keep, fixed, flagged, text_number
from harness_plugins.readers.tables.times import INSTANT_UNITS, Clock
from harness_plugins.readers.tables.values import ROW, WIDE, Columns, Doubt, Kind, Value, named, only

_MOST = 2**62
"""The largest whole number in range; the difference of two such numbers still fits 64 bits."""


class Conversions:
    """Converts values to the needed kind, for one column of a trace and a table with these types.

    A value that depends on another value is a separate step, computed once. So the cost grows only with the
    number of terms.

    Args:
        table: its columns, each with one of the types that the readers of files produce.
        unit: the unit of the source, or "".
        clock: reads times without a zone.
        instants: True if texts and numbers of differences are instants.

    Attributes:
        doubts: the checks that rows of a table may fail, in the order in which they were made.
        twice: column -> its times in an hour that occurs twice.
    """

    def __init__(self, table: Columns, unit: str, clock: Clock, *, instants: bool) -> None:
        self.table, self.unit, self.clock = table, unit, clock
        self.instants = instants
        self._steps: list[pl.Expr] = []
        self.doubts: list[Doubt] = []
        self.twice: dict[str, pl.Expr] = {}

    def worked_out(self, frame: pl.DataFrame, **found: pl.Expr) -> pl.DataFrame:
        """Computes expressions of these terms, row numbers, and the doubts (from `0` on) for a table."""
        plan = frame.lazy()
        for step in self._steps:
            plan = plan.with_columns(step)
        doubts = (doubt.rows.alias(str(place)) for place, doubt in enumerate(self.doubts))
        twice = (rows.alias(f"twice {name}") for name, rows in self.twice.items())
        return plan.select(
            ROW, *(expr.alias(name) for name, expr in found.items()), *doubts, *twice
        ).collect()

    def kept(self, expr: pl.Expr) -> pl.Expr:
        """Makes an expression a separate step, and returns its result."""
        name = f"\0{len(self._steps)}"
        self._steps.append(expr.alias(name))
        return pl.col(name)

    def number(self, value: Value, term: Term) -> Value:
        """Converts a value to a number; texts are parsed."""
        if value.kind is Kind.TEXT:
            return Value(Kind.NUMBER, self.read(value, term, text_number, "is not a number"), DECIMALS)
        if value.kind is Kind.NOTHING:
            return Value(Kind.NUMBER, value.expr.cast(WIDE))
        if value.kind is not Kind.NUMBER:
            raise LanguageError(f"{named(term)} is {value.kind.value}, and a number is needed")
        return value

    def instant(self, value: Value, term: Term) -> Value:
        """Converts a value to an instant: texts are read by the unit, and a number counts from 1970."""
        if value.kind is Kind.NOTHING:
            return Value(Kind.INSTANT, value.expr.cast(pl.Int64))
        if value.kind is Kind.TEXT and self.unit.partition("-")[0] != "unix":
            return Value(Kind.INSTANT, self._moment(value, term))
        if value.kind in (Kind.NUMBER, Kind.TEXT):
            scale = INSTANT_UNITS.get(self.unit, SECOND * 1000)
            return Value(Kind.INSTANT, self.scaled(self.number(value, term), scale, 1000, term))
        if value.kind is not Kind.INSTANT:
            raise LanguageError(f"{named(term)} is {value.kind.value}, and an instant is needed")
        return value

    def span(self, value: Value, term: Term, scale: int) -> Value:
        """Converts a value to a span of time; a number counts `scale` microseconds."""
        if value.kind in (Kind.NUMBER, Kind.TEXT):
            return Value(Kind.SPAN, self.scaled(self.number(value, term), scale, 1, term))
        if value.kind is Kind.NOTHING:
            return Value(Kind.SPAN, value.expr.cast(pl.Int64))
        if value.kind is not Kind.SPAN:
            raise LanguageError(f"{named(term)} is {value.kind.value}, and a span of time is needed")
        return value

    def flag(self, value: Value, term: Term) -> pl.Expr:
        """Converts a value to true or false; some words mean these in texts."""
        if value.kind is Kind.TEXT:
            return self.kept(self.read(value, term, flagged, "is neither true nor false"))
        if value.kind is Kind.NOTHING:
            return value.expr.cast(pl.Boolean)
        if value.kind is not Kind.FLAG:
            raise LanguageError(f"{named(term)} is {value.kind.value}, and true or false is needed")
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
        """Returns a number times `scale` and divided by `by`, as the nearest whole number of 64 bits."""
        below = by * 10**value.decimals
        found = self.bounded(value.expr, scale, term)
        return self.fitting(found if below == 1 else (found + below // 2) // below, term)

    def bounded(self, expr: pl.Expr, scale: int, term: Term) -> pl.Expr:
        """Returns a product that fits in 128 bits."""
        good = expr.abs() <= 2**126 // scale
        self.doubt(expr.is_not_null() & ~good, only(term), "is out of range")
        return pl.when(good).then(expr) * scale

    def fitting(self, expr: pl.Expr, term: Term) -> pl.Expr:
        """Returns a whole number of 64 bits, small enough for differences."""
        expr = self.kept(expr)
        good = expr.abs() <= _MOST
        self.doubt(expr.is_not_null() & ~good, only(term), "is out of range")
        return self.kept(pl.when(good).then(expr).cast(pl.Int64))

    def read(self, value: Value, term: Term, read: Callable[[pl.Expr, Keep], pl.Expr], says: str) -> pl.Expr:
        """Reads texts with a function that returns null for invalid texts."""
        cell = self.kept(value.expr.str.strip_chars())
        found = self.kept(read(cell, self.kept))
        self.doubt(cell.is_not_null() & found.is_null(), only(term), says)
        return found

    def _moment(self, value: Value, term: Term) -> pl.Expr:
        """Reads texts by the unit as microseconds since 1970; texts without a zone use the clock's zone."""
        cell = self.kept(value.expr.str.strip_chars())
        when = self.clock.read(cell, self.unit)
        local, moment = self.kept(when.local), self.kept(when.fixed)
        earlier, later = (self.kept(each) for each in self.clock.moments(local))
        says = f"is not a time such as {self.clock.example(self.unit)}"
        self.doubt(cell.is_not_null() & local.is_null() & moment.is_null(), only(term), says)
        says = f"does not exist in {self.clock.zone}, where the clocks skip it"
        self.doubt(local.is_not_null() & earlier.is_null(), only(term), says)
        self.twice[only(term)] = (earlier != later).fill_null(value=False)
        return self.kept(pl.coalesce(moment, earlier))

    def doubt(self, rows: pl.Expr, column: str, says: str) -> None:
        """Adds a doubt for rows with invalid cells; null means no doubt."""
        self.doubts.append(Doubt(rows.fill_null(value=False), column, says))
