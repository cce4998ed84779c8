"""Computes the demand that a trace creates on a cluster, as a few figures for each resource."""

from __future__ import annotations

from fractions import Fraction

import polars as pl

from harness.base.units import INT64_MAX
from harness.cluster.derive import Demand, derive_cluster
from harness.cluster.model import Cluster
from harness.trace.job_rows import job_rows
from harness.trace.level import held_at_once
from harness.trace.recorded import END, START, runs_of
from harness.trace.schema import REQUEST, resources_of
from harness.trace.trace import Trace

CAPACITY = "harness.capacity."
"""The prefix of metadata keys for the size of the traced machine. For example, `harness.capacity.cpu` is in
millicores.
"""


NODE = "harness.node."
"""The prefix of metadata keys for the size of one node of the traced machine."""

_DIGITS = 19
_RECORDED = Fraction(9, 10)
"""If a smaller share of jobs has recorded runs, the peak usage does not count as the machine's size."""


def demands_of(trace: Trace) -> dict[str, Demand]:
    """Returns the demand of the trace for each resource.

    The mean covers the time from the first to the last submission, and a job counts for at most this time. If
    all jobs are submitted at the same time, the mean is the sum of their requests.
    """
    jobs = job_rows(trace.frame)
    recorded = runs_of(trace, jobs) if _is_record(jobs) else None
    submit = pl.col("submit_time").to_physical()
    span = int(jobs.select(submit.max() - submit.min()).item())
    found = {}
    for resource in resources_of(jobs.columns):
        amount = pl.col(f"{REQUEST}{resource}")
        time = pl.min_horizontal(pl.col("duration").to_physical(), span) if span else 1
        largest, total = jobs.select(amount.max(), (amount.cast(pl.Int128) * time).sum().alias("sum")).row(0)
        found[resource] = Demand(
            largest,
            -(-total // (span or 1)),
            traced_capacity(trace, resource),
            None if recorded is None else held_at_once(recorded, resource),
        )
    return found


def _is_record(jobs: pl.DataFrame) -> bool:
    if not {START, END} <= set(jobs.columns):
        return False
    known = jobs.select((pl.col(START).is_not_null() & pl.col(END).is_not_null()).sum()).item()
    return bool(known) and known >= _RECORDED * jobs.height


def traced_capacity(trace: Trace, resource: str) -> int | None:
    """Returns the traced machine's capacity of a resource, or None if the trace does not contain it."""
    return _stated(trace, f"{CAPACITY}{resource}")


def traced_node(trace: Trace, resource: str) -> int | None:
    """Returns the quantity of a resource on one node of the traced machine, or None if it is unknown."""
    return _stated(trace, f"{NODE}{resource}")


def _stated(trace: Trace, key: str) -> int | None:
    text = trace.metadata.get(key, "")
    capacity = int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0
    return capacity if 0 < capacity <= INT64_MAX else None


def derived_cluster(trace: Trace) -> Cluster:
    """Derives a cluster for a trace without manifests. `Cluster.assumed` lists the assumptions."""
    return derive_cluster(trace.frame["queue"].unique().sort(), demands_of(trace), source=str(trace.path))
