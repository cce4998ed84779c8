"""Measures utilization: allocated capacity, its uses, its useful part, the demand met, and the backlog.

The values of queues and users are fractions of the whole cluster's capacity, so they add up to the value for
all jobs. Shares of the demand and of the allocated part are exceptions, because they refer to a queue's or
user's own demand or allocation. For slices of GPUs (MIG), there are also values over all profiles, in compute
slices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import polars as pl

from harness.analysis.metrics.resource_time import ResourceTime, resource_times, weighted
from harness.analysis.metrics.shown import SERVED, Shown
from harness.base.units import unit_of
from harness.cluster.mig import SLICES, profile_of
from harness.plugins.measurement import SHARE, Measurement, Window, resource_hours
from harness.plugins.scopes import ALL
from harness.runs.run import Run

HOURS = ".hours"
"""The suffix of metrics that are measured in resource-hours instead of as a share of the capacity."""

SHOWN = (
    Shown("utilization.capacity.hours", "whether any job requested the capacity"),
    Shown("utilization.useful.hours", "how much was requested"),
    Shown("utilization.useful", "how much was requested"),
    Shown("goodput.of_allocated", "idle capacity", SERVED),
    Shown("goodput.of_capacity", "how much was requested"),
    Shown("goodput.of_demand", "how long jobs waited", SERVED, brief=True),
)

_PARTS = {"allocated": "", "useful": "higher", "lost": "lower", "idle_held": "lower", "unfinished": ""}
"""Maps each part of `ResourceTime` to the better direction.

Neither direction is better for the allocated part, because losses raise it.
"""


def measure(
    run: Run, window: Window, *, until: int | None = None, only: pl.Series | None = None
) -> Iterator[Measurement]:
    """Yields the utilization of every resource that jobs request: for all jobs, each queue, and users.

    Work within the window counts as useful if its job finishes by `until`; by default, by the end of the
    window. `only` says for each job whether its requests count.
    """
    span = window.end - window.start
    wholes = {resource: run.capacity_time(resource, window) for resource in run.resources}
    slices = [profile.compute if (profile := profile_of(each)) else 0 for each in run.resources]
    if any(slices):
        wholes[SLICES] = capacity_of_slices(run, window)
    for scope, times in resource_times(run, window, until, only).items():
        together = [weighted(times, slices)] if any(slices) else []
        for (resource, whole), time in zip(wholes.items(), (*times, *together), strict=True):
            yield from _of(time, whole, scope, resource)
            if scope == ALL:
                yield resource_hours(f"utilization.capacity{HOURS}", whole, resource, better="")
                unit = unit_of(resource)
                backlog = time.pending / (span * unit.size) if span else None
                yield Measurement("backlog", backlog, unit.name, "lower", resource=resource)


def capacity_of_slices(run: Run, window: Window, of: Collection[str] | None = None) -> int | None:
    """Returns the capacity of all GPU slices over a window, in compute-slice-microseconds.

    By default, all profiles count, including those that no job requests. The result is None if the slices of
    a requested profile are unlimited.
    """
    known = {name for _, cluster in run.epochs for name in cluster["capacity"]}.union(run.resources)
    total = 0
    for resource in sorted(known if of is None else of):
        if (profile := profile_of(resource)) is not None:
            lacking = None if resource in run.resources else 0
            if (whole := run.capacity_time(resource, window, lacking)) is None:
                return None
            total += profile.compute * whole
    return total


def _of(time: ResourceTime, whole: int | None, scope: str, resource: str) -> Iterator[Measurement]:
    for name, better in _PARTS.items():
        part: int = getattr(time, name)
        yield _share(f"utilization.{name}", part, whole, better, scope, resource)
        yield resource_hours(f"utilization.{name}{HOURS}", part, resource, scope, better=better)
    for name, part, most in (
        ("utilization.of_demand", time.allocated, time.demanded),
        ("goodput.of_allocated", time.useful, time.allocated),
        ("goodput.of_capacity", time.useful, whole),
        ("goodput.of_demand", time.needed_useful, time.needed),
    ):
        yield _share(name, part, most, "higher", scope, resource)


def _share(metric: str, part: int, whole: int | None, better: str, scope: str, resource: str) -> Measurement:
    return Measurement(metric, part / whole if whole else None, SHARE, better, scope, resource)
