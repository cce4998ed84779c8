"""Implements policies that are based on a scheduler of pods, and turns the jobs of a trace into pods.

By default, kube-scheduler does not handle a gang as a unit. Therefore, bound pods of a gang wait on their
nodes until all pods are bound. A scheduler that supports gangs groups pods by `PodInfo.job` (`gangs.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from operator import itemgetter
from typing import Final, Protocol, final

from harness.base.errors import InputError
from harness.cluster.model import Cluster, Node
from harness.models.kube.drains import Evicting
from harness.models.kube.evictions import PodEvictions
from harness.models.kube.kinds import Kind, Kinds, Nodes
from harness.models.kube.pod import PodInfo
from harness.models.kube.taint_evictions import TaintEvictions
from harness.policy import Bind, Change, Decision, Job, Never, Possible, Preempt, Reject, Standing, Why

NODE: Final = "Node"
"""The kind of objects whose changes affect pods."""

_ENDED: Final = Why.ENDED  # looking it up in the enumeration each time is as expensive as a call


class NodesHeard(Protocol):
    """Handles added, removed and changed nodes."""

    def put(self, node: Node) -> None:
        """Adds, restores or changes a node."""

    def drop(self, name: str) -> None:
        """Removes a node. The caller must then delete its pods."""


class Erring(Nodes, Protocol):
    """A scheduler in which attempts can end with an error."""

    @property
    def error_due(self) -> int:
        """The time of the next retry after an attempt ended with an error. It is far ahead if none is due."""


class PodScheduler(Erring, Evicting, Protocol):
    """The scheduler of the pods, which is kube-scheduler or a scheduler that is based on it."""

    @property
    def attempts(self) -> int:
        """The number of scheduling attempts."""

    @property
    def nodes(self) -> NodesHeard:
        """The object that handles added, removed or changed nodes."""

    def advance(self, now: int) -> None:
        """Advances to `now`."""

    def add(self, pod: PodInfo) -> None:
        """Adds a pod that arrives."""

    def add_running(self, pod: PodInfo, node: str, start: int | None) -> None:
        """Adds a pod that is already running."""

    def delete(self, pod: PodInfo) -> None:
        """Removes a pod that is gone."""

    def run(self) -> Iterator[Decision]:
        """Tries pods until all remaining pods wait for an event."""

    def standing(self, now: int) -> Standing | None:
        """Returns the state of the scheduler. See `harness.policy.Policy`."""

    def skip(self, span: int, counts: Sequence[int]) -> None:
        """Advances the time by this duration. The state of the scheduler stays the same."""


@final
class PodPolicy:
    """A policy that simulates jobs with a scheduler of pods.

    Args:
        cluster: the cluster, which must have nodes.
        scheduler: the scheduler of the pods. It has its own records, as in reality.
        never: for a scheduler with quotas, a function that returns the reason why a job can never start, or
            None. Nodes are not among these reasons. Such jobs are rejected before jobs that fit on no node.
        gives_up: whether to reject jobs that fit on no node even if all nodes are empty. A real scheduler
            tries them again and again.
        latency: the time until the scheduler learns that an evicted pod is gone, in microseconds. If it is
            None, the scheduler always learns this immediately (see `Evictions`).
        groups: see `Kinds`. With `gives_up`, jobs that wait for missing groups are also rejected.
        preempts: whether the scheduler ever evicts pods. If not, evictions are not counted.
        lets_in: a function that returns True if quotas admit all of the given pods together, without
            preemption. It is None without quotas.
        heard: a function that receives every change of the cluster, and all pods, after the scheduler has
            updated its nodes. It is None for a scheduler that depends only on nodes.

    Raises:
        InputError: the cluster has no nodes.
    """

    def __init__(
        self,
        cluster: Cluster,
        scheduler: PodScheduler,
        *,
        never: Possible | None = None,
        gives_up: bool = True,
        latency: int | None = None,
        groups: bool = False,
        preempts: bool = True,
        lets_in: Callable[[Sequence[PodInfo]], bool] | None = None,
        heard: Callable[[Change, Collection[PodInfo]], None] | None = None,
    ) -> None:
        require_nodes(cluster)
        self.scheduler = scheduler
        self._kinds = Kinds(self.scheduler, cluster, groups=groups)
        self._now = -1  # the scheduler is advanced only once to each time
        self._gives_up = gives_up
        self._never = never
        # Jobs to reject in the next cycle, each with whether the reason is that it fits on no node.
        self._rejected: list[tuple[bool, Job, Never]] = []
        self._pods: dict[tuple[int, int], PodInfo] = {}
        self._successors: dict[tuple[int, int], int] = {}
        self._unseen: dict[tuple[int, int], int] = {}  # when the scheduler learns that a pod is gone
        self._preempts = preempts
        self._lets_in = lets_in
        self._heard = heard
        self._evictions = PodEvictions(latency)
        self._taints = TaintEvictions(cluster, scheduler)
        self.timers = (
            PodTimers(self._taints, scheduler, self.tolerated_for_a_time) if self._taints.may_be else None
        )

    def submit(self, job: Job, pods: range, now: int) -> None:
        """Adds pending pods. Evicted pods are added when the scheduler learns that they are gone."""
        if now != self._now:
            self._now = now
            self.scheduler.advance(now)
        kinds = self._kinds.of_job(job)
        if not self._successors or (job.index, pods.start) not in self._successors:
            # Pods that run or have run are never given up. Their quota may have changed since they started.
            if self._never is not None and (kinds.only is None or not kinds.only.node):
                never = self._never(job)
                if never is not None:
                    self._rejected.append((False, job, never))
                    return
            if kinds.never is not None and self._gives_up:
                self._rejected.append((True, job, kinds.never))
                return
        for pod in pods:
            key = job.index, pod
            if key not in self._pods:
                self._add(job, key, kinds.only or self._kinds.of(job, job.pod_set_of(pod)))

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Removes pods from their nodes. The scheduler may learn about evicted pods later."""
        if now != self._now:
            self._now = now
            self.scheduler.advance(now)
        if why is _ENDED:
            if self._preempts:
                self._evictions.end(job, pods)
            for pod in pods:
                key = job.index, pod
                gone = self._pods.pop(key)
                self.scheduler.delete(gone)
                if self.timers is not None:
                    self._taints.forget(gone)
                if self._successors:
                    self._successors.pop(key, None)
            return
        for pod in pods:
            key = (job.index, pod)
            self._successors[key] = self._successors.get(key, 0) + 1
            if self.timers is not None:
                self._taints.forget(self._pods[key])
            # If a node is gone, the scheduler learns immediately that its pods are gone, too.
            due = now if why is Why.LOST else self._evictions.leave(job, pod, now)
            if due == now:
                self.scheduler.delete(self._pods.pop(key))
            else:
                self._unseen[key] = due

    def cycle(self, now: int) -> Iterator[Decision]:
        """Schedules pods until all remaining pods wait for an event."""
        if now != self._now:
            self._now = now
            self.scheduler.advance(now)
        if not (self._preempts or self._rejected or self._taints.tainted or self._unseen):
            return self.scheduler.run()
        return self._cycle(now)

    def changed(self, change: Change, now: int) -> Iterator[Decision]:
        """Adds, removes or changes a node. NoExecute taints evict pods that do not tolerate them.

        kube-scheduler ignores changes of quotas, queues and priority classes.
        """
        if now != self._now:
            self._now = now
            self.scheduler.advance(now)
        if change.edit.kind == NODE:
            yield from self._node_changed(change.edit.name, change.edit.after, now)
        if self._heard is not None:
            self._heard(change, self._pods.values())

    def _node_changed(self, name: str, node: object, now: int) -> Iterator[Decision]:
        if not isinstance(node, Node):
            there = sorted(self.scheduler.cache.by_name[name].pods, key=lambda pod: pod.name)
            self.scheduler.nodes.drop(name)
            self._taints.drop(name)
            for pod in there:
                if pod.job is not None and (pod.job.index, pod.pod) in self._unseen:
                    self._see(pod.job, pod.pod)
        else:
            self.scheduler.nodes.put(node)
            yield from self._taints.put(node, now)
        self._kinds.forget()

    def tolerated_for_a_time(self, now: int) -> Iterator[Decision]:
        """Evicts the pods whose tolerations end now, sorted by name."""
        if now != self._now:
            self._now = now
            self.scheduler.advance(now)
        yield from self._taints.ended(now)

    def standing(self, now: int) -> Standing | None:
        """See `harness.policy.Policy`."""
        return None if self._rejected else self.scheduler.standing(now)

    def skip(self, span: int, counts: Sequence[int]) -> None:
        """See `harness.policy.Policy`."""
        self.scheduler.skip(span, counts)

    @property
    def within_quota(self) -> Callable[[Job, Sequence[int]], bool] | None:
        """See `harness.policy.Policy`. It is None without quotas."""
        return None if self._lets_in is None else self._is_let_in

    def _is_let_in(self, job: Job, pods: Sequence[int]) -> bool:
        assert self._lets_in is not None
        known = (self._pods.get((job.index, pod)) for pod in pods)
        return self._lets_in([pod for pod in known if pod is not None])

    def _cycle(self, now: int) -> Iterator[Decision]:
        """Schedules pods in a replay where pods can be preempted or jobs must be rejected."""
        left = self._evictions.left
        for job, pod in left.due(now):
            if self._unseen.get((job.index, pod), now + 1) <= now:  # otherwise its node was removed before
                self._see(job, pod)
        if self._rejected:
            rejected = sorted(self._rejected, key=itemgetter(0))
            self._rejected.clear()
            yield from [Reject(job, never.why) for _, job, never in rejected]
        evictions = self._evictions
        for decision in self.scheduler.run():
            if type(decision) is Bind:
                evictions.bound(decision, now)
            elif type(decision) is Preempt:
                evictions.preempted(decision, now)
            yield decision
            if self._taints.tainted and type(decision) is Bind and decision.node in self._taints.tainted:
                bound = [self._pods[decision.job.index, pod] for pod in decision.pods]
                yield from self._taints.bound(bound, decision.node, now)
        yield from left.wakes()

    def _see(self, job: Job, pod: int) -> None:
        key = job.index, pod
        del self._unseen[key]
        self.scheduler.delete(self._pods.pop(key))
        self._add(job, key, self._kinds.of(job, job.pod_set_of(pod)))

    def _add(self, job: Job, key: tuple[int, int], kind: Kind) -> None:
        """Adds a pending or running pod. An evicted pod returns as a new pod, which comes after its equals.

        A pod of another scheduler does not return to this scheduler.
        """
        successor = self._successors.get(key, 0)
        if successor and not kind.ours:
            return
        pod = key[1]
        name = job.pod_name(pod, successor) if successor or job.pods > 1 else job.id
        info = PodInfo(name, kind.template, job.priority, job.preempts, job, pod, kind.group)
        self._pods[key] = info
        if self._preempts and not successor:
            self._evictions.left.progressed += 1
        if kind.node and not successor:
            info.terminating, info.preempted = kind.going
            self.scheduler.add_running(info, kind.node, kind.start)
            return
        if kind.nominated and kind.nominated in self.scheduler.cache.by_name and not successor:
            self.scheduler.cache.nominate(info, kind.nominated)  # as in its status
        self.scheduler.add(info)


@final
class PodTimers:
    """The timers of pods, except the timer of the queue. See `Policy.timers`.

    Args:
        taints: determines when the next toleration ends.
        scheduler: the scheduler, which retries pods whose last attempt ended with an error.
        deliver: a function that makes the decisions when tolerations end. The scheduler's own timers always
            come first.
    """

    def __init__(
        self, taints: TaintEvictions, scheduler: Erring, deliver: Callable[[int], Iterator[Decision]]
    ) -> None:
        self._taints = taints
        self._scheduler = scheduler
        self.deliver = deliver

    @property
    def due(self) -> int:
        """The time when the next toleration ends, or when an attempt that ended with an error is repeated."""
        taints, scheduler = self._taints.due, self._scheduler
        return min(taints, scheduler.error_due) if scheduler.cache.by_name else taints


def require_nodes(cluster: Cluster) -> None:
    """Raises an error if a cluster has no nodes.

    Raises:
        InputError: the cluster has no nodes.
    """
    if not cluster.nodes and not cluster.nodes_change:
        raise InputError(
            "this policy schedules pods onto nodes, and the cluster has none",
            hint="give manifests with nodes (kubectl get nodes -o yaml) or a NodePool: --cluster FILE",
        )
