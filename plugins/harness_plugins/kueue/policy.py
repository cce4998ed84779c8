"""Kueue as a policy of a replay: jobs become workloads, outcomes of cycles become decisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

from harness.cluster.model import Cluster
from harness.job import Job
from harness.policy import Admit, Decision, Preempt, Refuse, Reject, Wake, Why
from harness_plugins.evictions import Evictions
from harness_plugins.kueue.admission import Admitted, Preempted
from harness_plugins.kueue.asks import Asks
from harness_plugins.kueue.assignment import Assignment
from harness_plugins.kueue.beginning import Beginning, Start
from harness_plugins.kueue.figures import Figures
from harness_plugins.kueue.scheduler import Scheduler
from harness_plugins.kueue.search import Target
from harness_plugins.kueue.workload import Workload

if TYPE_CHECKING:
    from harness_plugins.kueue.binding import Binder

_ALL: Mapping[str, int] = {}
"""No pod set gets another number of pods than usual."""

_QUIET = 3
"""Cycles in a row that change nothing after which nothing more is expected at this instant."""


@final
class KueuePolicy:
    """Admits and preempts as Kueue's scheduler does.

    Args:
        scheduler: the scheduler.
        cluster: which queue a job's queue name means.
        latency: how long it takes until the scheduler knows that an evicted job is gone, microseconds; None
            where it knows at once however often that happens, see `Evictions`.
        binder: binds the pods of admitted jobs; None where they start as a whole.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        cluster: Cluster,
        *,
        latency: int | None = None,
        binder: Binder | None = None,
    ) -> None:
        self.scheduler = scheduler
        self._cluster = cluster
        self._figures = Figures(scheduler.cache, scheduler.shares if scheduler.fair else None)
        self._evictions: Evictions[Workload] = Evictions(latency)
        self._binder = binder
        self._workloads: dict[int, Workload] = {}
        self._beginning = Beginning(cluster)
        self._present: list[tuple[Workload, Start]] = []
        doors = cluster.local_queues.items()
        self._stopped = {key: local.stop_policy for key, local in doors if local.stop_policy != "None"}
        self._homeless: list[Job] = []
        self._inactive: list[tuple[Job, str]] = []
        self._now: int | None = None
        self._deciding = False
        self._gone: list[Workload] = []
        self._sample = 0
        self._flavors: dict[tuple[int, Any], Mapping[str, Mapping[str, str]]] = {}

    def submit(self, job: Job, pods: range, now: int) -> None:
        """A job arrived, or is back: those return to their queue when their quota is released."""
        self._hear(now)
        if job.index in self._workloads:
            return
        self._evictions.progress()
        start = self._beginning.start_of(job)
        if start is not None:
            workload = self._workloads[job.index] = self.scheduler.take_over(start, job, self._beginning)
            if workload.queue is None:
                self._enqueue(workload)
            else:
                self._present.append((workload, start))
            return
        queue = self._cluster.cluster_queue_of(job.namespace, job.queue)
        if queue is None:
            self._homeless.append(job)
            return
        workload = self.scheduler.workload_of(job, self.scheduler.pending[queue.name])
        self._workloads[job.index] = workload
        self._enqueue(workload)

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Pods ended, or a job is gone; the scheduler hears after its cycle of what goes during it."""
        self._hear(now)
        workload = self._workloads[job.index]
        if why is Why.ENDED:
            self._end(workload, pods)
            return
        if self._binder is not None:
            self._binder.leave(job)
        if self._deciding:
            self._gone.append(workload)
        else:
            self._leave(workload, now)

    def cycle(self, now: int) -> Iterator[Decision]:
        """Run cycles until several in a row change nothing, then bind pods."""
        self._hear(now)
        for job in self._homeless:
            yield Reject(job, f"there is no LocalQueue or ClusterQueue {job.queue}")
        self._homeless.clear()
        if self._present:
            yield from self._begin(now)
        for workload in self._evictions.due(now):
            self._return(workload)
        scheduler = self.scheduler
        idle = 0
        while idle < _QUIET:
            before = scheduler.cycles
            outcomes = scheduler.cycle()
            if scheduler.cycles == before:
                scheduler.rest(_QUIET - idle)
                break
            if outcomes:
                yield from self._carry_out(outcomes, now)
            idle = idle + 1 if scheduler.idle else 0
        for job, message in self._inactive:
            yield Refuse(job, "Inadmissible", {"message": message})
        self._inactive.clear()
        yield from self._evictions.wakes()
        sample = self.scheduler.next_sample()
        if sample is not None and not now < self._sample <= sample:
            self._sample = sample
            yield Wake(sample)
        if self._binder is not None:
            yield from self._binder.run()
        yield from self._figures.changed_shares()

    def _hear(self, now: int) -> None:
        """It is `now`; whoever keeps time hears of it once an instant."""
        if now == self._now:
            return
        self._now = now
        self.scheduler.hear(now)
        if self._binder is not None:
            self._binder.hear(now)

    def _carry_out(self, outcomes: Iterable[Admitted | Preempted], now: int) -> Iterator[Decision]:
        """Say what comes of a cycle while it runs, then do what follows from it."""
        scheduler = self.scheduler
        admitted: list[Admitted] = []
        evicted: list[Target] = []
        self._deciding = True
        for outcome in outcomes:
            if isinstance(outcome, Admitted):
                admitted.append(outcome)
                admit = self._admit(outcome)
                if self._binder is not None:
                    self._binder.start(admit.job, admit.flavors, admit.counts)
                yield admit
            else:
                evicted += outcome.targets
                yield from self._preempt(outcome, now)
        self._deciding = False
        for each in admitted:
            scheduler.reserve(each, now)
        for target in evicted:
            scheduler.evict(target, now)
        for workload in self._gone:
            self._leave(workload, now)
        self._gone.clear()
        for refused in scheduler.refused:
            detail = self._figures.refusal(refused, scheduler.nominator.offers(refused.workload))
            yield Refuse(refused.workload.job, refused.reason, detail)

    def _end(self, workload: Workload, pods: range) -> None:
        """Some or all pods of a workload have ended."""
        job = workload.job
        self._evictions.progress()
        if self._binder is not None:
            self._binder.end(job, pods)
        if len(pods) < job.pods:
            ended = _ended_so_far(workload, pods)
            if ended != workload.wanted:
                self.scheduler.reclaim(workload, ended)
                return
        self.scheduler.free(workload)
        del self._workloads[job.index]
        if self._binder is not None:
            self._binder.forget(job)

    def _leave(self, workload: Workload, now: int) -> None:
        """The pods of an evicted workload are gone; its quota is free as soon as the scheduler knows."""
        if workload.queue is None or workload.leaving:
            return
        if self._evictions.leave(workload, workload.name, workload.round, now) == now:
            self._return(workload)
        else:
            workload.leaving = True

    def _return(self, workload: Workload) -> None:
        """An evicted workload's quota is free, and it waits again."""
        workload.leaving = False
        self.scheduler.free(workload)
        self._enqueue(workload)

    def _enqueue(self, workload: Workload) -> None:
        """A workload waits in its queue; where that or its LocalQueue is inactive, for good."""
        job, queue = workload.job, workload.home.queue
        if (job.namespace, job.queue) in self._stopped:
            self._inactive.append((job, f"LocalQueue {job.namespace}/{job.queue} is inactive"))
            return
        if not queue.usable:
            self._inactive.append((job, f"ClusterQueue {queue.name} is inactive"))
        self.scheduler.enqueue(workload)

    def _begin(self, now: int) -> Iterator[Decision]:
        """Say who held quota before the replay began, and let those go that may not keep it.

        Where they hold more than there is, some were admitted because others are going: those go first.
        """
        present = [(workload, start, self._to_leave(workload, start)) for workload, start in self._present]
        self._present.clear()
        parts = [present]
        if self._beginning.crowded:
            parts = [[each] for each in present if each[2]]
            parts.append([each for each in present if not each[2]])
        for part in parts:
            for workload, start, _ in part:
                if self._binder is not None:
                    self._binder.start(workload.job, start.flavors, start.counts)
                yield Admit(workload.job, start.flavors, start.counts)
            for workload, _, reason in part:
                if reason:
                    if not workload.evicted:
                        self.scheduler.evict(Target(workload, reason), now)
                    if self._binder is not None:
                        self._binder.stop(workload.job)
                    yield Preempt(workload.job, None, reason)

    def _to_leave(self, workload: Workload, start: Start) -> str:
        """Why a workload may not keep the quota that it held before; "" if it may."""
        if workload.evicted:
            return start.manifest.conditions["Evicted"].reason or "Evicted"
        if workload.home.queue.spec.stop_policy == "HoldAndDrain":
            return "ClusterQueueStopped"
        if self._stopped.get((workload.job.namespace, workload.job.queue)) == "HoldAndDrain":
            return "LocalQueueStopped"
        return ""

    def _preempt(self, preempted: Preempted, now: int) -> Iterator[Preempt]:
        """Evict the targets of one preemptor, by name; those that are going already are left alone."""
        preemptor, assignment, targets = preempted
        details = self._figures.preemptions(preemptor, assignment, targets)
        for workload, reason in sorted(targets, key=lambda target: target.workload.name):
            detail = details[workload]
            held = now - workload.reserved
            workload.round = self._evictions.begin(workload.round, preemptor, held, now)
            if workload.round.number > 1:
                detail["round"] = workload.round.number
            if self._binder is not None:
                self._binder.stop(workload.job)
            yield Preempt(workload.job, preemptor.job, reason, detail=detail)

    def _admit(self, admitted: Admitted) -> Admit:
        workload, assignment = admitted
        if not workload.admissions:
            self._evictions.progress()
        detail = self._figures.admission(workload, assignment)
        fewer = counts_of(workload, assignment)
        if fewer:
            detail = {**detail, "counts": fewer}
        if assignment.placed:
            topology = {each.pod_set.name: each.as_manifest() for each in assignment.placed}
            detail = {**detail, "topology": topology}
        asks = workload.asks
        runs = named(asks, workload.running(assignment.counts), asks.present)
        return Admit(workload.job, self.flavors_of(workload, assignment), runs, detail)

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


def counts_of(workload: Workload, assignment: Assignment) -> Mapping[str, int]:
    """Pod set -> pods, for pod sets that get quota for fewer than all they ever had."""
    return named(workload.asks, assignment.counts, workload.asks.full)


def named(asks: Asks, counts: tuple[int, ...], usual: tuple[int, ...]) -> Mapping[str, int]:
    """Pod set -> pods, where that is not the usual number."""
    if counts == usual:
        return _ALL
    return {
        pod_set.name: count
        for pod_set, count, whole in zip(asks.pod_sets, counts, usual, strict=True)
        if count != whole
    }


def _ended_so_far(workload: Workload, pods: range) -> tuple[int, ...]:
    """How many pods of each pod set have ended, with these."""
    pod_sets = workload.asks.pod_sets
    ended = list(workload.ended) or [0] * len(pod_sets)
    first = 0
    for number, pod_set in enumerate(pod_sets):
        last = first + pod_set.count
        ended[number] += max(0, min(pods.stop, last) - max(pods.start, first))
        first = last
    return tuple(ended)
