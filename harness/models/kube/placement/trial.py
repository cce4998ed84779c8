"""Checks whether a pod would fit on a node if other pods were added to the node or removed from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, final

from harness.models.kube.devices import Ask, tightest
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.filters import ports_taken, resources_short
from harness.models.kube.placement.interpod import AffinityState, Moves
from harness.models.kube.placement.spread import SpreadState
from harness.models.kube.placement.status import PORT_TAKEN, Status
from harness.models.kube.pod import PodInfo


class PreFilter(NamedTuple):
    """The counts that two filters compute once per attempt. A filter that can't reject the pod has None."""

    spread: SpreadState | None = None
    affinity: AffinityState | None = None

    def filter(self, node: NodeInfo) -> Status | None:
        """Returns the rejection by PodTopologySpread or InterPodAffinity on the unchanged node, or None."""
        status = self.spread.filter(node, None) if self.spread is not None else None
        if status is None and self.affinity is not None:
            status = self.affinity.filter(node, None)
        return status


NOTHING: Final = PreFilter()


@final
class Trial:
    """A copy of a node with hypothetical changes, which shows whether an incoming pod would fit.

    For example, nominated pods are added to the copy, and victims of a preemption are removed from it.

    Args:
        pod: the incoming pod.
        node: a node that `filters.unchanging` does not reject.
        state: the counts of other pods for topology spread and affinity.
        names: the names of the resources.
    """

    __slots__ = (
        "_affinity", "_devices", "_free", "_moved", "_moves", "_names", "_node", "_ports", "_room_alone",
        "_shape", "_slots", "_spread", "_tried",
    )  # fmt: skip

    def __init__(self, pod: PodInfo, node: NodeInfo, state: PreFilter, names: Sequence[str]) -> None:
        self._shape = pod.template.shape
        self._node = node
        self._names = names
        self._free = node.free.copy()
        self._slots = node.slots
        self._ports = dict(node.ports) if self._shape.ports else None
        self._spread, self._affinity = state
        self._moved = [0] * len(self._spread.rules.constraints) if self._spread is not None else None
        self._moves = Moves({}, {}, {}) if self._affinity is not None else None
        self._devices = node.devices.copy() if self._shape.device is not None and node.devices else None
        self._tried: dict[PodInfo, tuple[int, ...]] = {}  # devices of pods that are not on the node
        self._room_alone = (
            self._ports is None and self._spread is None and self._affinity is None and self._devices is None
        )

    def add(self, pod: PodInfo) -> None:
        """Adds a pod to the copy of the node."""
        free = self._free
        for resource, amount in pod.template.shape.requests:
            free[resource] -= amount
        self._slots -= 1
        if not self._room_alone:
            self._change(pod, 1)

    def remove(self, pod: PodInfo) -> None:
        """Removes a pod from the copy of the node."""
        free = self._free
        for resource, amount in pod.template.shape.requests:
            free[resource] += amount
        self._slots += 1
        if not self._room_alone:
            self._change(pod, -1)

    def _change(self, pod: PodInfo, sign: int) -> None:
        template = pod.template
        if self._ports is not None:
            for port in template.shape.ports:
                self._ports[port] = self._ports.get(port, 0) + sign
        if self._devices is not None and template.shape.device is not None:
            self._change_devices(self._devices, pod, template.shape.device, sign)
        if self._spread is not None and self._moved is not None:
            self._spread.change(self._moved, template, self._node, sign)
        if self._affinity is not None and self._moves is not None:
            self._affinity.change(self._moves, template, self._node, sign)

    def _change_devices(self, devices: list[int], pod: PodInfo, ask: Ask, sign: int) -> None:
        """Makes a pod use or release its devices. A pod that isn't on the node gets devices that fit."""
        held = pod.devices or self._tried.get(pod, ())
        if not held:
            held = self._tried[pod] = tightest(devices, ask)
        elif sign < 0:
            self._tried.pop(pod, None)
        for device in held:
            devices[device] -= sign * ask.share
        self._node.count_devices(devices, self._free)

    def fits(self) -> bool:
        """Returns True if the incoming pod passes all filters."""
        if self._slots < 1:
            return False
        free = self._free
        for resource, amount in self._shape.requests:
            if amount > free[resource]:
                return False
        return not self._shape.missing and (self._room_alone or self._rest() is None)

    def filter(self) -> Status | None:
        """Returns the first filter's rejection, or None if all filters pass."""
        shape = self._shape
        if self._ports is not None and self._port_taken():
            return PORT_TAKEN
        if (
            self._slots < 1
            or shape.missing
            or any(amount > self._free[resource] for resource, amount in shape.requests)
        ):
            return resources_short(shape, self._node, self._free, self._slots, self._names)
        return self._rest()

    def _rest(self) -> Status | None:
        """Returns the rejection by filters that affect only a few pods, or None."""
        if self._ports is not None and self._port_taken():
            return PORT_TAKEN
        if self._spread is not None and self._moved is not None:
            status = self._spread.filter(self._node, self._moved)
            if status is not None:
                return status
        return self._affinity.filter(self._node, self._moves) if self._affinity is not None else None

    def _port_taken(self) -> bool:
        assert self._ports is not None
        return ports_taken(self._shape.ports, [port for port, pods in self._ports.items() if pods > 0])
