"""The result of a trace reader: rows in the canonical schema, and an account of the rows it left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from harness.base.values import Value, fixed

if TYPE_CHECKING:
    import polars as pl


@fixed(slots=False)
class Reading(Value):
    """A trace that was read.

    Attributes:
        frame: columns of the canonical schema (`harness.trace.schema`); any further column is kept.
        rows_read: how many job records the source holds.
        left_out: reason -> how many of them are not in `frame`. `rows_read` minus all of these is the frame's
            height, for readers that make one row from one record.
        notes: conventions that were applied, as sentences for the user.
        metadata: key-value pairs to keep with the trace (`harness.source`, `harness.license`, ...).
        place: returns the place of a row of `frame`, from 0, in the source, such as `a.csv: row 3`; None if
            rows are named by their numbers.
    """

    frame: pl.DataFrame
    rows_read: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    place: Callable[[int], str] | None = None


def fault_of(reading: Reading) -> str | None:
    """Returns which part of a reading has a wrong type; None if all are right."""
    import polars as pl

    told: Mapping[str, tuple[object, bool, str]] = {
        "frame": (reading.frame, isinstance(reading.frame, pl.DataFrame), "a polars DataFrame"),
        "rows_read": (reading.rows_read, _is_count(reading.rows_read), "a whole number"),
        "left_out": (reading.left_out, _maps(reading.left_out, _is_count), "a mapping of texts to numbers"),
        "notes": (reading.notes, _are_texts(reading.notes), "a tuple of texts"),
        "metadata": (reading.metadata, _maps(reading.metadata, _is_text), "a mapping of texts to texts"),
        "place": (reading.place, reading.place is None or callable(reading.place), "a function of a row"),
    }
    for name, (value, right, wanted) in told.items():
        if not right:
            return f"{name} must be {wanted}, and is {value!r:.80} of type {type(value).__name__}"
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _are_texts(value: object) -> bool:
    return isinstance(value, (tuple, list)) and all(map(_is_text, value))


def _maps(value: object, right: Callable[[object], bool]) -> bool:
    """Returns True if a value is a mapping of texts to such values."""
    return isinstance(value, Mapping) and all(_is_text(name) and right(each) for name, each in value.items())


def leave_out(
    rows: pl.DataFrame, reasons: Mapping[str, pl.Expr | None]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the rows that become jobs, and counts of the others, each under the first reason that applies.

    Args:
        rows: one row per record.
        reasons: reason -> the rows it concerns (null is no); None if an option keeps them.
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
