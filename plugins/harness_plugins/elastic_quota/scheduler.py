"""The scheduler with quotas and gangs: tries pods, or gangs as one, and makes room for them by preemption.

It works on the books of kube-scheduler's model and yields its decisions; what differs is that quotas are
asked first, that the pods of a gang are placed together, and who may be preempted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from harness import Bind, Cluster, Decision, Nominate
from harness.cluster.scheduler_configuration import SchedulerConfiguration
from harness_plugins.elastic_quota.accounts import Accounts
from harness_plugins.elastic_quota.claim import Claim, claim_of
from harness_plugins.elastic_quota.failure import Failure, Refusal, in_words
from harness_plugins.elastic_quota.gangs import Gang, Gangs
from harness_plugins.elastic_quota.plan import Plan
from harness_plugins.elastic_quota.rules import Rules
from harness_plugins.elastic_quota.search import DefaultSearch, QuotaSearch, Search
from harness_plugins.elastic_quota.tree import Quota
from harness_plugins.kube.node import NodeInfo
from harness_plugins.kube.pod import Peers, PodInfo, Template
from harness_plugins.kube.preemption import Preemption, pick_one_node_for_preemption
from harness_plugins.kube.scheduler import Scheduler
from harness_plugins.kube.scheduling import Diagnosis
from harness_plugins.kube.status import NODE_RESOURCES_FIT
from harness_plugins.kube.victims import Candidate


@final
@dataclass(frozen=True, slots=True)
class Step:
    """Room that is made for one pod: whom it costs, why, and the figures."""

    pod: PodInfo
    chosen: Candidate
    victims: Sequence[PodInfo]
    reason: str
    figures: Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True)
class Planned:
    """A preemption that helps all pods of an attempt: where each of them goes, and what it takes."""

    nodes: Mapping[PodInfo, NodeInfo]
    steps: Sequence[Step]


@final
class QuotaScheduler:
    """Schedules pods and gangs onto nodes within quotas.

    Args:
        cluster: nodes, namespaces, budgets, quotas and priority classes.
        configuration: what of a KubeSchedulerConfiguration counts.
        accounts: the quotas.
        rules: makes the semantics' rules, given kube-scheduler's books.
        falls_back: whether pods that belong to no quota preempt by default preemption.
        gangs: whether gangs are one.

    Attributes:
        refusals: why a job's pods, or its gang, were last not helped by a preemption; of jobs that wait.
    """

    def __init__(
        self,
        cluster: Cluster,
        configuration: SchedulerConfiguration,
        accounts: Accounts,
        rules: Any,
        *,
        falls_back: bool,
        gangs: bool,
    ) -> None:
        kube = self._kube = Scheduler(cluster, configuration)
        self.cache = kube.cache
        self.templates = kube.templates
        self.scheduling = kube.scheduling
        self.refusals: dict[int, Refusal] = {}
        self._accounts = accounts
        self._rules: Rules = rules(accounts, kube.budgets)
        self._gangs = Gangs(cluster, together=gangs)
        self._preempts = not configuration.disable_preemption
        self._default = Preemption(kube.cache, kube.budgets, configuration) if falls_back else None
        self._peers: dict[tuple[Template, Quota | None, int, bool], Peers] = {}
        self._version = 0  # grows with every change that may help a pod that has failed

    # --- what the scheduler is told -----------------------------------------------------------------------

    @property
    def attempts(self) -> int:
        """How many scheduling attempts there were; a gang is tried at once."""
        return self._kube.attempts

    def hear(self, now: int) -> None:
        """It is `now`; the queue's timers come before all else that happens at an instant."""
        self._kube.hear(now)

    def add(self, pod: PodInfo) -> None:
        """A pod arrives."""
        if pod.template.budgets:
            self._version += 1  # how many disruptions a budget allows depends on how many pods there are
        gang = self._gangs.of(pod)
        if gang is None:
            pod.peers = self._peers_of(pod)
            self._kube.add(pod)
            return
        self._kube.budgets.exists(pod.template, 1)
        if gang.join(pod):
            self._kube.queue.add(pod)

    def add_running(self, pod: PodInfo, node: str, start: int | None) -> None:
        """A pod that runs already is there, see `kube.scheduler`."""
        gang = self._gangs.of(pod)
        if gang is not None:
            gang.alive += 1
        self._accounts.bind(pod)
        self._kube.add_running(pod, node, start)

    def delete(self, pod: PodInfo) -> None:
        """A pod is gone: it ended, was evicted, or is no longer wanted."""
        self._version += 1
        if pod.node >= 0:
            self._accounts.unbind(pod)
        self._kube.delete(pod)
        gang = self._gangs.of(pod)
        if gang is not None:
            leader = gang.leave(pod)
            if leader is not None:
                self._kube.queue.add(leader)
            if not gang.alive and pod.job is not None:
                self._gangs.forget(pod.job)

    def _peers_of(self, pod: PodInfo) -> Peers:
        key = (pod.template, self._accounts.quota_of(pod), pod.priority, pod.preempts)
        peers = self._peers.get(key)
        if peers is None:
            peers = self._peers[key] = Peers()
        return peers

    # --- what it decides ----------------------------------------------------------------------------------

    def run(self) -> Iterator[Decision]:
        """Try pods and gangs until all that are left wait for an event."""
        yield from self._kube.begin()
        queue = self._kube.queue
        while (pod := queue.pop(self._version)) is not None:
            self._kube.budgets.refresh()
            gang = self._gangs.of(pod)
            if gang is None:
                yield from self._try_pod(pod)
            else:
                yield from self._try_gang(gang)
        yield from self._kube.doze()

    def _try_pod(self, pod: PodInfo) -> Iterator[Decision]:
        found = self._find_node(claim_of(pod, self._accounts, self.cache))
        if isinstance(found, NodeInfo):
            yield from self._bind(pod, found)
        else:
            yield from self._post_filter(pod, [found.claim], {}, {pod: found})

    def _try_gang(self, gang: Gang) -> Iterator[Decision]:
        """Place all pods that wait, one after the other; if one gets no node, none is placed."""
        pods = gang.in_order()
        plan = Plan(self.cache, self._accounts, self._kube.budgets)
        failures: dict[PodInfo, Failure] = {}
        claims = []
        for pod in pods:
            claim = claim_of(pod, self._accounts, self.cache, mates=pods)
            claims.append(claim)
            found = self._find_node(claim)
            if isinstance(found, NodeInfo):
                plan.place(pod, found)
            else:
                failures[pod] = found
        plan.undo()
        leader = gang.leader
        assert leader is not None, "a gang was tried of which no pod waits"
        if failures:
            yield from self._post_filter(leader, claims, plan.placed, failures)
            return
        gang.bound()
        refused = self.refusals.pop(leader.job.index, None) if leader.job is not None else None
        detail: dict[str, Any] = {"gang": len(pods)}
        if refused is not None:
            detail["refused_before"] = refused.figures(self.cache)
        for pod, node in plan.placed.items():
            yield from self._bind(pod, node, detail)
            detail = {}

    def _find_node(self, claim: Claim) -> NodeInfo | Failure:
        """The node that a pod gets, if its quota lets it in."""
        if claim.refusal is not None:
            return Failure(claim, self.scheduling.pre_filter(claim.pod), self.cache, None)
        found = self.scheduling.schedule(claim.pod)
        return Failure(claim, found.state, self.cache, found) if isinstance(found, Diagnosis) else found

    def _bind(
        self, pod: PodInfo, node: NodeInfo, detail: Mapping[str, Any] | None = None
    ) -> Iterator[Decision]:
        self._version += 1
        pod.keeps = pod.priority
        bind = self._kube.bind(pod, node)
        self._accounts.bind(pod)
        yield Bind(bind.job, bind.pods, bind.node, detail) if detail else bind
        self._kube.queue.pod_bound(pod)

    # --- preemption ---------------------------------------------------------------------------------------

    def _post_filter(
        self,
        leader: PodInfo,
        claims: Sequence[Claim],
        placed: Mapping[PodInfo, NodeInfo],
        failures: Mapping[PodInfo, Failure],
    ) -> Iterator[Decision]:
        """An attempt has failed: make room by preemption if that is allowed and helps all of its pods.

        Args:
            leader: the pod, or the one that stands for its gang in the queue.
            claims: of all pods of the attempt.
            placed: those that got a node.
            failures: those that did not.
        """
        rejecting = frozenset(plugin for failure in failures.values() for plugin in failure.rejecting)
        if len(claims) > 1:
            rejecting |= {NODE_RESOURCES_FIT}  # any deletion may help a gang
        search = self._search(claims, failures)
        refusal = self._refused(search.why_not(), failures) if search is not None else None
        if search is None or refusal is not None:
            self._fail(leader, claims, rejecting, refusal)
            return
        found = self._refused(search.why_never(), failures) or self._plan(search, claims, placed, failures)
        if isinstance(found, Planned):
            yield from self._preempt(leader, search, found, rejecting)
            return
        self._fail(leader, claims, rejecting, found)
        for claim in claims:
            if claim.pod.nominated and not found.failed:
                yield from self._withdraw(claim.pod)

    def _search(self, claims: Sequence[Claim], failures: Mapping[PodInfo, Failure]) -> Search | None:
        """How the attempt looks for victims; None when it does not."""
        if not self._preempts:
            return None
        if self._default is not None and any(claim.quota is None for claim in claims):
            return DefaultSearch(self._default, failures)
        return QuotaSearch(self.scheduling, self._kube.budgets, self._accounts, self._rules, claims, failures)

    def _refused(
        self, why: tuple[PodInfo, str] | None, failures: Mapping[PodInfo, Failure]
    ) -> Refusal | None:
        if why is None:
            return None
        pod, rule = why
        return Refusal(pod.name, rule, _said(failures[pod]))

    def _fail(
        self, leader: PodInfo, claims: Sequence[Claim], rejecting: frozenset[str], refusal: Refusal | None
    ) -> None:
        if not any(claim.pod.nominated for claim in claims):
            leader.peers.hopeless, leader.peers.rejected_by = self._version, rejecting
        if refusal is not None and leader.job is not None:
            self.refusals[leader.job.index] = refusal
        self._kube.queue.add_unschedulable(leader, rejecting)

    def _plan(
        self,
        search: Search,
        claims: Sequence[Claim],
        placed: Mapping[PodInfo, NodeInfo],
        failures: Mapping[PodInfo, Failure],
    ) -> Planned | Refusal:
        """Make room for one pod after the other, in simulation; one that cannot be helped ends it for all."""
        pods = [claim.pod for claim in claims]
        plan = Plan(self.cache, self._accounts, self._kube.budgets)
        steps: list[Step] = []
        for pod, node in placed.items():
            plan.place(pod, node)
        try:
            for pod, first in failures.items():
                failure = first
                if plan.placed:
                    # Room that was made for others may do, and what it costs is to be seen anew.
                    again = self._find_node(claim_of(pod, self._accounts, self.cache, mates=pods))
                    if isinstance(again, NodeInfo):
                        plan.place(pod, again)
                        continue
                    failure = again
                found = search.candidates(failure)
                if not found.candidates:
                    rule = "no node can be freed for it"
                    return Refusal(pod.name, rule, _said(failure), found.rejected, failed=found.failed)
                chosen = pick_one_node_for_preemption(found.candidates)
                figures = search.figures(pod, chosen, found)
                if len(pods) > 1:
                    figures["gang"] = {"pods": len(pods), "short": len(failures), "pod": pod.name}
                victims = search.in_turn(chosen.victims)
                steps.append(Step(pod, chosen, victims, search.reason(pod), figures))
                for victim in victims:
                    plan.evict(victim)
                plan.place(pod, chosen.node)
        finally:
            plan.undo()
        return Planned(plan.placed, steps)

    def _preempt(
        self, leader: PodInfo, search: Search, planned: Planned, rejecting: frozenset[str]
    ) -> Iterator[Decision]:
        """Evict the victims and nominate all pods of the attempt to their nodes; they are tried again."""
        self._version += 1
        cleared: dict[PodInfo, None] = {}
        for step in planned.steps:
            if not all(victim.terminating for victim in step.victims):
                cleared |= dict.fromkeys(
                    other
                    for other in step.chosen.node.nominated
                    if other.keeps < step.pod.priority and other not in planned.nodes
                )
        self._kube.queue.add_unschedulable(leader, rejecting)
        before = {pod: pod.nominated for pod in planned.nodes}
        for pod, node in planned.nodes.items():
            self.cache.nominate(pod, node.name)
            pod.keeps = search.keeps(pod)
        for other in cleared:
            yield from self._withdraw(other)
        figures: dict[PodInfo, Mapping[str, Any]] = {}
        for step in planned.steps:
            figures[step.pod] = step.figures
            by = step.pod.job
            assert by is not None, "a pod without a job preempts"
            for victim in step.victims:
                if not victim.terminating:
                    self._accounts.terminate(victim)
                    yield self._kube.evict(victim, by, step.reason, step.figures)
        for pod, node in planned.nodes.items():
            if before[pod] != node.name and pod.job is not None:
                yield Nominate(pod.job, pod.pod, node.name, figures.get(pod, {}))
                if before[pod]:
                    self._kube.queue.nomination_withdrawn(pod)

    def _withdraw(self, pod: PodInfo) -> Iterator[Decision]:
        self._version += 1
        pod.keeps = pod.priority
        yield from self._kube.withdraw(pod)


def _said(failure: Failure) -> str:
    """What a pod's quota said, "" if it let the pod in."""
    return in_words(failure.claim.refusal) if failure.claim.refusal is not None else ""
