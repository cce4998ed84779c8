"""Models the scheduler, which tries pending pods one by one, binds them, and preempts other pods for them.

The scheduler handles pods and nodes, while a policy turns jobs into pods. The scheduler updates its own
records before it yields a decision, so the records are correct if the decision has immediate effects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, final

from harness.base.memo import Memo
from harness.base.units import MINUTE
from harness.cluster.kinds.scheduler_configuration import SchedulerConfiguration
from harness.cluster.model import Cluster
from harness.models.kube.cache import Cache
from harness.models.kube.gang_scheduling import TIMEOUT, GangRefusal, PermitGang, PermitGangs
from harness.models.kube.hints import Hints
from harness.models.kube.most_room import MostRoom
from harness.models.kube.node import NodeInfo
from harness.models.kube.node_hints import ChangingNodes
from harness.models.kube.placement.node_rules import NodeRules
from harness.models.kube.placement.scheduling import Diagnosis, scheduling_of
from harness.models.kube.placement.status import NODE_RESOURCES_FIT
from harness.models.kube.placement.trial import NOTHING
from harness.models.kube.pod import NOT_STARTED, PodInfo, Refusal, Templates
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.evaluator import (
    Preemption,
    deciding_criterion,
    pick_one_node_for_preemption,
)
from harness.models.kube.preemption.victims import Candidate
from harness.models.kube.queue import NEVER, SchedulingQueue
from harness.models.kube.refusal import DISABLED, NO_NODES, NO_VICTIMS, NoRoom, Unschedulable, refuse
from harness.models.told import NOTHING_TOLD
from harness.policy import Bind, Decision, Job, Nominate, Preempt, Refuse, Standing, Unnominate, Wake

PREEMPTED: Final = "PreemptionByScheduler"
"""The reason for a preemption, as in the victim's condition."""

_BY_ITS_GANG = frozenset({NODE_RESOURCES_FIT})
"""The plugins that count as rejecting a pod that gave up its place, so that any deletion may help."""

_BY_NO_NODE = frozenset({"no node"})
"""Marks a pod whose attempt ended with an error, although no plugin rejected the pod."""

_BEFORE_ALL: Final = 1 << 61
"""Running pods start this much earlier, so that their start is before the stamp of any binding."""

_NOTHING: Iterator[Decision] = iter(())


def _as_peers(pod: PodInfo) -> Refusal:
    why = pod.peers.refusal
    assert why is not None, "a pod fails for a reason"
    return why


@final
class Scheduler:
    """One scheduler with the default profile.

    Args:
        cluster: the nodes, namespaces and budgets.
        configuration: the KubeSchedulerConfiguration fields that are used.
        gangs: makes pods wait for other pods of their gang. If it is None, each pod is placed individually.

    Attributes:
        preemption: default preemption, or None if it is disabled.
        queue: the pending pods.
        advance: advances to a time. The timers of the queue run before everything else at that time.
        nodes: handles added, removed and changed nodes.
    """

    def __init__(
        self, cluster: Cluster, configuration: SchedulerConfiguration, *, gangs: PermitGangs | None = None
    ) -> None:
        self.cache = Cache(cluster)
        self.budgets = Budgets(cluster.disruption_budgets, live=True)
        self.templates = Templates(self.cache.resources, self.budgets.covering)
        self.scheduling = scheduling_of(self.cache, self.templates, configuration)
        self.preemption = (
            None if configuration.disable_preemption else Preemption(self.cache, self.budgets, configuration)
        )
        self.queue = SchedulingQueue(Hints(self.cache.labels_of))
        self.advance: Callable[[int], None] = self.queue.advance
        self._gangs = gangs
        self._most_room: Memo[tuple[NodeRules, int | None], MostRoom] = Memo()
        # The last job with a recorded refusal in this cycle, and the plugins that rejected its pod.
        self._refused: tuple[Job | None, frozenset[str]] | None = None
        self._woken = -1
        self._running: list[tuple[PodInfo, NodeInfo]] = []
        self.nodes = ChangingNodes(
            cluster, self.cache, self.templates, self.scheduling, self.preemption, self.queue
        )

    @property
    def attempts(self) -> int:
        """The number of scheduling attempts."""
        return self.queue.attempts

    @property
    def now(self) -> int:
        """The current time, in microseconds since the origin."""
        return self.queue.now

    @property
    def error_due(self) -> int:
        """The time of the next retry after an attempt ended with an error. It is far ahead if none is due."""
        return self.queue.error_due

    # --- changes of the cluster ---------------------------------------------------------------------------

    def add(self, pod: PodInfo) -> None:
        """Adds a pod that arrives."""
        if pod.template.budgets:
            self.budgets.exists(pod.template, 1)
        if self._gangs is None:
            self.queue.add(pod)
            return
        for tried in self._gangs.arrive(pod):
            self.queue.add(tried)

    def add_running(self, pod: PodInfo, node: str, start: int | None) -> None:
        """Adds a running pod, which is bound before anything is scheduled.

        Args:
            pod: the pod.
            node: the name of its node.
            start: when the pod started, in microseconds since 1970. This start is earlier than all later
                bindings.
        """
        self.budgets.exists(pod.template, 1)
        pod.start = NOT_STARTED if start is None else start - _BEFORE_ALL
        if self._gangs is not None:
            self._gangs.arrive_bound(pod)
        self._running.append((pod, self.cache.by_name[node]))

    def delete(self, pod: PodInfo) -> None:
        """Removes a pod that finished, was evicted, or is no longer wanted."""
        covered = bool(pod.template.budgets)
        if covered:
            self.budgets.exists(pod.template, -1)
        waited = False
        if self._gangs is not None:
            waited = self._gangs.is_waiting(pod)
            self._gangs.leave(pod)
        if pod.node >= 0:
            self.cache.remove_pod(pod)
            if covered and not pod.terminating and not waited:
                self.budgets.runs(pod.template, -1)
            self.queue.pod_deleted(pod)
            return
        self.queue.discard(pod)
        if pod.nominated:
            self.cache.nominate(pod, "")
            self.queue.nomination_withdrawn(pod)

    # --- what it decides ----------------------------------------------------------------------------------

    def run(self) -> Iterator[Decision]:
        """Tries pods until all remaining pods wait for an event."""
        queue, cache = self.queue, self.cache
        if self._running or self._gangs is not None or cache.unsettled:
            return self._run_all()
        pod = queue.pop(cache.version)
        if pod is not None or queue.failed_alike:
            return self._try_pods(pod)
        if queue.now < self._woken:
            return _NOTHING  # the case in most cycles
        wake = self.next_wake()
        return _NOTHING if wake is None else iter((wake,))

    def standing(self, now: int) -> Standing | None:
        """See `harness.policy.Policy`."""
        if self._running:
            return None
        cache, gangs = self.cache, self._gangs
        state = (
            self.queue.standing(),
            self.scheduling.start,
            max(self._woken - now, 0),
            tuple([(node, *node.nominated) for node in cache.expecting]),
            cache.version if gangs is None else self._placed(gangs, now),
        )
        return Standing(state, (self.queue.attempts,))

    def _placed(self, gangs: PermitGangs, now: int) -> tuple[object, ...]:
        """Returns the only part of the cache that can change: the places that gangs hold. Bound pods stay."""
        cache = self.cache
        nodes = [cache.nodes[pod.node] for pod in gangs.holding()]
        return gangs.standing(now), tuple(cache.placed), *[(node, *node.pods) for node in nodes]

    def skip(self, span: int, counts: Sequence[int]) -> None:
        """See `harness.policy.Policy`."""
        self.queue.skip(span, counts[0])
        self._woken += span
        if self._gangs is not None:
            self._gangs.skip(span)

    def _run_all(self) -> Iterator[Decision]:
        """Tries pods in a replay with pods that are already running, with gangs, or without nodes."""
        yield from self.bind_running()
        if not self.cache.by_name:
            yield from self.fail_without_nodes()
            if self.queue.now < self.queue.error_due < NEVER:
                yield Wake(self.queue.error_due, True)
        self.nodes.settle()
        yield from self._try_pods(self.queue.pop(self.cache.version), wakes=False)
        if self._gangs is not None:
            yield from self._time_out(self._gangs)
            yield from [refuse(pod, why) for pod, why in self._gangs.news()]
        wake = self.next_wake()
        if wake is not None:
            yield wake

    def _try_pods(self, pod: PodInfo | None, wakes: bool = True) -> Iterator[Decision]:
        """Tries pods, first this one, until all remaining pods wait for an event.

        `wakes` says whether the rest of this cycle contains only wake-up requests.
        """
        queue, cache = self.queue, self.cache
        while pod is not None:
            if queue.failed_alike:
                yield from self.refuse_alike()
            if self.budgets.stale:
                self.budgets.refresh()
            found = self.scheduling.schedule(pod)
            if not isinstance(found, NodeInfo):
                yield from self._post_filter(pod, found)
            elif self._gangs is not None and (gang := self._gangs.of(pod)) is not None:
                yield from self._place_in_gang(self._gangs, gang, pod, found)
            else:
                yield self.bind(pod, found)
                queue.pod_bound(pod)
            pod = queue.pop(cache.version)
        if queue.failed_alike:
            yield from self.refuse_alike()
        wake = self.next_wake() if wakes else None
        if wake is not None:
            yield wake

    def fail_without_nodes(self) -> Iterator[Decision]:
        """Makes every attempt end with an error, because there are no nodes to filter or to preempt on."""
        while (pod := self.queue.pop_any()) is not None:
            self.queue.add_erring(pod)
            if pod.note_rejection(_BY_NO_NODE):
                yield refuse(pod, NO_NODES)
            if pod.nominated:
                yield from self.withdraw(pod)

    def bind_running(self) -> Iterable[Bind]:
        """Binds the running pods, before any other decision."""
        return self._bind_running() if self._running else ()

    def _bind_running(self) -> Iterator[Bind]:
        for running, node in self._running:
            self.cache.add_pod(running, node)
            yield self._bound(running, node)
        self._running.clear()

    def next_wake(self) -> Wake | None:
        """Returns a wake-up for the queue's timer after a cycle, when all pods wait for an event."""
        self._refused = None
        if self.queue.now < self._woken:
            return None  # all pending pods are flushed then or later
        flush = self.queue.next_flush()
        if flush is None:
            return None
        self._woken = flush
        return Wake(flush, True)  # idle; a keyword argument would take twice as long

    def refuse_alike(self, why: Callable[[PodInfo], Refusal | None] = _as_peers) -> Iterable[Refuse]:
        """Records refusals for pods that failed without an attempt because an equal pod had failed.

        If consecutive pods belong to the same job and have the same reason, only one refusal is recorded.

        Args:
            why: a function that returns the reason why a pod waits, or its job or gang. It returns None if
                this reason is already recorded.
        """
        return self._refuse_alike(why) if self.queue.failed_alike else ()

    def _refuse_alike(self, why: Callable[[PodInfo], Refusal | None]) -> Iterator[Refuse]:
        alike = self.queue.failed_alike
        for pod in alike:
            refusal = why(pod)
            if refusal is not None:
                yield from self.refuse(pod, refusal)
        alike.clear()

    def refuse(self, pod: PodInfo, why: Refusal) -> Iterable[Refuse]:
        """Records the reason why a pod waits, unless the last recorded refusal has this job and reason."""
        said = pod.job, pod.rejected_by
        if said == self._refused:
            return ()
        self._refused = said
        return (refuse(pod, why),)

    def bind(self, pod: PodInfo, node: NodeInfo) -> Bind:
        """Binds a pod to a node."""
        if pod.nominated:
            self.cache.nominate(pod, "")
        pod.start = self.queue.stamp()
        self.cache.add_pod(pod, node)
        return self._bound(pod, node)

    def _bound(self, pod: PodInfo, node: NodeInfo) -> Bind:
        if pod.template.budgets and not pod.terminating:
            self.budgets.runs(pod.template, 1)
        job, pods = pod.job, range(pod.pod, pod.pod + 1)
        assert job is not None, "a pod of a replay belongs to a job"
        return (
            Bind(job, pods, node.name, {"devices": list(pod.devices)})
            if pod.devices
            else Bind(job, pods, node.name)
        )

    # --- gangs --------------------------------------------------------------------------------------------

    def _place_in_gang(
        self, gangs: PermitGangs, gang: PermitGang, pod: PodInfo, node: NodeInfo
    ) -> Iterator[Decision]:
        """Assigns a place to a pod. If enough pods of its gang have a place, binds it together with them."""
        self.cache.nominate(pod, "")
        self.cache.add_pod(pod, node)
        for mate in gangs.place(gang, pod, self.queue.now):
            there = self.cache.nodes[mate.node]
            mate.start = self.queue.stamp()
            self.cache.touch(there)
            yield self._bound(mate, there)
            self.queue.pod_bound(mate)

    def _time_out(self, gangs: PermitGangs) -> Iterator[Decision]:
        """Makes gangs that have waited too long give up one by one, and tries other pods in between."""
        while (gang := gangs.late(self.queue.now)) is not None:
            placed, is_first = gang.placed, gang.gave_up_at is None
            pods = gangs.give_up(gang)
            for pod in pods:
                self.cache.remove_pod(pod)
            for pod in pods:
                self.queue.pod_deleted(pod)
            for pod in gang.unplaced:  # these pods are not tried before another pod is gone
                self.queue.discard(pod)
                self.queue.add_unschedulable(pod, _BY_ITS_GANG)
            if is_first:
                why = gang.of_its_pods(placed, f"had a place for {TIMEOUT // MINUTE} minutes and gave it up")
                yield refuse(pods[0], GangRefusal(why))
            yield from self._try_pods(self.queue.pop(self.cache.version), wakes=False)
        wake = gangs.next_wake()
        if wake is not None:
            yield wake

    def _lose_place(self, gangs: PermitGangs, victim: PodInfo) -> Refuse:
        """Takes away the place of a pod that is not bound yet. The scheduler tries the pod again."""
        gangs.lose_place(victim)
        self.cache.remove_pod(victim)
        self.queue.pod_deleted(victim)
        self.queue.add_unschedulable(victim, _BY_ITS_GANG)
        return refuse(
            victim, GangRefusal("it waited for its gang, and its place went to a more important pod")
        )

    # --- preemption ---------------------------------------------------------------------------------------

    def _post_filter(self, pod: PodInfo, diagnosis: Diagnosis) -> Iterator[Decision]:
        preemption, rejecting = self.preemption, diagnosis.rejecting
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
        peers, is_new = pod.peers, pod.note_rejection(rejecting)
        if pod.nominated:
            self.cache.nominate(pod, pod.nominated)
        else:
            peers.rejected_by, peers.refusal, peers.lasting = rejecting, why, None
            if not self.scheduling.moves_on(why.diagnosis.nodes):
                peers.failed_at = self.cache.version
                peers.lasting = self._lasting(pod, why.diagnosis)
        self.queue.add_unschedulable(pod, rejecting)
        if is_new:
            yield from self.refuse(pod, why)

    def _lasting(self, pod: PodInfo, diagnosis: Diagnosis) -> NoRoom | None:
        """Returns why equal pods fail until a node has more free resources, or None if they may succeed."""
        nodes, statuses, cache = diagnosis.nodes, diagnosis.statuses, self.cache
        others_count = nodes.shape.ports or diagnosis.state is not NOTHING
        if others_count or (statuses and nodes.rules.named is not None):
            return None
        above = pod.priority if self.preemption is not None and pod.preempts else None
        most_room = self._most_room.get((nodes.rules, above))
        if most_room is None:
            most_room = self._most_room[nodes.rules, above] = MostRoom(cache, nodes.rules, above)
        by_nodes_alone = not statuses and not most_room.has_victims
        seen = cache.version if by_nodes_alone else -1
        why = NoRoom(nodes, most_room, cache, seen, by_others=bool(statuses))
        return why if by_nodes_alone or why.holds(pod) else None

    def _preempt(
        self, preemption: Preemption, pod: PodInfo, rejecting: frozenset[str], candidates: Any
    ) -> Iterator[Decision]:
        chosen = pick_one_node_for_preemption(candidates)
        cleared = preemption.nominations_to_clear(pod, chosen)
        detail = detail_of(chosen, deciding_criterion(candidates), len(candidates))
        pod.told = NOTHING_TOLD
        before, name = pod.nominated, chosen.node.name
        self.cache.nominate(pod, name)
        self.queue.add_unschedulable(pod, rejecting)
        for other in cleared:
            yield from self.withdraw(other)
        assert pod.job is not None
        for victim in chosen.victims:
            if self._gangs is not None and self._gangs.is_waiting(victim):
                yield self._lose_place(self._gangs, victim)
            elif not victim.terminating:
                yield self.evict(victim, pod.job, PREEMPTED, detail)
        if before != name:
            yield Nominate(pod.job, pod.pod, name, detail)
            if before:
                self.queue.nomination_withdrawn(pod)

    def evict(self, victim: PodInfo, by: Job | None, reason: str, detail: Mapping[str, Any]) -> Preempt:
        """Evicts a bound pod. The pod uses its resources until it is gone."""
        self._refused = None  # the next reason for waiting is new
        self.terminate(victim, preempted=reason == PREEMPTED)
        assert victim.job is not None
        return Preempt(victim.job, by, reason, range(victim.pod, victim.pod + 1), detail)

    def terminate(self, pod: PodInfo, *, preempted: bool = False) -> None:
        """Records that this scheduler or another component evicted a bound pod."""
        self.cache.terminate(pod, preempted=preempted)
        self.budgets.runs(pod.template, -1)

    def withdraw(self, pod: PodInfo) -> Iterator[Decision]:
        """Withdraws the nomination of a pod."""
        self.cache.nominate(pod, "")
        assert pod.job is not None
        yield Unnominate(pod.job, pod.pod)
        self.queue.nomination_withdrawn(pod)


def detail_of(chosen: Candidate, criterion: str, candidates: int) -> dict[str, Any]:
    """Returns the numbers that explain why these victims on this node were chosen."""
    return {
        "node": chosen.node.name,
        "criterion": criterion,
        "candidates": candidates,
        "pdb_violations": chosen.violations,
        "victims": {victim.name: victim.priority for victim in chosen.victims},
    }
