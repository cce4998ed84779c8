"""Converts the columns of a file to the schema's types without loss, and reports impossible conversions."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from harness.base.errors import Fault
from harness.base.options import nearest
from harness.trace.schema import LIMIT, REQUEST, REQUIRED, Column, Kind, column_of, ordered


def typed(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[Fault]]:
    """Returns the frame with the schema's types and column order, and the faults of whole columns.

    Integers of any width, times in any unit and texts of any kind are accepted if every value survives the
    conversion. A faulty column is dropped, and the other columns are still checked.
    """
    faults: list[Fault] = []
    kept: list[pl.Series] = []
    for name in ordered(frame.columns):
        column = column_of(name)
        series = frame[name]
        if column is not None and series.dtype == pl.Null and name not in REQUIRED:
            if not name.startswith(REQUEST):
                continue  # the default applies to a column without any value
            series = series.cast(pl.Int64)  # a resource that no job requests is still a resource
        result = reserved(name) or (series if column is None else _cast(series, column))
        if isinstance(result, str):
            faults.append(Fault(f"column {name}", result))
        else:
            kept.append(result)
    faults += [
        Fault(f"column {name}", f"is missing; every trace needs it{_meant(name, frame.columns)}")
        for name in REQUIRED
        if name not in frame.columns
    ]
    if not any(name.startswith(REQUEST) and name != REQUEST for name in frame.columns):
        faults.append(Fault("columns request.*", "are missing; a trace must request at least one resource"))
    kept, times = _one_kind_of_time(kept)
    return pl.DataFrame(kept), faults + times


def _meant(name: str, columns: Sequence[str]) -> str:
    plain = {re.sub(r"[^a-z]", "", each.lower()): each for each in columns if column_of(each) is None}
    found = nearest(name.replace("_", ""), plain)
    return "" if found is None else f"; is it {plain[found]!r}?"


def reserved(name: str) -> str | None:
    """Returns why a trace cannot have a column of this name, or None."""
    if name == f"{REQUEST}pods":
        return "is reserved: a job's pods are counted in the column 'pods'"
    if name in (REQUEST, LIMIT):
        return "names no resource"
    if name.startswith("harness."):
        return "is reserved: rename it"
    if "\0" in name:
        return "has a null character in its name: rename it"
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        return "has a name that would match several columns: rename it"  # in polars
    return None


def _cast(series: pl.Series, column: Column) -> pl.Series | str:
    """Returns the series in the stored type, or a text that describes its fault."""
    dtype = series.dtype
    if not column.kind.takes(dtype):
        return f"is {dtype}, but must be {column.kind.value}{_not_finite(series)}"
    stored = column.stored(dtype)
    if stored == dtype:
        return series
    cast = series.cast(stored, strict=False)
    if column.kind is Kind.STRING:
        return cast
    lost = (cast.is_null() & series.is_not_null()) | (
        (cast.cast(dtype, strict=False) != series).fill_null(value=False)
    )
    if lost.any():
        row = lost.arg_true()[0]
        count = f" (and {lost.sum() - 1:,} more)" if lost.sum() > 1 else ""
        has = _shown(series, row)
        return (
            f"is {dtype}, but must be {column.kind.value}: row {row + 1} has {has}, which does not fit{count}"
        )
    return cast


def _shown(series: pl.Series, row: int) -> str:
    """Formats a value, even if it is too large for Python. Times are shown as they are stored."""
    if isinstance(series.dtype, (pl.Datetime, pl.Duration)):
        return f"{series.to_physical()[row]} {series.dtype.time_unit}"
    return str(series[row])


def _not_finite(series: pl.Series) -> str:
    if not series.dtype.is_float():
        return ""
    wrong = (~series.is_finite()).fill_null(value=False).arg_true()
    if not len(wrong):
        return ""
    count = f" (and {len(wrong) - 1:,} more)" if len(wrong) > 1 else ""
    return f"; row {wrong[0] + 1} has {series[wrong[0]]}{count}"


def _one_kind_of_time(columns: list[pl.Series]) -> tuple[list[pl.Series], list[Fault]]:
    """Checks that recorded times are of the same kind as submit_time. Time zones may differ."""
    submit = next((series for series in columns if series.name == "submit_time"), None)
    if submit is None:
        return columns, []
    kept: list[pl.Series] = []
    faults: list[Fault] = []
    for series in columns:
        if series.name not in ("recorded_start", "recorded_end") or series.dtype == submit.dtype:
            kept.append(series)
        elif series.null_count() == len(series):
            kept.append(series.cast(submit.dtype, strict=False))
        elif _zoned(series) and _zoned(submit):
            kept.append(series.cast(submit.dtype))
        else:
            faults.append(
                Fault(f"column {series.name}", f"is {series.dtype}, but submit_time is {submit.dtype}")
            )
    return kept, faults


def _zoned(series: pl.Series) -> bool:
    return isinstance(series.dtype, pl.Datetime) and series.dtype.time_zone is not None
