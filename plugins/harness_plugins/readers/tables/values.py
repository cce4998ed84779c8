"""The values of terms: each of one kind, as polars expressions, and cells that are invalid.

A number is held as a whole number of 128 bits with this many decimals, a time or a span in microseconds. An
empty cell is null. A cell that has content but is invalid for its kind is a doubt. The reader counts the rows
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
    """The kind of a term, in words for messages."""

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
        kind: its kind.
        expr: a number as a whole number of 128 bits, a time or span as microseconds, else as polars has it.
        decimals: the decimals of a number.
    """

    kind: Kind
    expr: pl.Expr
    decimals: int = 0


class Columns(NamedTuple):
    """The columns of a table.

    Attributes:
        types: the type of each column, by its name.
        names: column -> its name in the frame; they differ because polars takes some names for patterns.
    """

    types: Mapping[str, pl.DataType]
    names: Mapping[str, str]


class Doubt(NamedTuple):
    """Cells that are invalid.

    Attributes:
        rows: the rows with these cells.
        column: the column of the table; "" if more than one take part.
        says: their fault.
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
    """Returns the one column that a term is about; "" if there is none, or more than one."""
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
    """Returns the text of a constant; numbers as they are written."""
    if not isinstance(term, Literal):
        raise LanguageError(f"{what} must be a number or a text in quotes, and is {named(term)}")
    return term.value if isinstance(term.value, str) else str(term.value)
