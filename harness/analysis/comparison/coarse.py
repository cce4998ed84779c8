"""Checks whether `--shake` moves arrivals by too much for the length of the trace.

If arrivals are moved too far, the twins are different traces rather than variations of the same trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from harness.base.tables.schemas import RAN_BEFORE
from harness.base.units import exact_duration, format_duration
from harness.runs.folder import reading

if TYPE_CHECKING:
    from harness.runs.run import Run
    from harness.trace.shake import Shake

_JITTERS = 100
"""The time between the first and the last arrival must be at least this many times the jitter."""
_FEW = 1_000
"""The gaps between arrivals are checked only if there are fewer jobs than this. In larger traces, luck
averages out."""
_GAPS = 10
"""The largest acceptable jitter, as a multiple of the median gap between arrivals."""

SMALLER = "a smaller jitter, such as --shake 10,arrivals=1s, keeps twins similar"


def why_coarse(run: Run, shake: Shake) -> str:
    """Returns a clause that explains why the jitter is too large for a run; "" if it is small enough."""
    jitter = shake.shaking.arrivals
    if not jitter:
        return ""
    with reading(run.path):
        jobs = run.micros("jobs")
        if RAN_BEFORE in jobs.collect_schema():  # Jobs that exist at the beginning do not arrive.
            jobs = jobs.filter(pl.col(RAN_BEFORE).is_null())
        times = jobs.select("submit_time").collect().to_series().sort()
    if len(times) < 2:
        return ""
    span, gaps = int(times[-1] - times[0]), times.diff().drop_nulls()
    moved = f"arrivals are moved by up to {exact_duration(jitter)}"
    if span < _JITTERS * jitter:
        return f"{moved}, and all arrivals are within {format_duration(span)}"
    gap = int(gaps.quantile(0.5, "lower") or 0)
    if len(times) < _FEW and _GAPS * gap < jitter:
        return f"{moved}, and half of the arrivals are at most {exact_duration(gap)} after the previous one"
    return ""
