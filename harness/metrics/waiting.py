"""Waiting: from submission to first progress, all time without progress, completion time and slowdown.

Percentiles interpolate linearly between order statistics. Means are of exact sums, so that they do not depend
on the order in which a machine adds up. Where jobs have not started or finished, `harness.metrics.survival`
has the statistics of what they have not come to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from harness.arrays import NEVER, Bools, Floats, Groups, Ints, codes, distinct, numbers, quantile
from harness.metrics.arrivals import rejected, request_columns
from harness.metrics.exact import exact_sum, whole_sum
from harness.metrics.known import meanwhile
from harness.metrics.levels import queue_names
from harness.metrics.measurement import Measurement, Window
from harness.metrics.progress import progress
from harness.metrics.scopes import ALL, PRIORITY, QUEUE, Scope
from harness.metrics.survival import estimate
from harness.recording.schemas import RAN_BEFORE
from harness.runs.run import Run
from harness.units import HOUR, SECOND

SHORTEST = 10 * SECOND
"""Jobs shorter than this count as this long in a bounded slowdown."""


class _Shape(NamedTuple):
    """How a column of `job_times` is summed up.

    Attributes:
        metric: what it is called.
        statistics: which there are of it.
        so_far: the column with what jobs come to so far that have no value; "" where these are left out.
        least: what is possible at least.
    """

    metric: str
    statistics: tuple[str, ...]
    so_far: str = ""
    least: int = 0


_WAITS: Mapping[str, _Shape] = {
    "first_start": _Shape("wait.first_start", ("mean", "p50", "p90", "p95", "p99", "max"), "so_far"),
    "total": _Shape("wait.total", ("mean", "p50", "p90", "p95", "p99", "max")),
    "delay": _Shape("delay", ("mean", "p50", "p95"), "delay_so_far"),
}
_LATER: Mapping[str, _Shape] = {
    "completion": _Shape("jct", ("mean", "p50", "p95"), "so_far"),
    "admission": _Shape("wait.admission_to_start", ("mean", "p50", "p95", "max")),
}
_SLOWDOWN = _Shape("slowdown.bounded", ("mean", "p50", "p95", "p99"), "slowdown_so_far", 1)

_COLUMNS = (
    "job", "queue", "priority", "submit", "first_start", "total", "completion", "admission", "delay",
    "without_progress", "length", "weight", "slowdown", "so_far", "delay_so_far", "slowdown_so_far",
)  # fmt: skip
"""What `job_times` can tell."""

_KINDS = (QUEUE, PRIORITY)
"""What waits are told apart by: kinds of scopes, and columns of `job_times`."""

_Figures: TypeAlias = list[float | None]
"""The statistics of a shape, in order."""

_NEVER = "wait.never_started"
_MANY = 1 << 17  # rows


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """The waiting metrics over all jobs, and the waits for each queue and priority."""
    yield from measure_jobs(run, window)
    yield from _counts(run, window)


def measure_jobs(run: Run, window: Window, only: pl.Series | None = None) -> Iterator[Measurement]:
    """Those of the waiting metrics that are statistics of jobs' times.

    Args:
        run: the run.
        window: what is measured.
        only: whether each job of the run counts; all of them by default.
    """
    jobs = _Jobs(run, window, only)
    of_all, of_scopes = _waits(jobs)
    yield from of_all
    times = jobs.times(*_LATER)
    for name, shape in _LATER.items():
        yield from _rows(_figures(times[name], shape, jobs, kinds=())[ALL], shape)
    yield from of_scopes
    yield from _slowdowns(jobs)


class _Jobs:
    """The jobs that are summed up: those that arrived and were not refused.

    Args:
        run: the run.
        window: what is measured.
        only: whether each job of the run counts; None for all.
    """

    def __init__(self, run: Run, window: Window, only: pl.Series | None) -> None:
        self._run, self._window, self._every = run, window, only
        refused = rejected(run, window)
        self._refused = not refused.is_empty()
        self._only = only
        if self._refused:
            jobs = run.columns("jobs", "submit_time").height
            mask = pl.repeat(True, jobs, eager=True) if only is None else only.clone()
            self._only = mask.scatter(refused, False)

    def times(self, *columns: str) -> pl.DataFrame:
        """Columns of `job_times`, a row a job that counts."""
        return job_times(self._run, self._window, *columns, only=self._only)

    @cached_property
    def kinds(self) -> dict[str, _Kind]:
        """What waits are told apart by."""
        queues = queue_names(self._run).categories
        counted = self.times(*_KINDS)
        every = job_times(self._run, self._window, *_KINDS, only=self._every) if self._refused else counted
        (queue, priority), (of_queue, of_priority) = (
            (codes(times[QUEUE]), *numbers(times, PRIORITY)) for times in (every, counted)
        )
        there, priorities = distinct(queue), distinct(priority)
        return {
            QUEUE: _Kind([queues[code] for code in there.tolist()], Groups(there.searchsorted(of_queue))),
            PRIORITY: _Kind(priorities.tolist(), Groups(priorities.searchsorted(of_priority))),
        }


class _Kind(NamedTuple):
    """What jobs are told apart by.

    Attributes:
        names: what there is of it, in order, also where every job was refused.
        groups: the jobs that count by the number of what they belong to.
    """

    names: list[Any]
    groups: Groups


def job_times(run: Run, window: Window, *columns: str, only: pl.Series | None = None) -> pl.DataFrame:
    """One row a job that arrived within the window; what happened later counts as not having happened.

    Args:
        run: the run.
        window: what is measured.
        only: whether each job of the run counts; all of them by default.
        columns: which to answer, of: job, its row in `jobs.parquet`; queue (an enumeration, in the order of
            names), priority; submit, first_start, total, completion, delay (completion less the duration)
            and admission (from the first admission to first progress, which on nodes needs all pods of a
            gang bound) in microseconds; slowdown. Null where the job has not come that far: so_far (for
            first_start and completion), delay_so_far and slowdown_so_far are what it comes to at the end of
            the window, ended or not: a delay below 0 and a slowdown below 1 where it has not lasted its
            duration. Also without_progress, until it finished or the window ends; length, its duration or
            `SHORTEST`; and weight, the largest part of any capacity that its pods ask for, times its
            duration.
    """
    every = _short_times(run, window)
    if every is None:
        return _times(run, window, columns, only)
    times = pl.DataFrame([every[name] for name in columns])
    return times if only is None else times.filter(only.gather(every["job"]))


@meanwhile
def _short_times(run: Run, window: Window) -> pl.DataFrame | None:
    """All columns of `job_times`, of a run with few jobs that is asked much; else None."""
    if run.memory is None or run.info["outcome"]["jobs"] > _MANY:
        return None
    return _times(run, window, _COLUMNS, None)


def _times(run: Run, window: Window, columns: Sequence[str], only: pl.Series | None) -> pl.DataFrame:
    """What `job_times` answers, from the tables."""
    start, finish = (pl.when(pl.col(name) <= window.end).then(name) for name in ("start_time", "finish_time"))
    submit = pl.col("submit_time")
    completion, so_far = finish - submit, window.end - submit
    shortest = pl.max_horizontal("duration", pl.lit(SHORTEST))
    # What had run before the replay began took its time before it.
    duration = pl.col("duration")
    if RAN_BEFORE in run.micros("jobs").collect_schema():
        duration = duration - pl.col(RAN_BEFORE).fill_null(0)
    known = {
        "job": pl.col("job").cast(pl.Int32),
        "queue": pl.col("queue").cast(queue_names(run) if "queue" in columns else pl.String()),
        "priority": pl.col("priority"),
        "submit": submit,
        "first_start": start - submit,
        "total": completion - pl.col("progress"),
        "completion": completion,
        "admission": start - pl.col("admitted_time"),
        "delay": completion - duration,
        "without_progress": finish.fill_null(window.end) - submit - pl.col("progress"),
        "length": shortest,
        "weight": pl.max_horizontal(pl.lit(0.0), *_parts_of_capacity(run)) * pl.col("duration"),
        "slowdown": pl.when(completion.is_not_null()).then(
            pl.max_horizontal(completion / shortest, pl.lit(1.0))
        ),
        "so_far": so_far,
        "delay_so_far": so_far - duration,
        "slowdown_so_far": so_far / shortest,
    }
    wanted = [known[name].alias(name) for name in columns]
    roots = {root for each in wanted for root in each.meta.root_names()}
    read = sorted((roots - {"job", "progress"}) | {"submit_time", "duration"})
    progressed = progress(run, window) if "progress" in roots else None
    parts, offset = [], 0
    for batch in run.batches("jobs", read):
        rows = batch.with_row_index("job", offset)
        if progressed is not None:
            rows = rows.with_columns(progress=progressed.slice(offset, batch.height))
        if only is not None:
            rows = rows.filter(only.slice(offset, batch.height))
        offset += batch.height
        # Of some work of the manifests nobody knows how long it runs.
        parts.append(rows.filter((submit <= window.end) & pl.col("duration").is_not_null()).select(wanted))
    return pl.concat(parts)


def _parts_of_capacity(run: Run) -> list[pl.Expr]:
    """What a job asks for of each resource whose capacity is known, as a part of it."""
    amounts = {column.removeprefix("request."): pl.col(column) for column in request_columns(run)}
    return [
        amount / run.capacity[resource] for resource, amount in amounts.items() if run.capacity.get(resource)
    ]


def _waits(jobs: _Jobs) -> tuple[list[Measurement], list[Measurement]]:
    """The waits of all jobs, and of each queue and priority."""
    times = jobs.times(*_WAITS)
    found = [(shape, _figures(times[name], shape, jobs)) for name, shape in _WAITS.items()]
    of_all = [row for shape, figures in found for row in _rows(figures[ALL], shape)]
    never = times["first_start"].is_null().to_numpy()
    of_all.append(_never_started(never, ALL))
    of_scopes: list[Measurement] = []
    for kind, (names, groups) in jobs.kinds.items():
        scopes = [Scope(kind, str(name)).text for name in names]
        for place, scope in enumerate(scopes):
            for shape, figures in found:
                of_scopes += _rows(figures[kind], shape, place, scope)
        parts = {place: never[groups.order[rows]] for place, rows in groups}
        nobody = never[:0]
        of_scopes += [_never_started(parts.get(place, nobody), each) for place, each in enumerate(scopes)]
    return of_all, of_scopes


def _never_started(never: Bools, scope: str) -> Measurement:
    """The part of some jobs that did not start."""
    share = int(np.count_nonzero(never)) / len(never) if len(never) else None
    return Measurement(_NEVER, share, "ratio", "lower", scope)


def _figures(
    times: pl.Series, shape: _Shape, jobs: _Jobs, kinds: Sequence[str] = _KINDS
) -> dict[str, list[_Figures]]:
    """Every statistic of a column of `job_times`, null where no job has a value.

    Args:
        times: the column.
        shape: how it is summed up.
        jobs: the jobs that it is of.
        kinds: what they are told apart by.

    Returns:
        For `ALL` one row; for each kind a row for each of its names.
    """
    known = times.cast(pl.Float64 if times.dtype.is_float() else pl.Int64).fill_null(NEVER).to_numpy()
    so_far = None
    if shape.so_far and (known == NEVER).any():
        so_far = jobs.times(shape.so_far).to_series().to_numpy()
    of_all = _of_some(known, so_far, shape)
    found = {ALL: [of_all]}
    for kind in kinds:
        of_kind = jobs.kinds[kind]
        found[kind] = [[None] * len(shape.statistics)] * len(of_kind.names)
        for place, part in of_kind.groups:
            rows = of_kind.groups.order[part]
            if len(rows) == len(known):  # as where all have one priority
                found[kind][place] = of_all
            else:
                found[kind][place] = _of_some(known[rows], None if so_far is None else so_far[rows], shape)
    return found


def _of_some(known: Floats | Ints, so_far: Floats | Ints | None, shape: _Shape) -> _Figures:
    """The same of some jobs; `so_far` is None where those that have not come so far are left out."""
    ended = known != NEVER
    if so_far is None or ended.all():
        ranked = known.copy()
        ranked.sort()
        return _of_ranked(ranked, shape)
    return estimate(np.where(ended, known, so_far), ended, shape.statistics, least=shape.least)


def _of_ranked(values: Floats | Ints, shape: _Shape) -> _Figures:
    """The same of values in order, those that are missing first."""
    missing = int(values.searchsorted(NEVER, side="right"))
    known = values[missing:]
    if not len(known):
        return [None] * len(shape.statistics)
    found: _Figures = []
    for each in shape.statistics:
        if each == "mean":
            found.append(_sum(known) / len(known))
        elif each == "max":
            found.append(float(known[-1]))
        else:
            found.append(quantile(known, int(each[1:]) / 100))
    return found


def _sum(values: Floats | Ints) -> float:
    """A sum that is rounded once."""
    if values.dtype == np.int64:
        return float(whole_sum(values.astype(np.int64, copy=False)))
    return exact_sum(values.astype(np.float64, copy=False))


def _rows(figures: list[_Figures], shape: _Shape, place: int = 0, scope: str = ALL) -> list[Measurement]:
    """The measurements of one row of statistics."""
    values = [None if value is None else value / SECOND for value in figures[place]]
    return [
        Measurement(f"{shape.metric}.{name}", value, "s", "lower", scope)
        for name, value in zip(shape.statistics, values, strict=True)
    ]


def _slowdowns(jobs: _Jobs) -> Iterator[Measurement]:
    """The slowdowns of all jobs, of each queue and priority, and weighted by what jobs ask for."""
    times = jobs.times("slowdown", "weight")
    found = _figures(times["slowdown"], _SLOWDOWN, jobs)
    yield from _factors(found[ALL][0], ALL)
    yield Measurement("slowdown.weighted", _weighted(times), "factor", "lower")
    for kind, (names, _) in jobs.kinds.items():
        for name, figures in zip(names, found[kind], strict=True):
            yield from _factors(figures, Scope(kind, str(name)).text)


def mean_slowdowns(run: Run, window: Window, groups: Ints) -> list[float]:
    """The mean bounded slowdown of each group of jobs, of which those that are not over are censored, too.

    Args:
        run: the run.
        window: what is measured.
        groups: the number of the group of each job of the run.

    Returns:
        The means in the order of the groups, without those of which no job arrived that was not refused.
    """
    times = _Jobs(run, window, None).times("job", "slowdown", _SLOWDOWN.so_far)
    known, so_far = times["slowdown"].fill_null(NEVER).to_numpy(), times[_SLOWDOWN.so_far].to_numpy()
    of_groups = Groups(groups[times["job"].to_numpy()])
    mean = _SLOWDOWN._replace(statistics=("mean",))
    parts = [of_groups.order[rows] for _, rows in of_groups]
    means = [_of_some(known[part], so_far[part], mean)[0] for part in parts]
    return [each for each in means if each is not None]


def _weighted(times: pl.DataFrame) -> float | None:
    """The mean slowdown, weighted; None where nothing has a weight."""
    ended = times["slowdown"].is_not_null()
    weight, slowdown = (times[name].filter(ended).to_numpy() for name in ("weight", "slowdown"))
    whole = exact_sum(weight)
    return exact_sum(weight * slowdown) / whole if whole else None


def _factors(figures: _Figures, scope: str) -> Iterator[Measurement]:
    for name, value in zip(_SLOWDOWN.statistics, figures, strict=True):
        yield Measurement(f"{_SLOWDOWN.metric}.{name}", value, "factor", "lower", scope)


def _counts(run: Run, window: Window) -> Iterator[Measurement]:
    times = job_times(run, window, "job", "submit", "completion")
    job, submit, completion = numbers(times, "job", "submit", "completion")
    ended = completion != NEVER
    finished = int(np.count_nonzero(ended))
    # Pods of the manifests that were refused are none of these jobs.
    refused = int(np.count_nonzero(np.isin(job, rejected(run, window).to_numpy())))
    makespan = None
    if finished:
        makespan = int((submit + completion)[ended].max() - submit.min()) / SECOND
    hours = (window.end - window.start) / HOUR
    yield Measurement("makespan", makespan, "s", "lower")
    yield Measurement("jobs.finished", finished, "count", "higher")
    yield Measurement("jobs.unfinished", len(job) - finished - refused, "count", "lower")
    yield Measurement("jobs.rejected", refused, "count", "lower")
    if RAN_BEFORE in run.micros("jobs").collect_schema():
        there = run.columns("jobs", RAN_BEFORE)[RAN_BEFORE]
        yield Measurement("jobs.at_start", len(there) - there.null_count(), "count", "")
    yield Measurement("throughput", finished / hours if hours else None, "jobs/h", "higher")
