"""Computes the demand of a trace on a cluster, in a few figures per resource."""

from __future__ import annotations

import polars as pl

from harness.base.units import INT64_MAX
from harness.cluster.derive import Demand, derive_cluster
from harness.cluster.model import Cluster
from harness.trace.job_rows import job_rows
from harness.trace.schema import REQUEST, resources_of
from harness.trace.trace import Trace

CAPACITY = "harness.capacity."
"""The prefix of metadata keys for the size of the traced machine: `harness.capacity.cpu` in millicores."""


NODE = "harness.node."
"""The prefix of metadata keys for the size of one node of the traced machine."""

_DIGITS = 19


def demands_of(trace: Trace) -> dict[str, Demand]:
    """Returns resource -> demand of the trace, with its mean from the first to the last submission.

    If all jobs are submitted at one instant, the mean is the sum of their requests.
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
    """Returns the traced machine's capacity of a resource; None if the trace does not state it."""
    return _stated(trace, f"{CAPACITY}{resource}")


def traced_node(trace: Trace, resource: str) -> int | None:
    """Returns the amount of a resource on one node of the traced machine.

    None if the trace does not give it.
    """
    return _stated(trace, f"{NODE}{resource}")


def _stated(trace: Trace, key: str) -> int | None:
    text = trace.metadata.get(key, "")
    capacity = int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0
    return capacity if 0 < capacity <= INT64_MAX else None


def derived_cluster(trace: Trace) -> Cluster:
    """Derive a cluster for a trace without manifests; `Cluster.assumed` lists the assumptions."""
    return derive_cluster(trace.frame["queue"].unique().sort(), demands_of(trace), source=str(trace.path))
