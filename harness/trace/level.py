"""How much of a resource a trace asks for at each time, if every job started when it is submitted."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import polars as pl

from harness.trace.job_rows import job_rows
from harness.trace.schema import REQUEST
from harness.trace.trace import Trace

SUBMIT = "harness.submit"
"""Column of a job's submission, microseconds since the origin."""


@dataclass(frozen=True)
class Level:
    """A resource's offered load, a step function of time.

    Attributes:
        steps: `time` (microseconds since the origin, ascending) and the `level` from then on.
        first, last: the first and the last submission.
        work: resource-microseconds of all jobs.
    """

    steps: pl.DataFrame
    first: int
    last: int
    work: int

    @property
    def exact_mean(self) -> Fraction:
        """Resource-time of all jobs divided by the time between the first and the last submission."""
        return Fraction(self.work, max(self.last - self.first, 1))

    @property
    def mean(self) -> float:
        """The same as a number to be shown."""
        return float(self.exact_mean)

    @property
    def peak(self) -> int:
        """The most that is asked for at once; at one instant ends come before starts."""
        peak: Any = self.steps["level"].max()
        return max(0, int(peak or 0))

    def quantile(self, share: Fraction) -> int:
        """The level that is not exceeded for this share of the time from the first to the last submission."""
        before = pl.DataFrame({"time": [self.first], "level": [0]}, schema=self.steps.schema)
        steps = pl.concat([before, self.steps])
        time = steps["time"].clip(self.first, self.last)
        spans = steps.select("level", (time.shift(-1, fill_value=self.last) - time).alias("span")).filter(
            pl.col("span") > 0
        )
        if spans.is_empty():
            return self.peak
        spans = spans.group_by("level").agg(pl.col("span").sum()).sort("level")
        spans = spans.with_columns(pl.col("span").cum_sum())
        reached = spans.filter(
            pl.col("span") * share.denominator >= (self.last - self.first) * share.numerator
        )
        return int(reached["level"][0])


def timed_jobs(trace: Trace) -> pl.DataFrame:
    """One row a job as `job_rows` answers it, with `SUBMIT`, and `duration` in microseconds."""
    return job_rows(trace.frame).with_columns(
        (pl.col("submit_time").to_physical() - trace.origin).alias(SUBMIT), pl.col("duration").to_physical()
    )


def level_of(jobs: pl.DataFrame, resource: str) -> Level:
    """The offered load of a resource.

    Args:
        jobs: what `timed_jobs` answers.
        resource: one that jobs ask for.
    """
    steps = _steps(jobs, resource, pl.col(SUBMIT), pl.col(SUBMIT) + pl.col("duration"))
    work: Any = (pl.col(f"{REQUEST}{resource}").cast(pl.Int128) * pl.col("duration")).sum()
    first, last, total = jobs.select(
        pl.col(SUBMIT).min().alias("first"), pl.col(SUBMIT).max().alias("last"), work.alias("work")
    ).row(0)
    return Level(steps, first, last, int(total))


def recorded_peak(jobs: pl.DataFrame, resource: str) -> int | None:
    """The most of a resource that really ran at once; None where the trace does not say when jobs ran."""
    if not {"recorded_start", "recorded_end"} <= set(jobs.columns):
        return None
    start, end = (pl.col(name).to_physical() for name in ("recorded_start", "recorded_end"))
    peak: Any = _steps(jobs, resource, start, end)["level"].max()
    return None if peak is None else int(peak)


def _steps(jobs: pl.DataFrame, resource: str, start: pl.Expr, end: pl.Expr) -> pl.DataFrame:
    """`time` and the `level` from then on, of jobs that hold a resource from `start` to `end`."""
    runs = jobs.select(
        start.alias("start"), end.alias("end"), pl.col(f"{REQUEST}{resource}").alias("amount")
    ).filter(pl.col("end") > pl.col("start"))
    changes = pl.concat(  # all amounts together fit 64 bits, as `open_trace` has checked
        [
            runs.select(pl.col("start").alias("time"), "amount"),
            runs.select(pl.col("end").alias("time"), pl.col("amount") * -1),
        ]
    ).sort("time")
    last_of_instant = (pl.col("time") != pl.col("time").shift(-1)).fill_null(value=True)
    return changes.select("time", pl.col("amount").cum_sum().alias("level")).filter(last_of_instant)
