"""Applies node changes in recorded cases, and their effects on the pods that the recording simulated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, final

from harness.models.cluster import Cluster, Node
from harness.models.constraints import UNTOLERATED
from harness.policy import Change, Decision, Instant, Wake
from harness_plugins.kueue.policy import KueuePolicy
from harness_plugins.kueue.rules.node_controller import NodeController
from harness_plugins.kueue.scheduler import Scheduler
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

_FAR = 2**63 - 1
_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""The taints that pods tolerate for some time by default in every cluster."""

_Pods: TypeAlias = tuple[Workload, str, str]  # the pods of a pod set of a workload on a node


@final
class RecordedPods:
    """The pods on nodes, which are all assigned pods except the pods that left their node.

    Args:
        tolerated: how long pods stay on a node that is not ready, in microseconds.
    """

    def __init__(self, scheduler: Scheduler, tolerated: int) -> None:
        self._scheduler = scheduler
        self._tolerated = tolerated
        self._left: set[_Pods] = set()
        self._leaving: dict[_Pods, int] = {}

    def on(self, node: str, namespace: str) -> bool:
        """Returns True if a node has pods of this namespace. Pods that have left the node do not count."""
        return any(
            each not in self._left for each in self._assigned(node) if each[0].job.namespace == namespace
        )

    def leave(self, workload: Workload, pods: range) -> Iterable[str]:
        """Removes all pods of a workload. Returns their nodes, including the nodes that they left before."""
        self._forget([each for each in (*self._left, *self._leaving) if each[0] is workload])
        return [values[-1] for placed in workload.placed for values, _ in placed.domains]

    def move(self, workload: Workload, placed: Sequence[Placed], node: str) -> Iterator[Decision]:
        """Moves the pods of a workload from a node to other places."""
        there = {(workload, each.pod_set.name, values[-1]) for each in placed for values, _ in each.domains}
        gone = [each for each in (*self._left, *self._leaving) if each[0] is workload]
        self._forget([each for each in gone if each[2] == node or each not in there])
        yield from ()

    def _forget(self, those: Iterable[_Pods]) -> None:
        for each in those:
            self._left.discard(each)
            self._leaving.pop(each, None)

    def _assigned(self, node: str) -> Iterator[_Pods]:
        for workload in self._scheduler.cache.everybody():
            if not workload.evicted:
                for placed in workload.placed:
                    if placed.on(node):
                        yield workload, placed.pod_set.name, node

    def change(self, name: str, node: Node | None, controller: NodeController, now: int) -> None:
        """Applies a node change to the pods on the node, after the node controller has checked the node."""
        for pods in list(self._assigned(name)):
            if node is None:
                self._leaving.pop(pods, None)
                self._left.add(pods)
                continue
            workload = pods[0]
            (pod_set,) = (each.pod_set for each in workload.placed if each.pod_set.name == pods[1])
            taints = [
                taint.key
                for taint in node.taints
                if taint.effect == "NoExecute"
                and controller.tolerance(workload, pod_set, [taint]) == UNTOLERATED
            ]
            if not taints:
                self._leaving.pop(pods, None)
                if node.ready and workload.unhealthy != name:
                    self._left.discard(pods)
            elif pods not in self._left:
                if all(key in _NOT_READY for key in taints):
                    self._leaving.setdefault(pods, now + self._tolerated)
                else:
                    self._go(pods, controller, now)

    def end(self, controller: NodeController, now: int) -> None:
        """Removes the pods whose time on a node that is not ready has ended."""
        for pods in [each for each, due in self._leaving.items() if due <= now]:
            self._go(pods, controller, now)

    def _go(self, pods: _Pods, controller: NodeController, now: int) -> None:
        self._leaving.pop(pods, None)
        self._left.add(pods)
        controller.pods_left(pods[2], now)

    @property
    def due(self) -> int | None:
        """The time when the next pods leave their node, or None if no pods do."""
        return min(self._leaving.values(), default=None)


@final
class NodeEvents:
    """Delivers the node changes of a case to the policy in order. The engine runs without nodes."""

    def __init__(
        self, instants: Sequence[Instant], cluster: Cluster, policy: KueuePolicy, pods: RecordedPods
    ) -> None:
        self._ahead = list(reversed(instants))
        self._cluster = cluster
        self._policy = policy
        self._pods = pods

    @property
    def due(self) -> int:
        """The time of the next node change."""
        return self._ahead[-1].at if self._ahead else _FAR

    def deliver(self, now: int) -> Iterator[Decision]:
        """Applies the node changes that are due one by one, with their effects on pods."""
        assert self._policy.failures is not None
        for edit in self._ahead.pop().edits:
            self._cluster = edit.on(self._cluster)
            yield from self._policy.changed(Change(edit, self._cluster), now)
            self._pods.change(edit.name, edit.after, self._policy.failures.controller, now)

    def leave(self, now: int) -> None:
        """Removes the pods whose time on a node that is not ready has ended."""
        assert self._policy.failures is not None
        self._pods.end(self._policy.failures.controller, now)

    def wakes(self) -> Iterator[Wake]:
        """Yields a wake-up for the next time at which pods leave their node."""
        due = self._pods.due
        if due is not None:
            yield Wake(due)
