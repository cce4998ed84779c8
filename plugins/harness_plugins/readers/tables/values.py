"""Terms of the language as polars expressions, in whole numbers alone: no figure is rounded on its way.

A number is held as a whole number of 128 bits with so many decimals, a time or a span in microseconds. An
empty cell is null. A cell that is there and means nothing of its kind is a doubt: the reader counts the rows
of all doubts, and names them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import polars as pl

from harness.units import DAY, HOUR, MINUTE, SECOND
from harness_plugins.readers.tables.syntax import Call, Column, LanguageError, Literal, Sum, Term
from harness_plugins.readers.tables.times import INSTANT_UNITS, Clock, is_form

WIDE = pl.Int128
DECIMALS = 9
_ONE = 10**DECIMALS
_MOST = 2**62
"""Whole numbers beyond are out of range: two of them still have a difference."""
_PLAIN = r"^[+-]?[0-9]{1,20}(?:\.[0-9]*)?$"
_SIZE = r"^([0-9]{1,18}(?:\.[0-9]*)?)([KMGTP]?)[nc]?$"
_POWERS = {"K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "": 20}
"""Slurm's letters are powers of 1024, and a number without one is MiB."""
_ISO_SPAN = r"^P(?:([0-9]{1,6})D)?(?:T(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,9}(?:\.[0-9]+)?)S)?)?$"
_CLOCK_SPAN = r"^(?:([0-9]{1,6})(?: days?,? |-))?(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,2}(?:\.[0-9]+)?)$"


class Kind(Enum):
    """What a term is, in words for messages."""

    NUMBER = "a number"
    TEXT = "a text"
    INSTANT = "an instant"
    SPAN = "a span of time"
    FLAG = "true or false"
    LIST = "a list"
    NOTHING = "nothing: the column is empty in all rows"


@dataclass(frozen=True, slots=True)
class Value:
    """A term.

    Attributes:
        kind: what it is.
        expr: a number as a whole number of 128 bits, a time or span as microseconds, else as polars has it.
        decimals: of a number.
    """

    kind: Kind
    expr: pl.Expr
    decimals: int = 0


class Columns(NamedTuple):
    """The columns of a table.

    Attributes:
        types: of each, by its name.
        names: what each is called in the frame, by its name: polars takes some names for patterns.
    """

    types: Mapping[str, pl.DataType]
    names: Mapping[str, str]


class Doubt(NamedTuple):
    """Cells that mean nothing.

    Attributes:
        rows: in which rows.
        column: of the table; "" where more than one take part.
        says: what is wrong with them.
    """

    rows: pl.Expr
    column: str
    says: str


Doubts: TypeAlias = list[Doubt]


class Terms:
    """The terms of one column of a trace, for a table of these types.

    What one term needs of another is a step of its own, worked out once: the cost grows with the terms alone.

    Args:
        table: its columns, one of the types that the readers of files make.
        unit: of the source, "" for none.
        clock: of times without a zone.
        instants: whether texts and numbers of differences are instants.

    Attributes:
        doubts: what the rows of a table may fail, in the order in which it was asked.
        twice: column -> which of its times stand in an hour that occurs twice.
    """

    def __init__(self, table: Columns, unit: str, clock: Clock, *, instants: bool) -> None:
        self._table, self._unit, self._clock = table, unit, clock
        self._instants = instants
        self._steps: list[pl.Expr] = []
        self.doubts: Doubts = []
        self.twice: dict[str, pl.Expr] = {}

    def worked_out(self, frame: pl.DataFrame, **found: pl.Expr) -> pl.DataFrame:
        """Expressions of these terms for a table, the numbers of its rows, and the doubts, from `0` on."""
        plan = frame.lazy()
        for step in self._steps:
            plan = plan.with_columns(step)
        doubts = (doubt.rows.alias(str(place)) for place, doubt in enumerate(self.doubts))
        twice = (rows.alias(f"twice {name}") for name, rows in self.twice.items())
        return plan.select(
            ROW, *(expr.alias(name) for name, expr in found.items()), *doubts, *twice
        ).collect()

    def _kept(self, expr: pl.Expr) -> pl.Expr:
        """What a step of its own works out."""
        name = f"\0{len(self._steps)}"
        self._steps.append(expr.alias(name))
        return pl.col(name)

    def value(self, term: Term) -> Value:
        """What a term is in each row.

        Raises:
            LanguageError: its parts do not go together; says which.
        """
        match term:
            case Column(name):
                return self._column(name)
            case Literal(str() as text):
                return Value(Kind.TEXT, pl.lit(text))
            case Literal(Decimal() as number):
                return _number_of(number)
            case Sum(left, right, sign):
                found = self._sum(left, right, sign)
                return replace(found, expr=self._kept(found.expr))
            case Call(name, arguments):
                found = _FUNCTIONS[name](self, arguments)
                return replace(found, expr=self._kept(found.expr))
        raise AssertionError(term)

    def number(self, value: Value, term: Term) -> Value:
        """A value as a number: texts are read as such."""
        if value.kind is Kind.TEXT:
            return Value(Kind.NUMBER, self._read(value, term, _text_number, "is not a number"), DECIMALS)
        if value.kind is Kind.NOTHING:
            return Value(Kind.NUMBER, value.expr.cast(WIDE))
        if value.kind is not Kind.NUMBER:
            raise LanguageError(f"{_named(term)} is {value.kind.value}, and a number is needed")
        return value

    def instant(self, value: Value, term: Term) -> Value:
        """A value as an instant: texts are read by the unit, and a number counts from 1970."""
        if value.kind is Kind.NOTHING:
            return Value(Kind.INSTANT, value.expr.cast(pl.Int64))
        if value.kind is Kind.TEXT and self._unit.partition("-")[0] != "unix":
            return Value(Kind.INSTANT, self._moment(value, term))
        if value.kind in (Kind.NUMBER, Kind.TEXT):
            scale = INSTANT_UNITS.get(self._unit, SECOND * 1000)
            return Value(Kind.INSTANT, self._scaled(self.number(value, term), scale, 1000, term))
        if value.kind is not Kind.INSTANT:
            raise LanguageError(f"{_named(term)} is {value.kind.value}, and an instant is needed")
        return value

    def span(self, value: Value, term: Term, scale: int) -> Value:
        """A value as a span of time; a number counts `scale` microseconds."""
        if value.kind in (Kind.NUMBER, Kind.TEXT):
            return Value(Kind.SPAN, self._scaled(self.number(value, term), scale, 1, term))
        if value.kind is Kind.NOTHING:
            return Value(Kind.SPAN, value.expr.cast(pl.Int64))
        if value.kind is not Kind.SPAN:
            raise LanguageError(f"{_named(term)} is {value.kind.value}, and a span of time is needed")
        return value

    def amount(self, term: Term, by: Term | None, scale: int) -> pl.Expr:
        """A whole amount: rounded to the nearest, or of a division rounded up; null where it divides by 0."""
        top = self.number(self.value(term), term)
        if by is None:
            return self._scaled(top, scale, 1, term)
        below = self.number(self.value(by), by)
        bottom = below.expr * 10**top.decimals
        bottom = pl.when(bottom > 0).then(bottom)
        numerator = self._bounded(top.expr, scale * 10**below.decimals, term)
        whole = (numerator + bottom - 1) // bottom
        return self._fitting(whole, term)

    def text(self, term: Term) -> pl.Expr:
        """A value as a text: whole numbers without a point."""
        value = self.value(term)
        if value.kind is Kind.NUMBER:
            return _written(value)
        if value.kind in (Kind.TEXT, Kind.NOTHING, Kind.FLAG):
            return value.expr.cast(pl.String)
        raise LanguageError(f"{_named(term)} is {value.kind.value}, and a text is needed")

    def comparable(self, left: Term, right: Term, *, ordered: bool = False) -> tuple[pl.Expr, pl.Expr]:
        """Two terms as values of one kind; `ordered` texts are numbers, or instants beside a date."""
        one, other = self.value(left), self.value(right)
        kinds = {one.kind, other.kind}
        if ordered and kinds == {Kind.TEXT}:
            dated = any(isinstance(each, Literal) and _is_date(each) for each in (left, right))
            read = self.instant if dated else self.number
            one, other = read(one, left), read(other, right)
            kinds = {one.kind, other.kind}
        if kinds == {Kind.FLAG, Kind.TEXT}:
            return one.expr.cast(pl.String), other.expr.cast(pl.String)
        if Kind.INSTANT in kinds:
            return self.instant(one, left).expr, self.instant(other, right).expr
        if Kind.SPAN in kinds:
            return self.span(one, left, SECOND).expr, self.span(other, right, SECOND).expr
        if Kind.NUMBER in kinds:
            found = _aligned([self.number(one, left), self.number(other, right)])
            return found[0].expr, found[1].expr
        if len(kinds - {Kind.NOTHING}) > 1 or Kind.LIST in kinds:
            raise LanguageError(f"{_named(left)} is {one.kind.value}, {_named(right)} {other.kind.value}")
        return one.expr, other.expr

    def _column(self, name: str) -> Value:
        dtype, cell = self._table.types[name], pl.col(self._table.names[name])
        if dtype.is_integer():
            return Value(Kind.NUMBER, cell.cast(WIDE))
        if dtype.is_float():
            fixed = self._kept(_fixed(cell))
            self._doubt(cell.is_not_null() & fixed.is_null(), name, "is out of range")
            return Value(Kind.NUMBER, fixed, DECIMALS)
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

    def _sum(self, left: Term, right: Term, sign: int) -> Value:
        one, other = self.value(left), self.value(right)
        kinds = {one.kind, other.kind}
        if Kind.INSTANT in kinds or (self._instants and kinds <= {Kind.TEXT, Kind.NUMBER, Kind.NOTHING}):
            if sign < 0 and other.kind is not Kind.SPAN:
                first, second = self.instant(one, left), self.instant(other, right)
                return Value(Kind.SPAN, first.expr - second.expr)
            moment, length = (one, other) if one.kind is Kind.INSTANT or sign < 0 else (other, one)
            terms = (left, right) if moment is one else (right, left)
            begin, span = self.instant(moment, terms[0]), self.span(length, terms[1], SECOND)
            return Value(Kind.INSTANT, begin.expr + sign * span.expr)
        if Kind.SPAN in kinds:
            first, second = self.span(one, left, SECOND), self.span(other, right, SECOND)
            return Value(Kind.SPAN, first.expr + sign * second.expr)
        first, second = _aligned([self.number(one, left), self.number(other, right)])
        return replace(first, expr=first.expr + sign * second.expr)

    def _scaled(self, value: Value, scale: int, by: int, term: Term) -> pl.Expr:
        """A number times `scale` and divided by `by`, as the nearest whole number of 64 bits."""
        below = by * 10**value.decimals
        found = self._bounded(value.expr, scale, term)
        return self._fitting(found if below == 1 else (found + below // 2) // below, term)

    def _bounded(self, expr: pl.Expr, scale: int, term: Term) -> pl.Expr:
        """A product that is not beyond 128 bits."""
        good = expr.abs() <= 2**126 // scale
        self._doubt(expr.is_not_null() & ~good, _only(term), "is out of range")
        return pl.when(good).then(expr) * scale

    def _fitting(self, expr: pl.Expr, term: Term) -> pl.Expr:
        expr = self._kept(expr)
        good = expr.abs() <= _MOST
        self._doubt(expr.is_not_null() & ~good, _only(term), "is out of range")
        return self._kept(pl.when(good).then(expr).cast(pl.Int64))

    def _read(self, value: Value, term: Term, read: Callable[[pl.Expr], pl.Expr], says: str) -> pl.Expr:
        cell = self._kept(value.expr.str.strip_chars())
        found = self._kept(read(cell))
        self._doubt(cell.is_not_null() & found.is_null(), _only(term), says)
        return found

    def _moment(self, value: Value, term: Term) -> pl.Expr:
        """Texts as microseconds since 1970, by the unit, and in the zone where they say none."""
        cell = self._kept(value.expr.str.strip_chars())
        when = self._clock.read(cell, self._unit)
        local, fixed = self._kept(when.local), self._kept(when.fixed)
        earlier, later = (self._kept(each) for each in self._clock.moments(local))
        says = f"is not a time such as {self._clock.example(self._unit)}"
        self._doubt(cell.is_not_null() & local.is_null() & fixed.is_null(), _only(term), says)
        says = f"does not exist in {self._clock.zone}, whose clocks skip it"
        self._doubt(local.is_not_null() & earlier.is_null(), _only(term), says)
        self.twice[_only(term)] = (earlier != later).fill_null(value=False)
        return self._kept(pl.coalesce(fixed, earlier))

    def _doubt(self, rows: pl.Expr, column: str, says: str) -> None:
        self.doubts.append(Doubt(rows.fill_null(value=False), column, says))

    # --- the functions ---

    def tres(self, arguments: tuple[Term, ...]) -> Value:
        """`k=v,k=v`: what the first of the keys stands for, bytes where it has a letter; 0 without it."""
        text = self._of_kind(arguments[0], Kind.TEXT, "tres()")
        keys = [re.escape(_text_of(each, "a key of tres()")) for each in arguments[1:]]
        cells = pl.lit(",") + text.expr
        found = self._kept(
            pl.coalesce(cells.str.extract(rf",\s*{key}[=:]([^,:=]+?)\s*(?:,|$)", 1) for key in keys)
        )
        plain = found.str.contains(r"^[0-9]{1,18}$")
        amount = pl.when(plain).then(found).cast(pl.Int64, strict=False).cast(WIDE)
        sized = pl.when(plain).then(None).otherwise(_sized(found))
        value = self._kept(pl.coalesce(amount, sized))
        says = f"has no amount for {', '.join(_text_of(each, '') for each in arguments[1:])}"
        self._doubt(found.is_not_null() & value.is_null(), _only(arguments[0]), says)
        return Value(Kind.NUMBER, value.fill_null(pl.lit(0, WIDE)))

    def size(self, arguments: tuple[Term, ...]) -> Value:
        """Bytes of `85G`, `2366M`, `90000Mn`; null for what a CPU has, such as `4Gc`."""
        text = self._of_kind(arguments[0], Kind.TEXT, "size()")
        found = self._read(text, arguments[0], _sized, "is not a size such as 85G or 2366M")
        return Value(Kind.NUMBER, pl.when(~text.expr.str.strip_chars().str.ends_with("c")).then(found))

    def span_of(self, arguments: tuple[Term, ...]) -> Value:
        """Time of `P0DT0H30M0S`, `1-02:03:04` and `1 days 02:03:04`."""
        value = self.value(arguments[0])
        if value.kind is Kind.SPAN:
            return value
        text = self._of_kind(arguments[0], Kind.TEXT, "span()")
        says = "is not a span such as P0DT0H30M0S or 1-02:03:04"
        return Value(Kind.SPAN, self._read(text, arguments[0], _spanned, says))

    def unless(self, arguments: tuple[Term, ...]) -> Value:
        """Null where the first is one of the others."""
        value = self.value(arguments[0])
        same = [self._equals(value, arguments[0], each) for each in arguments[1:]]
        return replace(value, expr=pl.when(~pl.any_horizontal(same).fill_null(value=False)).then(value.expr))

    def below(self, arguments: tuple[Term, ...]) -> Value:
        """Null where the first is not below the second."""
        number = self.number(self.value(arguments[0]), arguments[0])
        _text_of(arguments[1], "the bound of below()")
        bound = self.number(self.value(arguments[1]), arguments[1])
        first, second = _aligned([number, bound])
        return replace(first, expr=pl.when(first.expr < second.expr).then(first.expr))

    def first(self, arguments: tuple[Term, ...]) -> Value:
        """The first that is there."""
        values = self._alike(arguments)
        return replace(values[0], expr=pl.coalesce(each.expr for each in values))

    def most(self, arguments: tuple[Term, ...]) -> Value:
        """The largest that is there."""
        values = self._alike(arguments)
        if values[0].kind is Kind.TEXT:
            read = self.instant if self._instants else self.number
            values = [read(each, term) for each, term in zip(values, arguments, strict=True)]
        if values[0].kind in (Kind.LIST, Kind.FLAG):
            raise LanguageError(f"most() of {values[0].kind.value}; it takes numbers and times")
        return replace(values[0], expr=pl.max_horizontal(each.expr for each in values))

    def count(self, arguments: tuple[Term, ...]) -> Value:
        """How long a list is."""
        found = self._of_kind(arguments[0], Kind.LIST, "count()")
        if found.kind is Kind.NOTHING:
            return Value(Kind.NUMBER, found.expr.cast(WIDE))
        return Value(Kind.NUMBER, found.expr.struct.field("length").cast(WIDE))

    def row(self, arguments: tuple[Term, ...]) -> Value:
        """The row's number in the table, from 1, as a name."""
        del arguments
        return Value(Kind.TEXT, (pl.col(ROW) + 1).cast(pl.String))

    def _of_kind(self, term: Term, kind: Kind, who: str) -> Value:
        value = self.value(term)
        if value.kind is Kind.NOTHING:
            return Value(kind if kind is not Kind.LIST else Kind.NOTHING, value.expr.cast(pl.String))
        if value.kind is not kind:
            raise LanguageError(f"{_named(term)} is {value.kind.value}, and {who} takes {kind.value}")
        return value

    def _equals(self, value: Value, term: Term, literal: Term) -> pl.Expr:
        text = _text_of(literal, "a value of unless()")
        if isinstance(literal, Literal) and isinstance(literal.value, str):
            if value.kind is Kind.TEXT:
                return value.expr == text
            if not re.fullmatch(r"[+-]?[0-9]{1,20}(?:\.[0-9]{0,9})?", text):
                return pl.lit(value=False)
        left, right = _aligned([self.number(value, term), self.number(self.value(literal), literal)])
        return left.expr == right.expr

    def _alike(self, arguments: tuple[Term, ...]) -> list[Value]:
        """Values of one kind; numbers have equal decimals, and empty columns are of any kind."""
        values = [self.value(each) for each in arguments]
        kinds = {each.kind for each in values} - {Kind.NOTHING}
        if Kind.INSTANT in kinds and kinds <= {Kind.INSTANT, Kind.TEXT, Kind.NUMBER}:
            return [self.instant(each, term) for each, term in zip(values, arguments, strict=True)]
        if Kind.NUMBER in kinds and Kind.TEXT in kinds:
            values = [self.number(each, term) for each, term in zip(values, arguments, strict=True)]
            kinds = {Kind.NUMBER}
        if len(kinds) > 1:
            named = [
                f"{_named(term)} {each.kind.value}" for each, term in zip(values, arguments, strict=True)
            ]
            raise LanguageError(f"takes terms of one kind, and has {', '.join(named)}")
        if kinds == {Kind.NUMBER}:
            return _aligned([self.number(each, term) for each, term in zip(values, arguments, strict=True)])
        kept = [each for each in values if each.kind is not Kind.NOTHING]
        return kept or values[:1]


ROW = "\0row"
"""The column of a table that has the number of each row, from 0."""

_FUNCTIONS: Mapping[str, Callable[[Terms, tuple[Term, ...]], Value]] = {
    "tres": Terms.tres,
    "size": Terms.size,
    "span": Terms.span_of,
    "unless": Terms.unless,
    "below": Terms.below,
    "first": Terms.first,
    "most": Terms.most,
    "count": Terms.count,
    "row": Terms.row,
}


def is_instant_unit(unit: str) -> bool:
    """Whether a unit says how instants are written."""
    return unit in INSTANT_UNITS or unit == "iso" or is_form(unit)


def _number_of(number: Decimal) -> Value:
    if number == number.to_integral_value():
        return Value(Kind.NUMBER, pl.lit(int(number), WIDE))
    return Value(Kind.NUMBER, pl.lit(int(Fraction(number) * _ONE), WIDE), DECIMALS)


def _aligned(values: list[Value]) -> list[Value]:
    """Numbers with equal decimals."""
    most = max(each.decimals for each in values)
    return [
        replace(each, expr=each.expr * 10 ** (most - each.decimals), decimals=most)
        if each.decimals < most
        else each
        for each in values
    ]


def _fixed(cell: pl.Expr) -> pl.Expr:
    """Floats with nine decimals; null for no number, and beyond what 128 bits hold."""
    good = pl.when(cell.is_finite() & (cell.abs() < 1e20)).then(cell.cast(pl.Float64))
    whole = good.floor()
    found: pl.Expr = whole.cast(WIDE) * _ONE + ((good - whole) * 1e9).round().cast(WIDE)
    return found


def _text_number(cell: pl.Expr) -> pl.Expr:
    """Texts as numbers with nine decimals; those with an exponent by way of the nearest float."""
    plain = pl.when(cell.str.contains(_PLAIN)).then(cell)
    whole = _wide(plain.str.extract(r"^[+-]?([0-9]+)", 1))
    part = (
        plain.str.extract(r"\.([0-9]+)$", 1).fill_null("").str.pad_end(DECIMALS, "0").str.slice(0, DECIMALS)
    )
    size = whole * _ONE + part.cast(pl.Int64)
    exact = size * pl.when(plain.str.starts_with("-")).then(-1).otherwise(1)
    return pl.coalesce(exact, _fixed(cell.cast(pl.Float64, strict=False)))


def _wide(digits: pl.Expr) -> pl.Expr:
    """Up to 20 digits as a whole number of 128 bits: in two pieces, as older polars reads no longer one."""
    padded = digits.str.zfill(20)
    high, low = padded.str.slice(0, 10).cast(pl.Int64), padded.str.slice(10, 10).cast(pl.Int64)
    return high.cast(WIDE) * 10**10 + low.cast(WIDE)


def _sized(cell: pl.Expr) -> pl.Expr:
    """`85G` as bytes, rounded to the nearest."""
    powers = {letter: 2**power for letter, power in _POWERS.items()}
    unit = cell.str.extract(_SIZE, 2).replace_strict(powers, default=None, return_dtype=pl.Int64)
    found: pl.Expr = (_text_number(cell.str.extract(_SIZE, 1)) * unit.cast(WIDE) + _ONE // 2) // _ONE
    return found


def _spanned(cell: pl.Expr) -> pl.Expr:
    """Microseconds of a span as ISO 8601 or a clock writes it."""
    found = []
    for pattern in (_ISO_SPAN, _CLOCK_SPAN):
        days, hours, minutes = (
            cell.str.extract(pattern, place).cast(pl.Int64).fill_null(0) * scale
            for place, scale in ((1, DAY), (2, HOUR), (3, MINUTE))
        )
        seconds = _text_number(cell.str.extract(pattern, 4).fill_null("0")) // 1000
        found.append(
            pl.when(cell.str.contains(pattern)).then(days + hours + minutes + seconds.cast(pl.Int64))
        )
    return pl.coalesce(*found)


def _written(value: Value) -> pl.Expr:
    """A number as a text, without zeros at the end of its decimals."""
    if not value.decimals:
        return value.expr.cast(pl.String)
    size = value.expr.abs()
    whole, part = (size // _ONE).cast(pl.String), (size % _ONE).cast(pl.String).str.zfill(DECIMALS)
    tail = part.str.strip_chars_end("0")
    text = pl.when(tail == "").then(whole).otherwise(pl.concat_str(whole, tail, separator="."))
    return pl.when(value.expr < 0).then(pl.lit("-") + text).otherwise(text)


def _only(term: Term) -> str:
    """The one column that a term is about; "" where there is none, or more than one."""
    match term:
        case Column(name):
            return name
        case Call(_, arguments) if arguments:
            return _only(arguments[0])
    return ""


def _is_date(literal: Literal) -> bool:
    """Whether a constant begins as an ISO date does."""
    return isinstance(literal.value, str) and re.match(r"[0-9]{4}-[0-9]{2}", literal.value) is not None


def _named(term: Term) -> str:
    match term:
        case Column(name):
            return f"column {name}"
        case Literal(value):
            return repr(str(value)) if isinstance(value, str) else str(value)
        case Call(name):
            return f"{name}()"
    return "a sum"


def _text_of(term: Term, what: str) -> str:
    """The text of a constant; numbers as they are written."""
    if not isinstance(term, Literal):
        raise LanguageError(f"{what} must be a number or a text in quotes, and is {_named(term)}")
    return term.value if isinstance(term.value, str) else str(term.value)
