"""Measures waiting: time to first progress, total time without progress, completion, and slowdown.

If a job has not started or finished by the end of the window, the time until then counts. Percentiles
interpolate linearly between order statistics. Means use exact sums, so they do not depend on the order of
summation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from harness.analysis.metrics.accrued import NOTHING, Figure, statistics
from harness.analysis.metrics.arrivals import counted, request_columns
from harness.analysis.metrics.exact import exact_sum
from harness.analysis.metrics.levels import names_of_jobs, queue_names
from harness.analysis.metrics.progress import kept_progress, progress
from harness.analysis.metrics.shown import WAITED, Shown
from harness.base.arrays import Bools, Groups, Ints, as_series, codes, numbers, ranked
from harness.base.tables.schemas import RAN_BEFORE
from harness.base.units import HOUR, MINUTE, SECOND
from harness.plugins.measurement import SHARE, Measurement, Window
from harness.plugins.scopes import ALL, PRIORITY, QUEUE, Scope
from harness.runs.known import meanwhile
from harness.runs.refused import rejected_at_arrival
from harness.runs.run import Run

SHORTEST = 10 * SECOND
"""The minimum run time in the denominator of the bounded slowdown."""


class _Shape(NamedTuple):
    """The statistics to compute for a column of `job_times`.

    The column `until` says whether a job's time is final.
    """

    metric: str
    statistics: tuple[str, ...]
    until: str = "finished"


_WAITS: Mapping[str, _Shape] = {
    "first_start": _Shape("wait.first_start", ("mean", "p50", "p90", "p95", "p99", "max"), "started"),
    "total": _Shape("wait.total", ("mean", "p50", "p90", "p95", "p99", "max")),
    "delay": _Shape("delay", ("mean", "p50", "p95")),
}
_LATER: Mapping[str, _Shape] = {
    "completion": _Shape("jct", ("mean", "p50", "p95")),
    "admission": _Shape("wait.admission_to_start", ("mean", "p50", "p95", "max"), "started"),
}
_SLOWDOWN = _Shape("slowdown.bounded", ("mean", "p50", "p95", "p99"))

SHOWN = (
    Shown(
        "wait.first_start.p50",
        "the jobs that wait longer than the median, and the time that jobs wait after their first start",
        WAITED,
    ),
    Shown(
        "wait.first_start.p95",
        "the slowest twentieth of the jobs, and the time that jobs wait after their first start",
        WAITED,
        brief=True,
    ),
    Shown("wait.never_started", "how long the jobs that never started have waited", alarm=True),
    Shown(
        "delay.mean", "whether many jobs are slightly late or a few jobs are very late", WAITED, brief=True
    ),
    Shown("slowdown.bounded.mean", "long jobs, because short jobs dominate the mean", WAITED),
)

_WITHIN = {"1m": MINUTE, "10m": 10 * MINUTE, "1h": HOUR, "4h": 4 * HOUR}
"""Maps the suffixes of the metrics for early starts to the time within which a job must start."""

_COLUMNS = (
    *("job", "queue", "priority", "submit", "started", "finished", "first_start", "total", "completion"),
    *("admission", "delay", "length", "weight", "slowdown"),
)

_KINDS = (QUEUE, PRIORITY)
"""The kinds of scopes by which waits are split, which are also columns of `job_times`."""

_Figures: TypeAlias = list[Figure]

_NEVER = "wait.never_started"
_UNTIL = ("started", "finished")
_MANY = 1 << 17  # The maximum number of jobs in a table that stays in memory.


def measure(run: Run, window: Window, only: pl.Series | None = None) -> Iterator[Measurement]:
    """Yields the waiting metrics of all jobs, and the waits of each queue and priority.

    `only` says for each job whether it counts.
    """
    jobs = _Jobs(run, window, only)
    of_all, of_scopes = _waits(jobs)
    yield from of_all
    times = jobs.times(*_LATER, *_UNTIL)
    for name, shape in _LATER.items():
        yield from _rows(_figures(times, name, shape, jobs, kinds=())[ALL], shape)
    yield from of_scopes
    yield from _slowdowns(jobs)


class _Jobs:
    """The jobs that waiting metrics cover: the jobs that arrived and were not rejected on arrival."""

    def __init__(self, run: Run, window: Window, only: pl.Series | None) -> None:
        self._run, self._window, self._every = run, window, only
        self._refused = not rejected_at_arrival(run).is_empty()
        self._only = counted(run, only) if self._refused else only

    def times(self, *columns: str) -> pl.DataFrame:
        return job_times(self._run, self._window, *columns, only=self._only)

    @cached_property
    def kinds(self) -> dict[str, _Kind]:
        queues = queue_names(self._run).categories
        counted = self.times(*_KINDS)
        every = job_times(self._run, self._window, *_KINDS, only=self._every) if self._refused else counted
        (queue, priority), (of_queue, of_priority) = (
            (codes(times[QUEUE]), *numbers(times, PRIORITY)) for times in (every, counted)
        )
        (there, at), (priorities, at_priority) = ranked(of_queue, queue), ranked(of_priority, priority)
        return {
            QUEUE: _Kind([queues[code] for code in there.tolist()], Groups(at)),
            PRIORITY: _Kind(priorities.tolist(), Groups(at_priority)),
        }


class _Kind(NamedTuple):
    """One way to split jobs, for example by queue.

    Attributes:
        names: the names of the groups, in order, including groups whose jobs were all rejected.
        groups: the jobs that count, grouped by the number of their name.
    """

    names: list[Any]
    groups: Groups


def job_times(run: Run, window: Window, *columns: str, only: pl.Series | None = None) -> pl.DataFrame:
    """Returns a table with one row for each job that arrived within the window.

    Events after the window are ignored. A wait that has not ended is measured up to the end of the window. If
    a job has not finished by then, its completion is estimated. The estimate assumes that the job keeps its
    progress and runs without interruption after the window. Jobs whose run time is unknown are left out.

    You can request these columns, whose times are in microseconds:

    - `job` (the row in `jobs.parquet`), `queue` (an enumeration sorted by name) and `priority`.
    - `submit`, `first_start`, `completion`: the time of submission, the time from it to the first progress,
      and the time from it to the end of the job.
    - `total`: the time without progress.
    - `delay`: completion minus duration.
    - `admission`: the time from the first admission to the first progress, or null if the job was never
      admitted. On nodes, a gang makes progress only once all its pods are bound.
    - `length`: the duration, but at least `SHORTEST`.
    - `started` and `finished`: whether the job has started or finished.
    - `slowdown`: the bounded slowdown.
    - `weight`: the job's duration, multiplied by the job's dominant share, which is the largest fraction of
      any resource's capacity that its pods request.

    `only` says for each job whether it counts.
    """
    every = _short_times(run, window)
    if every is None:
        return _times(run, window, columns, only)
    times = pl.DataFrame([every[name] for name in columns])
    return times if only is None else times.filter(only[every["job"]])


@meanwhile
def _short_times(run: Run, window: Window) -> pl.DataFrame | None:
    """Returns all columns of `job_times` if the run has few jobs and is measured often, or else None."""
    if run.memory is None or run.info["outcome"]["jobs"] > _MANY:
        return None
    return _times(run, window, _COLUMNS, None)


def _times(run: Run, window: Window, columns: Sequence[str], only: pl.Series | None) -> pl.DataFrame:
    started, finished = (
        (pl.col(name) <= window.end).fill_null(value=False) for name in ("start_time", "finish_time")
    )
    submit, duration = pl.col("submit_time"), pl.col("duration")
    start, finish = (
        pl.when(came).then(name).otherwise(window.end)
        for came, name in ((started, "start_time"), (finished, "finish_time"))
    )
    left = pl.when(finished).then(0).otherwise(duration - pl.col("kept"))
    completion = finish - submit + left
    shortest = pl.max_horizontal("duration", pl.lit(SHORTEST))
    # If a job ran before the replay, that time is treated as if it preceded the job's submission.
    before = pl.lit(0)
    if RAN_BEFORE in run.micros("jobs").collect_schema():
        before = pl.col(RAN_BEFORE).fill_null(0)
    known = {
        "job": pl.col("job").cast(pl.Int32),
        "queue": pl.col("queue"),
        "priority": pl.col("priority"),
        "submit": submit,
        "started": started,
        "finished": finished,
        "first_start": start - submit,
        "total": finish - submit - pl.col("progress"),
        "completion": completion,
        "admission": pl.when(pl.col("admitted_time") <= window.end).then(start - pl.col("admitted_time")),
        "delay": completion - duration + before,
        "length": shortest,
        "weight": pl.max_horizontal(pl.lit(0.0), *_parts_of_capacity(run)) * duration,
        "slowdown": pl.max_horizontal(completion / shortest, pl.lit(1.0)),
    }
    wanted = [known[name].alias(name) for name in columns]
    roots = {root for each in wanted for root in each.meta.root_names()}
    read = sorted((roots - {"job", "queue", "progress", "kept"}) | {"submit_time", "duration"})
    found = {
        "queue": names_of_jobs(run)["queue"] if "queue" in roots else None,
        "progress": progress(run, window) if "progress" in roots else None,
        "kept": as_series(kept_progress(run, window)) if "kept" in roots else None,
    }
    parts, offset = [], 0
    for batch in run.batches("jobs", read):
        rows = batch.with_row_index("job", offset)
        more = {name: each.slice(offset, batch.height) for name, each in found.items() if each is not None}
        rows = rows.with_columns(**more)
        if only is not None:
            rows = rows.filter(only.slice(offset, batch.height))
        offset += batch.height
        # Some workloads in manifests have an unknown run time.
        if rows["duration"].has_nulls() or rows["submit_time"].to_numpy().max(initial=0) > window.end:
            rows = rows.filter((submit <= window.end) & pl.col("duration").is_not_null())
        parts.append(rows.select(wanted))
    return pl.concat(parts)


def _parts_of_capacity(run: Run) -> list[pl.Expr]:
    amounts = {column.removeprefix("request."): pl.col(column) for column in request_columns(run)}
    return [
        amount / run.capacity[resource] for resource, amount in amounts.items() if run.capacity.get(resource)
    ]


def _waits(jobs: _Jobs) -> tuple[list[Measurement], list[Measurement]]:
    times = jobs.times(*_WAITS, *_UNTIL)
    found = [(shape, _figures(times, name, shape, jobs)) for name, shape in _WAITS.items()]
    of_all = [row for shape, figures in found for row in _rows(figures[ALL], shape)]
    started, waited = times["started"].to_numpy(), times["first_start"].to_numpy()
    of_all += _starts(started, waited, ALL)
    of_scopes: list[Measurement] = []
    for kind, (names, groups) in jobs.kinds.items():
        scopes = [Scope(kind, str(name)).text for name in names]
        for place, scope in enumerate(scopes):
            for shape, figures in found:
                of_scopes += _rows(figures[kind], shape, place, scope)
        parts = {place: groups.order[rows] for place, rows in groups}
        nobody = groups.order[:0]
        for place, scope in enumerate(scopes):
            rows = parts.get(place, nobody)
            of_scopes += _starts(started[rows], waited[rows], scope)
    return of_all, of_scopes


def _starts(started: Bools, waited: Ints, scope: str) -> Iterator[Measurement]:
    jobs = len(started)
    never = waited[~started]
    yield Measurement(_NEVER, len(never) / jobs if jobs else None, SHARE, "lower", scope)
    for name, limit in _WITHIN.items():
        soon = int(np.count_nonzero(started & (waited <= limit)))
        may_yet = bool((never < limit).any())
        share = soon / jobs if jobs else None
        yield Measurement(f"wait.within_{name}", share, SHARE, "higher", scope, at_least=may_yet)


def _figures(
    times: pl.DataFrame, name: str, shape: _Shape, jobs: _Jobs, kinds: Sequence[str] = _KINDS
) -> dict[str, list[_Figures]]:
    """Computes the statistics of a column, as a row for `ALL` and one for each name of each kind."""
    values = times[name].to_numpy() if times.schema[name].is_float() else next(numbers(times, name))
    going = ~times[shape.until].to_numpy()
    some_go = bool(going.any())
    of_all = statistics(values, going, shape.statistics)
    found = {ALL: [of_all]}
    for kind in kinds:
        of_kind = jobs.kinds[kind]
        found[kind] = [[NOTHING] * len(shape.statistics)] * len(of_kind.names)
        for place, part in of_kind.groups:
            rows = of_kind.groups.order[part]
            if len(rows) == len(values):  # For example, all jobs may have the same priority.
                found[kind][place] = of_all
                continue
            of_rows = going[rows] if some_go else going[: len(rows)]
            found[kind][place] = statistics(values[rows], of_rows, shape.statistics)
    return found


def _rows(figures: list[_Figures], shape: _Shape, place: int = 0, scope: str = ALL) -> list[Measurement]:
    return [
        Measurement(
            f"{shape.metric}.{name}",
            None if value is None else value / SECOND,
            *("s", "lower", scope),
            at_least=at_least,
        )
        for name, (value, at_least) in zip(shape.statistics, figures[place], strict=True)
    ]


def _slowdowns(jobs: _Jobs) -> Iterator[Measurement]:
    times = jobs.times("slowdown", "weight", "finished")
    found = _figures(times, "slowdown", _SLOWDOWN, jobs)
    yield from _factors(found[ALL][0], ALL)
    value = _weighted(times)
    going = value is not None and not times["finished"].all()
    yield Measurement("slowdown.weighted", value, "factor", "lower", at_least=going)
    for kind, (names, _) in jobs.kinds.items():
        for name, figures in zip(names, found[kind], strict=True):
            yield from _factors(figures, Scope(kind, str(name)).text)


def mean_slowdowns(run: Run, window: Window, groups: Ints, only: pl.Series | None = None) -> list[float]:
    """Computes the mean bounded slowdown of each group of jobs, like `slowdown.bounded.mean`.

    `groups` contains the index of each job's group, which gives the order of the means. `only` says for each
    job whether it counts. Groups without a job that counts are left out.
    """
    times = _Jobs(run, window, only).times("job", "slowdown")
    slowdown = times["slowdown"].to_numpy()
    of_groups = Groups(groups[times["job"].to_numpy()])
    parts = [of_groups.order[rows] for _, rows in of_groups]
    return [exact_sum(slowdown[part]) / len(part) for part in parts]


def _weighted(times: pl.DataFrame) -> float | None:
    weight, slowdown = times["weight"].to_numpy(), times["slowdown"].to_numpy()
    whole = exact_sum(weight)
    return exact_sum(weight * slowdown) / whole if whole else None


def _factors(figures: _Figures, scope: str) -> Iterator[Measurement]:
    for name, (value, at_least) in zip(_SLOWDOWN.statistics, figures, strict=True):
        metric = f"{_SLOWDOWN.metric}.{name}"
        yield Measurement(metric, value, "factor", "lower", scope, at_least=at_least)
