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
from harness.metrics.known import meanwhile
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

_COLUMNS = (
    "job", "queue", "priority", "submit", "first_start", "total", "completion", "admission", "delay",
    "without_progress", "length", "weight", "slowdown", "so_far", "delay_so_far", "slowdown_so_far",
)  # fmt: skip
"""What `job_times` can tell."""

_KINDS = (QUEUE, PRIORITY)
"""What waits are told apart by: kinds of scopes, and columns of `job_times`."""

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
        yield from _all_rows(_figures(jobs.times(name), shape, jobs)[ALL])
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
    every = _short_times(run, window)
    if every is None:
        return _times(run, window, columns, only)
    times = every.select(columns)
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
    times = jobs.times(*_KINDS, *_WAITS)
    found = [_figures(times.select(*_KINDS, name), shape, jobs) for name, shape in _WAITS.items()]
    of_all = list(chain.from_iterable(_all_rows(of_column[ALL]) for of_column in found))
    of_all.append(_never_started(times["first_start"], ALL))
    of_scopes: list[Measurement] = []
    for kind in _KINDS:
        every = jobs.every(kind, times)
        of_columns = [_rows(_in_order(of_column[kind], every), kind) for of_column in found]
        for rows in zip(*of_columns, strict=True):
            of_scopes += chain.from_iterable(rows)
        of_scopes += _never_started_by(kind, times.select(kind, "first_start"), every)
    return of_all, of_scopes


def _never_started(starts: pl.Series, scope: str) -> Measurement:
    """The part of some jobs that did not start."""
    share = starts.null_count() / len(starts) if len(starts) else None
    return Measurement(_NEVER, share, "ratio", "lower", scope)


def _never_started_by(kind: str, starts: pl.DataFrame, every: pl.Series) -> Iterator[Measurement]:
    """The same for each value of a column."""
    shares = starts.group_by(kind).agg(pl.col("first_start").null_count() / pl.len())
    for value, share in _in_order(shares, every).iter_rows():
        yield Measurement(_NEVER, share, "ratio", "lower", Scope(kind, str(value)).text)


def _figures(times: pl.DataFrame, shape: _Shape, jobs: _Jobs) -> dict[str, pl.DataFrame]:
    """Every statistic of a column, of all jobs and for each value of other columns.

    Args:
        times: these other columns, and at last the one that is summed up.
        shape: how it is.
        jobs: the jobs of the rows.

    Returns:
        For `ALL` one row; for each other column a row for each of its values, which stands first.
    """
    *kinds, name = times.columns
    column = times[name]
    if not (shape.least and column.null_count()):
        of_kinds = {kind: _by(times.select(kind, name), shape) for kind in kinds}
        return {ALL: _of_sorted(column, shape), **of_kinds}
    found = _of_survivors(times, shape, jobs)
    for kind in kinds:
        ended = times.select(kind, name).filter(~times[kind].is_in(found[kind][kind].implode()))
        if len(ended):
            found[kind] = pl.concat([found[kind], _by(ended, shape)])
    return found


def _of_survivors(times: pl.DataFrame, shape: _Shape, jobs: _Jobs) -> dict[str, pl.DataFrame]:
    """The same of the jobs that have not all come so far: of all, and for the values that such jobs have."""
    *kinds, name = times.columns
    known, least = times[name], jobs.times(shape.least).to_series()
    waiting = known.is_null()
    code = pl.lit(0, pl.Int32)
    keyed, values = [times.select(key=code, known=known, least=least)], {}
    coded = 1
    for kind in kinds:
        values[kind] = some = times[kind].filter(waiting).unique()
        codes = pl.int_range(coded, coded + len(some), dtype=pl.Int32, eager=True)
        key = times[kind].replace_strict(some, codes, default=None, return_dtype=pl.Int32)
        keyed.append(pl.DataFrame({"key": key, "known": known, "least": least}).drop_nulls("key"))
        coded += len(some)
    # One after the other where they are many, so as not to hold all of them several times.
    together = [pl.concat(keyed)] if len(times) <= _MANY else keyed
    found = pl.concat(survival(each, shape.statistics) for each in together)
    found = found.rename({each: f"{shape.metric}.{each}" for each in shape.statistics})
    figures, begin = {ALL: found.head(1).drop("key")}, 1
    for kind, some in values.items():
        rows = found.slice(begin, len(some))
        figures[kind] = rows.drop("key").insert_column(0, some)
        begin += len(some)
    return figures


def _of_sorted(times: pl.Series, shape: _Shape) -> pl.DataFrame:
    """Every statistic of a column, which is sorted once so that none of them copies it again."""
    return times.sort().to_frame().select(_statistics(times, shape))


def _by(times: pl.DataFrame, shape: _Shape) -> pl.DataFrame:
    """Every statistic of a column for each value of another; to group takes many times what few values take.

    Therefore values of very many rows are taken one by one.
    """
    key, column = times.get_columns()
    kind = key.name
    many = key.value_counts().filter(pl.col("count") > _MANY)[kind] if len(key) > _MANY else key.head(0)
    found = [
        _of_sorted(column.filter(key == value), shape).insert_column(0, many.slice(place, 1))
        for place, value in enumerate(many)
    ]
    rest = times.filter(~key.is_in(many.implode())) if len(many) else times
    found.append(rest.group_by(kind).agg(_statistics(column, shape)))
    return pl.concat(each.with_columns(pl.exclude(kind).cast(pl.Float64)) for each in found)


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


def _all_rows(frame: pl.DataFrame) -> list[Measurement]:
    """The measurements of a single row of statistics."""
    (row,) = _rows(frame)
    return row


def _rows(frame: pl.DataFrame, scope: str = "") -> Iterator[list[Measurement]]:
    """For each row of statistics its measurements."""
    # Divided as whole columns: polars rounds otherwise where there is a single value.
    for row in frame.with_columns(pl.exclude(scope or []) / SECOND).iter_rows(named=True):
        where = Scope(scope, str(row.pop(scope))).text if scope else ALL
        yield [Measurement(metric, value, "s", "lower", where) for metric, value in row.items()]


def _slowdowns(jobs: _Jobs) -> Iterator[Measurement]:
    """The slowdowns of all jobs, of each queue and priority, and weighted by what jobs ask for."""
    times = jobs.times(*_KINDS, "slowdown", "weight")
    found = _slowdowns_by(times.select(*_KINDS, "slowdown"), jobs)
    yield from _factors(found[ALL][None], ALL)
    yield Measurement("slowdown.weighted", _weighted(times.drop_nulls("slowdown")), "factor", "lower")
    nothing = _of_factors(times["slowdown"].head(0))
    for kind in _KINDS:
        for value in jobs.every(kind, times):
            yield from _factors(found[kind].get(value, nothing), Scope(kind, str(value)).text)


def _slowdowns_by(times: pl.DataFrame, jobs: _Jobs) -> dict[str, dict[Any, list[float | None]]]:
    """For `ALL`, and for each value of each of the columns before the last, the statistics of that one."""
    *kinds, name = times.columns
    found: dict[str, dict[Any, list[float | None]]] = {ALL: {}, **{kind: {} for kind in kinds}}
    if times[name].null_count():
        frames = _of_survivors(times, _SLOWDOWN, jobs)
        found[ALL][None] = list(frames.pop(ALL).row(0))
        for kind, frame in frames.items():
            found[kind] = {value: figures for value, *figures in frame.iter_rows()}
    else:
        found[ALL][None] = _of_factors(times[name])
    for kind in kinds:
        rest = times.select(kind, name).filter(~pl.col(kind).is_in(list(found[kind])))
        for (value,), some in rest.partition_by(kind, as_dict=True, include_key=False).items():
            found[kind][value] = _of_factors(some[name])
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
