"""Simulates an instant in the replay of a trace, at which jobs are submitted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar
from zoneinfo import ZoneInfo

from harness.base.errors import InputError, OptionError
from harness.base.units import date_text, exact_duration, parse_duration, since_1970
from harness.engine.events import NEVER
from harness.policy import ENDLESS
from harness.runs.questions import running_jobs
from harness.studies.forecasting.new_job import submitted
from harness.studies.simulation.instant import Instant, Scheduler, Turn, played

if TYPE_CHECKING:
    from harness.cluster.kinds.workloads import CheckState
    from harness.cluster.model import Cluster
    from harness.plugins.registries import PolicySpec
    from harness.policy import Arrival
    from harness.runs.plan import Plan
    from harness.studies.simulation.moment import Asked, Difference
    from harness.trace.trace import Trace

T = TypeVar("T")


def with_submitted(
    cluster: Cluster, jobs: Iterable[Asked], policy: PolicySpec
) -> tuple[Cluster, list[tuple[str, ...]]]:
    """Returns a cluster in which jobs wait, and the names of each job's Workloads and Pods.

    Raises:
        InputError: a job is faulty.
    """
    names, queued = [], policy.admits_by_queues(cluster)
    for job in jobs:
        more = submitted(cluster, job.manifest, job.source, queued=queued)
        own = [each.key for each in more.workloads[len(cluster.workloads) :]]
        own += [each.key for each in more.pods[len(cluster.pods) :]]
        names.append(tuple(own))
        cluster = more
    return cluster, names


@dataclass(frozen=True)
class Replayed:
    """An instant of a replay; see `harness.studies.simulation.moment.Moment`.

    Attributes:
        plan: the replay.
        at: the instant, in microseconds since the origin.
        cluster: the cluster of the replay, with the submitted jobs.
    """

    plan: Plan
    at: int
    cluster: Cluster
    submitted: tuple[tuple[str, ...], ...] = ()

    @property
    def scheduler(self) -> Scheduler:
        """See `Moment`."""
        return Scheduler(self.plan.policy, self.plan.options, self.plan.settings.on_preemption)

    def told(self, time: int) -> str:
        """See `Moment`."""
        trace = self.plan.trace
        return date_text(trace.origin + time) if trace.kind == "timestamp" else exact_duration(time)

    def with_jobs(self, jobs: Iterable[Asked]) -> Replayed:
        """See `Moment`."""
        policy = self.plan.policy
        if policy.running is None and jobs:
            raise OptionError(
                f"{policy.name} reads no jobs from manifests, so you cannot submit one to it",
                hint="name another plugin with -p",
            )
        cluster, names = with_submitted(self.cluster, jobs, policy)
        return replace(self, cluster=cluster, submitted=(*self.submitted, *names))

    def with_each(self, jobs: Sequence[Asked]) -> list[Replayed]:
        """See `Moment`."""
        return [self.with_jobs([job]) for job in jobs]

    def played(self, difference: Difference | None = None) -> Instant:
        """See `Moment`."""
        cluster = self.cluster if difference is None else difference(self.cluster)
        own = {name for names in self.submitted for name in names}
        workloads = tuple(each for each in cluster.workloads if each.key not in own)
        pods = tuple(each for each in cluster.pods if each.key not in own)
        there = replace(cluster, workloads=workloads, pods=pods)
        from harness.runs.replaying import jobs_of  # loads polars; see `Question`

        jobs = jobs_of(self.plan, self._arrivals(cluster, own))
        return played(jobs.chunks(), there, self.scheduler, self.at)

    def lacks_room(self, names: Collection[str], difference: Difference) -> bool:
        """See `Moment`. This is not known before the replay."""
        return False

    def turns(self, names: Sequence[str], difference: Difference) -> list[Turn] | None:
        """See `Moment`. This is not known before the replay."""
        return None

    def asked(self, tell: Callable[[Instant], T], difference: Difference | None = None) -> T:
        """See `Moment`."""
        return tell(self.played(difference))

    def _arrivals(self, cluster: Cluster, own: set[str]) -> list[Arrival]:
        if not own:
            return []
        workloads = tuple(each for each in cluster.workloads if each.key in own)
        pods = tuple(each for each in cluster.pods if each.key in own)
        made = running_jobs(self.plan.policy, replace(cluster, workloads=workloads, pods=pods, as_of=None), 0)
        arrivals: list[Arrival] = [(replace(arrival[0], submit=self.at), ENDLESS, None) for arrival in made]
        missing = own - {arrival[0].id for arrival in arrivals}
        if missing:
            raise InputError(f"{min(missing)}: {self.plan.policy.name} does not schedule it")
        return arrivals

    def over_since(self, instant: Instant) -> int | None:
        """Returns when all jobs of the trace had ended, in microseconds since the origin, or else None."""
        own = {name for names in self.submitted for name in names}
        lives = [life for name, life in instant.lives.items() if name not in own]
        if len(lives) < self.plan.trace.frame.height or not all(life.over for life in lives):
            return None
        return max((life.ended for life in lives), default=0)

    @cached_property
    def waiting(self) -> Sequence[str]:
        """See `Moment`."""
        before = replace(self, cluster=self.plan.cluster, submitted=())
        return [
            life.job.id
            for life in before.played().lives.values()
            if not life.over and life.started in (NEVER, self.at) and not life.evicted
        ]

    @property
    def leaving(self) -> frozenset[str]:
        """See `Moment`."""
        return frozenset()

    @property
    def reserved(self) -> Mapping[str, Sequence[CheckState]]:
        """See `Moment`. In a replay, the admission checks in manifests are ready."""
        return {}


def instant_of(text: str, trace: Trace) -> int:
    """Converts a time in the trace's form, or a duration, to microseconds since the trace's origin.

    Raises:
        InputError: the text is neither a time nor a duration, or the time is before the origin.
    """
    found = _instant_of(text, trace)
    if found < 0:
        raise InputError(f"at: {text} is before the beginning of the trace")
    return found


def _instant_of(text: str, trace: Trace) -> int:
    if trace.kind == "timestamp":
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            zone = UTC if trace.time_zone in (None, "UTC") else ZoneInfo(trace.time_zone)
            return since_1970(moment, zone) - trace.origin
    try:
        return parse_duration(text)
    except InputError as error:
        examples = "2017-10-05 14:52:04 or 30d12h" if trace.kind == "timestamp" else "30d12h"
        raise InputError(
            f"at: {text!r} is not a time of the trace", hint=f"write it as {examples}"
        ) from error
