"""How often forecasts of the past held: made at moments of a record, of what was known then.

At each moment those that ran and waited by the record become Workloads of the cluster, as a dump of then
would have had them; the history is what had been submitted and had ended by then. What is judged is when
those that waited first started, by the record.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from harness.cluster.model import frozen
from harness.cluster.workloads import Admission, Condition, PodSetAssignment, Workload
from harness.errors import HarnessError, InputError, OptionError, ReplayError
from harness.experiments.crew import crew_for
from harness.forecasting.coming import Past
from harness.forecasting.forecast import SHARES
from harness.forecasting.futures import Settings, World
from harness.forecasting.history import History
from harness.forecasting.playing import PROCESS
from harness.forecasting.preparing import world_of
from harness.forecasting.present import Said, now_of
from harness.forecasting.quantiles import quantile
from harness.generate.uniform import uniform
from harness.policy import ENDLESS, Job
from harness.policy.job import RecordedRun
from harness.trace.homes import homed
from harness.trace.job_columns import JobColumns
from harness.trace.jobs import Jobs
from harness.trace.recorded import STATE, check_recorded
from harness.units import SECOND, format_duration

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.trace.trace import Trace


_MOST_DRAWN = 20
"""So many times as many moments as are wanted are looked at for some at which something waits."""


class Judged(NamedTuple):
    """A workload that waited at a moment, as it was forecast and as it came.

    Attributes:
        moment: when it was forecast, microseconds on the history's clock.
        job: its name in the record.
        starts: of each future when it started, microseconds from then; -1 for not by the horizon.
        truth: when it started by the record; None for never as far as that says.
    """

    moment: int
    job: str
    starts: tuple[int, ...]
    truth: int | None


@dataclass(frozen=True)
class Record:
    """What really happened to the jobs of a history.

    Attributes:
        jobs: ascending by submission.
        runs: the runs of each.
    """

    jobs: Sequence[Past]
    runs: Sequence[tuple[RecordedRun, ...]]

    @cached_property
    def until(self) -> int | None:
        """The last moment that it says anything of, where some had not started by then; else None."""
        if all(self.runs):
            return None
        times = (time for runs in self.runs for run in runs for time in (run.start, run.end))
        return max(self.jobs[-1].submit, *(time for time in times if time < ENDLESS))

    def there(self, moment: int) -> Iterator[tuple[Past, RecordedRun | None, int | None]]:
        """Who was there at a moment: its run, or None where it waited; and when it next starts."""
        for number in range(bisect_right(self.jobs, moment, key=lambda job: job.submit)):
            runs = self.runs[number]
            at = bisect_right(runs, moment, key=lambda run: run.start)
            after = runs[at].start if at < len(runs) else None
            last = runs[at - 1] if at else None
            if last is not None and last.end > moment:
                yield self.jobs[number], last, after
            elif at < len(runs) or not runs:
                yield self.jobs[number], None, after


@dataclass(frozen=True)
class Backtest:
    """Forecasts at moments of a record.

    Attributes:
        cluster: without work.
        history: the record's jobs.
        record: what happened to them.
        settings: of all futures.
        futures: how many are played at each moment.
    """

    cluster: Cluster
    history: History
    record: Record
    settings: Settings
    futures: int

    def waits(self, moment: int) -> bool:
        """Whether anything waited at a moment."""
        return any(run is None for _, run, _ in self.record.there(moment))

    def world(self, moment: int) -> tuple[World, list[int | None]] | None:
        """What was known at a moment, and when each that waited started; None where nothing waited."""
        workloads, truth, said = [], {}, {}
        for past, run, after in self.record.there(moment):
            workload = _workload(self.cluster, past, run)
            workloads.append(workload)
            said[workload.key] = Said(past.traits.user, past.arrival[0].requested)
            truth[workload.key] = after
        if all(each.holds_quota for each in workloads):
            return None
        cluster = replace(self.cluster, workloads=tuple(workloads))
        now = now_of(cluster, self.settings.policy, moment, said)
        world, _ = world_of(cluster, now, self.history, self.settings)
        return world, [truth[each.job.id] for each in now.waiting]

    def judged(self, moment: int) -> list[Judged]:
        """What was forecast at a moment of each that waited then, and what came."""
        found = self.world(moment)
        if found is None:
            return []
        world, truth = found
        futures = [world.future(number) for number in range(self.futures)]
        return [
            Judged(moment, each.job.id, tuple(future.starts[place] for future in futures), came)
            for place, (each, came) in enumerate(zip(world.now.waiting, truth, strict=True))
        ]


def record_of(trace: Trace, cluster: Cluster, history: History) -> Record:
    """What a trace says happened to the jobs of a history.

    Jobs of which nobody knows whether they ever ran are left out, but for those that still waited when a
    replay ended.

    Raises:
        TraceError: it has no record.
        OptionError: the cluster has nodes or flavors, of which the record does not say which were used.
    """
    check_recorded(trace)
    several = [
        queue.name
        for queue in cluster.cluster_queues.values()
        if any(len(group.flavors) > 1 for group in queue.resource_groups)
    ]
    if several or not cluster.cluster_queues or cluster.nodes:
        what = f"ClusterQueue {several[0]} has several flavors" if several else "it has nodes"
        what = what if cluster.cluster_queues else "it has no ClusterQueue"
        raise OptionError(
            f"a record cannot be turned into Workloads of this cluster: {what}",
            hint="a record says neither flavors nor nodes; give ClusterQueues with one flavor, without nodes",
        )
    trace = homed(trace, cluster)
    ran = {
        job.id: tuple(
            run._replace(start=run.start + trace.origin, end=run.end + trace.origin) for run in job.recorded
        )
        for chunk in Jobs(JobColumns(trace, cluster, record=True)).chunks()
        for job, *_ in chunk
    }
    waited: set[str] = set()
    if STATE in trace.frame.columns:
        waited.update(trace.frame.filter(pl.col(STATE) == "pending")["job_id"])
    jobs = [past for past in history.jobs if ran[past.arrival[0].id] or past.arrival[0].id in waited]
    return Record(jobs, [ran[past.arrival[0].id] for past in jobs])


def _workload(cluster: Cluster, past: Past, run: RecordedRun | None) -> Workload:
    """A job as the Workload that a cluster had of it, when it waited or was in one of its runs."""
    job: Job = past.arrival[0]
    queue = cluster.cluster_queue_of(job.namespace, job.queue)
    assert queue is not None
    admission, conditions = None, {}
    if run is not None:
        conditions = {name: Condition(True, name, run.start) for name in ("QuotaReserved", "Admitted")}
        flavors = {
            resource: group.flavors[0].flavor
            for group in queue.resource_groups
            for resource in group.covered_resources
        }
        admission = Admission(
            queue.name,
            tuple(
                PodSetAssignment(
                    each.name,
                    each.count,
                    frozen({name: flavors[name] for name in each.requests if name in flavors}),
                    frozen(
                        {
                            name: amount * each.count
                            for name, amount in each.requests.items()
                            if name in flavors
                        }
                    ),
                )
                for each in job.pod_sets
            ),
        )
    return Workload(
        name=job.id,
        namespace=job.namespace,
        uid=job.uid,
        created=past.submit,
        queue=job.queue,
        priority=job.priority,
        priority_class=job.priority_class,
        boost=0,
        active=True,
        pod_sets=job.pod_sets,
        admission=admission,
        conditions=frozen(conditions),
        grace_period=job.grace_period,
    )


# --- the verdict --------------------------------------------------------------------------------------------


class Coverage(NamedTuple):
    """How forecasts held.

    Attributes:
        starts: how many starts were forecast.
        moments: at how many moments.
        covered: the share of the starts between their p10 and their p90.
        by_moment: the mean over moments of that share: one at which hundreds wait counts once.
        before, after: the shares before the p10 and after the p90.
        width: the median of p90 less p10, microseconds; None where most p90 are later than the horizon.
        error: the median size of the p50's error, of starts of which both are known, microseconds.
    """

    starts: int
    moments: int
    covered: float
    by_moment: float
    before: float
    after: float
    width: float | None
    error: float | None

    def to_json(self) -> dict[str, Any]:
        """The same as plain values, times in seconds."""
        found = self._asdict()
        for name in ("width", "error"):
            time = found.pop(name)
            found[f"{name}_seconds"] = None if time is None else time / SECOND
        return found


def coverage(judged: Iterable[Judged], horizon: int) -> Coverage:
    """How forecasts held; what starts after the horizon counts as not started, in futures and in truth.

    Raises:
        InputError: nothing was forecast.
    """
    held: dict[int, list[bool]] = {}
    before = after = 0
    widths: list[float] = []
    errors: list[float] = []
    for each in judged:
        times = [None if start < 0 else start for start in each.starts]
        low, middle, high = (_endless(quantile(times, share)) for share in SHARES)
        came = math.inf if each.truth is None else each.truth - each.moment
        came = came if came <= horizon else math.inf
        held.setdefault(each.moment, []).append(low <= came <= high)
        before += came < low
        after += came > high
        widths.append(0.0 if low == high else high - low)
        if max(came, middle) < math.inf:
            errors.append(abs(came - middle))
    starts = sum(len(each) for each in held.values())
    if not starts:
        raise InputError("at no moment of the record did anything wait, so there is nothing to judge")
    width = median(widths)
    return Coverage(
        starts,
        len(held),
        sum(sum(each) for each in held.values()) / starts,
        sum(sum(each) / len(each) for each in held.values()) / len(held),
        before / starts,
        after / starts,
        None if math.isinf(width) else width,
        median(errors) if errors else None,
    )


def _endless(time: float | None) -> float:
    return math.inf if time is None else time


@dataclass(frozen=True)
class Judging:
    """The work of a backtest: moments of a record, see `harness.experiments.work.Work`."""

    backtest: Backtest

    @property
    def memory(self) -> int:
        """About how many bytes a process takes that judges."""
        return PROCESS

    def begun(self) -> Callable[[int], list[Judged] | str]:
        """Be ready in this process; answers what judges a moment."""
        return self._judged

    def failed(self, item: int, why: str) -> list[Judged] | str:
        """What comes of a moment at which nobody could forecast."""
        return why

    def _judged(self, moment: int) -> list[Judged] | str:
        try:
            return self.backtest.judged(moment)
        except HarnessError as error:
            return error.message


def judged_at(
    backtest: Backtest, count: int, *, workers: int | None, executor: Executor | None = None
) -> list[Judged]:
    """Forecasts at moments drawn evenly from the second half of a record, at which something waited.

    Where some had not started when the record ended, they are moments whose horizon it covers: of later ones
    nobody knows all starts, and those that are known are the early ones.

    Raises:
        InputError: there are no such moments.
        ReplayError: a forecast could not be made.
    """
    first, last = backtest.history.jobs[0].submit, backtest.history.jobs[-1].submit
    until, horizon = backtest.record.until, backtest.settings.horizon
    begin = (first + last) // 2
    if until is not None and (last := min(last, until - horizon)) <= begin:
        raise InputError(
            f"nothing can be judged with a horizon of {format_duration(horizon)}: jobs had not started when "
            f"the record ended, {format_duration(until - begin)} after its half, so nobody knows "
            "which starts were within the horizon",
            hint="give a smaller --horizon, or a record that goes on for longer",
        )
    drawn = (
        begin + int(uniform(backtest.settings.seed, number, "moment") * (last - begin))
        for number in range(_MOST_DRAWN * count)
    )
    moments = list(islice((moment for moment in drawn if backtest.waits(moment)), count))
    found: list[Judged] = []
    with (
        crew_for(Judging(backtest), len(moments), workers=workers, executor=executor) as (crew, _),
        closing(crew.make(moments)) as news,
    ):
        for judged in news:
            if isinstance(judged, str):
                raise ReplayError(f"a forecast could not be made: {judged}")
            found += judged
    return sorted(found)
