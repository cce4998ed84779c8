"""Measures how each resource is used over a window, by all jobs and by each queue and user.

Held and requested quantities are integrated from one change to the next. `useful`, `lost` and `idle_held` are
sums over stints. A stint is a row of `stints.parquet`, which is a period in which pods held resources. Both
computations are exact, in integer resource-microseconds, so the following holds for each queue and user:

    allocated = useful + lost + idle_held + unfinished

Progress within the measured window counts as useful if its job finishes in the run's own window, which may
end later than the measured window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from harness.analysis.metrics import exact
from harness.analysis.metrics.arrivals import request_columns
from harness.analysis.metrics.integrals import Held, Integrals
from harness.analysis.metrics.levels import holder_behind, moves, queue_behind
from harness.analysis.metrics.owners import Owners, owners
from harness.analysis.metrics.pod_moves import COLUMNS, PodMoves
from harness.analysis.metrics.pod_sizes import pod_sizes
from harness.base.arrays import NEVER, Groups, Ints, is_text, numbers
from harness.plugins.measurement import Window
from harness.plugins.scopes import ALL, QUEUE
from harness.runs.known import once
from harness.runs.run import Run

_PARTS = 5
"""The sums over stints: useful, lost, idle_held, unfinished, and useful for the jobs that count."""


class ResourceTime(NamedTuple):
    """The use of a resource over a window, in resource-microseconds.

    Attributes:
        allocated: what pods held for any purpose.
        useful: the progress that was kept by jobs that finish in the run's own window.
        lost: the progress that evictions had discarded by the end of the window.
        idle_held: what was held without progress: by waiting gangs, during termination grace periods, or
            while jobs restored their state.
        unfinished: the progress of jobs that do not finish, and progress that is discarded after the window.
        demanded: the smaller of the requests and the capacity at each time, which is what could have been
            used. None if the capacity is unknown.
        pending: the requests of waiting pods.
        needed: the total need of the selected jobs, as `arrivals.needs` defines it. None if unknown.
        needed_useful: the part of `useful` that belongs to the selected jobs.
    """

    allocated: int
    useful: int
    lost: int
    idle_held: int
    unfinished: int
    demanded: int | None
    pending: int
    needed: int | None
    needed_useful: int


def resource_time(run: Run, window: Window, resource: str) -> ResourceTime:
    """Returns the use of one resource by all jobs over a window. Use outside the window is ignored."""
    return resource_times(run, window)[ALL][run.resources.index(resource)]


def resource_times(
    run: Run, window: Window, until: int | None = None, only: pl.Series | None = None
) -> Mapping[str, Sequence[ResourceTime]]:
    """Returns the use of each resource by scope: for all jobs, each queue, and the largest users.

    Use outside the window is ignored. Progress within the window counts as useful if its job finishes by
    `until`, which is the end of the run's own window. By default, `until` is the end of `window`. `only` says
    for each job whether it counts for `needed` and `needed_useful`.
    """
    if only is None:
        return _of_every_job(run, window, until or window.end)
    return _resource_times(run, window, until or window.end, only)


def weighted(times: Sequence[ResourceTime], weights: Sequence[int]) -> ResourceTime:
    """Returns the weighted sum of the uses of several resources. A sum is None if any term is None."""
    some = [(time, weight) for time, weight in zip(times, weights, strict=True) if weight]
    columns = zip(*(time for time, _ in some), strict=True)
    return ResourceTime._make(
        None if None in column else sum(part * weight for part, (_, weight) in zip(column, some, strict=True))
        for column in columns
    )


@once
def _of_every_job(run: Run, window: Window, until: int) -> Mapping[str, Sequence[ResourceTime]]:
    return _resource_times(run, window, until, None)


def _resource_times(
    run: Run, window: Window, until: int, only: pl.Series | None
) -> Mapping[str, Sequence[ResourceTime]]:
    kinds = owners(run, window, only)
    of_all, of_queues = _from_timeline(run, window, kinds[QUEUE])
    parts = _from_stints(run, window, until, list(kinds.values()), only)
    # Runs of schema 2 do not record requests.
    nothing: list[int | None] = [0 if request_columns(run) else None for _ in run.resources]
    asked = [each for each in kinds[QUEUE].asked if each]
    needed = [sum(column) for column in zip(*asked, strict=True)] or nothing
    beyond = window.end > run.window.end
    found = {ALL: _together(run, of_all, parts[0][0], needed, beyond=beyond)}
    for kind, of_kind in zip(kinds, parts[1:], strict=True):
        each = kinds[kind]
        if kind == QUEUE:
            held = of_queues
        elif each.several:
            held = _from_decisions(run, window, each)
        else:
            held = [of_all]
        for place, scope in enumerate(each.scopes):
            asks: Sequence[int | None] = each.asked[place] or nothing
            found[scope] = _together(run, held[place], of_kind[place], asks, beyond=beyond)
    return found


def _together(
    run: Run,
    held: Sequence[Held],
    parts: Sequence[Sequence[int]],
    needed: Sequence[int | None],
    *,
    beyond: bool,
) -> list[ResourceTime]:
    """Returns an owner's use of each resource; `beyond` is true if the window ends after the run's."""
    found = []
    for place, resource in enumerate(run.resources):
        allocated, demanded, pending = held[place]
        useful, lost, idle_held, unfinished, of_these = parts[place]
        if beyond:  # Pods that still hold resources after the last decision make no progress.
            idle_held = allocated - useful - lost - unfinished
        limited = demanded if resource in run.capacity else None
        became = allocated, useful, lost, idle_held, unfinished
        found.append(ResourceTime(*became, limited, pending, needed[place], of_these))
    return found


def _limits(run: Run) -> list[tuple[int, list[int | None]]]:
    return [
        (begin, [cluster["capacity"].get(resource) for resource in run.resources])
        for begin, cluster in run.epochs
    ]


def _from_timeline(run: Run, window: Window, queues: Owners) -> tuple[list[Held], list[list[Held]]]:
    numbers_of = {scope: number for number, scope in enumerate(queues.scopes)}
    # A queue with no job that counts never holds or requests anything.
    scopes = queue_behind(run)
    owner_of = {name: numbers_of.get(scopes.get(name, ""), len(numbers_of)) for name in holder_behind(run)}
    found = Integrals(len(numbers_of) + 1, _limits(run), window)
    for batch in moves(run, window, owner_of=owner_of):
        moved = [
            (batch.levels[f"allocated{number}"], batch.levels[f"demand{number}"])
            for number in range(len(run.resources))
        ]
        found.add(batch.time, batch.holder, moved)
    return found.sums()


def _from_decisions(run: Run, window: Window, those: Owners) -> list[list[Held]]:
    """Integrates, decision by decision, what owners hold and request. All sums are 0 in schema 2."""
    found = Integrals(len(those.scopes) + 1, _limits(run), window)
    pods, each = PodMoves(run), pod_sizes(run).each
    for batch in run.batches("decisions", ("time", *COLUMNS)) if each else ():
        time, job = numbers(batch, "time", "job")
        row, size, waiting, holding = pods.of(batch)
        within = slice(int(time[row].searchsorted(window.end)))
        row, size, waiting, holding = (column[within] for column in (row, size, waiting, holding))
        moved = [(amount[size] * holding, amount[size] * (holding + waiting)) for amount in each]
        found.add(time[row], those.of_jobs[job[row]], moved)
    return found.sums()[1]


def _from_stints(
    run: Run, window: Window, until: int, kinds: Sequence[Owners], only: pl.Series | None
) -> list[list[list[list[int]]]]:
    # The owners of a kind without separate values count together as one more owner.
    widths = [len(kind.scopes) + 1 for kind in kinds]
    shape = (1, *widths)
    sums = [[[[0] * _PARTS for _ in run.resources] for _ in range(width)] for width in shape]
    pair = np.ravel_multi_index([kind.of_jobs for kind in kinds], widths)
    counts = None if only is None else only.to_numpy()
    for piece in stints_within(run, window, until):
        groups = Groups(pair[piece.job])
        # Progress that is discarded after the window is not lost yet, but it is not useful either.
        rest = piece.span - piece.lost - piece.useful
        useful = piece.useful if counts is None else piece.useful * counts[piece.job]
        every = (piece.useful, piece.lost, piece.idle, rest, *(() if counts is None else (useful,)))
        # Most of these parts are usually 0.
        spans = [(part, span[groups.order]) for part, span in enumerate(every) if span.any()]
        whose = list(zip(*np.unravel_index(groups.keys[groups.begins], widths), strict=True))
        for resource, held in enumerate(piece.held):
            amounts = held[groups.order]
            for part, span in spans:
                of_pairs = exact.resource_times(amounts, span, groups.begins)
                for numbers_of, amount in zip(whose, of_pairs, strict=True):
                    sums[0][0][resource][part] += amount
                    for kind, number in enumerate(numbers_of, 1):
                        sums[kind][number][resource][part] += amount
    if counts is None:
        for of_resource in (each for kind in sums for owner in kind for each in owner):
            of_resource[-1] = of_resource[0]
    return sums


def stints_within(run: Run, window: Window, until: int) -> Iterator[Stints]:
    """Yields the parts of a run's stints within a window, in the order of `stints.parquet`.

    A stint is a period in which pods held resources. Progress within the window counts as useful if its job
    finishes by `until`, which is the end of the run's own window.
    """
    (finish,) = numbers(run.columns("jobs", "finish_time"), "finish_time")
    finished = (finish != NEVER) & (finish <= until)
    amounts = [f"request.{resource}" for resource in run.resources]
    for batch in run.batches("stints", ("job", "start", "end", "state", "lost", *amounts)):
        job, start, end, lost, *held = numbers(batch, "job", "start", "end", "lost", *amounts)
        # Stints that begin after the window end after it and have no span.
        span = (np.minimum(end, window.end) - start).clip(0)
        progress = is_text(batch["state"], "progress")
        # An eviction discards the last part of the stint.
        kept = (np.minimum(np.where(end <= until, end - lost, end), window.end) - start).clip(0)
        lost = np.where(end <= window.end, lost, 0)
        yield Stints(job, span * progress, span * ~progress, lost, kept * (progress & finished[job]), held)


class Stints(NamedTuple):
    """Periods in which pods held resources, cut off at the end of a window. Times are in microseconds.

    Each array has one entry for each stint.

    Attributes:
        job: the row of the stint's job in `jobs.parquet`.
        span: the time with progress.
        idle: the time without progress.
        lost: the part of the progress that evictions had discarded by the end of the window.
        useful: the part of the progress that was kept; 0 if the job does not finish.
        held: for each resource, the amount that the pods held.
    """

    job: Ints
    span: Ints
    idle: Ints
    lost: Ints
    useful: Ints
    held: Sequence[Ints]
