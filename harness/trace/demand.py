"""What a trace asks of a cluster, in a few figures per resource."""

from __future__ import annotations

import polars as pl

from harness.base.units import INT64_MAX
from harness.cluster.derive import Demand, derive_cluster
from harness.cluster.model import Cluster
from harness.trace.job_rows import job_rows
from harness.trace.schema import REQUEST, resources_of
from harness.trace.trace import Trace

CAPACITY = "harness.capacity."
"""Metadata keys that start so give the size of the traced machine: `harness.capacity.cpu` in millicores."""


NODE = "harness.node."
"""Metadata keys that start so give what one node of it had."""

_DIGITS = 19


def demands_of(trace: Trace) -> dict[str, Demand]:
    """Resource -> what the trace asks of it, the mean taken from the first submission to the last.

    Where all jobs are submitted at one instant, it is what they ask for together.
    """
    jobs = job_rows(trace.frame)
    submit = pl.col("submit_time").to_physical()
    span = int(jobs.select(submit.max() - submit.min()).item())
    found = {}
    for resource in resources_of(jobs.columns):
        amount = pl.col(f"{REQUEST}{resource}")
        time = pl.col("duration").to_physical() if span else 1
        largest, total = jobs.select(amount.max(), (amount.cast(pl.Int128) * time).sum().alias("sum")).row(0)
        found[resource] = Demand(largest, -(-total // (span or 1)), traced_capacity(trace, resource))
    return found


def traced_capacity(trace: Trace, resource: str) -> int | None:
    """How much of a resource the traced machine had; None where the trace does not say."""
    return _stated(trace, f"{CAPACITY}{resource}")


def traced_node(trace: Trace, resource: str) -> int | None:
    """How much of a resource one node of the traced machine had; None where the trace does not say."""
    return _stated(trace, f"{NODE}{resource}")


def _stated(trace: Trace, key: str) -> int | None:
    text = trace.metadata.get(key, "")
    capacity = int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0
    return capacity if 0 < capacity <= INT64_MAX else None


def derived_cluster(trace: Trace) -> Cluster:
    """A cluster for a trace that comes without manifests; `Cluster.assumed` says what was assumed."""
    return derive_cluster(trace.frame["queue"].unique().sort(), demands_of(trace), source=str(trace.path))
