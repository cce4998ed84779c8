"""What a trace reader answers: rows in the canonical schema, and an account of the rows it left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Reading:
    """A trace that was read.

    Attributes:
        frame: columns of the canonical schema (`harness.trace.schema`); any further column is kept.
        rows_read: how many job records the source holds.
        left_out: reason -> how many of them are not in `frame`; `rows_read` minus all of them is its height
            (for readers that make one row of one record).
        notes: conventions that were applied, as sentences for the user.
        metadata: key-value pairs to keep with the trace (`harness.source`, `harness.license`, ...).
    """

    frame: pl.DataFrame
    rows_read: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


def leave_out(
    rows: pl.DataFrame, reasons: Mapping[str, pl.Expr | None]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """The rows that become jobs, and how many do not, each under the first reason that holds.

    Args:
        rows: one row a record.
        reasons: reason -> which rows it concerns (null is no); None where an option keeps them.
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
