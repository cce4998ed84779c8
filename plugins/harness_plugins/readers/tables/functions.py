"""Implements the functions of the mapping language, for arguments that are already computed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import polars as pl

from harness_plugins.readers.tables.conversions import Conversions
from harness_plugins.readers.tables.syntax import LanguageError, Literal, Term
from harness_plugins.readers.tables.texts import sized, spanned
from harness_plugins.readers.tables.values import ROW, WIDE, Kind, Value, aligned, named, only, text_of

_GROUPS = r"^[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?$"


class Argument(NamedTuple):
    """An argument of a function, with the argument's value in each row and its term."""

    value: Value
    term: Term


Arguments: TypeAlias = Sequence[Argument]


def _tres(plan: Conversions, arguments: Arguments) -> Value:
    """Returns the value of the first of these keys in text such as `k=v,k=v`, or 0 if no key occurs.

    A value with a letter is in bytes. If a key occurs only with types, such as
    `gres/gpu:v100=2,gres/gpu:a100=1`, the result is the sum of their values.
    """
    text, source = _of_kind(arguments[0], Kind.TEXT, "tres()"), arguments[0].term
    keys = [text_of(each.term, "a key of tres()") for each in arguments[1:]]
    cells = plan.kept(pl.lit(",") + text.expr)
    whole = plan.kept(
        pl.coalesce(cells.str.extract(rf",\s*{re.escape(key)}[=:]([^,:=]+?)\s*(?:,|$)", 1) for key in keys)
    )
    plain = plan.kept(whole.str.contains(r"^[0-9]{1,18}$"))
    amount = pl.when(plain).then(whole).cast(pl.Int64, strict=False).cast(WIDE)
    value = plan.kept(
        pl.coalesce(amount, sized(plan.kept(pl.when(plain).then(None).otherwise(whole)), plan.kept))
    )
    says = f"has no amount for {', '.join(keys)}"
    plan.doubt(whole.is_not_null() & value.is_null(), only(source), says)
    typed = plan.kept(_of_types(pl.when(whole.is_null()).then(cells), keys))
    return Value(Kind.NUMBER, pl.coalesce(value, typed.cast(WIDE), pl.lit(0, WIDE)))


def _of_types(cells: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    """Returns the sum of `KEY:TYPE=N` for the first key that occurs in this form, or null if none does."""
    sums = []
    for key in keys:
        parts = cells.str.extract_all(rf",\s*{re.escape(key)}:[^,:=]+[=:][0-9]{{1,9}}\b")
        counts = parts.list.eval(pl.element().str.extract(r"([0-9]+)$", 1).cast(pl.Int64))
        sums.append(pl.when(counts.list.len() > 0).then(counts.list.sum()))
    return pl.coalesce(sums)


def _size(plan: Conversions, arguments: Arguments) -> Value:
    """Returns the bytes of `85G`, `2366M` or `90000Mn`, or null for an amount per CPU, such as `4Gc`."""
    text = _of_kind(arguments[0], Kind.TEXT, "size()")
    found = plan.read(text, arguments[0].term, sized, "is not a size such as 85G or 2366M")
    of_cpu = plan.kept(text.expr.str.strip_chars().str.ends_with("c"))
    plan.lost["an amount per CPU"] = of_cpu & (found > 0)
    return Value(Kind.NUMBER, pl.when(~of_cpu).then(found))


def _comma(plan: Conversions, arguments: Arguments) -> Value:
    """Returns the number in text with a decimal comma, such as `1,5`. A point in such text is a fault."""
    text = _of_kind(arguments[0], Kind.TEXT, "comma()")
    swapped = text.expr.str.replace_all(".", "?", literal=True).str.replace(",", ".", literal=True)
    return plan.number(Value(Kind.TEXT, swapped), arguments[0].term)


def _thousands(plan: Conversions, arguments: Arguments) -> Value:
    """Returns the number in text with commas between thousands, such as `1,024`. Another comma is a fault."""
    text = _of_kind(arguments[0], Kind.TEXT, "thousands()").expr
    joined = text.str.replace_all(",", "", literal=True)
    plain = pl.when(text.str.strip_chars().str.contains(_GROUPS)).then(joined).otherwise(text)
    return plan.number(Value(Kind.TEXT, plain), arguments[0].term)


def _cores(plan: Conversions, arguments: Arguments) -> Value:
    """Returns the cores in text such as `500m` or `1.5`, as Kubernetes writes them."""
    text = plan.kept(_of_kind(arguments[0], Kind.TEXT, "cores()").expr.str.strip_chars())
    found = plan.number(Value(Kind.TEXT, text.str.strip_suffix("m")), arguments[0].term)
    return replace(found, expr=found.expr // pl.when(text.str.ends_with("m")).then(1000).otherwise(1))


def _span(plan: Conversions, arguments: Arguments) -> Value:
    """Returns the duration of text such as `P0DT0H30M0S`, `1-02:03:04` or `1 days 02:03:04`."""
    value, term = arguments[0]
    if value.kind is Kind.SPAN:
        return value
    text = _of_kind(arguments[0], Kind.TEXT, "span()")
    says = "is not a span such as P0DT0H30M0S or 1-02:03:04"
    return Value(Kind.SPAN, plan.read(text, term, spanned, says))


def _unless(plan: Conversions, arguments: Arguments) -> Value:
    """Returns the first argument, or null if it equals one of the other arguments."""
    value = arguments[0].value
    same = [_equals(plan, arguments[0], each) for each in arguments[1:]]
    return replace(value, expr=pl.when(~pl.any_horizontal(same).fill_null(value=False)).then(value.expr))


def _below(plan: Conversions, arguments: Arguments) -> Value:
    """Returns the first argument, or null if it is not below the second argument."""
    text_of(arguments[1].term, "the bound of below()")
    first, second = aligned([plan.number(*each) for each in arguments])
    return replace(first, expr=pl.when(first.expr < second.expr).then(first.expr))


def _first(plan: Conversions, arguments: Arguments) -> Value:
    values = [each.value for each in _alike(plan, arguments)]
    return replace(values[0], expr=pl.coalesce(each.expr for each in values))


def _most(plan: Conversions, arguments: Arguments) -> Value:
    alike = _alike(plan, arguments)
    values = [each.value for each in alike]
    if values[0].kind is Kind.TEXT:
        values = [(plan.instant if plan.instants else plan.number)(*each) for each in alike]
    if values[0].kind in (Kind.LIST, Kind.FLAG):
        raise LanguageError(f"most() has {values[0].kind.value}, but takes numbers and times")
    return replace(values[0], expr=pl.max_horizontal(each.expr for each in values))


def _count(plan: Conversions, arguments: Arguments) -> Value:
    del plan
    found = _of_kind(arguments[0], Kind.LIST, "count()")
    if found.kind is Kind.NOTHING:
        return Value(Kind.NUMBER, found.expr.cast(WIDE))
    return Value(Kind.NUMBER, found.expr.struct.field("length").cast(WIDE))


def _row(plan: Conversions, arguments: Arguments) -> Value:
    """Returns the number of the row in the table, counted from 1, as text."""
    del plan, arguments
    return Value(Kind.TEXT, (pl.col(ROW) + 1).cast(pl.String))


Function: TypeAlias = Callable[[Conversions, Arguments], Value]

FUNCTIONS: Mapping[str, Function] = {
    "tres": _tres, "size": _size, "comma": _comma, "thousands": _thousands, "cores": _cores, "span": _span,
    "unless": _unless, "below": _below, "first": _first, "most": _most, "count": _count, "row": _row,
}  # fmt: skip
"""The functions, by their names in `syntax`."""


def _of_kind(argument: Argument, kind: Kind, who: str) -> Value:
    value, term = argument
    if value.kind is Kind.NOTHING:
        return Value(kind if kind is not Kind.LIST else Kind.NOTHING, value.expr.cast(pl.String))
    if value.kind is not kind:
        raise LanguageError(f"{named(term)} is {value.kind.value}, but {who} takes {kind.value}")
    return value


def _equals(plan: Conversions, argument: Argument, literal: Argument) -> pl.Expr:
    value, term = argument
    text = text_of(literal.term, "a value of unless()")
    if value.kind is Kind.FLAG:
        return value.expr == plan.flag(*literal)
    if isinstance(literal.term, Literal) and isinstance(literal.term.value, str):
        if value.kind is Kind.TEXT:
            return value.expr == text
        if not re.fullmatch(r"[+-]?[0-9]{1,20}(?:\.[0-9]{0,9})?", text):
            return pl.lit(value=False)
    left, right = aligned([plan.number(value, term), plan.number(*literal)])
    return left.expr == right.expr


def _alike(plan: Conversions, arguments: Arguments) -> list[Argument]:
    """Converts the values that are not empty to one kind. Numbers get the same number of decimals."""
    kept = [each for each in arguments if each.value.kind is not Kind.NOTHING] or list(arguments[:1])
    kinds = {each.value.kind for each in kept}
    if Kind.INSTANT in kinds and kinds <= {Kind.INSTANT, Kind.TEXT, Kind.NUMBER}:
        return [Argument(plan.instant(*each), each.term) for each in kept]
    if Kind.NUMBER in kinds and kinds <= {Kind.NUMBER, Kind.TEXT}:
        values = aligned([plan.number(*each) for each in kept])
        return [Argument(value, each.term) for value, each in zip(values, kept, strict=True)]
    if len(kinds) > 1:
        has = ", ".join(f"{named(each.term)} is {each.value.kind.value}" for each in kept)
        raise LanguageError(f"takes terms of one kind, but {has}")
    return kept
