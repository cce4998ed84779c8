"""The jobs of a trace in order of arrival, made chunk by chunk while a replay needs them.

What stays in memory are the columns; a `Job` exists from its chunk on, as long as somebody holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import repeat
from typing import TYPE_CHECKING, Any, final

import polars as pl

from harness.errors import ClusterError, Fault, OptionError, TraceError
from harness.options import factor_text
from harness.policy import ENDLESS, Arrival, Job
from harness.recording import schemas
from harness.recording.parquet import TIMES
from harness.trace.job_rows import ROW, ROWS, has_pod_sets, job_rows
from harness.trace.pod_sets import PodSetMaker
from harness.trace.recorded import Record, record_of
from harness.trace.schema import DEFAULT_NAMESPACE, REQUEST, STARTUP, column_of, resources_of
from harness.trace.slices import Slice, constant, texts, values
from harness.trace.validate import cluster_faults
from harness.units import INT64_MAX, LONGEST, SECOND, format_amount

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.trace.trace import Trace

GRACE_PERIOD = 30 * SECOND
"""How long a preempted pod keeps its resources unless the trace says otherwise; Kubernetes' default."""

_CHUNK = 1024
"""Jobs made at once: small chunks stay in the processor's cache and out of the garbage collector's way."""

_FIXED = 8
"""How many columns of `Jobs.frame` come before what jobs ask for."""

_MOST_PODS = 2**31 - 1

_ARRIVAL = "harness.arrival"
_SUBMIT = "harness.submit"
_CLASS = "harness.class"
_PREEMPTS = "harness.preempts"
_KEPT = ("requested_time", "recorded_start", "recorded_end")
"""Columns of the schema that come along to the results, where they are compared with what happened."""

_TAKEN = frozenset((*schemas.jobs((), {}), *TIMES, "submit", "job"))
"""Names of results, of times (which are written as such) and of a row of the jobs in other tables."""


@final
class Jobs:
    """The jobs of a trace as one replay sees them.

    Args:
        trace: what was recorded.
        cluster: whose priority classes count.
        grace_period: for jobs that do not state their own, microseconds.
        scale_arrivals: how much faster jobs arrive than recorded: at `first + (t - first) / scale`, rounded
            down to the microsecond.
        clairvoyant: whether jobs tell policies how long they run.
        startup: how long pods take until they are ready, for traces that do not say, microseconds.
        record: jobs do what the trace says happened: they tell policies their recorded runs, end with the
            last of these, and let go of what they hold at once.
        running: answers the jobs that run already, given the time of the first arrival; they come first.
        later: jobs that are not of the trace and arrive during it, in order: `submit` is before scaling. Of
            one instant they come before those of the trace.

    Attributes:
        frame: one row a job in order of arrival: `job_id, queue, namespace, user, priority, pods`, `submit`
            and `duration` (int64 microseconds, `submit` since the origin; no duration for work without an
            end), `request.<resource>` (int64, the total of the job), then the columns named in `extra`.
        resources: what jobs ask for, sorted.
        record: what happened according to the trace, where that is played.
        extra: further columns of the trace, requested run times, and what was recorded of starts and ends;
            one that is called like a result of the replay is named `trace.<name>`.

    Raises:
        TraceError: a priority class that the cluster does not have.
        ClusterError: what runs already asks, with the trace, for more than can be counted.
        OptionError: a scale that is not above 0, or that spreads arrivals over more than a hundred years.
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
        clairvoyant: bool = False,
        running: Callable[[int], Sequence[Arrival]] | None = None,
        later: Sequence[Arrival] = (),
    ) -> None:
        rows = trace.frame
        jobs = job_rows(rows)
        jobs = jobs.with_columns(
            _scaled(jobs["submit_time"].to_physical() - trace.origin, scale_arrivals).alias(_SUBMIT),
            pl.col("duration").to_physical(),
            *_priorities(trace, jobs, cluster),
        )
        if not jobs[_SUBMIT].is_sorted():
            jobs = jobs.sort(_SUBMIT, maintain_order=True)
        names = _extra(jobs)
        self.resources: list[str] = resources_of(jobs.columns)
        self.extra: tuple[str, ...] = tuple(names.values())
        self.frame: pl.DataFrame = jobs.select(
            *("job_id", "queue", "namespace", "user", "priority", "pods"),
            *(pl.col(_SUBMIT).alias("submit"), "duration"),
            *(f"{REQUEST}{resource}" for resource in self.resources),
            *(pl.col(name).alias(alias) for name, alias in names.items()),
        )
        several = has_pod_sets(rows)
        self.record: Record | None = record_of(trace, jobs, self.frame["submit"]) if record else None
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
        self._clairvoyant = clairvoyant
        self._running = list(running(int(self.frame["submit"][0]))) if running is not None else []
        first = int(jobs["submit_time"].to_physical().min()) - trace.origin  # type: ignore[arg-type]
        self._later = _placed(later, self.frame["submit"], first, scale_arrivals)
        others = [*self._running, *(arrival for _, arrival in self._later)]
        if others:
            _check_sums(others, self.frame, cluster)
            rows = _other_rows(others)
            self.resources = sorted({*self.resources, *resources_of(rows.columns)})
            self.frame = pl.concat([rows, self.frame], how="diagonal_relaxed").select(
                *self.frame.columns[:_FIXED],
                *(pl.col(f"{REQUEST}{resource}").fill_null(0) for resource in self.resources),
                *self.extra,
            )[_order(self.frame.height, len(self._running), [place for place, _ in self._later])]

    def __len__(self) -> int:
        return self.frame.height

    @property
    def mean_duration(self) -> int:
        """The mean of the durations that are known, whether the jobs arrive before the replay ends or not."""
        durations = self.frame["duration"]
        known = len(durations) - durations.null_count()
        longest: Any = durations.max() or 0
        # A hundred years times many millions of jobs do not fit 64 bits.
        wide = longest * known > INT64_MAX
        return int((durations.cast(pl.Int128) if wide else durations).sum()) // max(1, known)

    def chunks(self, size: int = _CHUNK) -> Iterator[list[Arrival]]:
        """The jobs in order of arrival, `size` at a time, made when they are asked for."""
        if self._running:
            yield self._running
        index, start = len(self._running), 0
        for place, (job, *runs) in self._later:
            yield from self._slices(start, place, index, size)
            index += place - start
            yield [(replace(job, index=index), *runs)]
            index, start = index + 1, place
        yield from self._slices(start, len(self) - len(self._running) - len(self._later), index, size)

    def _slices(self, start: int, end: int, index: int, size: int) -> Iterator[list[Arrival]]:
        """Jobs of some rows of the trace; `index` is the place of the first of them among all jobs."""
        for begin in range(start, end, size):
            yield self._chunk(begin, min(size, end - begin), index + begin - start)

    def _chunk(self, start: int, count: int, index: int) -> list[Arrival]:
        durations = self._duration(start, count)
        recorded = repeat(()) if self.record is None else self.record.runs[start : start + count]
        jobs = map(
            Job,
            range(index, index + count),
            *(field(start, count) for field in self._fields),
            self._uid(start, count),
            self._pod_sets.of(start, count),
            self._pods(start, count),
            durations if self._clairvoyant else repeat(None),
            self._requested(start, count),
            recorded,
        )
        checkpoints = self._checkpoint(start, count)
        if self._startup is None:
            return list(zip(jobs, durations, checkpoints, strict=False))
        startups = ((each,) for each in self._startup(start, count))
        return list(zip(jobs, durations, checkpoints, startups, strict=False))


def _placed(
    later: Sequence[Arrival], submit: pl.Series, first: int, scale: Fraction
) -> list[tuple[int, Arrival]]:
    """Jobs that arrive during the trace, at their scaled times, each with the row before which it comes."""
    found: list[tuple[int, Arrival]] = []
    for job, *runs in later:
        since = first + (job.submit - first) * scale.denominator // scale.numerator
        place = int(submit.search_sorted(since, side="left"))
        found.append((place, (replace(job, submit=since), *runs)))
    return found


def _order(rows: int, running: int, places: Sequence[int]) -> pl.Series:
    """The rows in order of arrival, where those that are not of the trace are the first ones.

    Args:
        rows: how many the trace has.
        running: how many jobs are there before it.
        places: for each job that arrives during it the row before which it comes, in order.
    """
    others = running + len(places)
    parts = [range(running)]
    start = 0
    for number, place in enumerate(places, running):
        parts += [range(others + start, others + place), range(number, number + 1)]
        start = place
    parts.append(range(others + start, others + rows))
    return pl.concat([pl.Series(part, dtype=pl.UInt32) for part in parts])


def _check_sums(running: Sequence[Arrival], frame: pl.DataFrame, cluster: Cluster) -> None:
    """Refuse work of the manifests that cannot be counted together with the trace's."""
    total = {
        name: int(frame[f"{REQUEST}{name}"].sum())  # fits, as `open_trace` checked
        for name in resources_of(frame.columns)
    }
    for job, *_ in running:
        where = f"{job.id}, of the manifests"
        if job.pods > _MOST_PODS:
            what = f"has {job.pods:,} pods; at most {_MOST_PODS:,} can be counted"
            raise ClusterError(cluster.source, [Fault(where, what)])
        for name, amount in job.requests_of(range(job.pods)).items():
            total[name] = total.get(name, 0) + amount
            if total[name] > INT64_MAX:
                what = (
                    f"{format_amount(name, amount)} of {name} and what all others ask for are together more "
                )
                raise ClusterError(cluster.source, [Fault(where, f"{what}than 64 bits can count")])


def _other_rows(others: Sequence[Arrival]) -> pl.DataFrame:
    """Rows for jobs that are not of the trace; what they ask for is given, perhaps not how long they run."""
    rows = [
        {
            "job_id": job.id,
            "queue": job.queue,
            "namespace": job.namespace,
            "user": job.user,
            "priority": job.priority,
            "pods": job.pods,
            "submit": job.submit,
            "duration": None if duration == ENDLESS else duration,
            **{f"{REQUEST}{name}": amount for name, amount in job.requests_of(range(job.pods)).items()},
        }
        for job, duration, *_ in others
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.cast({"priority": pl.Int32, "pods": pl.Int32, "duration": pl.Int64})


def _scaled(submit: pl.Series, scale: Fraction) -> pl.Series:
    """Submit times, microseconds since the origin, with arrivals `scale` times as dense; exact."""
    if scale == 1:
        return submit
    if scale <= 0:
        raise OptionError(f"arrivals cannot be scaled by {scale}: it must be more than 0")
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
    """The trace's rows in the order in which their jobs arrive, those of one job in the order of the file."""
    if jobs[ROW].is_sorted() and jobs.height == rows.height:
        return rows
    if jobs.height == rows.height:
        return rows[jobs[ROW]]
    arrival = jobs.select("job_id").with_row_index(_ARRIVAL)
    return rows.join(arrival, on="job_id", maintain_order="left").sort(_ARRIVAL, maintain_order=True)


def _priorities(trace: Trace, jobs: pl.DataFrame, cluster: Cluster) -> Iterable[pl.Expr]:
    """Priority, class and whether a job preempts: its own word, else its class's, else the default."""
    default = cluster.default_class
    own: list[pl.Expr] = []
    preempts: list[pl.Expr] = []
    if "priority" in jobs.columns:
        own.append(pl.col("priority"))
    if "preemption_policy" in jobs.columns:
        preempts.append(pl.col("preemption_policy") != "Never")
    if "priority_class" in jobs.columns:
        names = jobs["priority_class"].unique(maintain_order=True).drop_nulls().to_list()
        classes = {name: cluster.priority_of(name) for name in names}
        found = {name: found for name, found in classes.items() if found is not None}
        if len(found) < len(classes):
            raise TraceError(str(trace.path), cluster_faults(trace, cluster))
        name = pl.col("priority_class")
        own.append(_mapped(name, {name: found.value for name, found in found.items()}, pl.Int32()))
        preempts.append(_mapped(name, {name: found.preempts for name, found in found.items()}, pl.Boolean()))
        yield name.fill_null("").alias(_CLASS)
    yield pl.coalesce(*own, pl.lit(default.value, pl.Int32)).alias("priority")
    if preempts:
        yield pl.coalesce(*preempts, pl.lit(default.preempts)).alias(_PREEMPTS)


def _mapped(name: pl.Expr, table: dict[str, Any], dtype: pl.DataType) -> pl.Expr:
    return name.replace_strict(list(table), list(table.values()), default=None, return_dtype=dtype)


def _priority_fields(jobs: pl.DataFrame, cluster: Cluster) -> tuple[Slice, Slice, Slice]:
    """`priority`, `priority_class` and `preempts` of jobs."""
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
    """How long pods take until they are ready, `ENDLESS` for never; None where none take any time."""
    if STARTUP in jobs.columns:
        return values(jobs[STARTUP].to_physical().fill_null(ENDLESS))
    return constant(default) if default else None


def _uids(jobs: pl.DataFrame, rows: int) -> Slice:
    """UIDs; a job without one gets the number of its row, zero-padded so that text order is row order."""
    width = len(str(rows))
    numbers = jobs[ROW]
    own = jobs["uid"] if "uid" in jobs.columns else None

    def of(start: int, count: int) -> list[str]:
        padded = (numbers.slice(start, count) + 1).cast(pl.String).str.zfill(width)
        return (padded if own is None else own.slice(start, count).fill_null(padded)).to_list()

    return of


def _extra(jobs: pl.DataFrame) -> dict[str, str]:
    """What comes along, with the name that it gets."""
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
