"""Prepares the columns from which the jobs of a trace are created, for one cluster and some settings.

The columns never change, so all replays of a trace with the same settings can share them. They don't keep the
trace or the cluster in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias, final

import polars as pl

from harness.base.arrays import places
from harness.base.errors import Fault, OptionError, TraceError
from harness.base.options import factor_text
from harness.base.tables import schemas
from harness.base.tables.parquet import TIMES
from harness.base.tables.pod_set_texts import Part, text_of
from harness.base.units import INT64_MAX, LONGEST, SECOND, format_duration
from harness.cluster.changes.edits import by_arrival
from harness.policy import ENDLESS, Arrival
from harness.policy.job import made
from harness.trace.job_rows import ROW, ROWS, has_pod_sets, job_rows, pods_of
from harness.trace.pod_sets import PodSetMaker
from harness.trace.quota_names import quota_names
from harness.trace.recorded import Record, record_of
from harness.trace.schema import DEFAULT_NAMESPACE, DEFAULT_POD_SET, REQUEST, STARTUP, column_of, resources_of
from harness.trace.validate import cluster_faults

if TYPE_CHECKING:
    from harness.cluster.model import Cluster, PriorityClass
    from harness.trace.trace import Trace

Slice: TypeAlias = Callable[[int, int], Iterable[Any]]
"""A function that returns the values of the rows from `start` to `start + count`. For a constant, the values
are endless.
"""

_MOST_SHARED = 1 << 16


GRACE_PERIOD = 30 * SECOND
"""The grace period of preempted pods if the trace has none, which is Kubernetes' default."""

_ARRIVAL = "harness.arrival"
_SUBMIT = "harness.submit"
_CLASS = "harness.class"
_PREEMPTS = "harness.preempts"
_KEPT = ("requested_time", "recorded_start", "recorded_end")
"""The columns of the schema that are copied to the results, for comparisons with the record."""

_OF_RUNS = (schemas.POD_SETS, schemas.RAN_BEFORE, schemas.TIMELINE_QUEUE)
_TAKEN = frozenset((*schemas.jobs((), {}), *_OF_RUNS, *TIMES, "submit", "job"))
"""The names that are reserved for results, time columns, and the job's row number in other tables."""


def constant(value: object) -> Slice:
    """Returns a function of a start and a count, which repeats the same value without end."""
    return lambda _start, _count: repeat(value)


def values(series: pl.Series) -> Slice:
    """Returns a function of a start and a count, which returns the values of these rows of a column."""
    return lambda start, count: series.slice(start, count).to_list()


def texts(series: pl.Series) -> Slice:
    """Returns a function of a start and a count, which returns the texts of these rows of a column.

    The column must not contain nulls. If it has only a few different texts, equal texts share an object.
    """
    names = series.unique(maintain_order=True).cast(pl.String)
    if len(names) > _MOST_SHARED:
        return values(series)
    if len(names) == 1:
        return constant(names[0])
    codes = places(series, names)
    shared = names.to_list()
    return lambda start, count: map(shared.__getitem__, codes[start : start + count].tolist())


@final
class JobColumns:
    """The jobs of a trace as columns, sorted by arrival.

    Args:
        cluster: the cluster with the priority classes.
        grace_period: the grace period of jobs without one of their own, in microseconds.
        startup: how long pods take to become ready if the trace has no start-up times, in microseconds.
        record: the recorded events, if the replay repeats them. Policies can then see the recorded runs of
            jobs. Jobs end with their last run and release their resources immediately.
        scale_arrivals: the factor by which jobs arrive faster than recorded. A job arrives at `first + (t -
            first) / scale`, rounded down to the microsecond.

    Attributes:
        frame: one row per job, sorted by arrival, with `job_id, queue, namespace, user, priority, pods`. The
            columns `submit` and `duration` are int64 microseconds. `submit` is relative to the origin, and a
            workload without an end has no duration. Each column `request.<resource>` is the int64 total of
            the job. The frame also has the columns in `extra`. It has `QUOTA_NAME` if labels name elastic
            quotas of the cluster.
        resources: the resources that jobs request, sorted.
        extra: other columns of the trace, requested run times, and recorded starts and ends. If a column has
            the same name as a result, it is renamed to `trace.<name>`. If the pods of any job have different
            requests, `schemas.POD_SETS` is the first column.
        first: the first recorded submission, in microseconds since the origin.

    Raises:
        TraceError: the cluster lacks a priority class.
        OptionError: the scale is not above 0, or the arrivals take more than a hundred years.
    """

    def __init__(
        self,
        trace: Trace,
        cluster: Cluster,
        *,
        grace_period: int = GRACE_PERIOD,
        startup: int = 0,
        record: bool = False,
        scale_arrivals: Fraction = Fraction(1),
    ) -> None:
        rows = trace.frame
        jobs = job_rows(rows)
        jobs = jobs.with_columns(
            _scaled(jobs["submit_time"].cast(pl.Int64) - trace.origin, scale_arrivals).alias(_SUBMIT),
            pl.col("duration").to_physical(),
        )
        jobs = jobs.with_columns(*_priorities(trace, jobs, cluster))
        if not jobs[_SUBMIT].is_sorted():
            jobs = jobs.sort(_SUBMIT, maintain_order=True)
        names = _extra(jobs)
        self.resources: tuple[str, ...] = tuple(resources_of(jobs.columns))
        several = has_pod_sets(rows)
        unequal = _unequal(rows, jobs["job_id"]) if several else ()
        self.extra: tuple[str, ...] = (*(column.name for column in unequal), *names.values())
        self.frame: pl.DataFrame = jobs.select(
            *("job_id", "queue", "namespace", "user", "priority", "pods"),
            *(pl.col(_SUBMIT).alias("submit"), "duration"),
            *(f"{REQUEST}{resource}" for resource in self.resources),
            *unequal,
            *(pl.col(name).alias(alias) for name, alias in names.items()),
        )
        named = quota_names(rows, cluster)
        if named is not None:
            self.frame = self.frame.with_columns(named.gather(jobs[ROW]))
        self.record: Record | None = record_of(trace, jobs, self.frame["submit"]) if record else None
        self.first = int(jobs["submit_time"].cast(pl.Int64).min()) - trace.origin  # type: ignore[arg-type]
        self.scale = scale_arrivals
        self._pod_sets = PodSetMaker(_by_arrival(rows, jobs), jobs[ROWS] if several else None)
        work = jobs["duration"] if self.record is None else self.record.work(jobs["duration"])
        self._duration = values(work)
        self._checkpoint = _microseconds(jobs, "checkpoint_interval", None)
        self._startup = _startup(jobs, startup) if self.record is None else None
        self._uid = _uids(jobs, rows.height)
        self._fields: tuple[Slice, ...] = (
            values(jobs["job_id"]),
            values(jobs[_SUBMIT]),
            texts(jobs["queue"]),
            texts(jobs["namespace"]) if "namespace" in rows.columns else constant(DEFAULT_NAMESPACE),
            texts(jobs["user"]) if "user" in rows.columns else constant(""),
            *_priority_fields(jobs, cluster),
            _gang(jobs),
            _microseconds(jobs, "grace_period", grace_period) if self.record is None else constant(0),
        )
        self._pods = values(jobs["pods"]) if "pods" in rows.columns or several else constant(1)
        self._requested = _microseconds(jobs, "requested_time", None)

    def chunk(self, start: int, count: int, index: int, *, clairvoyant: bool) -> list[Arrival]:
        """Creates new jobs from some rows.

        `index` is the index of the first of these jobs among all jobs of the replay. If `clairvoyant` is
        true, policies can see the jobs' run times.
        """
        durations = self._duration(start, count)
        recorded = repeat(()) if self.record is None else self.record.runs[start : start + count]
        jobs = made(
            range(index, index + count),
            *(field(start, count) for field in self._fields),
            self._uid(start, count),
            self._pod_sets.of(start, count),
            self._pods(start, count),
            durations if clairvoyant else repeat(None),
            self._requested(start, count),
            recorded,
        )
        checkpoints = self._checkpoint(start, count)
        if self._startup is None:
            return list(zip(jobs, durations, checkpoints, strict=False))
        startups = ((each,) for each in self._startup(start, count))
        return list(zip(jobs, durations, checkpoints, startups, strict=False))


def _scaled(submit: pl.Series, scale: Fraction) -> pl.Series:
    """Returns exact submission times in microseconds since the origin. Arrivals are `scale` times as fast."""
    if scale == 1:
        return submit
    if scale <= 0:
        raise OptionError(f"arrivals cannot be scaled by {scale}: the factor must be more than 0")
    first, last = int(submit.min()), int(submit.max())  # type: ignore[arg-type]
    if (last - first) / scale > LONGEST:
        raise OptionError(
            f"arrivals scaled by {factor_text(str(scale))} would take more than a hundred years"
        )
    wide = (last - first) * scale.denominator > INT64_MAX or scale.numerator > INT64_MAX
    if not wide:
        return (submit - first) * scale.denominator // scale.numerator + first
    moved = [(time - first) * scale.denominator // scale.numerator + first for time in submit.to_list()]
    return pl.Series(moved, dtype=pl.Int64)


def _by_arrival(rows: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows in the order in which their jobs arrive.

    The rows of a job stay in the order of the file.
    """
    if jobs[ROW].is_sorted() and jobs.height == rows.height:
        return rows
    if jobs.height == rows.height:
        return rows[jobs[ROW]]
    arrival = jobs.select("job_id").with_row_index(_ARRIVAL)
    return rows.join(arrival, on="job_id", maintain_order="left").sort(_ARRIVAL, maintain_order=True)


def _unequal(rows: pl.DataFrame, job_ids: pl.Series) -> tuple[pl.Series, ...]:
    """Returns a column with the pod sets of the jobs, if the pods of any job have different requests."""
    requests = [f"{REQUEST}{resource}" for resource in resources_of(rows.columns)]
    asked = rows.select("job_id", "pod_set", pods_of(rows).alias("pods"), pl.col(requests).fill_null(0))
    differ = pl.any_horizontal(pl.col(name) != pl.col(name).first().over("job_id") for name in requests)
    unequal = asked.filter(differ)["job_id"].unique()
    some = asked.filter(pl.col("job_id").is_in(unequal.implode()))
    if some.is_empty():
        return ()
    parts: dict[str, list[Part]] = {}
    names = [name.removeprefix(REQUEST) for name in requests]
    for job_id, pod_set, pods, *amounts in some.iter_rows():
        each = Part(pod_set or DEFAULT_POD_SET, pods, dict(zip(names, amounts, strict=True)))
        parts.setdefault(job_id, []).append(each)
    text = {job_id: text_of(of_job) for job_id, of_job in parts.items()}
    column = job_ids.replace_strict(list(text), list(text.values()), default=None, return_dtype=pl.String)
    return (column.alias(schemas.POD_SETS),)


def _priorities(trace: Trace, jobs: pl.DataFrame, cluster: Cluster) -> Iterable[pl.Expr]:
    """Yields columns with the priorities and classes of jobs, and with whether the jobs preempt.

    A job's own value takes precedence over the value of its class, and the class takes precedence over the
    default. The values of a class are those at the time when the job arrives.
    """
    states = by_arrival(cluster)
    own: list[pl.Expr] = []
    preempts: list[pl.Expr] = []
    if "priority" in jobs.columns:
        own.append(pl.col("priority"))
    if "preemption_policy" in jobs.columns:
        preempts.append(pl.col("preemption_policy") != "Never")
    if "priority_class" in jobs.columns:
        names = jobs["priority_class"].unique(maintain_order=True).drop_nulls().to_list()
        faults = list(_absent_classes(jobs, states, names))
        if faults:
            raise TraceError(str(trace.path), cluster_faults(trace, cluster) if len(states) == 1 else faults)
        own.append(_of_class(states, names, lambda found: found.value, pl.Int32()))
        preempts.append(_of_class(states, names, lambda found: found.preempts, pl.Boolean()))
        yield pl.col("priority_class").fill_null("").alias(_CLASS)
    values = [(at, pl.lit(state.default_class.value, pl.Int32)) for at, state in states]
    yield pl.coalesce(*own, _when_it_arrives(values)).alias("priority")
    if preempts or len(states) > 1:
        defaults = [(at, pl.lit(state.default_class.preempts)) for at, state in states]
        yield pl.coalesce(*preempts, _when_it_arrives(defaults)).alias(_PREEMPTS)


def _when_it_arrives(values: Sequence[tuple[int, pl.Expr]]) -> pl.Expr:
    """Returns the value that applies when a job arrives, given pairs of a starting time and a value."""
    found = values[0][1]
    for at, value in values[1:]:
        found = pl.when(pl.col(_SUBMIT) >= at).then(value).otherwise(found)
    return found


def _of_class(
    states: Sequence[tuple[int, Cluster]],
    names: Sequence[str],
    say: Callable[[PriorityClass], Any],
    dtype: pl.DataType,
) -> pl.Expr:
    found = []
    for at, state in states:
        known = {name: say(each) for name in names if (each := state.priority_of(name)) is not None}
        found.append((at, _mapped(pl.col("priority_class"), known, dtype)))
    return _when_it_arrives(found)


def _absent_classes(
    jobs: pl.DataFrame, states: Sequence[tuple[int, Cluster]], names: Sequence[str]
) -> Iterator[Fault]:
    for number, (at, state) in enumerate(states):
        absent = [name for name in names if state.priority_of(name) is None]
        here = (pl.col(_SUBMIT) >= at) & pl.col("priority_class").is_in(absent)
        if number + 1 < len(states):
            here &= pl.col(_SUBMIT) < states[number + 1][0]
        found = jobs.filter(here) if absent else jobs.clear()
        for job, name, submit in found.select("job_id", "priority_class", _SUBMIT).head(1).iter_rows():
            when = format_duration(max(submit, 0))
            what = (
                f"{name!r} is not a priority class of the cluster when the job arrives, {when} after the "
                "origin"
            )
            yield Fault(f"job {job}, priority_class", f"{what} ({found.height:,} such jobs)")


def _mapped(name: pl.Expr, table: dict[str, Any], dtype: pl.DataType) -> pl.Expr:
    return name.replace_strict(list(table), list(table.values()), default=None, return_dtype=dtype)


def _priority_fields(jobs: pl.DataFrame, cluster: Cluster) -> tuple[Slice, Slice, Slice]:
    default = cluster.default_class
    stated = "priority" in jobs.columns
    return (
        values(jobs["priority"]) if stated else constant(default.value),
        texts(jobs[_CLASS]) if _CLASS in jobs.columns else constant(""),
        values(jobs[_PREEMPTS]) if _PREEMPTS in jobs.columns else constant(default.preempts),
    )


def _gang(jobs: pl.DataFrame) -> Slice:
    several = jobs["pods"] > 1
    if "gang" in jobs.columns:
        return values(jobs["gang"].fill_null(several))
    return values(several) if several.any() else constant(value=False)


def _microseconds(jobs: pl.DataFrame, name: str, default: int | None) -> Slice:
    if name not in jobs.columns:
        return constant(default)
    column = jobs[name].to_physical()
    return values(column if default is None else column.fill_null(default))


def _startup(jobs: pl.DataFrame, default: int) -> Slice | None:
    """Returns how long pods take to become ready, or None if no pod takes any time. `ENDLESS` means never."""
    if STARTUP in jobs.columns:
        return values(jobs[STARTUP].to_physical().fill_null(ENDLESS))
    return constant(default) if default else None


def _uids(jobs: pl.DataFrame, rows: int) -> Slice:
    """Returns the UIDs of the jobs, which default to their row numbers.

    Row numbers are padded with zeros so that UIDs sort by row.
    """
    padded = f"%0{len(str(rows))}d".__mod__
    numbers = values(jobs[ROW] + 1)
    if "uid" not in jobs.columns:
        return lambda start, count: map(padded, numbers(start, count))
    own = values(jobs["uid"])

    def of(start: int, count: int) -> list[str]:
        found = zip(own(start, count), numbers(start, count), strict=True)
        return [padded(number) if uid is None else uid for uid, number in found]

    return of


def _extra(jobs: pl.DataFrame) -> dict[str, str]:
    own = {_SUBMIT, ROW, ROWS, _CLASS, _PREEMPTS}
    names: list[str] = [name for name in _KEPT if name in jobs.columns]
    names += [name for name in jobs.columns if column_of(name) is None and name not in own]
    renamed: dict[str, str] = {}
    for name in names:
        alias = name
        while alias in _TAKEN or (alias != name and alias in names):
            alias = f"trace.{alias}"
        renamed[name] = alias
    return renamed
