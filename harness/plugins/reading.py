"""The result of a trace reader: rows in the canonical schema, and counts of skipped rows."""

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
        frame: columns of the canonical schema (`harness.trace.schema`); other columns are kept.
        rows_read: the number of job records in the source.
        left_out: reason -> the number of job records that are not in `frame`. For readers that make one row
            from one record, `rows_read` minus these numbers is the frame's height.
        notes: conventions that were applied, as sentences for the user.
        metadata: key-value pairs to store with the trace (`harness.source`, `harness.license`, ...).
        place: returns the place in the source of a row of `frame`, from 0, such as `a.csv: row 3`; None if
            messages name rows by number.
    """

    frame: pl.DataFrame
    rows_read: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    place: Callable[[int], str] | None = None


def fault_of(reading: Reading) -> str | None:
    """Returns a text about the part of a reading that has a wrong type; None if all types are right."""
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
    """Returns True if a value is a mapping of texts to values that `right` accepts."""
    return isinstance(value, Mapping) and all(_is_text(name) and right(each) for name, each in value.items())


def leave_out(
    rows: pl.DataFrame, reasons: Mapping[str, pl.Expr | None]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the rows that become jobs, and counts of skipped rows, each under its first applicable reason.

    Args:
        rows: one row per record.
        reasons: reason -> the rows to skip (null means no); None if an option keeps them.
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
