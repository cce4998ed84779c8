"""What terms of the language are: values of a kind as polars expressions, and cells that mean nothing.

A number is held as a whole number of 128 bits with this many decimals, a time or a span in microseconds. An
empty cell is null. A cell that is there and means nothing of its kind is a doubt: the reader counts the rows
of all doubts, and names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import polars as pl

from harness_plugins.readers.tables.syntax import Call, Column, LanguageError, Literal, Term

WIDE = pl.Int128
ROW = "\0row"
"""The column of a table that has the number of each row, from 0."""


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


def aligned(values: list[Value]) -> list[Value]:
    """Numbers with equal decimals."""
    most = max(each.decimals for each in values)
    return [
        replace(each, expr=each.expr * 10 ** (most - each.decimals), decimals=most)
        if each.decimals < most
        else each
        for each in values
    ]


def only(term: Term) -> str:
    """The one column that a term is about; "" where there is none, or more than one."""
    match term:
        case Column(name):
            return name
        case Call(_, arguments) if arguments:
            return only(arguments[0])
    return ""


def named(term: Term) -> str:
    """A term in words for messages."""
    match term:
        case Column(name):
            return f"column {name}"
        case Literal(value):
            return repr(str(value)) if isinstance(value, str) else str(value)
        case Call(name):
            return f"{name}()"
    return "a sum"


def text_of(term: Term, what: str) -> str:
    """The text of a constant; numbers as they are written."""
    if not isinstance(term, Literal):
        raise LanguageError(f"{what} must be a number or a text in quotes, and is {named(term)}")
    return term.value if isinstance(term.value, str) else str(term.value)
