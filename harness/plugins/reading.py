"""Defines the result of a trace reader, which has rows in the canonical schema and counts of skipped rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from harness.base.values import Value, fixed

if TYPE_CHECKING:
    import polars as pl


@fixed(slots=False)
class Reading(Value):
    """The result of reading a trace.

    Attributes:
        frame: the jobs in columns of the canonical schema (`harness.trace.schema`). Other columns are kept.
        rows_read: the number of job records in the source.
        left_out: maps a reason to the number of job records that are not in `frame` for this reason. For
            readers that create one row from each record, `rows_read` minus these numbers is the height of the
            frame.
        notes: sentences for the user about conventions that the reader applied.
        metadata: pairs of keys and values to store with the trace, such as `harness.source` and
            `harness.license`.
        place: a function that returns where a row of `frame` is in the source, such as `a.csv: row 3`. Its
            argument is the row's index, beginning with 0. None if messages refer to rows by number.
    """

    frame: pl.DataFrame
    rows_read: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    place: Callable[[int], str] | None = None


def fault_of(reading: Reading) -> str | None:
    """Returns a message about the first field of a reading with a wrong type, or None if all are right."""
    import polars as pl

    told: Mapping[str, tuple[object, bool, str]] = {
        "frame": (reading.frame, isinstance(reading.frame, pl.DataFrame), "a polars DataFrame"),
        "rows_read": (reading.rows_read, _is_count(reading.rows_read), "a whole number"),
        "left_out": (reading.left_out, _maps(reading.left_out, _is_count), "a mapping of strings to numbers"),
        "notes": (reading.notes, _are_texts(reading.notes), "a tuple of strings"),
        "metadata": (reading.metadata, _maps(reading.metadata, _is_text), "a mapping of strings to strings"),
        "place": (reading.place, reading.place is None or callable(reading.place), "a function of a row"),
    }
    for name, (value, right, wanted) in told.items():
        if not right:
            return f"{name} must be {wanted}, but is {value!r:.80} of type {type(value).__name__}"
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _are_texts(value: object) -> bool:
    return isinstance(value, (tuple, list)) and all(map(_is_text, value))


def _maps(value: object, right: Callable[[object], bool]) -> bool:
    return isinstance(value, Mapping) and all(_is_text(name) and right(each) for name, each in value.items())


def leave_out(
    rows: pl.DataFrame, reasons: Mapping[str, pl.Expr | None]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the rows that become jobs, and counts of skipped rows by the first reason that applies.

    Args:
        rows: one row per record.
        reasons: maps a reason to an expression that is true for the rows to skip. A null result skips no row.
            If an option of the reader keeps these rows, the expression is None.
    """
    left_out: dict[str, int] = {}
    for reason, without in reasons.items():
        if without is None:
            continue
        kept = rows.filter(~without.fill_null(value=False))
        if kept.height < rows.height:
            left_out[reason] = rows.height - kept.height
        rows = kept
    return rows, left_out
