"""Kueue as a policy of a replay: jobs become workloads, outcomes of cycles become decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, final

from harness.cluster.model import Cluster
from harness.job import Job
from harness.policy import Admit, Decision, Preempt, Reject, Why
from harness_plugins.kueue.admission import Admitted
from harness_plugins.kueue.assignment import Assignment
from harness_plugins.kueue.configuration import Gates
from harness_plugins.kueue.scheduler import Scheduler
from harness_plugins.kueue.search import Target
from harness_plugins.kueue.workload import Workload

_QUIET = 3
"""Cycles in a row that change nothing after which nothing more is expected at this instant."""


@final
class KueuePolicy:
    """Admits and preempts as Kueue's scheduler does.

    Args:
        scheduler: the scheduler.
        cluster: which queue a job's queue name means.
    """

    def __init__(self, scheduler: Scheduler, cluster: Cluster) -> None:
        self.scheduler = scheduler
        self._cluster = cluster
        self._workloads: dict[int, Workload] = {}
        self._homeless: list[Job] = []
        self._deciding = False
        self._gone: list[Workload] = []
        self._flavors: dict[tuple[int, Any], Mapping[str, Mapping[str, str]]] = {}

    def submit(self, job: Job, pods: range, now: int) -> None:
        """A job arrived, or is back: those return to their queue when their quota is released."""
        if job.index in self._workloads:
            return
        queue = self._cluster.cluster_queue_of(job.namespace, job.queue)
        if queue is None:
            self._homeless.append(job)
            return
        workload = self.scheduler.workload_of(job, self.scheduler.pending[queue.name])
        self._workloads[job.index] = workload
        self.scheduler.enqueue(workload)

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """A job ended, or is gone; the scheduler hears of what goes during its cycle after the cycle."""
        workload = self._workloads[job.index]
        if why is Why.ENDED:
            self.scheduler.free(workload)
            del self._workloads[job.index]
        elif self._deciding:
            self._gone.append(workload)
        else:
            self._return(workload)

    def cycle(self, now: int) -> Iterator[Decision]:
        """Run cycles until several in a row change nothing."""
        for job in self._homeless:
            yield Reject(job, f"there is no LocalQueue or ClusterQueue {job.queue}")
        self._homeless.clear()
        idle = 0
        while idle < _QUIET:
            before = self.scheduler.cycles
            yield from self.one_cycle(now)
            if self.scheduler.cycles == before:
                break
            idle = idle + 1 if self.scheduler.idle else 0

    def one_cycle(self, now: int) -> Iterator[Decision]:
        """Run one cycle, then what follows from it."""
        scheduler = self.scheduler
        admitted: list[Admitted] = []
        evicted: list[Target] = []
        self._deciding = True
        for outcome in scheduler.cycle():
            if isinstance(outcome, Admitted):
                admitted.append(outcome)
                yield self._admit(outcome)
                continue
            for target in sorted(outcome.targets, key=lambda target: target.workload.name):
                if target.workload.evicted:  # it is going already
                    continue
                evicted.append(target)
                yield Preempt(target.workload.job, outcome.preemptor.job, target.reason)
        self._deciding = False
        for each in admitted:
            scheduler.reserve(each, now)
        for target in evicted:
            scheduler.evict(target, now)
        for workload in self._gone:
            self._return(workload)
        self._gone.clear()

    def _return(self, workload: Workload) -> None:
        """An evicted workload is gone: its quota is free, and it waits again."""
        if workload.queue is not None:
            self.scheduler.free(workload)
            self.scheduler.enqueue(workload)

    def _admit(self, admitted: Admitted) -> Admit:
        workload, assignment = admitted
        detail: dict[str, Any] = {"borrowing": assignment.borrowing}
        counts = self.counts_of(workload, assignment)
        if counts:
            detail["counts"] = counts
        return Admit(workload.job, self.flavors_of(workload, assignment), counts, detail)

    def counts_of(self, workload: Workload, assignment: Assignment) -> Mapping[str, int]:
        """Pod set -> pods, for pod sets that get fewer than they asked for."""
        return {
            pod_set.name: count
            for pod_set, count in zip(workload.asks.pod_sets, assignment.counts, strict=True)
            if count != pod_set.count
        }

    def flavors_of(self, workload: Workload, assignment: Assignment) -> Mapping[str, Mapping[str, str]]:
        """Pod set -> resource -> flavor; the same object for the same choice."""
        offers = self.scheduler.nominator.offers(workload)
        key = (id(offers), assignment.chosen)
        flavors = self._flavors.get(key)
        if flavors is None:
            flavors = self._flavors[key] = {
                pod_set.pod_set.name: {
                    resource: group.flavors[flavor]
                    for group, flavor in zip(pod_set.groups, chosen, strict=True)
                    for resource in group.resources
                }
                for pod_set, chosen in zip(offers, assignment.chosen, strict=True)
            }
        return flavors


def make(cluster: Cluster, *, gates: Gates, strategies: tuple[str, ...] | None) -> KueuePolicy:
    """A policy for one replay."""
    return KueuePolicy(Scheduler(cluster, gates, strategies), cluster)
