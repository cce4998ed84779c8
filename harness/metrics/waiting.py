"""Waiting: from submission to first progress, all time without progress, completion time and slowdown.

Percentiles interpolate linearly between order statistics. Means are of exact sums, so that they do not depend
on the order in which a machine adds up. Where jobs have not started or finished, `harness.metrics.survival`
has the statistics of what they have not come to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import polars as pl

from harness.metrics.arrivals import rejected, request_columns
from harness.metrics.exact import exact_sum
from harness.metrics.levels import queue_names
from harness.metrics.measurement import Measurement, Window
from harness.metrics.progress import progress
from harness.metrics.scopes import ALL, PRIORITY, QUEUE, Scope
from harness.metrics.survival import survival
from harness.runs.run import Run
from harness.units import HOUR, INT64_MAX, SECOND

SHORTEST = 10 * SECOND
"""Jobs shorter than this count as this long in a bounded slowdown."""


class _Shape(NamedTuple):
    """How a column of `job_times` is summed up.

    Attributes:
        metric: what it is called.
        statistics: which there are of it.
        least: the column with what jobs have at least that have no value; "" where these are left out.
    """

    metric: str
    statistics: tuple[str, ...]
    least: str = ""


_WAITS: Mapping[str, _Shape] = {
    "first_start": _Shape("wait.first_start", ("mean", "p50", "p90", "p95", "p99", "max"), "so_far"),
    "total": _Shape("wait.total", ("mean", "p50", "p90", "p95", "p99", "max")),
    "delay": _Shape("delay", ("mean", "p50", "p95"), "delay_so_far"),
}
_LATER: Mapping[str, _Shape] = {
    "completion": _Shape("jct", ("mean", "p50", "p95"), "so_far"),
    "admission": _Shape("wait.admission_to_start", ("mean", "p50", "p95", "max")),
}
_SLOWDOWN = _Shape("slowdown.bounded", ("mean", "p50", "p95", "p99"), "slowdown_so_far")

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
    for name, shape in _LATER.items():
        yield from _over_all(jobs.times(name).to_series(), shape, jobs)
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
            jobs = int(run.scan("jobs").select(pl.len()).collect().item())
            mask = pl.repeat(True, jobs, eager=True) if only is None else only.clone()
            self._only = mask.scatter(refused, False)

    def times(self, *columns: str) -> pl.DataFrame:
        """Columns of `job_times`, a row a job that counts."""
        return job_times(self._run, self._window, *columns, only=self._only)

    def every(self, kind: str, times: pl.DataFrame) -> pl.Series:
        """All values of a column in order, also those of which every job was refused.

        Args:
            kind: the column.
            times: it, of the jobs that count.
        """
        if self._refused:
            times = job_times(self._run, self._window, kind, only=self._every)
        return times[kind].unique().sort()


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
            the window, ended or not. Also without_progress, until it finished or the window ends; length, its
            duration or `SHORTEST`; and weight, the largest part of any capacity that its pods ask for, times
            its duration.
    """
    start, finish = (pl.when(pl.col(name) <= window.end).then(name) for name in ("start_time", "finish_time"))
    submit = pl.col("submit_time")
    completion, so_far = finish - submit, window.end - submit
    shortest = pl.max_horizontal("duration", pl.lit(SHORTEST))
    known = {
        "job": pl.col("job").cast(pl.Int32),
        "queue": pl.col("queue").cast(queue_names(run) if "queue" in columns else pl.String()),
        "priority": pl.col("priority"),
        "submit": submit,
        "first_start": start - submit,
        "total": completion - pl.col("progress"),
        "completion": completion,
        "admission": start - pl.col("admitted_time"),
        "delay": completion - pl.col("duration"),
        "without_progress": finish.fill_null(window.end) - submit - pl.col("progress"),
        "length": shortest,
        "weight": pl.max_horizontal(pl.lit(0.0), *_parts_of_capacity(run)) * pl.col("duration"),
        "slowdown": pl.when(completion.is_not_null()).then(
            pl.max_horizontal(completion / shortest, pl.lit(1.0))
        ),
        "so_far": so_far,
        "delay_so_far": so_far - pl.col("duration"),
        "slowdown_so_far": pl.max_horizontal(so_far / shortest, pl.lit(1.0)),
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
        # Pods of the manifests that ran before waited for nothing, and nobody knows how long they run.
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
    times = jobs.times(QUEUE, PRIORITY, *_WAITS)
    of_all = [row for name, shape in _WAITS.items() for row in _over_all(times[name], shape, jobs)]
    of_all.append(_never_started(times["first_start"], ALL))
    of_scopes: list[Measurement] = []
    for kind in (QUEUE, PRIORITY):
        of_columns = [_by(kind, times.select(kind, name), shape, jobs) for name, shape in _WAITS.items()]
        for rows in zip(*(_rows(frame, kind) for frame in of_columns), strict=True):
            of_scopes += chain.from_iterable(rows)
        of_scopes += _never_started_by(kind, times.select(kind, "first_start"), jobs)
    return of_all, of_scopes


def _never_started(starts: pl.Series, scope: str) -> Measurement:
    """The part of some jobs that did not start."""
    share = starts.null_count() / len(starts) if len(starts) else None
    return Measurement(_NEVER, share, "ratio", "lower", scope)


def _never_started_by(kind: str, starts: pl.DataFrame, jobs: _Jobs) -> Iterator[Measurement]:
    """The same for each value of a column."""
    shares = starts.group_by(kind).agg(pl.col("first_start").null_count() / pl.len())
    for value, share in _in_order(shares, jobs.every(kind, starts)).iter_rows():
        yield Measurement(_NEVER, share, "ratio", "lower", Scope(kind, str(value)).text)


def _over_all(times: pl.Series, shape: _Shape, jobs: _Jobs) -> list[Measurement]:
    if shape.least and times.null_count():
        every = times.to_frame().select(pl.lit(0).alias("key"), times.name)
        frame = _of_survivors("key", every, shape, jobs).drop("key")
    else:
        frame = _of_sorted(times, shape)
    (row,) = _rows(frame)
    return row


def _of_survivors(kind: str, times: pl.DataFrame, shape: _Shape, jobs: _Jobs) -> pl.DataFrame:
    """Every statistic of a column, for the values of another of which not all jobs have come so far."""
    key, known = times.columns
    frame = times.select(pl.col(key).alias("key"), pl.col(known).alias("known"))
    frame = frame.with_columns(jobs.times(shape.least).to_series().alias("least"))
    waiting = frame.filter(pl.col("known").is_null())["key"].unique()
    found = survival(frame.filter(pl.col("key").is_in(waiting.implode())), shape.statistics)
    names = {name: f"{shape.metric}.{name}" for name in shape.statistics}
    return found.rename({**names, "key": kind})


def _of_sorted(times: pl.Series, shape: _Shape) -> pl.DataFrame:
    """Every statistic of a column, which is sorted once so that none of them copies it again."""
    return times.sort().to_frame().select(_statistics(times, shape))


def _by(kind: str, times: pl.DataFrame, shape: _Shape, jobs: _Jobs) -> pl.DataFrame:
    """Every statistic of a column for each value of another; to group takes many times what few values take.

    Therefore values of very many rows are taken one by one.
    """
    key, column = times.get_columns()
    found = []
    rest = times
    if shape.least and column.null_count():
        found.append(_of_survivors(kind, times, shape, jobs))
        rest = times.filter(~key.is_in(found[0][kind].implode()))
        key, column = rest.get_columns()
    many = key.value_counts().filter(pl.col("count") > _MANY)[kind]
    found += [
        _of_sorted(column.filter(key == value), shape).insert_column(0, many.slice(place, 1))
        for place, value in enumerate(many)
    ]
    rest = rest.filter(~key.is_in(many.implode())) if len(many) else rest
    found.append(rest.group_by(kind).agg(_statistics(column, shape)))
    floats = [each.with_columns(pl.exclude(kind).cast(pl.Float64)) for each in found]
    return _in_order(pl.concat(floats), jobs.every(kind, times))


def _in_order(found: pl.DataFrame, every: pl.Series) -> pl.DataFrame:
    """A row for each value of the first column; of nulls where nothing was found."""
    return every.to_frame().join(found, on=every.name, how="left", maintain_order="left")


def _statistics(times: pl.Series, shape: _Shape) -> list[pl.Expr]:
    """Every statistic of a column in microseconds, null where no job has a value."""
    found = []
    column = pl.col(times.name)
    most: Any = times.max()
    # Twice as many bits take twice the memory, and only few sums of times need them.
    wide = int(most or 0) * len(times) > INT64_MAX
    for each in shape.statistics:
        if each == "mean":
            whole = column.cast(pl.Int128) if wide else column
            value = whole.sum().cast(pl.Float64) / column.count()
        elif each == "max":
            value = column.max()
        else:
            value = column.quantile(int(each[1:]) / 100, interpolation="linear")
        known = pl.when(column.count() > 0).then(value)
        found.append(known.alias(f"{shape.metric}.{each}"))
    return found


def _rows(frame: pl.DataFrame, scope: str = "") -> Iterator[list[Measurement]]:
    """For each row of statistics its measurements."""
    # Divided as whole columns: polars rounds otherwise where there is a single value.
    for row in frame.with_columns(pl.exclude(scope or []) / SECOND).iter_rows(named=True):
        where = Scope(scope, str(row.pop(scope))).text if scope else ALL
        yield [Measurement(metric, value, "s", "lower", where) for metric, value in row.items()]


def _slowdowns(jobs: _Jobs) -> Iterator[Measurement]:
    """The slowdowns of all jobs, of each queue and priority, and weighted by what jobs ask for."""
    times = jobs.times(QUEUE, PRIORITY, "slowdown", "weight").with_columns(all=pl.lit(0))
    ((_, of_all),) = _slowdowns_by("all", times, jobs) or [(0, _of_factors(times["slowdown"]))]
    yield from _factors(of_all, ALL)
    yield Measurement("slowdown.weighted", _weighted(times.drop_nulls("slowdown")), "factor", "lower")
    for kind in (QUEUE, PRIORITY):
        of_kind = dict(_slowdowns_by(kind, times, jobs))
        for value in jobs.every(kind, times):
            none = times["slowdown"].head(0)
            yield from _factors(of_kind.get(value) or _of_factors(none), Scope(kind, str(value)).text)


def _slowdowns_by(kind: str, times: pl.DataFrame, jobs: _Jobs) -> list[tuple[Any, list[float | None]]]:
    """For each value of a column the statistics of the slowdown."""
    times, found = times.select(kind, "slowdown"), []
    if times["slowdown"].null_count():
        for value, *figures in _of_survivors(kind, times, _SLOWDOWN, jobs).iter_rows():
            found.append((value, figures))
        times = times.filter(~pl.col(kind).is_in([value for value, _ in found]))
    for (value,), some in times.partition_by(kind, as_dict=True, include_key=False).items():
        found.append((value, _of_factors(some["slowdown"])))
    return found


def _weighted(jobs: pl.DataFrame) -> float | None:
    """The mean slowdown, weighted; None where nothing has a weight."""
    whole = exact_sum(jobs["weight"])
    return exact_sum(jobs["weight"] * jobs["slowdown"]) / whole if whole else None


def _of_factors(values: pl.Series) -> list[float | None]:
    """The statistics of a column without nulls, as `_SLOWDOWN` names them; nulls of an empty one."""
    mean = exact_sum(values) / len(values) if len(values) else None
    percents = [int(name[1:]) for name in _SLOWDOWN.statistics[1:]]
    return [mean, *(values.quantile(each / 100, interpolation="linear") for each in percents)]


def _factors(figures: Sequence[float | None], scope: str) -> Iterator[Measurement]:
    for name, value in zip(_SLOWDOWN.statistics, figures, strict=True):
        yield Measurement(f"{_SLOWDOWN.metric}.{name}", value, "factor", "lower", scope)


def _counts(run: Run, window: Window) -> Iterator[Measurement]:
    jobs = job_times(run, window, "job", "submit", "completion")
    finished = jobs["completion"].count()
    # Pods of the manifests that were refused are none of these jobs.
    refused = jobs.filter(pl.col("job").is_in(rejected(run, window).implode())).height
    makespan = None
    if finished:
        last = (pl.col("submit") + pl.col("completion")).max()
        makespan = jobs.select(last - pl.col("submit").min()).item() / SECOND
    hours = (window.end - window.start) / HOUR
    yield Measurement("makespan", makespan, "s", "lower")
    yield Measurement("jobs.finished", finished, "count", "higher")
    yield Measurement("jobs.unfinished", jobs.height - finished - refused, "count", "lower")
    yield Measurement("jobs.rejected", refused, "count", "lower")
    yield Measurement("throughput", finished / hours if hours else None, "jobs/h", "higher")
