"""Summarizes a trace in numbers, such as its span, tenants, sizes, durations, and offered load."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import polars as pl

from harness.base.units import SECOND
from harness.trace.demand import traced_capacity
from harness.trace.job_rows import ROW, ROWS
from harness.trace.level import SUBMIT, held_at_once, level_of, timed_jobs
from harness.trace.recorded import runs_of
from harness.trace.schema import COLUMNS, LIMIT, REQUEST, resources_of
from harness.trace.sums import exact_sum
from harness.trace.trace import Trace

_P95 = Fraction(95, 100)
_WAIT = "harness.wait"
_PIECE = 1 << 20  # rows


@dataclass(frozen=True, slots=True)
class Spread:
    """Statistics of several values: their number, mean, percentiles and maximum."""

    count: int
    mean: float
    p50: int
    p90: int
    p99: int
    max: int


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """The demand of jobs for one resource.

    Attributes:
        job: the distribution of the jobs' requests, each summed over all pods, among jobs that request the
            resource.
        mean: the resource-time of all jobs divided by the time between the first and the last submission. If
            all jobs are submitted at the same time, it is the sum of their requests.
        p95: the level of demand that is not exceeded for 95 % of the time between the first and the last
            submission, if every job starts when it is submitted.
        peak: the highest level of that demand.
        recorded_peak: the peak usage in the record, or None if unknown.
        capacity: the traced machine's capacity, or None if the trace does not contain it.
    """

    job: Spread
    mean: float
    p95: int
    peak: int
    recorded_peak: int | None = None
    capacity: int | None = None


@dataclass(frozen=True, slots=True)
class Tenant:
    """A queue.

    Attributes:
        queue: the name of the queue. If queues of several namespaces have the same name, it is
            `<namespace>/<queue>`.
        resource_seconds: the resource-time for each resource, in the resource's unit multiplied by seconds.
        recorded_wait: the median recorded wait of the jobs, in microseconds, or None if unknown.
    """

    queue: str
    jobs: int
    resource_seconds: dict[str, float]
    recorded_wait: int | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A trace in numbers. Quantities are in the schema's units, and times are in microseconds.

    Attributes:
        first, last: the times of the first and the last submission, as text.
        span: the time between the first and the last submission.
        gangs: the number of jobs that make progress only with all their pods.
        gang_sizes: the number of gangs for each number of pods.
        recorded_wait: the recorded waits of jobs before they started, or None if unknown.
        priorities: the number of jobs for each priority or class. It is empty if the trace has neither.
        missing: the columns of the schema that are absent or have nulls, with the number of rows.
    """

    jobs: int
    rows: int
    first: str
    last: str
    span: int
    durations: Spread
    pods: Spread
    gangs: int
    gang_sizes: dict[int, int]
    recorded_wait: Spread | None
    resources: dict[str, ResourceUse]
    tenants: tuple[Tenant, ...]
    priorities: dict[str, int]
    missing: dict[str, int]


def summarize(trace: Trace) -> Summary:
    """Computes the numbers of a trace."""
    jobs = timed_jobs(trace).drop("job_id", ROW, ROWS)
    known = "recorded_start" in jobs.columns and jobs["recorded_start"].count() > 0
    if known:
        start = pl.col("recorded_start").to_physical() - trace.origin
        jobs = jobs.with_columns((start - pl.col(SUBMIT)).alias(_WAIT))
    submit = jobs[SUBMIT]
    first, last = _first_and_last(trace.frame["submit_time"])
    span = _whole(submit.max()) - _whole(submit.min())
    gang = jobs["pods"] > 1
    if "gang" in jobs.columns:
        gang = jobs["gang"].fill_null(gang) & gang
    resources, runs = resources_of(jobs.columns), runs_of(trace, jobs)
    return Summary(
        jobs=jobs.height,
        rows=trace.frame.height,
        first=first,
        last=last,
        span=span,
        durations=_spread(jobs["duration"]),
        pods=_spread(jobs["pods"]),
        gangs=int(gang.sum()),
        gang_sizes=dict(jobs["pods"].filter(gang).value_counts().sort("pods").iter_rows()),
        recorded_wait=_spread(jobs[_WAIT].drop_nulls()) if known else None,
        resources={name: _use(jobs, runs, name, traced_capacity(trace, name)) for name in resources},
        tenants=_tenants(jobs, resources, waits=known),
        priorities=_priorities(jobs),
        missing=_missing(trace.frame),
    )


def _first_and_last(submit: pl.Series) -> tuple[str, str]:
    ends = pl.Series([submit.min(), submit.max()], dtype=submit.dtype)
    if submit.dtype == pl.Datetime:
        texts = ends.dt.to_string("%Y-%m-%d %H:%M:%S" + (" %Z" if ends.dtype.time_zone else ""))  # type: ignore[attr-defined]
    else:
        texts = pl.Series([f"{_seconds(time)} s" for time in ends.to_physical()])
    return texts[0], texts[1]


def _seconds(time: int) -> str:
    whole, rest = divmod(time, SECOND)
    digits = f"{rest:06}".rstrip("0") or "0"
    return f"{whole}.{digits}"


def _spread(values: pl.Series) -> Spread:
    if not len(values):
        return Spread(0, 0.0, 0, 0, 0, 0)
    p50, p90, p99 = (_whole(values.quantile(share, "nearest")) for share in (0.5, 0.9, 0.99))
    return Spread(len(values), exact_sum(values) / len(values), p50, p90, p99, _whole(values.max()))


def _use(jobs: pl.DataFrame, runs: pl.DataFrame, resource: str, capacity: int | None) -> ResourceUse:
    amount = jobs[f"{REQUEST}{resource}"]
    asks = amount > 0
    level = level_of(jobs, resource)
    asked, ran = _spread(amount if asks.all() else amount.filter(asks)), held_at_once(runs, resource)
    return ResourceUse(asked, level.mean, level.quantile(_P95), level.peak, ran, capacity)


def _tenants(jobs: pl.DataFrame, resources: list[str], *, waits: bool) -> tuple[Tenant, ...]:
    duration = pl.col("duration").cast(pl.Float64)
    whose = ["namespace", "queue"]
    pieces = [
        rows.group_by(whose).agg(
            pl.len().alias("jobs"),
            *(
                (pl.col(f"{REQUEST}{name}").cast(pl.Float64) * duration / SECOND).sum().alias(name)
                for name in resources
            ),
        )
        for rows in jobs.iter_slices(_PIECE)
    ]
    table = pl.concat(pieces).group_by(whose, maintain_order=True).agg(pl.all().sum())
    if waits:
        wait = pl.col(_WAIT).quantile(0.5, "nearest").cast(pl.Int64)
        table = table.join(jobs.group_by(whose).agg(wait), on=whose)
    else:
        table = table.with_columns(pl.lit(None, pl.Int64).alias(_WAIT))
    queue = pl.col("queue").cast(pl.String)
    apart = pl.concat_str("namespace", "queue", separator="/")
    table = (
        table.with_columns(queue=pl.when(queue.is_duplicated()).then(apart).otherwise(queue))
        .drop("namespace")
        .sort(["jobs", "queue"], descending=[True, False])
    )
    return tuple(
        Tenant(queue, count, dict(zip(resources, work, strict=True)), wait)
        for queue, count, *work, wait in table.iter_rows()
    )


def _priorities(jobs: pl.DataFrame) -> dict[str, int]:
    for name in ("priority", "priority_class"):
        if name in jobs.columns:
            counts = jobs[name].value_counts(name="jobs").sort(name, descending=True, nulls_last=True)
            return {
                "none stated" if value is None else str(value): count for value, count in counts.iter_rows()
            }
    return {}


def _missing(frame: pl.DataFrame) -> dict[str, int]:
    missing: dict[str, int] = {}
    for column in COLUMNS:
        if column.name in (REQUEST, LIMIT):
            names = [name for name in frame.columns if name.startswith(column.name)]
        else:
            names = [column.name]
        for name in names:
            count = frame[name].null_count() if name in frame.columns else frame.height
            if count:
                missing[name] = count
    return missing


def _whole(value: Any) -> int:
    return int(value)
