"""Computes one column of a trace from the terms that a mapping specifies for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from harness.base.errors import InputError
from harness.base.units import DAY, HOUR, MINUTE, SECOND, parse_duration
from harness.readers.cells import is_pairs, pairs
from harness.readers.schema import LIMIT, REQUEST, Kind, column_of
from harness_plugins.readers.tables.mapping import TOTAL
from harness_plugins.readers.tables.syntax import Call, LanguageError, Source, Sum, Term, columns_of
from harness_plugins.readers.tables.terms import Terms
from harness_plugins.readers.tables.texts import FALSE, ONE, TRUE
from harness_plugins.readers.tables.times import INSTANT_UNITS, Clock, is_instant_unit
from harness_plugins.readers.tables.values import Columns, Value, named, only
from harness_plugins.readers.tables.values import Kind as Of

_SPANS = {"": SECOND, "us": 1, "ms": 1000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
_CLOCK = "hms"  # the unit of durations such as `1-02:03:04`, which `span()` also reads
_BYTES = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20,
    "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
_AMOUNTS = {
    "cpu": {"": 1000, "cores": 1000, "millicores": 1, "%": 10},
    "memory": _BYTES,
    "ephemeral-storage": _BYTES,
}
_NEGATIVE = {"duration": "is before it began", "requested_time": "is negative"}
_NEVER_EMPTY = ("job_id", "queue")


class Cell:
    """One column of a trace.

    Args:
        name: the name of a column that harness knows, or `total.RESOURCE`. All other columns contain text.
        source: the expression that computes the column.
        clock: the clock that reads times without a zone.
        numbers: whether text without a unit is a number of seconds, in a column of times.

    Attributes:
        columns: the columns of the table that the source uses.
        terms: the conversions that compute the column, and the rows whose cells are invalid.
        expr: the expression of the column's values.

    Raises:
        LanguageError: the source does not fit the table.
        ValueError: a time format does not determine a point in time.
    """

    def __init__(self, name: str, source: Source, table: Columns, clock: Clock, *, numbers: bool) -> None:
        self.name, self.source, self._numbers = name, source, numbers
        column = column_of(REQUEST + name.removeprefix(TOTAL) if name.startswith(TOTAL) else name)
        self._kind = Kind.STRING if column is None else column.kind
        unit = source.unit
        timed = self._kind in (Kind.TIME, Kind.DURATION)
        pair = not unit and not numbers and _are_texts(source.term, table.types)
        self.terms = Terms(table, unit, clock, instants=is_instant_unit(unit) or (timed and pair))
        self.expr = self._made() if source.constant is None else self._constant(source.constant)
        self.columns = [*columns_of(source.term), *columns_of(source.by)]
        if name in _NEVER_EMPTY:
            self.terms.doubt(self.expr.is_null(), only(source.term), "is empty")

    def _made(self) -> pl.Expr:
        if self.source.by is not None and self._kind not in (Kind.INT32, Kind.INT64):
            timed = self._kind in (Kind.TIME, Kind.DURATION)
            raise LanguageError(
                "divides a time, but / is for amounts" if timed else "divides, but the column needs text"
            )
        makers: Mapping[Kind, Callable[[], pl.Expr]] = {
            Kind.TIME: self._time, Kind.DURATION: self._span, Kind.INT64: self._amount,
            Kind.INT32: self._amount, Kind.BOOL: self._flag, Kind.MAP: self._pairs, Kind.STRING: self._text,
        }  # fmt: skip
        return makers[self._kind]()

    def _time(self) -> pl.Expr:
        terms, unit = self.terms, self.source.unit
        value = terms.value(self.source.term)
        plain = value.kind is Of.NUMBER or (value.kind is Of.TEXT and (bool(unit) or self._numbers))
        if plain and unit in _SPANS:  # from the trace's origin
            return terms.span(value, self.source.term, _SPANS[unit]).expr.cast(pl.Duration("us"))
        if unit and not is_instant_unit(unit):
            self._scale({"": 1, "iso": 1, **INSTANT_UNITS})
        return terms.instant(value, self.source.term).expr.cast(pl.Datetime("us", "UTC"))

    def _span(self) -> pl.Expr:
        terms, term, unit = self.terms, self.source.term, self.source.unit
        value = terms.value(Call("span", (term,)) if unit == _CLOCK else term)
        if value.kind is Of.SPAN:
            if not is_instant_unit(unit):
                self._scale({**_SPANS, _CLOCK: 1, "iso": 1, **INSTANT_UNITS})
            return self._checked(value.expr).cast(pl.Duration("us"))
        scale = self._scale({**_SPANS, _CLOCK: 1})
        return self._checked(terms.span(value, term, scale).expr).cast(pl.Duration("us"))

    def _checked(self, expr: pl.Expr) -> pl.Expr:
        self.terms.doubt(expr < 0, only(self.source.term), _NEGATIVE.get(self.name, "is negative"))
        return expr

    def _amount(self) -> pl.Expr:
        terms, source = self.terms, self.source
        resource = self.name.removeprefix(TOTAL).removeprefix(REQUEST).removeprefix(LIMIT)
        scale = self._scale(_AMOUNTS.get(resource, {"": 1}))
        if source.by is None and resource not in _AMOUNTS:
            value = terms.number(terms.value(source.term), source.term)
            if value.decimals:
                terms.doubt(value.expr % ONE != 0, only(source.term), "is not a whole number")
        found = terms.amount(source.term, source.by, scale)
        least = 1 if self.name == "pods" else 0
        if self.name != "priority":
            terms.doubt(
                found < least, only(source.term) if source.by is None else "", f"is less than {least}"
            )
        return found

    def _flag(self) -> pl.Expr:
        self._scale({"": 1})
        value = self.terms.value(self.source.term)
        if value.kind is Of.NUMBER:
            value = Value(Of.TEXT, self.terms.text(self.source.term))
        return self.terms.flag(value, self.source.term)

    def _pairs(self) -> pl.Expr:
        self._scale({"": 1})
        value = Value(Of.TEXT, self.terms.text(self.source.term))
        return self.terms.read(
            value,
            self.source.term,
            lambda cell, kept: pairs("").value(cell),
            "is not pairs such as pool=a100;zone=b",
        )

    def _text(self) -> pl.Expr:
        self._scale({"": 1})
        return self._joined(self.source.term)

    def _joined(self, term: Term) -> pl.Expr:
        if not isinstance(term, Sum):
            return self.terms.text(term)
        if term.sign < 0:
            raise LanguageError(
                f"subtracts one text value from another in {named(term)}, but only + is for text, which it "
                "joins with a slash"
            )
        return pl.concat_str(self._joined(term.left), self._joined(term.right), separator="/")

    def _scale(self, known: Mapping[str, int]) -> int:
        unit = self.source.unit
        if unit not in known:
            units = ", ".join(each for each in known if each) or "none"
            raise LanguageError(f"{unit!r} is not one of its units ({units})")
        return known[unit]

    def _constant(self, constant: str) -> pl.Expr:
        """Returns a constant: text, a duration such as `5m`, pairs, or an integer in the schema's unit."""
        match self._kind:
            case Kind.STRING:
                return pl.lit(constant)
            case Kind.DURATION:
                try:
                    return pl.lit(parse_duration(constant)).cast(pl.Duration("us"))
                except InputError as error:
                    raise LanguageError(error.message) from error
            case Kind.INT32 | Kind.INT64 if constant.isdecimal() and len(constant) < 19:
                return pl.lit(int(constant), pl.Int64)
            case Kind.BOOL if constant.lower() in (*TRUE, *FALSE):
                return pl.lit(constant.lower() in TRUE)
            case Kind.MAP if is_pairs(constant):
                return pairs("").value(pl.lit(constant))
        raise LanguageError(f"cannot be {constant!r} in every row")


def _are_texts(term: Term, types: Mapping[str, pl.DataType]) -> bool:
    names = list(columns_of(term))
    return isinstance(term, Sum) and len(names) > 1 and all(types[name] == pl.String for name in names)
