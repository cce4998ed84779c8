"""Parts of a comparison as plain values, for JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

import polars as pl

from harness.analysis.comparison.changes import Change, Row
from harness.analysis.comparison.headlines import UNSEEN
from harness.runs.run import Run

COLUMNS = ("metric", "scope", "resource", "unit", "better")
"""The columns that say what was measured."""


def cluster_size(run: Run) -> dict[str, Any]:
    """Returns the `cluster` entry of `run.json`, without its large fields `content` and `allocatable`."""
    return {key: value for key, value in run.info["cluster"].items() if key not in ("content", "allocatable")}


def json_number(value: float | None) -> float | None:
    """Returns the number, or None if JSON cannot express it."""
    return value if value is not None and isfinite(value) else None


def json_row(row: Row, names: Sequence[str]) -> dict[str, Any]:
    """Returns a metric with its value in every run, and the changes of all runs except the first."""
    return {
        **{column: getattr(row.measured, column) for column in COLUMNS},
        "does_not_see": UNSEEN.get(row.measured.metric),
        "values": dict(zip(names, map(json_number, row.values), strict=True)),
        "at_least": dict(zip(names, row.at_least, strict=True)),
        "changes": dict(zip(names[1:], map(json_change, row.changes), strict=False)),
    }


def changes_frame(rows: Iterable[Row], names: Sequence[str]) -> pl.DataFrame:
    """Returns a table with one line for each row and run; see `Comparison.changes`."""
    import polars as pl

    found = []
    for row in rows:
        about = [getattr(row.measured, column) for column in COLUMNS]
        base = row.values[0]
        least, *leasts = row.at_least
        found.append((*about, names[0], base, least, base, *[None] * 4, "", None, "", ""))
        for name, value, least, change in zip(names[1:], row.values[1:], leasts, row.changes, strict=True):
            interval = change.interval
            low, high = (interval.low, interval.high) if interval else (None, None)
            how = (scale_of(change), change.p, str(change.ground), str(change.verdict))
            of_change = (change.difference, change.relative, low, high, *how)
            found.append((*about, name, value, least, base, *of_change))
    schema: dict[str, type[pl.DataType]] = dict.fromkeys((*COLUMNS, "run"), pl.String)
    figures = ("baseline", "difference", "relative", "low", "high")
    schema |= {"value": pl.Float64, "at_least": pl.Boolean}
    schema |= dict.fromkeys(figures, pl.Float64) | {"scale": pl.String, "p": pl.Float64}
    schema |= dict.fromkeys(("ground", "verdict"), pl.String)
    return pl.DataFrame(found, schema=schema, orient="row")


def json_change(change: Change) -> dict[str, Any]:
    """Returns the change as plain values."""
    interval = change.interval
    return {
        "difference": change.difference,
        "relative": change.relative,
        "interval": [json_number(interval.low), json_number(interval.high)] if interval else None,
        "scale": scale_of(change) or None,
        "size": interval.size if interval else None,
        "p": change.p,
        "ground": str(change.ground),
        "verdict": str(change.verdict),
    }


def scale_of(change: Change) -> str:
    """Returns whether the ends of an interval are a `ratio` or a `difference`; "" without an interval."""
    if change.interval is None:
        return ""
    return "ratio" if change.interval.ratio else "difference"
