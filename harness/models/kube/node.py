"""Models a node as the scheduler sees it, with its capacity, its pods, and the pods nominated to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, final

from harness.cluster.kinds.pods import HostPort
from harness.cluster.model import Node
from harness.models.kube.devices import IDLE, LARGEST, WHOLE, Ask, amounts_of, device_count, tightest
from harness.models.kube.pod import PodInfo, Shape

CPU: Final = 0
MEMORY: Final = 1
"""The indices of the resources that affect scores. Every vector begins with these two."""

UNLIMITED_PODS: Final = 1 << 62

GONE: Final = -1
"""The position of a removed node."""


class DeviceChooser(Protocol):
    """Chooses the devices that a node assigns to a pod."""

    def choose(self, node: NodeInfo, shape: Shape, ask: Ask) -> tuple[int, ...]:
        """Returns the devices for a pod whose other requests are already subtracted from the node."""


@final
class NodeInfo:
    """One node.

    Attributes:
        manifest: the node's manifest, which is a new object after each change.
        position: its position in the order in which the scheduler checks nodes.
        rank: its position among nodes sorted by name. It decides between nodes that are otherwise equal.
        allocatable: the quantity of each resource, by index, or 0 for a resource that the node does not have.
        free: `allocatable` minus the requests of its pods. Values can be negative.
        slots: how many more pods it accepts. A node without a limit accepts any number of pods.
        scored_cpu, scored_memory: the requests of its pods with defaults, for the score of NodeResourcesFit.
        pods: its pods, including terminating pods, in the order in which they were bound.
        ports: the host ports in use, each with the number of pods that use it.
        chooser: an object that chooses devices for a pod. If it is None, the devices with the smallest
            sufficient free share are chosen.
        devices: the free share of each device, in thousandths. It is empty if GPUs are only counted.
        nominated: the pods for which a preemption frees resources on this node, in the order in which they
            were nominated or last failed with the nomination.
        generation: a number that every change of these attributes increments.
    """

    __slots__ = (
        "_balance", "_balance_of", "_idle", "_largest", "_ordered", "_ordered_of", "allocatable", "chooser",
        "devices", "free", "generation", "labels", "manifest", "name", "nominated", "pods", "ports",
        "position", "rank", "scored_cpu", "scored_memory", "slots", "taints", "unschedulable",
    )  # fmt: skip

    def __init__(self, node: Node, position: int, rank: int, resources: Mapping[str, int]) -> None:
        self.manifest = node
        self.name = node.name
        self.position = position
        self.rank = rank
        self.labels = node.labels
        self.taints = node.taints
        self.unschedulable = node.unschedulable
        self.allocatable = amounts_of(node, resources)
        self.free = list(self.allocatable)
        self.devices = [WHOLE] * device_count(node) if LARGEST in resources else []
        self.chooser: DeviceChooser | None = None
        self._largest, self._idle = resources.get(LARGEST, -1), resources.get(IDLE, -1)
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
        """Applies a changed manifest. The pods stay, even if they then use more than the node has."""
        held = [has - free for has, free in zip(self.allocatable, self.free, strict=True)]
        self.manifest = node
        self.labels = node.labels
        self.taints = node.taints
        self.unschedulable = node.unschedulable
        self.allocatable = amounts_of(node, resources)
        self.free = [has - amount for has, amount in zip(self.allocatable, held, strict=True)]
        if LARGEST in resources:
            self._change_devices()
        self.slots = node.allocatable.get("pods", UNLIMITED_PODS) - len(self.pods)
        self.generation += 1

    def _change_devices(self) -> None:
        """Applies the manifest's number of devices. Pods keep their devices unless these are gone."""
        has, free = device_count(self.manifest), self.free
        asks = [(pod, ask) for pod in self.pods if (ask := pod.template.shape.device) is not None]
        for amount in (self._largest, self._idle):
            free[amount] = self.allocatable[amount]
        if not has:
            self.devices = []
            for pod, ask in asks:
                pod.devices = ()
                free[self._largest if ask.is_share else self._idle] -= ask.amount
            return
        most = max(has, *(1 + max(pod.devices, default=-1) for pod, _ in asks)) if asks else has
        self.devices = [WHOLE * (number < has) for number in range(most)]
        for pod, ask in sorted(asks, key=lambda each: not each[0].devices):
            pod.devices = pod.devices or self._choose(pod.template.shape, ask)
            self._hold(pod, -ask.share)
        self.count_devices(self.devices, free)

    def __repr__(self) -> str:
        return f"<Node {self.name}>"

    def add(self, pod: PodInfo) -> None:
        """Adds a pod that is bound to the node."""
        shape, free = pod.template.shape, self.free
        for resource, amount in shape.requests:
            free[resource] -= amount
        self.slots -= 1
        self.scored_cpu += shape.scored_cpu
        self.scored_memory += shape.scored_memory
        for port in shape.ports:
            self.ports[port] = self.ports.get(port, 0) + 1
        if shape.device is not None:
            self._give(pod, shape.device)
        self.pods[pod] = None

    def remove(self, pod: PodInfo) -> None:
        """Removes a pod that has left the node."""
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
        if pod.devices:
            assert shape.device is not None
            self._hold(pod, shape.device.share)
            pod.devices = ()
        del self.pods[pod]

    def _give(self, pod: PodInfo, ask: Ask) -> None:
        """Assigns devices to a pod without devices. A pod keeps its devices even if the node lost them."""
        if not self.devices:
            pod.devices = ()
            return
        pod.devices = pod.devices or self._choose(pod.template.shape, ask)
        self.devices += [0] * (1 + max(pod.devices) - len(self.devices))
        self._hold(pod, -ask.share)

    def _choose(self, shape: Shape, ask: Ask) -> tuple[int, ...]:
        if self.chooser is None:
            return tightest(self.devices, ask)
        return self.chooser.choose(self, shape, ask)

    def _hold(self, pod: PodInfo, change: int) -> None:
        for device in pod.devices:
            self.devices[device] += change
        self.count_devices(self.devices, self.free)

    def devices_without(self, gone: Iterable[PodInfo]) -> list[int]:
        """Returns the free share that each device would have if some pods were gone."""
        devices = self.devices.copy()
        for pod in gone:
            for device in pod.devices:
                assert pod.template.shape.device is not None
                devices[device] += pod.template.shape.device.share
        return devices

    def count_devices(self, devices: Sequence[int], free: list[int]) -> None:
        """Sets two quantities in `free`: the largest free share of a device, and the number of free devices.

        `devices` has the free share of each device.
        """
        free[self._largest] = max(devices)
        free[self._idle] = devices.count(WHOLE)

    def by_importance(self) -> list[PodInfo]:
        """Returns the pods, most important first. Pods of equal importance stay in the order of arrival."""
        if self._ordered_of != self.generation:
            self._ordered = sorted(self.pods, key=importance)
            self._ordered_of = self.generation
        return self._ordered

    def balance(self) -> int:
        """Returns the balance between the cpu and memory requests of its pods. See `balanced`."""
        if self._balance_of != self.generation:
            self._balance = self.balanced(self.free[CPU], self.free[MEMORY])
            self._balance_of = self.generation
        return self._balance

    def balanced(self, free_cpu: int, free_memory: int) -> int:
        """Returns the balance between cpu and memory requests, from 0 to 100, if these quantities are free.

        The balance is `100 * (1 - abs(cpu - memory) / 2)`, where `cpu` and `memory` are the requested
        fractions of the node. As in kube-scheduler, it is computed in IEEE doubles and truncated. If the node
        lacks cpu or memory, the balance is 100.
        """
        cpu, memory = self.allocatable[CPU], self.allocatable[MEMORY]
        if cpu <= 0 or memory <= 0:
            return 100
        first = (cpu - free_cpu) / cpu if free_cpu > 0 else 1.0
        second = (memory - free_memory) / memory if free_memory > 0 else 1.0
        return int((1.0 - abs((first - second) / 2.0)) * 100.0)


def importance(pod: PodInfo) -> tuple[int, int]:
    """Returns the key for sorting pods by importance: by higher priority, then by earlier start."""
    return -pod.priority, pod.start
