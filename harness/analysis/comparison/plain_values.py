"""Parts of a comparison as plain values, for JSON."""

from __future__ import annotations

from math import isfinite
from typing import Any

from harness.analysis.comparison.changes import Change
from harness.runs.run import Run


def cluster_size(run: Run) -> dict[str, Any]:
    """The entries on a run's cluster, without its content."""
    return {key: value for key, value in run.info["cluster"].items() if key not in ("content", "allocatable")}


def json_number(value: float | None) -> float | None:
    """The number, or None if JSON cannot express it."""
    return value if value is not None and isfinite(value) else None


def json_change(change: Change) -> dict[str, Any]:
    """The change as plain values."""
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
    """The kind of an interval's ends: `ratio` or `difference`; "" without an interval."""
    if change.interval is None:
        return ""
    return "ratio" if change.interval.ratio else "difference"
