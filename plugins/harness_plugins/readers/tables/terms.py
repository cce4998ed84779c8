"""Converts terms of the mapping language to polars expressions on integers only, so that no step rounds."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import polars as pl

from harness.base.units import SECOND
from harness_plugins.readers.tables.conversions import Conversions
from harness_plugins.readers.tables.functions import FUNCTIONS, Argument
from harness_plugins.readers.tables.syntax import Call, Column, LanguageError, Literal, Sum, Term
from harness_plugins.readers.tables.texts import DECIMALS, ONE, written
from harness_plugins.readers.tables.values import WIDE, Kind, Value, aligned, named


class Terms(Conversions):
    """Computes the terms from which one column of a trace is made. See `Conversions`."""

    def value(self, term: Term) -> Value:
        """Returns the value of a term in each row.

        Raises:
            LanguageError: the parts of the term cannot be combined. The message names them.
        """
        match term:
            case Column(name):
                return self.column(name)
            case Literal(bool() as flag):
                return Value(Kind.FLAG, pl.lit(flag))
            case Literal(str() as text):
                return Value(Kind.TEXT, pl.lit(text))
            case Literal(Decimal() as number):
                return _number_of(number)
            case Sum(left, right, sign):
                found = self._sum(left, right, sign)
                return replace(found, expr=self.kept(found.expr))
            case Call(name, arguments):
                found = FUNCTIONS[name](self, [Argument(self.value(each), each) for each in arguments])
                return replace(found, expr=self.kept(found.expr))
        raise AssertionError(term)

    def amount(self, term: Term, by: Term | None, scale: int) -> pl.Expr:
        """Returns an amount as an integer, or null if it is divided by 0.

        The amount is rounded up after a division, and rounded to the nearest integer otherwise.
        """
        top = self.number(self.value(term), term)
        if by is None:
            return self.scaled(top, scale, 1, term)
        below = self.number(self.value(by), by)
        bottom = below.expr * 10**top.decimals
        bottom = pl.when(bottom > 0).then(bottom)
        self.lost["an amount but no divisor"] = (top.expr > 0) & bottom.is_null()
        numerator = self.bounded(top.expr, scale * 10**below.decimals, term)
        whole = (numerator + bottom - 1) // bottom
        return self.fitting(whole, term)

    def text(self, term: Term) -> pl.Expr:
        """Returns a value as text. Integers have no decimal point."""
        value = self.value(term)
        if value.kind is Kind.NUMBER:
            return written(value)
        if value.kind in (Kind.TEXT, Kind.NOTHING, Kind.FLAG):
            return value.expr.cast(pl.String)
        raise LanguageError(f"{named(term)} is {value.kind.value}, but must be text")

    def comparable(self, left: Term, right: Term, *, ordered: bool = False) -> tuple[pl.Expr, pl.Expr]:
        """Returns the values of two terms, converted to the same kind.

        If `ordered` is true, text is converted to numbers, or to times if one of the terms is a date.
        """
        one, other = self.value(left), self.value(right)
        kinds = {one.kind, other.kind}
        if ordered and kinds == {Kind.TEXT}:
            dated = any(isinstance(each, Literal) and _is_date(each) for each in (left, right))
            read = self.instant if dated else self.number
            one, other = read(one, left), read(other, right)
            kinds = {one.kind, other.kind}
        if kinds == {Kind.FLAG, Kind.TEXT}:
            return self.flag(one, left), self.flag(other, right)
        if Kind.INSTANT in kinds:
            return self.instant(one, left).expr, self.instant(other, right).expr
        if Kind.SPAN in kinds:
            return self.span(one, left, SECOND).expr, self.span(other, right, SECOND).expr
        if Kind.NUMBER in kinds:
            found = aligned([self.number(one, left), self.number(other, right)])
            return found[0].expr, found[1].expr
        if len(kinds - {Kind.NOTHING}) > 1 or Kind.LIST in kinds:
            raise LanguageError(
                f"{named(left)} is {one.kind.value}, but {named(right)} is {other.kind.value}"
            )
        return one.expr, other.expr

    def _sum(self, left: Term, right: Term, sign: int) -> Value:
        one, other = self.value(left), self.value(right)
        kinds = {one.kind, other.kind}
        if Kind.INSTANT in kinds or (self.instants and kinds <= {Kind.TEXT, Kind.NUMBER, Kind.NOTHING}):
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
        first, second = aligned([self.number(one, left), self.number(other, right)])
        return replace(first, expr=first.expr + sign * second.expr)


def _number_of(number: Decimal) -> Value:
    if number == number.to_integral_value():
        return Value(Kind.NUMBER, pl.lit(int(number), WIDE))
    return Value(Kind.NUMBER, pl.lit(int(Fraction(number) * ONE), WIDE), DECIMALS)


def _is_date(literal: Literal) -> bool:
    return isinstance(literal.value, str) and re.match(r"[0-9]{4}-[0-9]{2}", literal.value) is not None
