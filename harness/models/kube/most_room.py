"""Computes how much of each resource a node could offer to a pod, if all preemptible pods were preempted.

The result is an upper bound. If no node can offer as much as a pod requests, the pod fits nowhere, and
preemption cannot help. Other rules, such as budgets, only reduce the offered quantities. Resources for
nominated pods do so, too, and count only on request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, final

from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.node_rules import NodeRules
from harness.models.kube.pod import PodInfo, Shape

Victims: TypeAlias = Callable[[NodeInfo, int], Sequence[PodInfo]]
"""Returns at least the pods of a node that pods of a priority might preempt."""


def lower_pods(node: NodeInfo, priority: int) -> Sequence[PodInfo]:
    """Returns the pods of a node that have a lower priority."""
    return [pod for pod in node.pods if pod.priority < priority]


@final
class MostRoom:
    """The upper bound of the resources that nodes could offer to some pods.

    The pods have the same priority. The nodes that can never run them are the same for all of these pods.

    Args:
        cache: the nodes and pods.
        rules: determines the nodes that can never run the pods.
        above: the priority of the pods if they preempt pods of lower priority, or None if they never preempt.
        beside: the priority of the pods if nodes do not offer them the resources that are reserved for
            nominated pods. None if nodes offer these resources, too.
        victims: finds the pods that they might preempt. There are none while no pod has a lower priority.
    """

    __slots__ = ("_above", "_beside", "_cache", "_kept", "_rules", "_since", "_until", "_victims")

    def __init__(
        self,
        cache: Cache,
        rules: NodeRules,
        above: int | None,
        beside: int | None = None,
        victims: Victims = lower_pods,
    ) -> None:
        self._cache = cache
        self._rules = rules
        self._above = above
        self._beside = beside
        self._victims = victims
        self._since = self._until = -1  # the last two versions between which `since` was asked
        self._kept: list[Sequence[int]] = []

    @property
    def version(self) -> int:
        """A number that changes whenever the result of `since` may change."""
        return self._cache.version

    @property
    def may_preempt(self) -> bool:
        """Whether the pods ever preempt other pods."""
        return self._above is not None

    @property
    def has_victims(self) -> bool:
        """Whether the pods can preempt any bound pod."""
        return self._above is not None and self._cache.has_lower(self._above)

    def since(self, version: int) -> list[Sequence[int]]:
        """Returns the upper bounds of the nodes that changed after a version and can accept another pod.

        Each item belongs to a node, and has one quantity for each resource. Callers must use the result
        before the next change of a node, and must not change the result.
        """
        cache = self._cache
        now = cache.version
        if version == now:
            return []
        if version == self._since and now == self._until:  # many pods failed at the same version
            return self._kept
        above, beside = self._above, self._beside
        if above is not None and not cache.has_lower(above):
            above = None
        if version >= cache.freed_at and above is None and beside is None:
            return []  # since then, nodes have only become fuller
        self._rules.follow()
        closed = self._rules.closed
        rooms: list[Sequence[int]] = []
        one = version == now - 1  # the case after most events
        for node in (cache.nodes[cache.last_changed],) if one else cache.changed_nodes_since(version):
            if not closed[node.position]:
                victims = () if above is None else self._victims(node, above)
                room, slots = _without(node, victims) if victims else (node.free, node.slots)
                if beside is not None and node.nominated and not node.devices:
                    room, slots = _without_reserved(node, beside)
                if slots > 0:
                    # Even if a resource is overcommitted, the node can run pods that do not request it.
                    rooms.append(room if min(room) >= 0 else [max(0, amount) for amount in room])
        self._since, self._until, self._kept = version, now, rooms
        return rooms


def _without(node: NodeInfo, victims: Sequence[PodInfo]) -> tuple[Sequence[int], int]:
    """Returns the free resources and slots of a node without some of its pods."""
    left = list(node.free)
    for pod in victims:
        for resource, amount in pod.template.shape.requests:
            left[resource] += amount
    if node.devices:  # free shares of devices cannot be added up
        node.count_devices(node.devices_without(victims), left)
    return left, node.slots + len(victims)


def _without_reserved(node: NodeInfo, priority: int) -> tuple[Sequence[int], int]:
    """Returns the free resources and slots of a node that are not reserved against pods of a priority."""
    left, slots = list(node.free), node.slots
    for pod in node.nominated:
        if pod.keeps >= priority:
            slots -= 1
            for resource, amount in pod.template.shape.requests:
                left[resource] -= amount
    return left, slots


def amounts_of(shape: Shape, resources: int) -> Sequence[int]:
    """Returns the requests of a shape, by index of the resource."""
    amounts = [0] * resources
    for resource, amount in shape.requests:
        amounts[resource] = amount
    return tuple(amounts)
