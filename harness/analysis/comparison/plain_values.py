"""Parts of a comparison as plain values, for JSON."""

from __future__ import annotations

from math import isfinite
from typing import Any

from harness.analysis.comparison.changes import Change
from harness.runs.run import Run


def cluster_size(run: Run) -> dict[str, Any]:
    """What there is to say of a run's cluster, without its content."""
    return {key: value for key, value in run.info["cluster"].items() if key not in ("content", "allocatable")}


def json_number(value: float | None) -> float | None:
    """A number that JSON has; None in place of any other."""
    return value if value is not None and isfinite(value) else None


def json_change(change: Change) -> dict[str, Any]:
    """What changed."""
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
    """What the ends of an interval are."""
    if change.interval is None:
        return ""
    return "ratio" if change.interval.ratio else "difference"
