"""Implements Kueue as a policy, which turns jobs into workloads and outcomes of cycles into decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, final

from harness.models.cluster import Cluster, ClusterQueue
from harness.models.kube.policy import NODE
from harness.models.kube.running import is_pod
from harness.models.never import no_queue
from harness.models.told import NOTHING_TOLD
from harness.policy import Admit, Change, Decision, Job, Never, Preempt, Refuse, Reject, Standing, Wake, Why
from harness_plugins.kueue.after_cycle import AfterCycle
from harness_plugins.kueue.executions import Executions
from harness_plugins.kueue.manifests.beginning import Beginning, Start, admitted_since
from harness_plugins.kueue.manifests.check_states import evicted_by_checks, requeue_at, why_deactivated
from harness_plugins.kueue.manifests.readiness import take_over_readiness, why_away
from harness_plugins.kueue.previews.previews import Previews
from harness_plugins.kueue.record.admissions import Admissions
from harness_plugins.kueue.record.details import DecisionDetails
from harness_plugins.kueue.record.inactive import why_inactive
from harness_plugins.kueue.record.refusals import Refused
from harness_plugins.kueue.rules.admission_checks import AdmissionChecks
from harness_plugins.kueue.rules.changes import ClosedQueues, closing, leaving
from harness_plugins.kueue.rules.entry import INADMISSIBLE, Admitted, Evicted, Outcome, Preempted, Replaced
from harness_plugins.kueue.rules.flavor_assigner import Assignment
from harness_plugins.kueue.rules.preemption import Target
from harness_plugins.kueue.rules.wait_for_pods_ready import WAITING, PodsReady
from harness_plugins.kueue.scheduler import Scheduler
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload, ended_so_far
from harness_plugins.kueue.time_limits import TimeLimits
from harness_plugins.kueue.turns import QUIET, turns_of

if TYPE_CHECKING:
    from harness_plugins.kueue.binding import Binder
    from harness_plugins.kueue.impossible import Verdict
    from harness_plugins.kueue.node_failures import NodeFailures

_FOR_PODS = "pods of admitted workloads are not ready"
"""The message for a workload that fits, but must wait until the pods of admitted workloads are ready."""

_NOTHING: Iterator[Decision] = iter(())


@final
class KueuePolicy:
    """Admits and preempts workloads in the same way as Kueue's scheduler.

    Args:
        cluster: the cluster, which maps the queue name of a job to a queue.
        latency: the time until the scheduler learns that an evicted job is gone, in microseconds. If it is
            None, the scheduler always learns this immediately (see `Evictions`).
        binder: the binder of the pods of admitted jobs, or None if pods are not bound to nodes.
        pods_ready: the tracker of workloads whose pods are not ready, or None if readiness is not checked.
        impossible: a function that finds the jobs to reject because they can never start. If it is None,
            these jobs wait forever, as in reality.
        checks: the admission checks, or None if they take no time.
        previews: rules that Kueue does not have, or None if all of them are off.
        failures: a function that creates the handler of node failures. Its argument is a function that evicts
            a workload. It is None if no workload is placed on nodes, or if no node changes.

    Attributes:
        ready: a function that is called when pods are ready (see `Policy`), or None if readiness is not
            checked.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        cluster: Cluster,
        *,
        latency: int | None = None,
        binder: Binder | None = None,
        pods_ready: PodsReady | None = None,
        impossible: Callable[[Job], Verdict | None] | None = None,
        checks: AdmissionChecks | None = None,
        previews: Previews | None = None,
        failures: Callable[[Callable[[Target], None]], NodeFailures] | None = None,
    ) -> None:
        self.scheduler = scheduler
        self._previews = previews
        self._cluster = cluster
        pending = list(scheduler.pending.values())
        self._details = DecisionDetails(
            scheduler.cache, pending, scheduler.shares if scheduler.fair else None
        )
        self._admissions = Admissions(self._details, scheduler.offers, checks)
        self._after = AfterCycle()
        self._executions = Executions(latency, binder, pods_ready)
        self._evictions = self._executions.evictions
        self._limits = TimeLimits(
            self._executions, pods_ready, self._evict, self._deactivate, self._queue_up, self._forget
        )
        self._binder = binder
        self.timers = None if binder is None else binder.timers(self._tolerated_for_a_time)
        self.pods_ready = pods_ready
        self.ready: Callable[[Job, range, int], None] | None = None
        if pods_ready is not None:
            self.ready = self._start_up
        self.failures = None if failures is None else failures(self._send_away)
        self._workloads: dict[int, Workload] = {}
        self._beginning = Beginning(cluster)
        self._present: list[tuple[Workload, Start]] = []
        self._closed = ClosedQueues(cluster)
        self._put_off: list[Change] = []
        self._checks = checks
        self._impossible = impossible
        self._rejected: list[tuple[Job, Never]] = []
        self._over: set[int] = set()
        self._inactive: dict[Workload, None] = {}  # inactive workloads whose reason is not recorded yet
        self._unwoken: dict[ClusterQueueState, str] = {}  # queue with new free quota -> why it woke nobody
        self._now = -1
        self._stirred = True  # whether anything but ready pods may matter to the next cycle
        self._blocked: Iterator[Decision | None] | None = None
        self._sample = 0

    def submit(self, job: Job, pods: range, now: int) -> None:
        """Queues a job that arrived. A job that returns enters its queue only when its quota is released."""
        self._hear(now)
        if job.index in self._workloads:
            return
        self._evictions.progressed += 1
        start = self._beginning.start_of(job)
        if start is not None:
            workload = self._workloads[job.index] = self.scheduler.take_over(start, job, self._beginning)
            if start.manifest.time_left is not None:
                self._limits.limit(workload, start.manifest.time_left)
            why = why_deactivated(start.manifest)
            if why:
                self._limits.deactivated(workload, f"{self._to_leave(workload, start)}: {why}")
            if workload.has_quota:
                self._present.append((workload, start))
            elif self._waits_out(workload, start, now, leaves=True):
                self._inactive[workload] = None
            else:
                self._queue_up(workload)
            return
        verdict = self._impossible(job) if self._impossible is not None else None
        if verdict is not None:
            self._rejected.append((job, verdict.never))
            self._over.add(job.index)
            if not verdict.waits:
                return
        if self._binder is not None and is_pod(job):
            self._binder.stand_alone(job)
            return
        queue = self._cluster.cluster_queue_of(job.namespace, job.queue)
        if queue is not None:
            self._arrive(job, queue)
        elif self._impossible is not None:
            self._closed.homeless.append(job)
        else:
            self._rejected.append((job, no_queue(self._cluster, job.namespace, job.queue)))

    def _arrive(self, job: Job, queue: ClusterQueue, *, restarts: bool = False) -> None:
        workload = self.scheduler.workload_of(job, self.scheduler.pending[queue.name])
        self._workloads[job.index] = workload
        self._after.then(partial(self._enqueue, restarts=restarts), workload)

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Handles pods that finished or are gone. The scheduler processes such events after its cycle."""
        self._hear(now)
        if self._binder is not None and job.index not in self._workloads:
            self._binder.end(job, pods)
            self._binder.forget(job)
            return
        workload = self._workloads[job.index]
        if self.failures is not None:
            self.failures.leave(workload, pods, now)
        if why is Why.ENDED:
            self._end(workload, pods)
            return
        if why is Why.LOST and self._binder is not None:
            self._binder.lost(job, pods)  # without topologies, Kueue does not watch nodes
            self._miss(job, pods)
            return
        if self._executions.left(workload, now):
            self._return(workload)

    def cycle(self, now: int) -> Iterator[Decision]:
        """Runs cycles until several of them in a row change nothing, and then binds pods.

        Kueue can block admission until the pods of all admitted workloads are ready. In this case, a cycle
        pauses until these pods are ready. The cycle does not see events that occur during the pause.
        """
        if now != self._now:
            self._advance(now)
        if not self._stirred and self.scheduler.passes(QUIET):
            return _NOTHING
        return self._cycle(now)

    def _cycle(self, now: int) -> Iterator[Decision]:
        self._stirred = self.failures is not None
        if self.failures is not None:
            yield from self.failures.act(now)
        evictions, scheduler, limits = self._evictions, self.scheduler, self._limits
        if self._rejected:
            for job, never in self._rejected:
                yield Reject(job, never.why)
            self._rejected.clear()
        if self._present:
            yield from self._begin(now)
        if evictions.returning:
            for workload in evictions.due(now):
                self._return(workload)
        if limits.active and limits.are_due(now):
            yield from limits.enforce(now)
        if self._blocked is not None or not scheduler.passes(QUIET):
            decisions = self._blocked or self._cycles()
            self._blocked = None
            for decision in decisions:
                if decision is None:
                    self._blocked, self._stirred = decisions, True
                    break
                yield decision
        if self._inactive:
            for workload in self._inactive:
                message = self._why_inactive(workload)
                if message and workload.job.index not in self._over:
                    workload.told = NOTHING_TOLD
                    yield Refuse(workload.job, INADMISSIBLE, {"message": message})
            self._inactive.clear()
        if self._unwoken and self._blocked is None:
            yield from self._overlook()
        if evictions.alarms:
            yield from evictions.wakes()
        if scheduler.local_queues is not None and self._blocked is None:
            yield from self._samples(now)
        if limits.active and (wakes := limits.wakes(now)):
            yield from wakes
        if self._previews is not None:
            yield from self._previews.wakes(now)
        if self.failures is not None:
            yield from self.failures.wakes()
        if self._binder is not None:
            for decision in self._binder.run():
                if type(decision) is Preempt:
                    self._leave(decision)
                yield decision
        if scheduler.fair and self._blocked is None:  # a paused cycle has reservations in the tree
            yield from self._details.changed_shares()

    def act(self, now: int) -> Iterator[Decision]:
        """Yields the effects of node changes at this time, before any cycle."""
        if now != self._now:
            self._advance(now)
        if self.failures is not None:
            yield from self.failures.act(now)

    def within_quota(self, job: Job, pods: Sequence[int]) -> bool:
        """Returns True if the quotas have room for these pods now, without preemption. See `Policy`.

        The result is True for Pods without a Workload, and for workloads that hold quota.
        """
        workload = self._workloads.get(job.index)
        if workload is None or (workload.has_quota and not workload.evicted):
            return True
        return not self._closed.stop_policy(job) and self.scheduler.within_quota(workload)

    def untried_up_to(self, job: Job) -> int | None:
        """Returns a priority up to which a job would not have been tried, or None if it is not known.

        See `Policy`. The result is None for a workload with a boosted priority.
        """
        workload = self._workloads.get(job.index)
        boosted = workload is None or workload.priority != job.priority
        return None if workload is None or boosted else self.scheduler.untried_up_to(workload)

    def turns(
        self,
        names: Sequence[str],
        jobs: Sequence[Job],
        changes: Sequence[Change],
        stays: Callable[[Job], bool],
    ) -> list[tuple[bool, tuple[str, ...]]] | None:
        """Returns the next cycle's decisions about jobs if they were submitted after `changes`. See `Policy`.

        The result is None in several cases, for example if trees share topology places.
        """
        limits, pods_ready, scheduler, known = self._limits, self.pods_ready, self.scheduler, self._workloads
        queues = {job.id: self._cluster.cluster_queue_of(job.namespace, job.queue) for job in jobs}
        roots = {key: scheduler.root_of(queue.name) for key, queue in queues.items() if queue is not None}
        asked = {roots.get(name) for name in names}
        root = asked.pop() if len(asked) == 1 else None
        own = [job for job in jobs if roots.get(job.id) == root]
        if (
            root is None
            or self._previews is not None
            or self.failures is not None
            or self._blocked is not None
            or self._evictions.returning
            or (pods_ready is not None and pods_ready.may_block)
            or (limits.active and limits.are_due(self._now))
            or not scheduler.can_try_out(changes)
            or not all(map(self._only_queues, own))
        ):
            return None
        progressed, inactive = self._evictions.progressed, self._inactive.copy()
        with scheduler.trial(root, changes):
            try:
                for job in own:
                    self.submit(job, range(job.pods), self._now)
                workloads = {job.id: known[job.index] for job in own}
            finally:
                for job in own:
                    known.pop(job.index, None)
                self._evictions.progressed, self._inactive = progressed, inactive
            asking = [workloads[name] for name in names]
            return turns_of(scheduler, asking, self._now, lambda each: stays(each.job), limits.ends_at_once)

    def _only_queues(self, job: Job) -> bool:
        """Returns True if a new job that is submitted only joins its queue."""
        if job.index in self._workloads:
            return False
        start = self._beginning.start_of(job)
        if start is None:
            verdict = None if self._impossible is None else self._impossible(job)
            return verdict is None and not is_pod(job) and not self._closed.stop_policy(job)
        manifest = start.manifest
        return (
            manifest.time_left is None
            and not manifest.time_outs
            and not manifest.holds_quota
            and not why_deactivated(manifest)
            and requeue_at(manifest) is None
            and not self._closed.stop_policy(job)
        )

    # --- what changes ---------------------------------------------------------------------------------------

    def changed(self, change: Change, now: int) -> Iterator[Decision]:
        """Applies a change of the cluster. See `Policy`.

        A running cycle keeps its quotas and queues until it has ended.
        """
        self._hear(now)
        if change.edit.kind == NODE:
            if self._binder is not None:
                self._binder.change(change.edit)
            if self.failures is not None:
                self._after.then(self._change_nodes, change.cluster)
                yield from self.failures.change(change.edit, now)
            if self._binder is not None:
                yield from self._of_pods(self._binder.follow_taints(change.edit))
        elif self._after.cycling:
            self._put_off.append(change)
        else:
            yield from self._follow(change)

    def _tolerated_for_a_time(self, now: int) -> Iterator[Decision]:
        self._hear(now)
        assert self._binder is not None
        yield from self._of_pods(self._binder.tolerated_for_a_time())

    def _of_pods(self, decisions: Iterable[Decision]) -> Iterator[Decision]:
        """Yields decisions on pods. Evicted pods count as gone and not ready, but the job keeps its quota."""
        for decision in decisions:
            if type(decision) is Preempt:
                self._leave(decision)
            yield decision

    def _leave(self, preempt: Preempt) -> None:
        self._hear(self._now)
        if preempt.pods is not None:
            self._miss(preempt.job, preempt.pods)
            workload = self._workloads.get(preempt.job.index)
            if self.failures is not None and workload is not None:
                self.failures.leave(workload, preempt.pods, self._now)

    def _miss(self, job: Job, pods: range) -> None:
        workload = self._workloads.get(job.index)
        if self.pods_ready is not None and workload is not None and self.pods_ready.holds(workload):
            self.pods_ready.lost(workload, self._now, pods)

    def _follow(self, change: Change) -> Iterator[Decision]:
        """Updates queues and quotas to match the cluster, and then evicts workloads of stopped queues."""
        edit, scheduler, closed = change.edit, self.scheduler, self._closed
        self._cluster = change.cluster
        scheduler.change(edit, change.cluster)
        self._details_follow()
        if self._checks is not None:
            self._checks.follow(change.cluster)
        for workload in closed.shut_out(edit, self._workloads.values()):
            if scheduler.withdraw(workload):
                closed.keep_out(workload)
                self._inactive[workload] = None
        for workload in closing(edit, scheduler.pending):
            self._inactive[workload] = None
        if edit.kind == "LocalQueue":
            for workload, drained in closed.follow(edit):
                self._enqueue(workload, restarts=not drained)
        homeless, closed.homeless = closed.homeless, []
        for job in homeless:
            known = self._cluster.cluster_queue_of(job.namespace, job.queue)
            closed.homeless.append(job) if known is None else self._arrive(job, known, restarts=True)
        admitted = partial(self._executions.is_admitted, now=self._now)
        for workload, reason in leaving(edit, self._workloads.values(), admitted):
            self._send_away(Target(workload, reason))
            closed.evicts(workload, reason)
            yield Preempt(workload.job, None, reason)

    def _change_nodes(self, cluster: Cluster) -> None:
        self.scheduler.change_nodes(cluster)
        self._details_follow()

    def _details_follow(self) -> None:
        scheduler = self.scheduler
        shares = scheduler.shares if scheduler.fair else None
        self._details.follow(scheduler.cache, list(scheduler.pending.values()), shares)

    def standing(self, now: int) -> Standing | None:
        """Returns the state of the policy, to detect a loop of idle wake-ups. See `Policy`.

        This policy requests idle wake-ups only for pods that wait for a node.
        """
        scheduler, pods = self.scheduler, self._binder.standing(now) if self._binder is not None else None
        if pods is None or scheduler.second_passes.due is not None:
            return None
        state = (*pods.state, self._blocked, scheduler.standing())
        return Standing(state, (scheduler.cycles, scheduler.heads, *pods.counts))

    def skip(self, span: int, counts: Sequence[int]) -> None:
        """Advances the time and the counts without any other change of the state. See `Policy`."""
        self.scheduler.skip(*counts[:2])
        if self._binder is not None:
            self._binder.skip(span, counts[2:])

    def _samples(self, now: int) -> Iterator[Wake]:
        sample = self.scheduler.next_sample()
        if sample is not None and not now < self._sample <= sample:
            self._sample = sample
            yield Wake(sample)

    def _cycles(self) -> Iterator[Decision | None]:
        """Runs cycles until several of them in a row change nothing. Yields None when a cycle pauses."""
        scheduler = self.scheduler
        idle = 0
        while idle < QUIET:
            before = scheduler.cycles
            outcomes = scheduler.cycle()
            if scheduler.cycles == before:
                scheduler.rest(QUIET - idle)
                break
            if outcomes:
                yield from self._carry_out(outcomes)
                while self._put_off:
                    yield from self._follow(self._put_off.pop(0))
            idle = idle + 1 if scheduler.idle else 0
            if scheduler.passes(QUIET - idle):
                break

    def _hear(self, now: int) -> None:
        """Records an event that can give the next cycle work. Pods that become ready do not count."""
        self._stirred = True
        if now != self._now:
            self._advance(now)

    def _advance(self, now: int) -> None:
        if now == self._now:
            return
        self._now = now
        self._stirred = True
        if self.scheduler.local_queues is not None:
            self._after.then(self.scheduler.advance, now)
        if self._previews is not None:
            self._previews.it_is(now)
            self._after.then(self._previews.follow, now)
        self._after.later()
        if self._binder is not None:
            self._binder.advance(now)
        if self.failures is not None:
            self.failures.advance(now)

    def _carry_out(self, outcomes: Iterable[Outcome]) -> Iterator[Decision | None]:
        """Yields the outcomes of a cycle as decisions, or None while admissions wait for pods to be ready.

        The outcomes take effect after the cycle.
        """
        scheduler, pods_ready = self.scheduler, self.pods_ready
        refused = scheduler.refused
        self._after.cycling = True
        for outcome in outcomes:
            if refused:
                yield from self._refuse(refused)
            if isinstance(outcome, Admitted):
                if pods_ready is not None and pods_ready.blocks:
                    waits_for = {each.name: "" for each in pods_ready.unready()}
                    yield Refuse(outcome.workload.job, WAITING, {"message": _FOR_PODS, "waitsFor": waits_for})
                    while pods_ready.blocks:
                        yield None
                self._after.admitted(scheduler.reserve, outcome, self._now)
                yield self._admit(outcome)
            elif isinstance(outcome, Preempted):
                yield from self._preempt(outcome, self._now)
            elif self.failures is not None:  # other outcomes result only from node failures
                yield from self._after_failure(self.failures, outcome)
        self._after.end()
        if refused:
            yield from self._refuse(refused)

    def _after_failure(self, failures: NodeFailures, outcome: Replaced | Evicted) -> Iterator[Decision]:
        if isinstance(outcome, Replaced):
            self._after.then(self.scheduler.move, outcome.workload, outcome.placed)
            yield from self._of_pods(failures.replace(outcome))
        else:
            yield failures.evict(outcome.workload, [outcome.node])

    def _send_away(self, target: Target) -> None:
        self._executions.goes_for_nobody(target.workload, self._now)
        self._evict(target, self._now)

    def _refuse(self, refused: list[Refused]) -> Iterator[Refuse]:
        for workload, reason, figures in refused:
            if workload.job.index not in self._over:
                yield Refuse(workload.job, reason, figures)
        refused.clear()

    def _end(self, workload: Workload, pods: range) -> None:
        self._evictions.progressed += 1
        self._executions.ended(workload, pods)
        self._after.then(self._give_back, workload, pods)

    def _give_back(self, workload: Workload, pods: range) -> None:
        job = workload.job
        if len(pods) < job.pods:
            ended = ended_so_far(workload, pods)
            if ended != workload.wanted:
                self.scheduler.reclaim(workload, ended, wakes=self._wakes(workload))
                return
        self._free(workload)
        self._forget(workload)

    def _free(self, workload: Workload) -> None:
        if workload.has_quota:  # a deactivated workload has released its quota before
            self.scheduler.free(workload, wakes=self._wakes(workload))

    def _wakes(self, workload: Workload) -> bool:
        """Returns True if the release of a workload's quota requeues workloads, and records why if not."""
        queue = workload.cluster_queue
        wakes = self._closed.wakes(workload.job)
        if not wakes:
            self._unwoken[queue] = self._why_inactive(workload)
        elif self._unwoken:
            self._unwoken = {each: why for each, why in self._unwoken.items() if each.root != queue.root}
        return wakes

    def _overlook(self) -> Iterator[Refuse]:
        """Records why workloads stay inadmissible although quota became free."""
        for queue, why in self._unwoken.items():
            for workload in self.scheduler.overlooked(queue):
                if workload.job.index not in self._over:
                    message = f"quota is free, but Kueue requeued no job when it became free, because {why}"
                    yield Refuse(workload.job, INADMISSIBLE, {"message": message})
        self._unwoken.clear()

    def _deactivate(self, workload: Workload) -> None:
        """Releases the quota of a workload whose pods are not gone yet.

        Upstream: `WorkloadReconciler.Update` deletes an inactive workload from the cache.
        """
        self._executions.released(workload, self._now)
        self._after.then(self._free, workload)

    def _forget(self, workload: Workload) -> None:
        self._executions.forget(workload)
        self._limits.backoffs.drop(workload)
        del self._workloads[workload.job.index]

    def _return(self, workload: Workload) -> None:
        self._after.then(self._free, workload)
        self._executions.gone(workload, self._now)
        if not self._limits.keeps_out(workload):
            self._queue_up(workload)

    def _evict(self, target: Target, now: int) -> None:
        if self.failures is not None:
            self.failures.leave(target.workload, range(target.workload.job.pods), now)
        self._after.then(self.scheduler.evict, target, now)

    def _queue_up(self, workload: Workload) -> None:
        self._after.then(self._enqueue, workload)

    def _enqueue(self, workload: Workload, *, restarts: bool = False) -> None:
        """Adds a workload to its queue, where it stays while the queue is inactive.

        A workload of a stopped LocalQueue stays out of the queue. A workload that is held back also stays
        out, because the reason for this never changes during a replay.
        """
        if self._closed.stop_policy(workload.job):
            self._closed.keep_out(workload)
        elif not workload.held_back:
            self.scheduler.enqueue(workload, restarts=restarts)
            if workload.cluster_queue.usable:
                return
        self._inactive[workload] = None

    def _why_inactive(self, workload: Workload) -> str:
        job = workload.job
        inactive = why_inactive(self._cluster, workload.cluster_queue.name, job)
        if inactive:
            return inactive
        if self._closed.stop_policy(job):
            return f"LocalQueue {job.namespace}/{job.queue} is inactive: it was deleted"
        start = self._beginning.start_of(job)
        if start is not None and workload in self._limits.backoffs:
            return why_away(start.manifest)
        return f"{workload.held_back}; this never changes in a replay" if workload.held_back else ""

    def _begin(self, now: int) -> Iterator[Decision]:
        """Yields the admissions from before the replay, then evicts workloads that can't keep their quota.

        If more than the capacity is held, some workloads were admitted while others terminated. The
        terminating ones are evicted first.
        """
        present = [(workload, start, self._to_leave(workload, start)) for workload, start in self._present]
        self._present.clear()
        parts = [present]
        if self._beginning.crowded:
            parts = [[each] for each in present if each[2]]
            parts.append([each for each in present if not each[2]])
        for part in parts:
            for workload, start, _ in part:
                since = admitted_since(start.manifest)
                admitted = None if since is None else self._beginning.time_of(since, now)
                self._executions.take_over(workload, start, now, admitted)
                if self._previews is not None:
                    self._previews.admitted(workload, now if admitted is None else admitted, now)
                if self.pods_ready is not None and not start.ready:
                    take_over_readiness(self.pods_ready, workload, start.manifest, self._time_of(now))
                yield Admit(workload.job, start.flavors, start.counts)
            if self._binder is not None:
                yield from self._binder.bind_running()
            for workload, start, reason in part:
                if reason:
                    if not workload.evicted:
                        self.scheduler.evict(Target(workload, reason), now)
                    self._executions.told_to_go(workload, now)
                    if self._limits.is_deactivated(workload):
                        self._deactivate(workload)
                self._waits_out(workload, start, now, leaves=bool(reason))
                if reason:
                    # A workload that is not admitted has no pods that must stop.
                    grace = 0 if start.leaves is None and start.manifest.awaits_checks else start.leaves
                    yield Preempt(workload.job, None, reason, grace=grace)
        if self._binder is not None:  # bind pods that the manifests lack before a cycle can evict them
            yield from self._of_pods(self._binder.run())
        if self.failures is not None:
            yield from self.failures.begin(now)

    def _time_of(self, now: int) -> Callable[[int], int]:
        return lambda since: self._beginning.time_of(since, now)

    def _waits_out(self, workload: Workload, start: Start, now: int, *, leaves: bool) -> bool:
        """Restores the timeouts of a workload from the manifests, and returns whether it is in a backoff.

        A workload that keeps its quota is in no backoff.
        """
        manifest = start.manifest
        if self.pods_ready is not None and manifest.time_outs:
            self.pods_ready.timed_out_before(workload, manifest.time_outs)
        again = requeue_at(manifest)
        if not leaves or again is None:
            return False
        until = self._beginning.time_of(again, now)
        if until > now:
            self._limits.stay_out(workload, until)
        return until > now

    def _to_leave(self, workload: Workload, start: Start) -> str:
        if workload.evicted:
            return start.manifest.conditions["Evicted"].reason or "Evicted"
        if not start.manifest.active:
            return "Deactivated"
        if by_checks := evicted_by_checks(start.manifest):
            return by_checks
        if workload.cluster_queue.spec.stop_policy == "HoldAndDrain":
            return "ClusterQueueStopped"
        if self._closed.stop_policy(workload.job) == "HoldAndDrain":
            return "LocalQueueStopped"
        return ""

    def _preempt(self, preempted: Preempted, now: int) -> Iterator[Preempt]:
        """Evicts the targets of one preemptor, sorted by name, except targets that were already evicted."""
        preemptor, assignment, targets = preempted
        details = self._details.preemptions(preemptor, assignment, targets)
        if self.pods_ready is not None:  # some targets may be gone after a pause of the cycle
            targets = [target for target in targets if self.pods_ready.stays(target.workload)]
        for target in targets:
            self._evict(target, now)
        for workload, reason in sorted(targets, key=lambda target: target.workload.name):
            detail = details[workload]
            number = self._executions.preempted(workload, preemptor, now)
            if number > 1:
                detail["round"] = number
            yield Preempt(workload.job, preemptor.job, reason, detail=detail)

    # --- waitForPodsReady -----------------------------------------------------------------------------------

    def _start_up(self, job: Job, pods: range, now: int) -> None:
        if now != self._now:
            self._advance(now)
        assert self.pods_ready is not None
        if job.index in self._workloads:  # some Pods belong to no Workload
            self.pods_ready.started(self._workloads[job.index], pods)

    def next_term(self) -> int | None:
        """Returns the next time at which pods must be ready or a backoff ends, or None if there is none."""
        terms = [self._limits.backoffs.next()]
        if self.pods_ready is not None:
            terms.append(self.pods_ready.deadlines.next())
        return min((term for term in terms if term is not None), default=None)

    def change_readiness(self, job: Job, now: int, *, ready: bool) -> None:
        """Marks pods of a job as lost or recovered, as recorded cases specify."""
        self._hear(now)
        assert self.pods_ready is not None
        workload = self._workloads[job.index]
        if ready:
            self.pods_ready.recovered(workload)
        else:
            self.pods_ready.lost(workload, now)

    # --- decisions ------------------------------------------------------------------------------------------

    def _admit(self, admitted: Admitted) -> Admit:
        workload, assignment = admitted
        if not workload.admissions:
            self._evictions.progressed += 1
        decision = self._admissions.decision(admitted)
        self._executions.begin(
            workload,
            decision.flavors,
            decision.counts,
            self._now,
            placed=assignment.placed,
            delay=decision.delay,
        )
        if self._previews is not None:
            self._after.then(self._previews.admitted, workload, self._now + decision.delay, self._now)
        return decision

    def flavors_of(self, workload: Workload, assignment: Assignment) -> Mapping[str, Mapping[str, str]]:
        """Returns the flavors of an assignment: for each pod set, the flavor of each resource."""
        return self._admissions.flavors_of(workload, assignment)
