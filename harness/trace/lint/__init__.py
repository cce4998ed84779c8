"""Finds misleading properties of a trace, and reports each property with a figure and a remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.cluster.model import Cluster
from harness.trace.lint import capacity, durations, names, times, topology, units, zones
from harness.trace.lint.finding import Finding, Material
from harness.trace.trace import Trace

__all__ = ["CHECKS", "Finding", "lint"]

CHECKS: tuple[Callable[[Material], Iterator[Finding]], ...] = (
    names.check_columns, capacity.check, topology.check, times.check_span, times.check_bursts,
    times.check_clock, durations.check_work, durations.check_censored, durations.check_limits,
    durations.check_long_limits, durations.check_span, zones.check, names.check_tenants,
    names.check_priorities, names.check_ids, units.check, units.check_totals,
)  # fmt: skip
"""The checks, in the order of their findings."""


def lint(trace: Trace, cluster: Cluster | None = None, impossible: Sequence[str] = ()) -> list[Finding]:
    """Returns the misleading properties of a trace.

    Without a cluster for the replay, the size of the traced machine is used, if it is known. `impossible` has
    sentences from plugins about jobs that can never start on the cluster; see `harness.runs.impossible`.
    """
    material = Material(trace, cluster, impossible)
    return [finding for check in CHECKS for finding in check(material)]
