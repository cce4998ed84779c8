"""Waiting: from submission to first progress, all time without progress, completion time and slowdown.

Times are in seconds. Percentiles interpolate linearly between order statistics.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.metrics.measurement import Measurement, Window
from harness.run import Run
from harness.units import HOUR, SECOND

SHORTEST = 10 * SECOND
"""Jobs shorter than this count as this long in a bounded slowdown."""

_WAITS = ("mean", "p50", "p90", "p95", "p99", "max")


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """The waiting metrics over all jobs, and the waits for each queue and priority."""
    jobs = job_times(run, window)
    yield from _distribution(jobs, "first_start", "wait.first_start", "s", _WAITS)
    yield from _distribution(jobs, "total", "wait.total", "s", _WAITS)
    yield from _distribution(jobs, "slowdown", "slowdown.bounded", "factor", ("mean", "p50", "p95", "p99"))
    yield from _distribution(jobs, "completion", "jct", "s", ("mean", "p50", "p95"))
    for column in ("queue", "priority"):
        for (value,), part in jobs.sort(column, maintain_order=True).group_by(column, maintain_order=True):
            scope = f"{column}={value}"
            yield from _distribution(part, "first_start", "wait.first_start", "s", _WAITS, scope)
            yield from _distribution(part, "total", "wait.total", "s", _WAITS, scope)
    yield from _counts(jobs, window)


def job_times(run: Run, window: Window) -> pl.DataFrame:
    """One row a job that arrived within the window; what happened to it later counts as not having happened.

    Columns: queue, priority, state, submit, finish (microseconds), first_start, total, completion (seconds)
    and slowdown; null where the job has not come that far.
    """
    jobs = (
        run.micros("jobs")
        .with_row_index("job")
        .filter(pl.col("submit_time") <= window.end)
        .select(
            pl.col("job").cast(pl.Int32),
            "queue",
            "priority",
            "duration",
            "state",
            submit=pl.col("submit_time"),
            start=_within(pl.col("start_time"), window),
            finish=_within(pl.col("finish_time"), window),
        )
        .join(_progress(run, window), on="job", how="left", maintain_order="left")
        .collect()
    )
    completion = pl.col("finish") - pl.col("submit")
    return jobs.with_columns(
        first_start=(pl.col("start") - pl.col("submit")) / SECOND,
        total=(completion - pl.col("progress").fill_null(0)) / SECOND,
        completion=completion / SECOND,
        slowdown=pl.max_horizontal(completion / pl.max_horizontal("duration", pl.lit(SHORTEST)), pl.lit(1.0)),
    )


def _progress(run: Run, window: Window) -> pl.LazyFrame:
    """For each job, how long it progressed: pods that do so side by side count once."""
    spans = (
        run.micros("stints")
        .filter((pl.col("state") == "progress") & (pl.col("start") < window.end))
        .select("job", "start", end=pl.min_horizontal("end", pl.lit(window.end)))
        .collect()
    )
    again = spans["job"].is_duplicated()
    once = spans.filter(~again).select("job", progress=pl.col("end") - pl.col("start"))
    before = pl.col("end").cum_max().shift(1).over("job")
    several = (
        spans.filter(again)
        .sort("job", "start")
        .with_columns(start=pl.max_horizontal("start", before))
        .group_by("job")
        .agg(progress=(pl.col("end") - pl.col("start")).clip(0).sum())
    )
    return pl.concat([once, several]).lazy()


def _within(time: pl.Expr, window: Window) -> pl.Expr:
    return pl.when(time <= window.end).then(time)


def _distribution(
    jobs: pl.DataFrame, column: str, name: str, unit: str, what: tuple[str, ...], scope: str = "all"
) -> Iterator[Measurement]:
    values = jobs[column].drop_nulls()
    for each in what:
        value: float | None = None
        if len(values):
            if each == "mean":
                value = values.mean()  # type: ignore[assignment]
            elif each == "max":
                value = values.max()  # type: ignore[assignment]
            else:
                value = values.quantile(int(each[1:]) / 100, interpolation="linear")
        yield Measurement(f"{name}.{each}", value, unit, "lower", scope)


def _counts(jobs: pl.DataFrame, window: Window) -> Iterator[Measurement]:
    finished = jobs["finish"].drop_nulls()
    rejected = int((jobs["state"] == "rejected").sum())
    makespan = None
    if len(finished):
        makespan = jobs.select(pl.col("finish").max() - pl.col("submit").min()).item() / SECOND
    hours = (window.end - window.start) / HOUR
    yield Measurement("makespan", makespan, "s", "lower")
    yield Measurement("jobs.finished", len(finished), "count", "higher")
    yield Measurement("jobs.unfinished", jobs.height - len(finished) - rejected, "count", "lower")
    yield Measurement("jobs.rejected", rejected, "count", "lower")
    yield Measurement("throughput", len(finished) / hours if hours else None, "jobs/h", "higher")
