"""Defines the moment that a simulation is about, with the jobs that run, wait or are submitted then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, Self, TypeVar

from harness.base.errors import InputError
from harness.base.units import date_text, exact_duration
from harness.cluster.changes.edits import Edit
from harness.cluster.kinds.pods import Pod
from harness.cluster.kinds.workloads import CheckState, Workload
from harness.cluster.model import Cluster
from harness.cluster.standing import standing_of
from harness.plugins.registries import PolicySpec
from harness.policy import Arrival
from harness.runs.estimates.present import is_leaving, lacks_something
from harness.runs.questions import running_jobs
from harness.studies.forecasting.new_job import NO_QUEUE, submitted
from harness.studies.forecasting.new_job import Job as Manifest
from harness.studies.simulation.differences import OF_THE_CLUSTER
from harness.studies.simulation.instant import Change, Instant, Prepared, Scheduler, Turn, played

T = TypeVar("T")

Difference = partial["Cluster"]
"""A call of a function in `harness.studies.simulation.differences` that returns a changed cluster."""


class Asked(NamedTuple):
    """A submitted job.

    Attributes:
        source: the origin of the manifest, for messages.
    """

    manifest: Manifest
    source: str


def with_submitted(
    cluster: Cluster, jobs: Iterable[Asked], policy: PolicySpec
) -> tuple[Cluster, list[tuple[str, ...]]]:
    """Returns the cluster with the submitted jobs, and the names of each job's Workloads and Pods.

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
class Moment(ABC):
    """The moment that a question is about.

    Attributes:
        cluster: the cluster, including the submitted jobs.
        submitted: the scheduler's ids for each submitted job. A job of several Pods has several ids.
    """

    cluster: Cluster
    scheduler: Scheduler
    submitted: tuple[tuple[str, ...], ...] = ()

    @property
    def own(self) -> set[str]:
        """The ids of all submitted jobs."""
        return {name for names in self.submitted for name in names}

    @property
    @abstractmethod
    def waiting(self) -> Sequence[str]:
        """The ids of the jobs that wait before the instant. Submitted jobs are not among them."""

    @property
    def leaving(self) -> frozenset[str]:
        """The ids of the jobs whose eviction began before the instant."""
        return frozenset()

    @property
    def reserved(self) -> Mapping[str, Sequence[CheckState]]:
        """Maps the ids of jobs that hold quota to the admission checks for which they wait."""
        return {}

    @abstractmethod
    def told(self, time: int) -> str:
        """Formats a time in microseconds since the origin."""

    @abstractmethod
    def with_jobs(self, jobs: Iterable[Asked]) -> Self:
        """Returns the same moment with further jobs, which are submitted one after another.

        Raises:
            InputError: a job is faulty, or the scheduler does not schedule it.
        """

    def with_each(self, jobs: Sequence[Asked]) -> Sequence[Self]:
        """Returns a copy of the moment for each job, to which only that job is added; see `with_jobs`."""
        return [self.with_jobs([job]) for job in jobs]

    @abstractmethod
    def played(self, difference: Difference | None = None) -> Instant:
        """Simulates the instant, and returns its decisions.

        `difference` is a change to the cluster, or None.
        """

    def lacks_room(self, names: Collection[str], difference: Difference) -> bool:
        """Returns True if it is known that one of the jobs fits on no nodes after a change.

        If the result is False, the jobs may or may not start.
        """
        return False

    def turns(self, names: Sequence[str], difference: Difference) -> list[Turn] | None:
        """Returns the policy's decisions about submitted jobs after a change; None if they are unknown.

        The ClusterQueues of all these jobs must be in the same tree of cohorts. Admitted jobs may still have
        to wait for nodes.
        """
        return None

    def asked(self, tell: Callable[[Instant], T], difference: Difference | None = None) -> T:
        """Simulates the instant, perhaps in a copy of the process, and returns the result of `tell` for it.

        `tell` returns a picklable value for the instant. For `difference`, see `played`.
        """
        return tell(self.played(difference))


@dataclass(frozen=True)
class Dump(Moment):
    """The moment of a dump of a live cluster, which is the first instant of a replay from the dump.

    Attributes:
        cluster: the cluster from `harness.runs.at_start.as_it_stands`, with the submitted jobs.
        whole: the moment in which all jobs of the question are submitted, if each of them is asked about
            separately; otherwise None. An instant is prepared once for `whole`, and then used for each job.
    """

    whole: Dump | None = None

    def told(self, time: int) -> str:
        """Formats a time as a date, or as a duration if the manifests have no dates."""
        at = self.cluster.as_of
        return exact_duration(time) if at is None else date_text(at + time)

    def with_jobs(self, jobs: Iterable[Asked]) -> Dump:
        """Returns the same moment with further submitted jobs; see `Moment`."""
        asked = list(jobs)
        made = self._with(asked)
        made.check(asked)
        return made

    def with_each(self, jobs: Sequence[Asked]) -> list[Dump]:
        """Returns a copy of the moment for each job, to which only that job is added; see `Moment`.

        The copies share a prepared instant (`whole`), unless some jobs are Pods or have equal names. In a
        shared instant, Pods of the same gang would become one job.
        """
        alone = [self._with([job]) for job in jobs]
        there = len(self.cluster.workloads)
        workloads = [each for one in alone for each in one.cluster.workloads[there:]]
        asked = [names for one in alone for names in one.submitted[len(self.submitted) :]]
        if len({each.key for each in workloads}) < sum(map(len, asked)):
            return list(super().with_each(jobs))
        cluster = replace(self.cluster, workloads=(*self.cluster.workloads, *workloads))
        whole = replace(self, cluster=cluster, submitted=(*self.submitted, *asked))
        whole.check(jobs)
        return [replace(one, whole=whole) for one in alone]

    def _with(self, jobs: Sequence[Asked]) -> Dump:
        """Returns the same moment with jobs, even if the scheduler does not schedule them."""
        cluster, names = with_submitted(self.cluster, jobs, self.scheduler.policy)
        return replace(self, cluster=cluster, submitted=(*self.submitted, *names))

    def check(self, jobs: Sequence[Asked]) -> None:
        """Raises an error unless the scheduler schedules these jobs, which are the last submitted ones.

        Raises:
            InputError: the scheduler does not schedule one of the jobs.
        """
        taken = {arrival[0].id for arrival in self.arrivals} if jobs else set[str]()
        for job, names in zip(jobs, self.submitted[-len(jobs) :] if jobs else (), strict=True):
            if not taken.issuperset(names):
                raise InputError(
                    f"{job.source}: {self.scheduler.policy.name} does not schedule it", hint=NO_QUEUE
                )

    def played(self, difference: Difference | None = None) -> Instant:
        """Simulates the instant, and returns its decisions; see `Moment`."""
        cluster = self.cluster if difference is None else difference(self.cluster)
        same = cluster.workloads is self.cluster.workloads and cluster.pods is self.cluster.pods
        arrivals = self.arrivals if same else running_jobs(self.scheduler.policy, cluster, 0)
        return played([list(arrivals)], cluster, self.scheduler)

    def asked(self, tell: Callable[[Instant], T], difference: Difference | None = None) -> T:
        """Simulates the instant, and returns the result of `tell` for it; see `Moment`."""
        change = self._change(difference) if self._shared.is_ready else None
        if change is None:
            return super().asked(tell, difference)
        return self._shared.prepared.asked(change, tell)

    def turns(self, names: Sequence[str], difference: Difference) -> list[Turn] | None:
        """Returns the policy's decisions about submitted jobs after a change; see `Moment`."""
        change = self._change(difference) if self._shared.is_ready else None
        return None if change is None else self._shared.prepared.turns(change, names)

    def lacks_room(self, names: Collection[str], difference: Difference) -> bool:
        """Returns True if it is known that one of the jobs fits on no nodes; see `Moment`."""
        if not self._shared.is_ready:
            return False
        # Changes of only the cluster do not affect the jobs or the free capacity.
        change = self._change(None if difference.func in OF_THE_CLUSTER else difference)
        jobs = () if change is None else (arrival[0] for arrival in change.arrivals)
        return any(self._shared.prepared.lacks_room(job) for job in jobs if job.id in names)

    # --- shared between questions----------------------------------------------------------------------------

    @property
    def _shared(self) -> Dump:
        return self if self.whole is None else self.whole

    @cached_property
    def prepared(self) -> Prepared:
        """The prepared instant, from which each question continues."""
        holders, waiting = self._sides
        return Prepared(holders, waiting, self.cluster, self.scheduler)

    @cached_property
    def is_ready(self) -> bool:
        """Returns True if waiting jobs can arrive after the holders of quota without changing the result.

        The order matters if pods of both groups need nodes, because the scheduler places these pods together.
        """
        cluster = self.cluster
        holders, waiting = self._sides
        pods = {each.key for each in cluster.pods}
        alone = any(arrival[0].id in pods for arrival in (*waiting, *self._own))
        lacking = alone and any(not self._is_in_its_place(arrival[0].id) for arrival in holders)
        return bool(self._own) and not lacking and self.prepared.whole

    def _is_in_its_place(self, name: str) -> bool:
        each = self._work[name]
        if isinstance(each, Pod):
            return name in self.cluster.staying
        standing = standing_of(self.cluster, each)
        bound = sum(pod.key in self.cluster.staying for pod in standing.pods.values())
        return not self.cluster.nodes or bound == standing.wanted

    @cached_property
    def _own(self) -> list[Arrival]:
        own = self.own
        return [arrival for arrival in self._shared.arrivals if arrival[0].id in own]

    @cached_property
    def _sides(self) -> tuple[list[Arrival], list[Arrival]]:
        """The jobs that hold quota or nodes, and all other jobs, without submitted jobs."""
        own = {arrival[0].id for arrival in self._own}
        holders: list[Arrival] = []
        waiting: list[Arrival] = []
        for arrival in self.arrivals:
            if arrival[0].id not in own:
                (holders if _holds(self._work[arrival[0].id]) else waiting).append(arrival)
        return holders, waiting

    @cached_property
    def _work(self) -> Mapping[str, Workload | Pod]:
        several: list[Workload | Pod] = [*self.cluster.workloads, *self.cluster.pods]
        return {each.key: each for each in several}

    def _change(self, difference: Difference | None) -> Change | None:
        """Returns the effects of a change on the submitted jobs and the queues.

        The result is None if the change has other effects, or if the policy must know it from the beginning.
        """
        if difference is None:
            return Change(self._own)
        if difference not in self._latest:
            self._latest.clear()
            self._latest[difference] = self._change_by(difference)
        return self._latest[difference]

    @cached_property
    def _latest(self) -> dict[Difference, Change | None]:
        """The effects of the latest change, which is often asked about several times."""
        return {}

    def _change_by(self, difference: Difference) -> Change | None:
        before, after = self.cluster, difference(self.cluster)
        queues = before.cluster_queues
        edits = [
            Edit("ClusterQueue", name, queues[name], queue)
            for name, queue in after.cluster_queues.items()
            if queue is not queues[name]
        ]
        # A changed stop policy affects waiting jobs, too.
        stopped = any(edit.before.stop_policy != edit.after.stop_policy for edit in edits)
        if stopped or after.elastic_quotas is not before.elastic_quotas:
            return None
        if edits and not self._shared.prepared.hears:
            return None
        if after.workloads is before.workloads and after.pods is before.pods:
            return Change(self._own, edits)
        arrivals = self._made_again(after)
        return None if arrivals is None else Change(arrivals, edits)

    def _made_again(self, cluster: Cluster) -> list[Arrival] | None:
        """Returns the submitted jobs as the policy reads them from changed manifests.

        If the priority of a job has changed, the job gets a new index, after all other jobs. The result is
        None if a manifest has changes that a job can't express.
        """
        there = self.cluster
        workloads = tuple(
            each for each, was in zip(cluster.workloads, there.workloads, strict=True) if each is not was
        )
        pods = tuple(each for each, was in zip(cluster.pods, there.pods, strict=True) if each is not was)
        changed = {*(each.key for each in workloads), *(each.key for each in pods)}
        own = {arrival[0].id: arrival[0] for arrival in self._own if arrival[0].id in changed}
        made = running_jobs(self.scheduler.policy, replace(cluster, workloads=workloads, pods=pods), 0)
        if len(made) != len(own):
            return None
        found = [arrival for arrival in self._own if arrival[0].id not in changed]
        first = self._shared.next_index
        for number, arrival in enumerate(made):
            job, before = arrival[0], own[arrival[0].id]
            index = before.index
            if job.priority != before.priority:
                index = first + number
                if any(each.boost or each.gated_by for each in workloads):
                    return None
            found.append((replace(job, index=index), *arrival[1:]))
        return sorted(found, key=lambda arrival: arrival[0].index)

    @cached_property
    def waiting(self) -> Sequence[str]:
        """The ids of the jobs that wait before the instant; see `Moment`."""
        if self.whole is not None:
            return self.whole.waiting
        own = self.own
        names = [arrival[0].id for arrival in self.arrivals if arrival[0].id not in own]
        leaving, cluster = self.leaving, self.cluster
        held = leaving | self.reserved.keys()
        return [each for each in names if each in held or lacks_something(cluster, self._work[each])]

    @cached_property
    def leaving(self) -> frozenset[str]:
        """The ids of the jobs whose eviction began before the instant; see `Moment`."""
        if self.whole is not None:
            return self.whole.leaving
        names = (arrival[0].id for arrival in self.arrivals)
        return frozenset(each for each in names if is_leaving(self._work[each]))

    @cached_property
    def reserved(self) -> Mapping[str, Sequence[CheckState]]:
        """Maps jobs that hold quota to the admission checks for which they wait; see `Moment`."""
        return {each.key: each.unready for each in self.cluster.workloads if each.awaits_checks}

    @cached_property
    def arrivals(self) -> Sequence[Arrival]:
        """The jobs of the instant, in order of arrival."""
        return running_jobs(self.scheduler.policy, self.cluster, 0)

    @cached_property
    def next_index(self) -> int:
        """The largest index of a job in the instant, plus 1."""
        return 1 + max(arrival[0].index for arrival in self.arrivals)


def _holds(each: Workload | Pod) -> bool:
    return bool(each.node) if isinstance(each, Pod) else each.holds_quota
