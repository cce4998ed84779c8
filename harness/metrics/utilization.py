"""Utilization: what was allocated, what became of it, how much of that is of use, and how much waits.

    allocated = useful + lost + idle_held + unfinished

holds exactly, in integer resource-microseconds, because the left side is integrated over the timeline and the
right side is added up from stints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.arrays import NEVER, Ints, firsts, is_text, numbers
from harness.metrics import exact
from harness.metrics.arrivals import asked_for
from harness.metrics.known import once
from harness.metrics.levels import USED, level_names, moves
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
    sums = [[0, 0, 0] for _ in run.resources]
    last, state = window.start, dict.fromkeys(level_names(run), 0)
    for batch in moves(run, window):
        begins = np.flatnonzero(firsts(batch.time))
        times = np.concatenate(([last], batch.time[begins]))
        total = {}
        for name, level in batch.levels.items():
            changes = np.add.reduceat(level, begins) if len(begins) else level
            total[name] = np.concatenate(([state[name]], changes)).cumsum()
        _add_areas(run, sums, total, np.diff(times))
        last, state = int(times[-1]), {name: int(level[-1]) for name, level in total.items()}
    at_last = {name: np.array([level]) for name, level in state.items()}
    _add_areas(run, sums, at_last, np.array([window.end - last]))
    return [(allocated, demanded, pending) for allocated, demanded, pending in sums]


def _add_areas(run: Run, sums: Sequence[list[int]], levels: Mapping[str, Ints], spans: Ints) -> None:
    """Add what levels come to over spans of time: of each resource allocated, asked for, and waited for."""
    for number, (resource, found) in enumerate(zip(run.resources, sums, strict=True)):
        allocated, demand = (levels[f"{kind}{number}"][: len(spans)] for kind in USED)
        capacity = min(run.capacity.get(resource, INT64_MAX), INT64_MAX)
        for place, level in enumerate((allocated, np.minimum(demand, capacity), demand - allocated)):
            found[place] += exact.resource_time(level, spans)


def _from_stints(run: Run, window: Window) -> list[tuple[int, ...]]:
    """Add up stints piece by piece: for each resource what was useful, lost, idle_held and unfinished."""
    (finish,) = numbers(run.columns("jobs", "finish_time"), "finish_time")
    finished = (finish != NEVER) & (finish <= window.end)
    amounts = [f"request.{resource}" for resource in run.resources]
    sums = [[0, 0, 0, 0] for _ in amounts]
    for batch in run.batches("stints", ("job", "start", "end", "state", "lost", *amounts)):
        job, start, end, lost, *held = numbers(batch, "job", "start", "end", "lost", *amounts)
        # An eviction after the window has not thrown anything away yet.
        lost = np.where(end <= window.end, lost, 0)
        span = (np.minimum(end, window.end) - start).clip(0)
        progress, done = is_text(batch["state"], "progress"), finished[job]
        kept = (span - lost) * progress
        # Stints that begin after the window have no span, and end after it.
        spans = (kept * done, lost, span * ~progress, kept * ~done)
        for found, amount in zip(sums, held, strict=True):
            for place, part in enumerate(spans):
                found[place] += exact.resource_time(amount, part)
    return [tuple(found) for found in sums]
