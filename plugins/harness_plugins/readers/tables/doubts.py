"""Reports cells that are invalid for their kind, by file, row, column and value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from harness.base.errors import Fault, TraceError
from harness_plugins.readers.tables.joining import Rows
from harness_plugins.readers.tables.terms import Terms
from harness_plugins.readers.tables.values import ROW, Doubt

_SHOWN = 1000
_REMEDY = (
    "a unit such as `: iso`, `: %d.%m.%Y %H:%M`, `: h` or `: GiB` says how to read text. comma() reads "
    "1,5 and thousands() 1,024. unless() and below() remove values that mean `no value`. `where` leaves out "
    "rows"
)

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Made(NamedTuple):
    """The result of an expression of a mapping for the rows of a table.

    Attributes:
        name: the column of the trace, or the key of the mapping, that the expression computes.
        text: the expression as written.
        columns: the columns of the table that the expression uses.
        terms: the terms of the expression, with the checks for invalid cells.
        found: the result for each row, with the results of these checks.
    """

    name: str
    text: str
    columns: Sequence[str]
    terms: Terms
    found: pl.DataFrame


def raise_doubts(rows: Rows, several: Sequence[Made]) -> None:
    """Raises an error that lists invalid cells by file, row, column, value and unit.

    Raises:
        TraceError: at least one cell is invalid.
    """
    found: list[tuple[int, Fault]] = []
    hint = _REMEDY
    for made in several:
        for place, doubt in enumerate(made.terms.doubts):
            wrong = made.found.filter(pl.col(str(place)))[ROW].head(_SHOWN).to_list()
            found += [
                (row, Fault(f"{rows.place(row)}: {made.name}", _said(rows, row, made, doubt)))
                for row in wrong
            ]
            cell = rows.cell(wrong[0], doubt.column) if wrong and doubt.column else None
            if not made.terms.unit and _DATE.match(str(cell)):
                hint = f'--set map="{made.name}={doubt.column}:iso" reads times as in ISO 8601; {_REMEDY}'
    if found:
        found.sort(key=lambda item: item[0])
        raise TraceError(str(rows.root), [fault for _, fault in dict.fromkeys(found)], hint=hint)


def _said(rows: Rows, row: int, made: Made, doubt: Doubt) -> str:
    unit = f", in {made.terms.unit}," if made.terms.unit else ""
    if doubt.column:
        cell = rows.cell(row, doubt.column)
        return f"column {doubt.column}{'' if cell is None else f': {cell!r:.60}'}{unit} {doubt.says}"
    cells = ", ".join(f"{name} {rows.cell(row, name)!r:.60}" for name in made.columns)
    return f"{made.text} {doubt.says}{f' ({cells})' if cells else ''}"
