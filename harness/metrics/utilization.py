"""Utilization: what was allocated, what became of it, how much of that is of use, and how much waits.

    allocated = useful + lost + idle_held + unfinished

holds exactly, in integer resource-microseconds, because the left side is integrated over the timeline and the
right side is added up from stints.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from harness.metrics.arrivals import asked_for
from harness.metrics.known import once
from harness.metrics.levels import level_names, moves
from harness.metrics.measurement import Measurement, Window, resource_hours
from harness.runs.run import Run
from harness.units import INT64_MAX

HOURS = ".hours"
"""What the name of a part ends with where it is not a share of the capacity but resource-hours."""

_PARTS = {"allocated": "", "useful": "higher", "lost": "lower", "idle_held": "lower", "unfinished": ""}
"""The parts of `ResourceTime`, and what is better of them; more may be allocated because more is lost."""


class ResourceTime(NamedTuple):
    """What became of a resource over a window, in resource-microseconds.

    Attributes:
        allocated: held by pods, whatever for.
        useful: progress that finished jobs kept.
        lost: progress that an eviction threw away.
        idle_held: held without progress: gangs that wait, termination grace, restoring.
        unfinished: progress of jobs that have not finished.
        demanded: what was asked for, at most the capacity: what could have been used; None without capacity.
        pending: asked for by pods that waited.
    """

    allocated: int
    useful: int
    lost: int
    idle_held: int
    unfinished: int
    demanded: int | None
    pending: int


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """The utilization metrics of every resource that jobs ask for."""
    span = window.end - window.start
    asked = asked_for(run, window)
    for resource in run.resources:
        time = resource_time(run, window, resource)
        capacity = run.capacity.get(resource)
        whole = None if capacity is None else capacity * span
        for name, better in _PARTS.items():
            part: int = getattr(time, name)
            yield _ratio(name, part, whole, better, resource)
            yield resource_hours(f"utilization.{name}{HOURS}", part, resource, better=better)
        yield resource_hours(f"utilization.capacity{HOURS}", whole, resource, better="")
        yield _ratio("of_demand", time.allocated, time.demanded, "higher", resource)
        for name, most in {
            "of_allocated": time.allocated,
            "of_capacity": whole,
            "of_demand": asked.get(resource),
        }.items():
            yield _ratio(name, time.useful, most, "higher", resource, family="goodput")
        unit, one = ("cores", 1000) if resource == "cpu" else ("resources", 1)
        backlog = time.pending / (span * one) if span else None
        yield Measurement("backlog", backlog, unit, "lower", resource=resource)


def _ratio(
    name: str, part: int, whole: int | None, better: str, resource: str, *, family: str = "utilization"
) -> Measurement:
    value = part / whole if whole else None
    return Measurement(f"{family}.{name}", value, "ratio", better, resource=resource)


def resource_time(run: Run, window: Window, resource: str) -> ResourceTime:
    """What became of one resource over a window; stints that reach beyond it are cut."""
    return _resource_times(run, window)[resource]


@once
def _resource_times(run: Run, window: Window) -> dict[str, ResourceTime]:
    found = {}
    held, became = _from_timeline(run, window), _from_stints(run, window)
    for resource, (allocated, demanded, pending), parts in zip(run.resources, held, became, strict=True):
        useful, lost, idle_held, unfinished = parts
        limited = demanded if resource in run.capacity else None
        found[resource] = ResourceTime(allocated, useful, lost, idle_held, unfinished, limited, pending)
    return found


def _from_timeline(run: Run, window: Window) -> list[tuple[int, int, int]]:
    """Integrate over change points, by piece: of each resource what was allocated, demanded and pending."""
    levels = level_names(run)
    total = pl.DataFrame({"time": window.start, **dict.fromkeys(levels, 0)})
    sums = [0] * (3 * len(run.resources))
    for batch in moves(run, window):
        changes = batch.group_by("time").agg(pl.col(levels).sum()).sort("time")
        total = pl.concat([total, changes]).with_columns(pl.col(levels).cum_sum())
        sums = _added(sums, total.select(_areas(run, total["time"][-1])))
        total = total.tail(1)
    sums = _added(sums, total.select(_areas(run, window.end)))
    return list(zip(sums[::3], sums[1::3], sums[2::3], strict=True))


def _areas(run: Run, end: int) -> Iterator[pl.Expr]:
    """What levels come to over time: for each resource what was allocated, asked for, and waited for."""
    span = pl.col("time").shift(-1, fill_value=end) - pl.col("time")
    for number, resource in enumerate(run.resources):
        capacity = pl.lit(run.capacity.get(resource, INT64_MAX))
        yield _product(pl.col(f"allocated{number}"), span)
        yield _product(pl.min_horizontal(f"demand{number}", capacity), span).alias(f"demand{number}")
        waiting = pl.col(f"demand{number}") - pl.col(f"allocated{number}")
        yield _product(waiting, span).alias(f"pending{number}")


def _from_stints(run: Run, window: Window) -> list[tuple[int, ...]]:
    """Add up stints piece by piece: for each resource what was useful, lost, idle_held and unfinished."""
    finished = run.columns("jobs", "finish_time")["finish_time"]
    amounts = [f"request.{resource}" for resource in run.resources]
    # An eviction after the window has not thrown anything away yet.
    lost = pl.when(pl.col("end") <= window.end).then("lost").otherwise(0)
    span = pl.min_horizontal("end", pl.lit(window.end)) - pl.col("start")
    progress = pl.col("state") == "progress"
    spans = {"useful": (span - lost) * (progress & pl.col("done")), "lost": lost}
    spans |= {"idle_held": span * ~progress, "unfinished": (span - lost) * (progress & ~pl.col("done"))}
    sums = [0] * (len(spans) * len(amounts))
    for batch in run.batches("stints", ("job", "start", "end", "state", "lost", *amounts)):
        stints = batch.filter(pl.col("start") < window.end)
        done = (finished.gather(stints["job"]) <= window.end).fill_null(value=False)
        parts = stints.with_columns(done=done).select(
            pl.col(amounts), *(each.alias(name) for name, each in spans.items())
        )
        row = parts.select(
            _product(pl.col(amount), pl.col(name)).alias(f"{amount} {name}")
            for amount in amounts
            for name in spans
        )
        sums = _added(sums, row)
    each = len(spans)
    return [tuple(sums[at : at + each]) for at in range(0, len(sums), each)]


def _added(sums: list[int], row: pl.DataFrame) -> list[int]:
    return [total + int(value) for total, value in zip(sums, row.row(0), strict=True)]


def _product(amount: pl.Expr, span: pl.Expr) -> pl.Expr:
    """Resource-time: amounts of a resource times spans of microseconds do not fit 64 bits."""
    return (amount.cast(pl.Int128) * span).sum()
