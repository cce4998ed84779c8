"""Waiting: from submission to first progress, all time without progress, completion time and slowdown.

Percentiles interpolate linearly between order statistics. Means are of exact sums, so that they do not depend
on the order in which a machine adds up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import fsum
from typing import NamedTuple

import polars as pl

from harness.metrics.measurement import Measurement, Window
from harness.run import Run
from harness.units import HOUR, SECOND

SHORTEST = 10 * SECOND
"""Jobs shorter than this count as this long in a bounded slowdown."""


class _Shape(NamedTuple):
    """How a column of times is summed up."""

    metric: str
    statistics: tuple[str, ...]


_WAITS: Mapping[str, _Shape] = {
    "first_start": _Shape("wait.first_start", ("mean", "p50", "p90", "p95", "p99", "max")),
    "total": _Shape("wait.total", ("mean", "p50", "p90", "p95", "p99", "max")),
}
_TIMES: Mapping[str, _Shape] = {
    **_WAITS,
    "completion": _Shape("jct", ("mean", "p50", "p95")),
    "admission": _Shape("wait.admission_to_start", ("mean", "p50", "p95", "max")),
}


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """The waiting metrics over all jobs, and the waits for each queue and priority."""
    jobs = job_times(run, window)
    yield from _rows(jobs.select(_statistics(_TIMES)), _TIMES)
    for column in ("queue", "priority"):
        by = jobs.select(column, *_WAITS).group_by(column).agg(_statistics(_WAITS)).sort(column)
        yield from _rows(by, _WAITS, column)
    yield from _slowdown(jobs["slowdown"].drop_nulls())
    yield from _counts(run, jobs, window)


def job_times(run: Run, window: Window) -> pl.DataFrame:
    """One row a job that arrived within the window; what happened later counts as not having happened.

    Columns: job, its row in `jobs.parquet`; queue, priority; submit, finish, first_start, total,
    completion and admission (from the first admission to first progress, which on nodes needs all pods of a
    gang bound) in microseconds; slowdown; null where the job has not come that far.
    """
    jobs = (
        run.micros("jobs")
        .with_row_index("job")
        # Pods of the manifests that ran before have waited for nothing, and nobody knows how long they run.
        .filter((pl.col("submit_time") <= window.end) & pl.col("duration").is_not_null())
        .select(
            pl.col("job").cast(pl.Int32),
            "queue",
            "priority",
            "duration",
            submit=pl.col("submit_time"),
            admitted=pl.col("admitted_time"),
            start=_within(pl.col("start_time"), window),
            finish=_within(pl.col("finish_time"), window),
        )
        .join(_progress(run, window), on="job", how="left", maintain_order="left")
        .collect()
    )
    completion = pl.col("finish") - pl.col("submit")
    return jobs.select(
        "job",
        "queue",
        "priority",
        "submit",
        "finish",
        first_start=pl.col("start") - pl.col("submit"),
        total=completion - pl.col("progress").fill_null(0),
        completion=completion,
        admission=pl.col("start") - pl.col("admitted"),
        slowdown=pl.when(completion.is_not_null()).then(
            pl.max_horizontal(completion / pl.max_horizontal("duration", pl.lit(SHORTEST)), pl.lit(1.0))
        ),
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


def _statistics(columns: Mapping[str, _Shape]) -> list[pl.Expr]:
    """Every statistic of every column in seconds, null where no job has a value."""
    found = []
    for name, shape in columns.items():
        column = pl.col(name)
        for each in shape.statistics:
            if each == "mean":
                value = column.cast(pl.Int128).sum().cast(pl.Float64) / column.count()
            elif each == "max":
                value = column.max()
            else:
                value = column.quantile(int(each[1:]) / 100, interpolation="linear")
            known = pl.when(column.count() > 0).then(value / SECOND)
            found.append(known.alias(f"{shape.metric}.{each}"))
    return found


def _rows(frame: pl.DataFrame, columns: Mapping[str, _Shape], scope: str = "") -> Iterator[Measurement]:
    metrics = [f"{shape.metric}.{each}" for shape in columns.values() for each in shape.statistics]
    for row in frame.iter_rows(named=True):
        where = f"{scope}={row[scope]}" if scope else "all"
        for metric in metrics:
            yield Measurement(metric, row[metric], "s", "lower", where)


def _slowdown(slowdowns: pl.Series) -> Iterator[Measurement]:
    mean = fsum(slowdowns.to_list()) / len(slowdowns) if len(slowdowns) else None
    yield Measurement("slowdown.bounded.mean", mean, "factor", "lower")
    for percent in (50, 95, 99):
        value = slowdowns.quantile(percent / 100, interpolation="linear")
        yield Measurement(f"slowdown.bounded.p{percent}", value, "factor", "lower")


def _counts(run: Run, jobs: pl.DataFrame, window: Window) -> Iterator[Measurement]:
    finished = jobs["finish"].drop_nulls()
    rejections = run.micros("decisions").filter(
        (pl.col("action") == "reject") & (pl.col("time") <= window.end)
    )
    rejected = int(rejections.select(pl.len()).collect().item())
    makespan = None
    if len(finished):
        makespan = jobs.select(pl.col("finish").max() - pl.col("submit").min()).item() / SECOND
    hours = (window.end - window.start) / HOUR
    yield Measurement("makespan", makespan, "s", "lower")
    yield Measurement("jobs.finished", len(finished), "count", "higher")
    yield Measurement("jobs.unfinished", jobs.height - len(finished) - rejected, "count", "lower")
    yield Measurement("jobs.rejected", rejected, "count", "lower")
    yield Measurement("throughput", len(finished) / hours if hours else None, "jobs/h", "higher")
