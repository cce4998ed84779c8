"""The facts of a history that are known at a given time: run times, and the jobs submitted on each day."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from harness.base.frozen import Frozen
from harness.base.options import resolve
from harness.base.text import agreeing, first_of
from harness.base.units import DAY, date_text, format_duration
from harness.cluster.model import Cluster, frozen
from harness.policy import ENDLESS, Job
from harness.runs.estimates.coming_jobs import Coming, Past, first_day
from harness.runs.estimates.distributions import Ended, Ran, RunTimes
from harness.runs.estimates.traits import traits_of
from harness.runs.impossible import impossible, sentences
from harness.trace.generate.uniform import uniform
from harness.trace.homes import homed
from harness.trace.job_columns import JobColumns
from harness.trace.job_rows import count_jobs
from harness.trace.jobs import Jobs
from harness.trace.recorded import END, START

if TYPE_CHECKING:
    from harness.plugins.registries import PolicySpec
    from harness.trace.trace import Trace


@dataclass(frozen=True)
class History:
    """The jobs of a history, sorted by submission.

    Attributes:
        jobs: all jobs that a policy could ever start on the cluster; they arrive again.
        ran: the jobs from which run times are drawn: `jobs`, or all jobs if `jobs` is empty.
        dated: whether the history's times are on the cluster's clock, so that weekdays are known.
        recorded: whether the history records when jobs ended.
        first, last: the first and last submission on the history's clock, including omitted jobs.
        notes: sentences about omitted jobs and assumptions.
    """

    jobs: Sequence[Past]
    ran: Sequence[Past]
    dated: bool
    recorded: bool
    first: int
    last: int
    notes: tuple[str, ...] = ()

    def by(self, now: int | None) -> Known:
        """Returns the part of the history that is known by a time on its clock.

        If the time is None or earlier than the first job, the result is the whole history.
        """
        if now is None or self._is_later(now):
            coming = Coming(self.jobs, self.first, self.last, dated=self.dated)
            return Known(RunTimes(self._ended), coming)
        last = min(now, self.last)
        run_times = RunTimes(self._ended_in_order, now)
        came = self.jobs[: bisect_left(self.jobs, now, key=lambda job: job.submit)]
        recent = bisect_left(came, first_day(last) * DAY, key=lambda job: job.submit)
        again = (job if self._is_over(job, now) else _drawn(job, now, run_times) for job in came[recent:])
        came = [*came[:recent], *(job for job in again if job is not None)]
        return Known(run_times, Coming(came, self.first, last, dated=self.dated))

    def said_of_days(self, now: int | None, coming: Coming) -> Iterator[str]:
        """Yields sentences about anything unusual in the days from which future days are drawn."""
        if not self.jobs:
            return
        if self.dated and now is not None and now - self.last > DAY:
            yield (
                f"history: its last job was submitted at {date_text(self.last)}, "
                f"{format_duration(now - self.last)} before now; "
                "future days are drawn from days up to that time"
            )
        if self.dated and now is not None and self._is_later(now):
            yield (
                f"history: all of its jobs were submitted after now, the first at {date_text(self.first)}, "
                "so the forecast uses all of its run times and days as if they were already over"
            )
        if not coming.whole:
            yield "history: it covers no whole day, so future days are drawn from parts of days"

    def _is_later(self, now: int) -> bool:
        """Returns True if the whole history lies after a given time, so that nothing was known by then."""
        return now <= self.ran[0].submit

    @cached_property
    def _ended(self) -> Ended:
        return Ended(Ran(job.traits, job.run_time, 0) for job in self.ran if self._has_ended(job))

    @cached_property
    def _ended_in_order(self) -> Ended:
        ran = (Ran(job.traits, job.run_time, _end_of(job)) for job in self.ran if self._has_ended(job))
        return Ended(sorted(ran, key=lambda each: each.end))

    def _is_over(self, job: Past, now: int) -> bool:
        return self._has_ended(job) and _end_of(job) <= now

    def _has_ended(self, job: Past) -> bool:
        return _has_ended(job, recorded=self.recorded)


class Known(NamedTuple):
    """The part of a history that is known at a given time.

    Attributes:
        coming: the days with the jobs that were submitted on them.
    """

    run_times: RunTimes
    coming: Coming


def run_times_of(traces: Iterable[Trace], cluster: Cluster) -> RunTimes:
    """Returns the run times of all ended jobs in several traces. A job in two traces counts once.

    Jobs that a policy could never start are included.
    """
    found: dict[str, Ran] = {}
    for trace in traces:
        recorded = END in trace.frame.columns
        for job in _past(homed(trace, cluster), cluster, set()):
            if _has_ended(job, recorded=recorded):
                found.setdefault(job.arrival[0].id, Ran(job.traits, job.run_time, 0))
    return RunTimes(Ended(found.values()))


def _has_ended(job: Past, *, recorded: bool) -> bool:
    """Returns True if a job has ended, which requires a recorded end if the history records ends."""
    return job.run_time < ENDLESS and not (recorded and job.end is None)


def _end_of(job: Past) -> int:
    """Returns when a job ended. Without a recorded end, the job is assumed to have started on arrival."""
    return job.submit + job.run_time if job.end is None else job.end


def _drawn(job: Past, now: int, run_times: RunTimes) -> Past | None:
    """Returns a job that has not ended yet, with a drawn run time, or None if there is no source for one."""
    start = job.submit if job.end is None else job.end - job.run_time
    found = run_times.draws(job.traits, max(0, now - start), None)
    if found is None:
        return None
    name = job.arrival[0].id
    run_time = found.run_time(uniform("not ended", name), uniform("not ended", *found.group))
    return job._replace(arrival=(job.arrival[0], run_time, *job.arrival[2:]))


def history_of(
    trace: Trace,
    cluster: Cluster,
    policy: PolicySpec,
    options: Mapping[str, Any] | None = None,
    *,
    dated: bool | None = None,
) -> History:
    """Returns the jobs of a trace, prepared so that they can arrive at a cluster again.

    Jobs that `policy` could never start are omitted. Jobs of a stopped or inactive queue are not, because the
    queue may resume, and the run times of its jobs are known. If no job is left, none arrives again, but the
    jobs did run, perhaps before the cluster changed, so their run times count. By default, each option of the
    policy has its declared default. `dated` says whether the times in the trace are on the cluster's clock,
    which is assumed by default if the trace has timestamps.
    """
    submit = trace.frame["submit_time"].to_physical()
    whole = trace = homed(trace, cluster)
    trace, notes = _of_known_queues(trace, cluster)
    if options is None:
        options = resolve(policy.options, {}, owner=f"policy {policy.name}")
    never = impossible(trace, _resumed(cluster), policy, options) or () if trace.frame.height else ()
    notes += sentences(never, count_jobs(trace.frame))
    out = {job for each in never for job in each.jobs}
    jobs = list(_past(trace, cluster, out)) if trace.frame.height else []
    if not jobs:
        notes.append(
            "none of its jobs could ever start on this cluster, so no job arrives later, and run times are "
            "drawn from all of its jobs"
        )
    return History(
        jobs,
        jobs or list(_past(whole, cluster, set())),
        trace.kind == "timestamp" if dated is None else dated,
        END in trace.frame.columns,
        int(submit.min()),  # type: ignore[arg-type]
        int(submit.max()),  # type: ignore[arg-type]
        tuple(f"history: {note}" for note in notes),
    )


def _resumed(cluster: Cluster) -> Cluster:
    """Returns a cluster in which no queue is stopped, or inactive because something is missing."""
    queues = {
        name: replace(each, stop_policy="None", inactive="") for name, each in cluster.cluster_queues.items()
    }
    doors = {name: replace(each, stop_policy="None") for name, each in cluster.local_queues.items()}
    return replace(cluster, cluster_queues=frozen(queues), local_queues=Frozen(doors))


def _of_known_queues(trace: Trace, cluster: Cluster) -> tuple[Trace, list[str]]:
    """Returns a trace without the jobs of queues that the cluster doesn't have, and notes about them."""
    frame = trace.frame
    if not cluster.cluster_queues:
        return trace, []
    has = "namespace" in frame.columns
    pairs = frame.select("queue", *(["namespace"] if has else [])).unique(maintain_order=True)
    unknown = [
        row
        for row in pairs.iter_rows()
        if cluster.cluster_queue_of(row[1] if has and row[1] else "default", row[0]) is None
    ]
    if not unknown:
        return trace, []
    found = pl.lit(value=False)
    for row in unknown:
        one = pl.col("queue") == row[0]
        found |= one & pl.col("namespace").eq_missing(row[1]) if has else one
    kept = frame.filter(~found)
    left = count_jobs(frame) - count_jobs(kept) if kept.height else count_jobs(frame)
    out = f"{agreeing(left, 'job', 'are')} left out"
    named = first_of(sorted({str(row[0]) for row in unknown}), 3)
    return replace(trace, frame=kept), [f"{out}, because the cluster lacks their queues ({named})"]


def _past(trace: Trace, cluster: Cluster, out: set[str]) -> Iterator[Past]:
    """Yields the jobs of a trace, sorted by submission."""
    starts, ends = _recorded(trace, START), _recorded(trace, END)
    for chunk in Jobs(JobColumns(trace, cluster)).chunks():
        for arrival in chunk:
            job: Job = arrival[0]
            if job.id not in out:
                submit = trace.origin + job.submit
                yield Past(arrival, traits_of(job, cluster), submit, ends.get(job.id), starts.get(job.id))


def _recorded(trace: Trace, column: str) -> dict[str, int | None]:
    if column not in trace.frame.columns:
        return {}
    return dict(trace.frame.select("job_id", pl.col(column).to_physical()).iter_rows())
