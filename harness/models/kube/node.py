"""A node as the scheduler sees it: what it can hold, what the pods on it hold, and who is nominated to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from harness.cluster.kinds.pods import HostPort
from harness.cluster.model import Node
from harness.models.kube.pod import PodInfo

CPU, MEMORY = 0, 1
"""Indices of the resources that are scored; every vector begins with them."""

UNLIMITED_PODS = 1 << 62


@final
class NodeInfo:
    """One node.

    Attributes:
        manifest: the node as it is; another object where anything of it has changed.
        position: its place in the order in which nodes are looked at.
        rank: its place in the order of names, which decides between nodes that are equal otherwise.
        allocatable: amount of each resource, by index; 0 for one that it does not have.
        free: allocatable minus what pods on it request; may be negative.
        slots: how many more pods it takes. A node that does not say how many takes any number.
        scored_cpu, scored_memory: what pods on it request, with defaults, for NodeResourcesFit's score.
        pods: the pods on it, terminating ones included, in the order in which they came.
        ports: host ports that are taken, each with the number of pods that take it.
        nominated: pods for which a preemption made room on it, in the order in which they were nominated or
            last failed with the nomination.
        generation: grows with every change of the above.
    """

    __slots__ = (
        "_balance", "_balance_of", "_ordered", "_ordered_of", "allocatable", "free", "generation", "labels",
        "manifest", "name", "nominated", "pods", "ports", "position", "rank", "scored_cpu", "scored_memory",
        "slots", "taints", "unschedulable",
    )  # fmt: skip

    def __init__(self, node: Node, position: int, rank: int, resources: Mapping[str, int]) -> None:
        self.manifest = node
        self.name = node.name
        self.position = position
        self.rank = rank
        self.labels = node.labels
        self.taints = node.taints
        self.unschedulable = node.unschedulable
        self.allocatable = [node.allocatable.get(name, 0) for name in resources]
        self.free = list(self.allocatable)
        self.slots = node.allocatable.get("pods", UNLIMITED_PODS)
        self.scored_cpu = 0
        self.scored_memory = 0
        self.pods: dict[PodInfo, None] = {}
        self.ports: dict[HostPort, int] = {}
        self.nominated: list[PodInfo] = []
        self.generation = 0
        self._ordered: list[PodInfo] = []
        self._ordered_of = -1
        self._balance = 0
        self._balance_of = -1

    def become(self, node: Node, resources: Mapping[str, int]) -> None:
        """Take over a changed manifest and keep the pods; the node may then have less than they hold."""
        held = [has - free for has, free in zip(self.allocatable, self.free, strict=True)]
        self.manifest = node
        self.labels = node.labels
        self.taints = node.taints
        self.unschedulable = node.unschedulable
        self.allocatable = [node.allocatable.get(name, 0) for name in resources]
        self.free = [has - amount for has, amount in zip(self.allocatable, held, strict=True)]
        self.slots = node.allocatable.get("pods", UNLIMITED_PODS) - len(self.pods)
        self.generation += 1

    def __repr__(self) -> str:
        return f"<Node {self.name}>"

    def add(self, pod: PodInfo) -> None:
        """A pod is bound to the node."""
        shape, free = pod.template.shape, self.free
        for resource, amount in shape.requests:
            free[resource] -= amount
        self.slots -= 1
        self.scored_cpu += shape.scored_cpu
        self.scored_memory += shape.scored_memory
        for port in shape.ports:
            self.ports[port] = self.ports.get(port, 0) + 1
        self.pods[pod] = None

    def remove(self, pod: PodInfo) -> None:
        """A pod is gone from the node."""
        shape, free = pod.template.shape, self.free
        for resource, amount in shape.requests:
            free[resource] += amount
        self.slots += 1
        self.scored_cpu -= shape.scored_cpu
        self.scored_memory -= shape.scored_memory
        for port in shape.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]
        del self.pods[pod]

    def by_importance(self) -> list[PodInfo]:
        """The pods on it, most important first: higher priority, then earlier start, then as they came."""
        if self._ordered_of != self.generation:
            self._ordered = sorted(self.pods, key=_importance)
            self._ordered_of = self.generation
        return self._ordered

    def balance(self) -> int:
        """How evenly cpu and memory are requested by the pods on it, see `balanced`."""
        if self._balance_of != self.generation:
            self._balance = self.balanced(self.free[CPU], self.free[MEMORY])
            self._balance_of = self.generation
        return self._balance

    def balanced(self, free_cpu: int, free_memory: int) -> int:
        """0 to 100: how evenly cpu and memory are requested if these amounts are free.

        It is 100 minus half of the difference between the requested fractions, in IEEE doubles and truncated
        as kube-scheduler does. A resource that the node does not have does not count.
        """
        cpu, memory = self.allocatable[CPU], self.allocatable[MEMORY]
        if cpu <= 0 or memory <= 0:
            return 100
        first = (cpu - free_cpu) / cpu if free_cpu > 0 else 1.0
        second = (memory - free_memory) / memory if free_memory > 0 else 1.0
        return int((1.0 - abs((first - second) / 2.0)) * 100.0)


def _importance(pod: PodInfo) -> tuple[int, int]:
    return -pod.priority, pod.start
