"""Waiting: from submission to first progress, all time without progress, completion time and slowdown.

Percentiles interpolate linearly between order statistics. Means are of exact sums, so that they do not depend
on the order in which a machine adds up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import polars as pl

from harness.metrics.arrivals import rejected, request_columns
from harness.metrics.exact import exact_sum
from harness.metrics.levels import queue_names
from harness.metrics.measurement import Measurement, Window
from harness.metrics.progress import progress
from harness.metrics.scopes import ALL, PRIORITY, QUEUE, Scope
from harness.runs.run import Run
from harness.units import HOUR, INT64_MAX, SECOND

SHORTEST = 10 * SECOND
"""Jobs shorter than this count as this long in a bounded slowdown."""


class _Shape(NamedTuple):
    """How a column of times is summed up."""

    metric: str
    statistics: tuple[str, ...]


_WAITS: Mapping[str, _Shape] = {
    "first_start": _Shape("wait.first_start", ("mean", "p50", "p90", "p95", "p99", "max")),
    "total": _Shape("wait.total", ("mean", "p50", "p90", "p95", "p99", "max")),
    "delay": _Shape("delay", ("mean", "p50", "p95")),
}
_LATER: Mapping[str, _Shape] = {
    "completion": _Shape("jct", ("mean", "p50", "p95")),
    "admission": _Shape("wait.admission_to_start", ("mean", "p50", "p95", "max")),
}

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
    of_all, of_scopes = _waits(run, window, only)
    yield from of_all
    for name, shape in _LATER.items():
        yield from _over_all(job_times(run, window, name, only=only)[name], shape)
    yield from of_scopes
    yield from _slowdowns(run, window, only)


def job_times(run: Run, window: Window, *columns: str, only: pl.Series | None = None) -> pl.DataFrame:
    """One row a job that arrived within the window; what happened later counts as not having happened.

    Args:
        run: the run.
        window: what is measured.
        only: whether each job of the run counts; all of them by default.
        columns: which to answer, of: job, its row in `jobs.parquet`; queue (an enumeration, in the order of
            names), priority; submit, first_start, total, completion, delay (completion less the duration)
            and admission (from the first admission to first progress, which on nodes needs all pods of a
            gang bound) in microseconds; slowdown. Null where the job has not come that far. Also
            without_progress, until it finished or the window ends; length, its duration or `SHORTEST`; and
            weight, the largest part of any capacity that its pods ask for, times its duration.
    """
    start, finish = (pl.when(pl.col(name) <= window.end).then(name) for name in ("start_time", "finish_time"))
    submit = pl.col("submit_time")
    completion = finish - submit
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


def _waits(run: Run, window: Window, only: pl.Series | None) -> tuple[list[Measurement], list[Measurement]]:
    """The waits of all jobs, and of each queue and priority."""
    jobs = job_times(run, window, "queue", "priority", *_WAITS, only=only)
    of_all = [row for name, shape in _WAITS.items() for row in _over_all(jobs[name], shape)]
    of_scopes: list[Measurement] = []
    for scope in (QUEUE, PRIORITY):
        of_columns = [_by(scope, jobs.select(scope, name), shape) for name, shape in _WAITS.items()]
        for rows in zip(*(_rows(frame, scope) for frame in of_columns), strict=True):
            of_scopes += chain.from_iterable(rows)
    return of_all, of_scopes


def _over_all(times: pl.Series, shape: _Shape) -> list[Measurement]:
    (row,) = _rows(_of_sorted(times, shape))
    return row


def _of_sorted(times: pl.Series, shape: _Shape) -> pl.DataFrame:
    """Every statistic of a column, which is sorted once so that none of them copies it again."""
    return times.sort().to_frame().select(_statistics(times, shape))


def _by(scope: str, times: pl.DataFrame, shape: _Shape) -> pl.DataFrame:
    """Every statistic of a column for each value of another; to group takes many times what few values take.

    Therefore values of very many rows are taken one by one.
    """
    key, column = times.get_columns()
    many = key.value_counts().filter(pl.col("count") > _MANY)[scope]
    found = [
        _of_sorted(column.filter(key == value), shape).insert_column(0, many.slice(place, 1))
        for place, value in enumerate(many)
    ]
    rest = times.filter(~key.is_in(many.implode())) if found else times
    found.append(rest.group_by(scope).agg(_statistics(column, shape)))
    return pl.concat(found).sort(scope)


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


def _slowdowns(run: Run, window: Window, only: pl.Series | None) -> Iterator[Measurement]:
    """The slowdowns of all jobs, of each queue and priority, and weighted by what jobs ask for."""
    jobs = job_times(run, window, QUEUE, PRIORITY, "slowdown", "weight", only=only)
    known = jobs.filter(pl.col("slowdown").is_not_null())
    yield from _slowdown(known["slowdown"], ALL)
    yield Measurement("slowdown.weighted", _weighted(known), "factor", "lower")
    for kind in (QUEUE, PRIORITY):
        of_kind = known.select(kind, "slowdown").partition_by(kind, as_dict=True, include_key=False)
        for value in jobs[kind].unique().sort():
            some = of_kind.get((value,), known.head(0))
            yield from _slowdown(some["slowdown"], Scope(kind, str(value)).text)


def _weighted(jobs: pl.DataFrame) -> float | None:
    """The mean slowdown, weighted; None where nothing has a weight."""
    whole = exact_sum(jobs["weight"])
    return exact_sum(jobs["weight"] * jobs["slowdown"]) / whole if whole else None


def _slowdown(slowdowns: pl.Series, scope: str) -> Iterator[Measurement]:
    mean = exact_sum(slowdowns) / len(slowdowns) if len(slowdowns) else None
    yield Measurement("slowdown.bounded.mean", mean, "factor", "lower", scope)
    for percent in (50, 95, 99):
        value = slowdowns.quantile(percent / 100, interpolation="linear")
        yield Measurement(f"slowdown.bounded.p{percent}", value, "factor", "lower", scope)


def _counts(run: Run, window: Window) -> Iterator[Measurement]:
    jobs = job_times(run, window, "submit", "completion")
    finished = jobs["completion"].count()
    refused = len(rejected(run, window))
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
