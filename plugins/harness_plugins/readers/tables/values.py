"""Represents the values of terms as polars expressions, and invalid cells. Each value is of one kind.

A number is stored as a 128-bit integer with a number of decimals. A time or a duration is stored in
microseconds, and an empty cell is null. If the content of a cell is invalid for its kind, the cell is a
doubt. The reader counts the rows of all doubts, and lists them.
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
"""The column of a table with the number of each row, counted from 0."""


class Kind(Enum):
    """The kind of value that a term of the mapping language has. The texts are for messages."""

    NUMBER = "a number"
    TEXT = "text"
    INSTANT = "a time"
    SPAN = "a duration"
    FLAG = "true or false"
    LIST = "a list"
    NOTHING = "empty in all rows"


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a term in each row, as a polars expression.

    Attributes:
        expr: the expression. A number is a 128-bit integer, and a time or duration is in microseconds.
            Values of other kinds are unchanged.
        decimals: the number of decimals, for a number.
    """

    kind: Kind
    expr: pl.Expr
    decimals: int = 0


class Columns(NamedTuple):
    """The columns of a table.

    Attributes:
        types: maps the name of a column to its type.
        names: maps the name of a column to its name in the frame. The two names differ, because polars treats
            some names as patterns.
    """

    types: Mapping[str, pl.DataType]
    names: Mapping[str, str]


class Doubt(NamedTuple):
    """A check for invalid cells.

    Attributes:
        column: the column of the table, or "" if the cells come from several columns.
    """

    rows: pl.Expr
    column: str
    says: str


def aligned(values: list[Value]) -> list[Value]:
    """Returns the same numbers, all stored with the largest number of decimals among them."""
    most = max(each.decimals for each in values)
    return [
        replace(each, expr=each.expr * 10 ** (most - each.decimals), decimals=most)
        if each.decimals < most
        else each
        for each in values
    ]


def only(term: Term) -> str:
    """Returns the name of the column that a term stands for, or "".

    A call of a function stands for the column of its first argument.
    """
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
    """Returns the text of a constant. Numbers are returned as written."""
    if not isinstance(term, Literal):
        raise LanguageError(f"{what} must be a number or text in quotes, not {named(term)}")
    return term.value if isinstance(term.value, str) else str(term.value)
