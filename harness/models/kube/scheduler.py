"""The scheduler: tries waiting pods one by one, binds them, and preempts for them.

It knows pods and nodes; how jobs become pods is for a policy to say. A decision is yielded after the
scheduler's own books are up to date, so that what it causes at once finds them so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, final

from harness.cluster.model import Cluster
from harness.cluster.scheduler_configuration import SchedulerConfiguration
from harness.models.kube.cache import Cache
from harness.models.kube.hints import Hints
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Diagnosis, Scheduling
from harness.models.kube.pod import NOT_STARTED, PodInfo, Refusal, Templates
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.evaluator import (
    Preemption,
    deciding_criterion,
    pick_one_node_for_preemption,
)
from harness.models.kube.preemption.victims import Candidate
from harness.models.kube.queue import SchedulingQueue
from harness.models.kube.refusal import DISABLED, NO_VICTIMS, Unschedulable, refuse
from harness.policy import Bind, Decision, Job, Nominate, Preempt, Refuse, Unnominate, Wake

PREEMPTED = "PreemptionByScheduler"
"""The reason of a preemption, as in the condition that victims get."""

_BEFORE_ALL = 1 << 70
"""Taken from the start of pods that run already, so that it is earlier than the stamp of any binding."""


def _as_peers(pod: PodInfo) -> Refusal | None:
    """Why the last one of a pod's peers failed."""
    return pod.peers.refusal


@final
class Scheduler:
    """One scheduler with the default profile.

    Args:
        cluster: nodes, namespaces and budgets.
        configuration: what of a KubeSchedulerConfiguration counts.

    Attributes:
        queue: the pods that wait.
    """

    def __init__(self, cluster: Cluster, configuration: SchedulerConfiguration) -> None:
        self.cache = Cache(cluster)
        self.budgets = Budgets(cluster.disruption_budgets, live=True)
        self.templates = Templates(self.cache.resources, self.budgets.covering)
        self.scheduling = Scheduling(
            self.cache,
            percentage=configuration.percentage_of_nodes_to_score,
            hard_affinity_weight=configuration.hard_pod_affinity_weight,
        )
        self._preemption = (
            None if configuration.disable_preemption else Preemption(self.cache, self.budgets, configuration)
        )
        self.queue = SchedulingQueue(Hints(self.cache.labels_of))
        self._refused: Job | None = None  # the last job of which it was said why it waits, in this cycle
        self._woken = -1
        self._running: list[tuple[PodInfo, NodeInfo]] = []

    @property
    def attempts(self) -> int:
        """How many scheduling attempts there were."""
        return self.queue.attempts

    # --- what the scheduler is told -----------------------------------------------------------------------

    def advance(self, now: int) -> None:
        """It is `now`; the queue's timers come before all else that happens at an instant."""
        if now != self.queue.now:
            self.queue.advance(now)

    def add(self, pod: PodInfo) -> None:
        """A pod arrives."""
        self.budgets.exists(pod.template, 1)
        self.queue.add(pod)

    def add_running(self, pod: PodInfo, node: str, start: int | None) -> None:
        """A pod that runs already is there: it is bound before anything is scheduled.

        Args:
            pod: the pod.
            node: the name of its node.
            start: when it started, microseconds since 1970; earlier than everything that is bound later.
        """
        self.budgets.exists(pod.template, 1)
        pod.start = NOT_STARTED if start is None else start - _BEFORE_ALL
        self._running.append((pod, self.cache.by_name[node]))

    def delete(self, pod: PodInfo) -> None:
        """A pod is gone: it ended, was evicted, or is no longer wanted."""
        self.budgets.exists(pod.template, -1)
        if pod.node >= 0:
            self.cache.remove_pod(pod)
            if not pod.terminating:
                self.budgets.runs(pod.template, -1)
            self.queue.pod_deleted(pod, was_bound=True)
            return
        self.queue.discard(pod)
        if pod.nominated:
            self.cache.nominate(pod, "")
            self.queue.pod_deleted(pod, was_bound=False)

    # --- what it decides ----------------------------------------------------------------------------------

    def run(self) -> Iterator[Decision]:
        """Try pods until all that are left wait for an event."""
        queue, cache = self.queue, self.cache
        if self._running:
            yield from self.bind_running()
        while (pod := queue.pop(cache.version)) is not None:
            if queue.failed_alike:
                yield from self.refuse_alike()
            self.budgets.refresh()
            found = self.scheduling.schedule(pod)
            if isinstance(found, NodeInfo):
                yield self.bind(pod, found)
                queue.pod_bound(pod)
            else:
                yield from self._post_filter(pod, found)
        if queue.failed_alike:
            yield from self.refuse_alike()
        wake = self.next_wake()
        if wake is not None:
            yield wake

    def bind_running(self) -> Iterator[Bind]:
        """Bind the pods that run already, before anything else is decided."""
        for running, node in self._running:
            yield self._place(running, node)
        self._running.clear()

    def next_wake(self) -> Wake | None:
        """A cycle is over, and all pods wait for an event: wake when the queue's timer is due."""
        self._refused = None
        flush = self.queue.next_flush()
        if flush is None or self.queue.now < self._woken <= flush:
            return None
        self._woken = flush
        return Wake(flush, idle=True)

    def refuse_alike(self, why: Callable[[PodInfo], Refusal | None] = _as_peers) -> Iterator[Refuse]:
        """Say of pods that were not tried because an equal one had failed why they wait, once for a job.

        Args:
            why: tells why a pod, or what it stands for, waits.
        """
        alike = self.queue.failed_alike
        for pod in alike:
            refusal = why(pod)
            if pod.job is not self._refused:
                self._refused = pod.job
                yield refuse(pod, refusal)
        alike.clear()

    def bind(self, pod: PodInfo, node: NodeInfo) -> Bind:
        """Bind a pod to a node."""
        self.cache.nominate(pod, "")
        pod.start = self.queue.stamp()
        return self._place(pod, node)

    def _place(self, pod: PodInfo, node: NodeInfo) -> Bind:
        self.cache.add_pod(pod, node)
        self.budgets.runs(pod.template, 1)
        assert pod.job is not None
        return Bind(pod.job, range(pod.pod, pod.pod + 1), node.name)

    def _post_filter(self, pod: PodInfo, diagnosis: Diagnosis) -> Iterator[Decision]:
        """A pod fits nowhere: make room for it by preemption if it may and that helps."""
        preemption, rejecting = self._preemption, diagnosis.rejecting
        why_not = DISABLED
        if preemption is not None:
            why_not = preemption.pod_eligible_to_preempt_others(pod, diagnosis) or ""
        if preemption is None or why_not:
            yield from self._fail(pod, rejecting, Unschedulable(diagnosis, why_not))
            return
        found = preemption.find_candidates(pod, diagnosis)
        if found.candidates:
            yield from self._preempt(preemption, pod, rejecting, found.candidates)
            return
        yield from self._fail(pod, rejecting, Unschedulable(diagnosis, NO_VICTIMS))
        if pod.nominated and not found.failed:
            yield from self.withdraw(pod)

    def _fail(self, pod: PodInfo, rejecting: frozenset[str], why: Unschedulable) -> Iterator[Refuse]:
        """A pod waits; why is recorded when it is new."""
        peers, is_new = pod.peers, pod.rejected_by != rejecting
        if not pod.nominated:
            peers.failed_at, peers.rejected_by, peers.refusal = self.cache.version, rejecting, why
            peers.lasting = why if self._preemption is None and why.diagnosis.by_nodes_alone else None
        self.queue.add_unschedulable(pod, rejecting)
        if is_new:
            self._refused = pod.job
            yield refuse(pod, why)

    def _preempt(
        self, preemption: Preemption, pod: PodInfo, rejecting: frozenset[str], candidates: Any
    ) -> Iterator[Decision]:
        """Evict the victims on the best node and nominate the preemptor to it; it is tried again later."""
        chosen = pick_one_node_for_preemption(candidates)
        cleared = preemption.nominations_to_clear(pod, chosen)
        detail = detail_of(chosen, deciding_criterion(candidates), len(candidates))
        before, name = pod.nominated, chosen.node.name
        self.cache.nominate(pod, name)
        self.queue.add_unschedulable(pod, rejecting)
        for other in cleared:
            yield from self.withdraw(other)
        assert pod.job is not None
        for victim in chosen.victims:
            if not victim.terminating:
                yield self.evict(victim, pod.job, PREEMPTED, detail)
        if before != name:
            yield Nominate(pod.job, pod.pod, name, detail)
            if before:
                self.queue.nomination_withdrawn(pod)

    def evict(self, victim: PodInfo, by: Job | None, reason: str, detail: Mapping[str, Any]) -> Preempt:
        """Let a bound pod go; it holds what it has until it is gone."""
        self.cache.terminate(victim)
        self.budgets.runs(victim.template, -1)
        assert victim.job is not None
        return Preempt(victim.job, by, reason, range(victim.pod, victim.pod + 1), detail)

    def withdraw(self, pod: PodInfo) -> Iterator[Decision]:
        """Withdraw a pod's nomination."""
        self.cache.nominate(pod, "")
        assert pod.job is not None
        yield Unnominate(pod.job, pod.pod)
        self.queue.nomination_withdrawn(pod)


def detail_of(chosen: Candidate, criterion: str, candidates: int) -> dict[str, Any]:
    """Why these victims on this node."""
    return {
        "node": chosen.node.name,
        "criterion": criterion,
        "candidates": candidates,
        "pdb_violations": chosen.violations,
        "victims": {victim.name: victim.priority for victim in chosen.victims},
    }
