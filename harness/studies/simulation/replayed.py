"""Simulates an instant in the replay of a trace, at which jobs are submitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from harness.base.errors import InputError, OptionError
from harness.base.units import date_text, exact_duration, parse_duration, since_1970
from harness.engine.events import NEVER
from harness.policy import ENDLESS, Arrival
from harness.runs.questions import running_jobs
from harness.studies.simulation.instant import Instant, played
from harness.studies.simulation.moment import Asked, Difference, Moment, with_submitted

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.runs.plan import Plan
    from harness.trace.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Replayed(Moment):
    """An instant of a replay, in which the admission checks in manifests are ready.

    Attributes:
        at: the instant, in microseconds since the origin.
    """

    plan: Plan
    at: int

    def told(self, time: int) -> str:
        """Formats a time as a date, or as a duration if the trace has no dates."""
        trace = self.plan.trace
        return date_text(trace.origin + time) if trace.kind == "timestamp" else exact_duration(time)

    def with_jobs(self, jobs: Iterable[Asked]) -> Replayed:
        """Returns the same instant with further submitted jobs; see `Moment`."""
        policy = self.plan.policy
        if policy.running is None and jobs:
            raise OptionError(
                f"{policy.name} reads no jobs from manifests, so you cannot submit a job to it",
                hint="name another plugin with -p",
            )
        cluster, names = with_submitted(self.cluster, jobs, policy)
        return replace(self, cluster=cluster, submitted=(*self.submitted, *names))

    def played(self, difference: Difference | None = None) -> Instant:
        """Simulates the instant, and returns its decisions; see `Moment`."""
        cluster = self.cluster if difference is None else difference(self.cluster)
        own = self.own
        workloads = tuple(each for each in cluster.workloads if each.key not in own)
        pods = tuple(each for each in cluster.pods if each.key not in own)
        there = replace(cluster, workloads=workloads, pods=pods)
        from harness.runs.replaying import jobs_of  # loads polars; see `Question`

        jobs = jobs_of(self.plan, self._arrivals(cluster, own))
        return played(jobs.chunks(), there, self.scheduler, self.at)

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
        """Returns the time when the last job of the trace had ended, or None if some jobs have not ended.

        The time is in microseconds since the origin.
        """
        own = self.own
        lives = [life for name, life in instant.lives.items() if name not in own]
        if len(lives) < self.plan.trace.frame.height or not all(life.over for life in lives):
            return None
        return max((life.ended for life in lives), default=0)

    @cached_property
    def waiting(self) -> Sequence[str]:
        """The ids of the jobs that wait before the instant; see `Moment`."""
        before = replace(self, cluster=self.plan.cluster, submitted=())
        return [
            life.job.id
            for life in before.played().lives.values()
            if not life.over and life.started in (NEVER, self.at) and not life.evicted
        ]


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
