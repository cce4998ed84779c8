"""The moment that is asked about: what a cluster holds and has waiting, and the jobs that are submitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from harness.base.errors import InputError
from harness.runs.estimates.present import Present, present_of
from harness.runs.questions import running_jobs
from harness.studies.forecasting.new_job import Job as Manifest
from harness.studies.forecasting.new_job import submitted
from harness.studies.simulation.instant import Instant, Scheduler, played

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.policy import Arrival

Difference = Callable[["Cluster"], "Cluster"]
"""Makes another cluster of one."""


class Asked(NamedTuple):
    """A job that is submitted.

    Attributes:
        manifest: what is submitted.
        source: where it is from, for messages.
    """

    manifest: Manifest
    source: str


class Moment(Protocol):
    """What is asked about."""

    @property
    def cluster(self) -> Cluster:
        """What there is, with the jobs that are submitted."""

    @property
    def scheduler(self) -> Scheduler:
        """Who decides."""

    @property
    def submitted(self) -> Sequence[tuple[str, ...]]:
        """Of each job that is submitted the ids of the scheduler's jobs: several where it is several Pods."""

    @property
    def waiting(self) -> Sequence[str]:
        """The ids of the jobs that wait before the instant, without those that are submitted."""

    @property
    def leaving(self) -> frozenset[str]:
        """The ids of the jobs that had been told to go before."""

    def with_jobs(self, jobs: Iterable[Asked]) -> Self:
        """The same with some jobs that are submitted one after the other.

        Raises:
            InputError: one of them is faulty, or the scheduler does not schedule it.
        """

    def played(self, difference: Difference | None = None) -> Instant:
        """What is decided.

        Args:
            difference: what is different of the cluster; None for nothing.
        """


@dataclass(frozen=True)
class Dump:
    """What `kubectl get` printed of a live cluster, in the first instant of a replay that begins with it.

    Attributes:
        cluster: as `harness.runs.at_start.as_it_stands` has it, with the jobs that are submitted.
        scheduler: who decides.
        submitted: see `Moment`.
    """

    cluster: Cluster
    scheduler: Scheduler
    submitted: tuple[tuple[str, ...], ...] = ()

    def with_jobs(self, jobs: Iterable[Asked]) -> Dump:
        """See `Moment`."""
        cluster, asked = self.cluster, list(self.submitted)
        sources = []
        queued = self.scheduler.policy.admits_by_queues(cluster)
        for job in jobs:
            more = submitted(cluster, job.manifest, job.source, queued=queued)
            own = [each.key for each in more.workloads[len(cluster.workloads) :]]
            own += [each.key for each in more.pods[len(cluster.pods) :]]
            cluster = more
            asked.append(tuple(own))
            sources.append(job.source)
        made = replace(self, cluster=cluster, submitted=tuple(asked))
        taken = {arrival[0].id for arrival in made.arrivals} if sources else set[str]()
        for source, names in zip(sources, asked[len(self.submitted) :], strict=True):
            if not taken.issuperset(names):
                raise InputError(
                    f"{source}: {self.scheduler.policy.name} does not schedule it",
                    hint="a job that names a queue is one of Kueue's, one without is kube-scheduler's",
                )
        return made

    def played(self, difference: Difference | None = None) -> Instant:
        """See `Moment`."""
        cluster = self.cluster if difference is None else difference(self.cluster)
        same = cluster.workloads is self.cluster.workloads and cluster.pods is self.cluster.pods
        arrivals = self.arrivals if same else running_jobs(self.scheduler.policy, cluster, 0)
        return played([list(arrivals)], cluster, self.scheduler)

    @cached_property
    def waiting(self) -> Sequence[str]:
        """See `Moment`."""
        own = {name for names in self.submitted for name in names}
        return [each.job.id for each in self._present if each.waits and each.job.id not in own]

    @cached_property
    def leaving(self) -> frozenset[str]:
        """See `Moment`."""
        return frozenset(each.job.id for each in self._present if each.leaving)

    @cached_property
    def arrivals(self) -> Sequence[Arrival]:
        """The jobs of the instant, in order."""
        return running_jobs(self.scheduler.policy, self.cluster, 0)

    @cached_property
    def _present(self) -> list[Present]:
        return present_of([arrival[0] for arrival in self.arrivals], self.cluster, None)
