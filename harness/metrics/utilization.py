"""Utilization: what was allocated, what became of it, how much of that is of use, and how much waits.

    allocated = useful + lost + idle_held + unfinished

holds exactly, in integer resource-microseconds, because the left side is integrated over the timeline and the
right side is added up from stints. Useful is what was made within the window by jobs that finish in the run's
own window, however much earlier that which is measured ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

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
        useful: kept progress of jobs that finish in the run's own window.
        lost: progress that an eviction had thrown away by the end of the window.
        idle_held: held without progress: gangs that wait, termination grace, restoring.
        unfinished: progress of jobs that do not finish, and what is thrown away after the window.
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


def measure(
    run: Run, window: Window, *, until: int | None = None, only: pl.Series | None = None
) -> Iterator[Measurement]:
    """The utilization metrics of every resource that jobs ask for.

    Args:
        run: the run.
        window: what is measured.
        until: when the run's own window ends, if later than that.
        only: whether each job of the run counts in what is asked for; all of them by default.
    """
    span = window.end - window.start
    asked = asked_for(run, window, only)
    of_these = None if only is None else _useful_of(run, window, until or window.end, only)
    for number, resource in enumerate(run.resources):
        time = resource_time(run, window, resource, until)
        capacity = run.capacity.get(resource)
        whole = None if capacity is None else capacity * span
        for name, better in _PARTS.items():
            part: int = getattr(time, name)
            yield _ratio(name, part, whole, better, resource)
            yield resource_hours(f"utilization.{name}{HOURS}", part, resource, better=better)
        yield resource_hours(f"utilization.capacity{HOURS}", whole, resource, better="")
        yield _ratio("of_demand", time.allocated, time.demanded, "higher", resource)
        for name, useful, most in (
            ("of_allocated", time.useful, time.allocated),
            ("of_capacity", time.useful, whole),
            ("of_demand", time.useful if of_these is None else of_these[number], asked.get(resource)),
        ):
            yield _ratio(name, useful, most, "higher", resource, family="goodput")
        unit, one = ("cores", 1000) if resource == "cpu" else ("resources", 1)
        backlog = time.pending / (span * one) if span else None
        yield Measurement("backlog", backlog, unit, "lower", resource=resource)


def _ratio(
    name: str, part: int, whole: int | None, better: str, resource: str, *, family: str = "utilization"
) -> Measurement:
    value = part / whole if whole else None
    return Measurement(f"{family}.{name}", value, "ratio", better, resource=resource)


def resource_time(run: Run, window: Window, resource: str, until: int | None = None) -> ResourceTime:
    """What became of one resource over a window; stints that reach beyond it are cut.

    Args:
        run: the run.
        window: what is measured.
        resource: the resource.
        until: when the run's own window ends, if later than that.
    """
    return _resource_times(run, window, until or window.end)[resource]


@once
def _resource_times(run: Run, window: Window, until: int) -> dict[str, ResourceTime]:
    found = {}
    held, became = _from_timeline(run, window), _from_stints(run, window, until)
    for resource, (allocated, demanded, pending), parts in zip(run.resources, held, became, strict=True):
        useful, lost, idle_held, unfinished = parts
        if window.end > run.window.end:  # what is still held after the last decision is held in vain
            idle_held = allocated - useful - lost - unfinished
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


def _from_stints(run: Run, window: Window, until: int) -> list[tuple[int, ...]]:
    """Add up stints piece by piece: for each resource what was useful, lost, idle_held and unfinished."""
    sums = [[0, 0, 0, 0] for _ in run.resources]
    for piece in _stints(run, window, until):
        # Progress that is thrown away after the window is neither lost yet nor of any use.
        spans = (piece.useful, piece.lost, piece.idle, piece.span - piece.lost - piece.useful)
        for found, amount in zip(sums, piece.held, strict=True):
            for place, part in enumerate(spans):
                found[place] += exact.resource_time(amount, part)
    return [tuple(found) for found in sums]


def _useful_of(run: Run, window: Window, until: int, only: pl.Series) -> list[int]:
    """For each resource what was useful of some of the jobs."""
    counts, sums = only.to_numpy(), [0] * len(run.resources)
    for piece in _stints(run, window, until):
        for place, amount in enumerate(piece.held):
            sums[place] += exact.resource_time(amount, piece.useful * counts[piece.job])
    return sums


def _stints(run: Run, window: Window, until: int) -> Iterator[_Stints]:
    """Stints, piece by piece, as far as they are within a window."""
    (finish,) = numbers(run.columns("jobs", "finish_time"), "finish_time")
    finished = (finish != NEVER) & (finish <= until)
    amounts = [f"request.{resource}" for resource in run.resources]
    for batch in run.batches("stints", ("job", "start", "end", "state", "lost", *amounts)):
        job, start, end, lost, *held = numbers(batch, "job", "start", "end", "lost", *amounts)
        # Stints that begin after the window have no span, and end after it.
        span = (np.minimum(end, window.end) - start).clip(0)
        progress = is_text(batch["state"], "progress")
        # What an eviction throws away is the last part of the stint.
        kept = (np.minimum(np.where(end <= until, end - lost, end), window.end) - start).clip(0)
        lost = np.where(end <= window.end, lost, 0)
        yield _Stints(job, span * progress, span * ~progress, lost, kept * (progress & finished[job]), held)


class _Stints(NamedTuple):
    """Stints within a window.

    Attributes:
        job: whose each is.
        span: how long it progressed.
        idle: how long it held what it has without progress.
        lost: what an eviction had thrown away of it by the end of the window.
        useful: what of it was kept, if the job finishes.
        held: of each resource what it has.
    """

    job: Ints
    span: Ints
    idle: Ints
    lost: Ints
    useful: Ints
    held: Sequence[Ints]
