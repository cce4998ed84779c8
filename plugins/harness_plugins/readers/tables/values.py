"""The values of terms as polars expressions, each of one kind, and invalid cells.

A number is stored as a whole number of 128 bits with a number of decimals, a time or a span in microseconds.
An empty cell is null. A cell with content that is invalid for its kind is a doubt. The reader counts the rows
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
"""The column of a table with the number of each row, from 0."""


class Kind(Enum):
    """The kind of a term, in words for messages."""

    NUMBER = "a number"
    TEXT = "text"
    INSTANT = "a time"
    SPAN = "a duration"
    FLAG = "true or false"
    LIST = "a list"
    NOTHING = "empty in all rows"


@dataclass(frozen=True, slots=True)
class Value:
    """A term.

    Attributes:
        kind: its kind.
        expr: a number as a whole number of 128 bits, a time or span as microseconds, other values unchanged.
        decimals: the number of decimals of a number.
    """

    kind: Kind
    expr: pl.Expr
    decimals: int = 0


class Columns(NamedTuple):
    """The columns of a table.

    Attributes:
        types: the type of each column, by its name.
        names: column -> its name in the frame; they differ because polars treats some names as patterns.
    """

    types: Mapping[str, pl.DataType]
    names: Mapping[str, str]


class Doubt(NamedTuple):
    """Cells that are invalid.

    Attributes:
        rows: the rows with these cells.
        column: the column of the table; "" if the cells come from several columns.
        says: the fault of the cells.
    """

    rows: pl.Expr
    column: str
    says: str


def aligned(values: list[Value]) -> list[Value]:
    """Returns numbers with equal decimals."""
    most = max(each.decimals for each in values)
    return [
        replace(each, expr=each.expr * 10 ** (most - each.decimals), decimals=most)
        if each.decimals < most
        else each
        for each in values
    ]


def only(term: Term) -> str:
    """Returns the only column that a term uses; "" if it uses none or several."""
    match term:
        case Column(name):
            return name
        case Call(_, arguments) if arguments:
            return only(arguments[0])
    return ""


def named(term: Term) -> str:
    """Describes a term in words for messages."""
    match term:
        case Column(name):
            return f"column {name}"
        case Literal(value):
            return repr(str(value)) if isinstance(value, str) else str(value)
        case Call(name):
            return f"{name}()"
    return "a sum"


def text_of(term: Term, what: str) -> str:
    """Returns the text of a constant; numbers as written."""
    if not isinstance(term, Literal):
        raise LanguageError(f"{what} must be a number or a text in quotes, not {named(term)}")
    return term.value if isinstance(term.value, str) else str(term.value)
