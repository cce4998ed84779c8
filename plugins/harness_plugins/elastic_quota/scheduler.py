"""Schedules pods within quotas. The scheduler tries pods or whole gangs, and preempts other pods for them.

It uses the records and decisions of the kube-scheduler model. It differs from kube-scheduler in three ways:
quotas are checked first, the pods of a gang are placed together, and other pods can be victims.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, final

from harness import Bind, Cluster, Decision, Job, Nominate, Preempt, Wake
from harness.models.cluster import Node, SchedulerConfiguration
from harness.models.kube.cache import Cache
from harness.models.kube.gangs import Gang, Gangs
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.status import NODE_RESOURCES_FIT
from harness.models.kube.pod import PodInfo, Refusal, Template
from harness.models.kube.policy import NODE
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.scheduler import Scheduler
from harness.models.told import NOTHING_TOLD, Told
from harness.policy import LOST_WITH_NODE, Change, Edit, Standing
from harness_plugins.elastic_quota.ack import AckRules
from harness_plugins.elastic_quota.attempt import Attempts, Placed, Planned
from harness_plugins.elastic_quota.equals import Equals, job_of
from harness_plugins.elastic_quota.failure import PLUGIN, Failure, QuotaRefusal
from harness_plugins.elastic_quota.options import ELASTIC_QUOTA
from harness_plugins.elastic_quota.quota_request import Nominated
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.revoke import OVERUSED, Revocation
from harness_plugins.elastic_quota.rules import Rules
from harness_plugins.elastic_quota.search import on_each
from harness_plugins.elastic_quota.shortcuts.kept_dry_runs import KeptDryRuns
from harness_plugins.elastic_quota.shortcuts.verdicts import KeptRefusals

_LOCAL_QUEUE = "LocalQueue"


def _refused_by_quota(template: Template, rejected_by: frozenset[str]) -> bool:
    """Returns True if a change of quotas may help pods that these plugins rejected, as in both upstreams."""
    return PLUGIN in rejected_by


def _leads_elsewhere(edit: Edit) -> bool:
    before, after = (None if each is None else each.cluster_queue for each in (edit.before, edit.after))
    return before != after


@final
class QuotaScheduler:
    """Schedules pods and gangs onto nodes within quotas.

    Args:
        rules: a function that creates the rules of the semantics from the quotas and budgets.
        falls_back: whether pods without a quota use default preemption.
        revocation: a function that creates the over-use revoke from the nodes, or None if the semantics have
            none.
        shortcuts: whether shortcuts avoid repeated work. Without them, all decisions are the same.

    Attributes:
        advance: see `kube.scheduler.Scheduler`.
        lets_in: see `Attempts`.
        said: the last recorded reason for refusing each waiting gang.
    """

    def __init__(
        self,
        cluster: Cluster,
        configuration: SchedulerConfiguration,
        usage: QuotaUsage,
        rules: Callable[[QuotaUsage, Budgets], Rules],
        *,
        falls_back: bool,
        gangs: bool,
        revocation: Callable[[Cache, Budgets], Revocation] | None = None,
        shortcuts: bool = True,
    ) -> None:
        kube = self._kube = Scheduler(cluster, configuration)
        self.cache = kube.cache
        self.templates = kube.templates
        self.budgets = kube.budgets
        self.advance = kube.advance
        self.scheduling = kube.scheduling
        self.said: dict[Gang, Told] = {}
        self.usage = usage
        self._gangs = Gangs(cluster, together=gangs)
        self._revocation = revocation(kube.cache, kube.budgets) if revocation is not None else None
        asked, nominated = rules(usage, kube.budgets), Nominated(usage, kube.cache)
        kept = shortcuts and isinstance(asked, AckRules)  # others depend on more than can be compared
        self._dry_runs = KeptDryRuns(usage, kube.cache) if kept else None
        self._attempts = Attempts(
            kube.scheduling,
            kube.budgets,
            asked,
            nominated,
            kube.preemption,
            falls_back=falls_back,
            dry_runs=self._dry_runs or on_each,
        )
        self.lets_in = self._attempts.lets_in
        self._lasting = KeptRefusals(asked, nominated, kube.scheduling) if shortcuts else None
        self._equals = Equals(usage)
        self._version = 0  # incremented by every change that may help a pod that has failed

    @property
    def _state(self) -> int:
        """The version of the state. It also changes when reading a quota updates its scaled limits."""
        return self._version + self.usage.tree.rescaled

    # --- events -------------------------------------------------------------------------------------------

    @property
    def attempts(self) -> int:
        """The number of scheduling attempts. The attempt of a gang counts once."""
        return self._kube.attempts

    @property
    def nodes(self) -> QuotaScheduler:
        """This object, which handles added, removed and changed nodes."""
        return self

    @property
    def now(self) -> int:
        """The current time, in microseconds since the origin."""
        return self._kube.now

    @property
    def error_due(self) -> int:
        """The time of the next retry after an attempt ended with an error. It is far ahead if none is due."""
        return self._kube.error_due

    def add(self, pod: PodInfo) -> None:
        """Adds a pod that arrives."""
        if pod.template.budgets:
            self._version += 1  # the number of disruptions that a budget allows depends on the number of pods
        self._ask(pod)
        gang = pod.gang = self._gangs.of(pod)
        if gang is None:
            pod.peers = self._equals.of_pod(pod)
            self._kube.add(pod)
            return
        self._kube.budgets.exists(pod.template, 1)
        too_few = gang.missing > len(gang.pending)
        leads = gang.join(pod, self._gangs.own_priority(pod))
        raised = self._reprioritize(gang)
        assert gang.leader is not None, "a pod that joins a gang waits"
        gang.leader.peers = self._equals.of_gang(gang)
        if leads:
            self._kube.queue.add(pod)
        elif (gang.waits and (too_few or not gang.missing)) or raised:
            self._kube.queue.activate(gang.leader)  # it was waiting for this pod, or has one more pod now
        gang.waits = False

    def add_running(self, pod: PodInfo, node: str, start: int | None) -> None:
        """Adds a pod that is already running. See `kube.scheduler`."""
        gang = pod.gang = self._gangs.of(pod)
        if gang is not None:
            gang.join_bound(pod, self._gangs.own_priority(pod))
        self._ask(pod)
        self.usage.bind(pod, self.cache.by_name[node].position)
        self._kube.add_running(pod, node, start)
        if gang is not None:
            self._reprioritize(gang)

    def delete(self, pod: PodInfo) -> None:
        """Removes a pod that finished, was evicted, or is no longer wanted."""
        self._version += 1
        self.usage.ask(pod, -1)
        ended = pod.node >= 0 and not pod.terminating
        if pod.node >= 0:
            self.usage.bind(pod, pod.node, -1)
        self._kube.delete(pod)
        gang = pod.gang
        if gang is not None:
            leader = gang.leave(pod, ended=ended, returns=pod.terminating)
            lowered = self._reprioritize(gang)
            if leader is not None:
                leader.peers = self._equals.of_gang(gang)
                self._kube.queue.add(leader)
            elif lowered and gang.leader is not None:
                self._kube.queue.activate(gang.leader)
                gang.leader.peers = self._equals.of_gang(gang)
            if not gang.alive:
                self.said.pop(gang, None)
                if not pod.terminating:  # otherwise its replacement returns, and finished pods count
                    self._gangs.forget(gang)

    def put(self, node: Node) -> None:
        """Adds, restores or changes a node."""
        self._kube.nodes.put(node)
        self._renew()

    def drop(self, name: str) -> None:
        """Removes a node. Its pods have not finished, so they are evicted and can return."""
        for pod in self.cache.by_name[name].pods:
            if not pod.terminating:
                self.evict(pod, None, LOST_WITH_NODE, {})
        self._kube.nodes.drop(name)
        self._renew()

    def changed(self, change: Change, pods: Collection[PodInfo]) -> None:
        """Applies a cluster change that affects quotas.

        If a quota changes, pods that a quota refused are tried again. A change in the total capacity of the
        nodes matters if quotas share this capacity.
        """
        edit = change.edit
        if edit.kind == NODE and self.usage.tree.runtimes is not None:
            self.usage.tree.runtimes.resize(change.cluster.capacity)
            self._version += 1
        elif edit.kind == ELASTIC_QUOTA or (edit.kind == _LOCAL_QUEUE and _leads_elsewhere(edit)):
            self._recount(change.cluster, pods)
            self._kube.queue.changed(_refused_by_quota)

    def _recount(self, cluster: Cluster, pods: Collection[PodInfo]) -> None:
        """Counts all pods against the quotas of a cluster, and groups equal pods again."""
        self._kube.queue.part()
        self.usage.become(cluster, pods)
        self._equals.renew()
        for pod in pods:
            gang = pod.gang
            if pod.node < 0 and gang is None:
                pod.peers = self._equals.of_pod(pod)
            elif gang is not None and gang.leader is pod:
                pod.peers = self._equals.of_gang(gang)
        if self._revocation is not None:
            self._revocation.quotas_change(self._kube.queue.now)
        self._renew()

    def _renew(self) -> None:
        """Drops all results that depend on nodes, their order or quotas, because these have changed."""
        self._version += 1
        if self._dry_runs is not None:
            self._dry_runs.renew()
        if self._lasting is not None:
            self._lasting.renew()

    def evict(self, victim: PodInfo, by: Job | None, reason: str, detail: Mapping[str, Any]) -> Preempt:
        """Evicts a bound pod. The pod uses its resources until it is gone."""
        self._version += 1
        self.usage.terminate(victim)
        return self._kube.evict(victim, by, reason, detail)

    def _reprioritize(self, gang: Gang) -> bool:
        """Sets the priority of all pods in a gang to the highest one, and returns True if any changed."""
        before, now = gang.priority, gang.highest
        if now == before:
            return False
        gang.priority = now
        if gang.bound:
            self._version += 1  # the potential victims of pods have changed
        for mate in gang.pending.values():
            mate.priority = now
            if mate.keeps == before:  # otherwise its resources are reserved against all pods
                mate.keeps = now
                self.cache.keeps_otherwise(mate)
        for mate in gang.bound.values():
            self.usage.reprioritize(mate, now)
            self.cache.reprioritize(mate, now)
        return True

    def _ask(self, pod: PodInfo) -> None:
        self.usage.ask(pod)
        if self._revocation is not None:
            self._version += 1  # what quotas can use depends on the requests

    # --- decisions ----------------------------------------------------------------------------------------

    def run(self) -> Iterator[Decision]:
        """Tries pods and gangs until all remaining pods wait for an event."""
        yield from self._kube.bind_running()
        if self._revocation is not None:
            self._revocation.refresh(self._kube.queue.now)
            yield from self._revoke(self._revocation)
        queue, budgets = self._kube.queue, self._kube.budgets
        if not self.cache.by_name:
            yield from self._kube.fail_without_nodes()
        if self._kube.nodes.settle():
            self.usage.find_on(self.cache.nodes)
            self._renew()
        while (pod := queue.pop(self._state)) is not None:
            yield from self._kube.refuse_alike(self._why_alike)
            budgets.refresh()
            if pod.gang is None:
                yield from self._try_pod(pod)
            else:
                yield from self._try_gang(pod.gang)
        yield from self._kube.refuse_alike(self._why_alike)
        wake = self._kube.next_wake()
        if wake is not None:
            yield wake
        if self._revocation is not None:
            due = self._revocation.watch(queue.now)
            if due is not None:
                yield Wake(due, idle=True)

    def standing(self, now: int) -> Standing | None:
        """Returns the state of the scheduler, to detect a loop of idle wake-ups. See `PodScheduler`."""
        kube, revocation = self._kube.standing(now), self._revocation
        if kube is None:
            return None
        own = (self._state, None if revocation is None else revocation.standing(now))
        return Standing((*kube.state, *own), kube.counts)

    def skip(self, span: int, counts: Sequence[int]) -> None:
        """Advances the time by `span` without any other change of the state. See `PodScheduler`."""
        self._kube.skip(span, counts)
        if self._revocation is not None:
            self._revocation.skip(span)

    def _revoke(self, revocation: Revocation) -> Iterator[Decision]:
        for leaf in revocation.due(self._kube.queue.now):
            detail = revocation.detail(leaf)
            for victim in revocation.victims(leaf):
                if not revocation.evictable(victim):
                    continue
                yield self.evict(victim, None, OVERUSED, detail)

    def _why_alike(self, pod: PodInfo) -> Refusal | None:
        """Returns why a pod or gang failed like an equal one, or None if this was already recorded."""
        peers, gang = pod.peers, pod.gang
        if peers.refusal is None:
            peers.refusal = self._refusal_now(pod)
        why = peers.refusal
        if not isinstance(why, QuotaRefusal):
            return why
        why = peers.refusal = why.with_figures()
        if gang is None:
            return why
        if why.place is not None:
            why = why._replace(pod=gang.in_order()[why.place].name)
        gang.waits = True
        return why if self._note_refusal(gang, why) else None

    def _refusal_now(self, pod: PodInfo) -> QuotaRefusal:
        """Returns the refusal that the skipped attempt of a pod or gang would have had."""
        gang = pod.gang
        if gang is None:
            outcome = self._attempts.try_pod(pod)
        else:
            outcome = self._attempts.try_gang(gang.in_order(), gang.missing)
        assert isinstance(outcome, QuotaRefusal), "a refusal did not stand"
        return outcome

    def _try_pod(self, pod: PodInfo) -> Iterator[Decision]:
        outcome = self._attempts.try_pod(pod)
        if isinstance(outcome, Placed):
            yield from self._bind(pod, outcome.nodes[pod])
        else:
            rejecting = outcome.rejecting
            if isinstance(outcome, QuotaRefusal) and outcome.said[1]:
                rejecting |= {outcome.said[1]}  # a different limit is a different reason
            yield from self._post_filter(pod, [pod], outcome, rejecting)

    def _try_gang(self, gang: Gang) -> Iterator[Decision]:
        """Places all pending pods of a gang (of a group, at least the required number), or none."""
        leader, pods = gang.leader, gang.in_order()
        assert leader is not None, "a gang was tried without a waiting pod"
        outcome = self._attempts.try_gang(pods, gang.missing)
        if not isinstance(outcome, Placed):
            gang.waits = True
            rejecting = outcome.rejecting | {NODE_RESOURCES_FIT}  # any deletion may help a gang
            if isinstance(outcome, QuotaRefusal):
                rejecting |= set(outcome.said)  # an equal gang without this record fails again
            yield from self._post_filter(leader, pods, outcome, rejecting)
            return
        rest = gang.place(outcome.nodes)
        self.said.pop(gang, None)
        detail: dict[str, Any] = {"gang": len(outcome.nodes)}
        if rest is not None:
            detail |= {"waiting": len(gang.pending), "least": gang.least}
        for pod, node in outcome.nodes.items():
            yield from self._bind(pod, node, detail)
            detail = {}
        if rest is not None:
            rest.peers = self._equals.of_gang(gang)
            self._kube.queue.add(rest)

    def _bind(
        self, pod: PodInfo, node: NodeInfo, detail: Mapping[str, Any] | None = None
    ) -> Iterator[Decision]:
        self._version += 1
        pod.keeps = pod.priority
        bind = self._kube.bind(pod, node)
        self.usage.bind(pod, node.position)
        yield Bind(bind.job, bind.pods, bind.node, {**bind.detail, **detail}) if detail else bind
        self._kube.queue.pod_bound(pod)

    # --- preemption ---------------------------------------------------------------------------------------

    def _post_filter(
        self,
        leader: PodInfo,
        pods: Sequence[PodInfo],
        outcome: Planned | QuotaRefusal,
        rejecting: frozenset[str],
    ) -> Iterator[Decision]:
        """Performs the planned preemptions of a failed attempt, or makes the pods wait.

        The leader is the pod, or the pod that represents its gang in the queue.
        """
        if isinstance(outcome, Planned):
            yield from self._preempt(leader, outcome, rejecting)
            return
        gang = leader.gang
        is_new = leader.note_rejection(rejecting) if gang is None else self._note_refusal(gang, outcome)
        if is_new:
            outcome = outcome.with_figures()
        nominated = [pod for pod in pods if pod.nominated]
        for pod in nominated:
            self.cache.nominate(pod, pod.nominated)
        if not nominated and self.usage.tree.settled and not self._moves_on(outcome.failure):
            peers = leader.peers
            peers.failed_at, peers.rejected_by, peers.refusal = self._state, rejecting, outcome
            lasting = self._lasting
            peers.lasting = None if lasting is None else lasting.of(outcome, pods, rejecting)
        self._kube.queue.add_unschedulable(leader, rejecting)
        if is_new:
            yield from self._kube.refuse(leader, outcome)
        if not outcome.keeps:
            for pod in nominated:
                yield from self._withdraw(pod)

    def _moves_on(self, failure: Failure) -> bool:
        """See `Scheduling.moves_on`. A gang that fails does not change where the next search starts."""
        diagnosis = failure.diagnosis
        if diagnosis is None or failure.request.pod.gang is not None:
            return False
        return self.scheduling.moves_on(diagnosis.nodes)

    def _note_refusal(self, gang: Gang, refusal: QuotaRefusal) -> bool:
        """Stores why a gang is refused, and returns whether to record it, like `PodInfo.note_rejection`."""
        before = self.said.get(gang, NOTHING_TOLD)
        if before.last == refusal.said:
            return False
        self.said[gang] = before.then(refusal.said)
        return before.tells(self.said[gang])

    def _preempt(self, leader: PodInfo, planned: Planned, rejecting: frozenset[str]) -> Iterator[Decision]:
        self._version += 1
        leader.told = NOTHING_TOLD
        if leader.gang is not None:
            self.said.pop(leader.gang, None)
        cleared: dict[PodInfo, None] = {}
        for step in planned.steps:
            if not all(victim.terminating for victim in step.victims):
                cleared |= dict.fromkeys(
                    other
                    for other in step.chosen.node.nominated
                    if other.keeps < step.pod.priority and other not in planned.nodes
                )
        before = {pod: pod.nominated for pod in planned.nodes}
        for pod, node in planned.nodes.items():
            self.cache.nominate(pod, node.name)
            pod.keeps = planned.search.keeps(pod)
            self.cache.keeps_otherwise(pod)
        self._kube.queue.add_unschedulable(leader, rejecting)
        for other in cleared:
            yield from self._withdraw(other)
        details: dict[PodInfo, Mapping[str, Any]] = {}
        for step in planned.steps:
            details[step.pod] = step.detail
            for victim in step.victims:
                if not victim.terminating:
                    self.usage.terminate(victim)
                    yield self._kube.evict(victim, job_of(step.pod), step.reason, step.detail)
        for pod, node in planned.nodes.items():
            if before[pod] != node.name:
                yield Nominate(job_of(pod), pod.pod, node.name, details.get(pod, {}))
                if before[pod]:
                    self._kube.queue.nomination_withdrawn(pod)

    def _withdraw(self, pod: PodInfo) -> Iterator[Decision]:
        self._version += 1
        pod.keeps = pod.priority
        yield from self._kube.withdraw(pod)
