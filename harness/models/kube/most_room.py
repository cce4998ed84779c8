"""Computes how much of each resource a node could offer to a pod, if all preemptible pods were preempted.

The result is an upper bound. If no node can offer as much as a pod requests, the pod fits nowhere, and
preemption cannot help. Other rules, such as budgets or resources for nominated pods, only reduce the offered
quantities.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import gt
from typing import final

from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.node_rules import NodeRules
from harness.models.kube.pod import Shape


@final
class MostRoom:
    """The upper bound of the resources that nodes could offer to some pods.

    The pods have the same priority, and the same nodes can never run them.

    Args:
        cache: the nodes and pods.
        rules: determines the nodes that can never run the pods.
        above: the priority of the pods if they preempt pods of lower priority, or None if they never preempt.
    """

    __slots__ = ("_above", "_cache", "_kept", "_rules", "_since", "_until")

    def __init__(self, cache: Cache, rules: NodeRules, above: int | None) -> None:
        self._cache = cache
        self._rules = rules
        self._above = above
        self._since = self._until = -1  # the last two versions between which `since` was asked
        self._kept: list[Sequence[int]] = []

    @property
    def version(self) -> int:
        """A number that changes whenever the result of `since` may change."""
        return self._cache.version

    @property
    def has_victims(self) -> bool:
        """Whether the pods can preempt any bound pod."""
        return self._above is not None and self._cache.has_lower(self._above)

    def since(self, version: int) -> list[Sequence[int]]:
        """Returns the upper bounds of the nodes that changed after a version and can accept another pod.

        Each item belongs to a node, and has one quantity for each resource. Callers must use the result
        before the next change of a node, and must not change the result.
        """
        now = self._cache.version
        if version == now:
            return []
        if version == self._since and now == self._until:  # many pods failed at the same version
            return self._kept
        self._rules.follow()
        closed = self._rules.closed
        rooms = []
        for node in self._cache.changed_nodes_since(version):
            if not closed[node.position]:
                room = self._of(node)
                if room is not None:
                    rooms.append(room)
        self._since, self._until, self._kept = version, now, rooms
        return rooms

    def _of(self, node: NodeInfo) -> Sequence[int] | None:
        room: Sequence[int] = node.free
        slots, above = node.slots, self._above
        if above is not None and self.has_victims:
            left = list(room)
            victims = [pod for pod in node.pods if pod.priority < above]
            for pod in victims:
                for resource, amount in pod.template.shape.requests:
                    left[resource] += amount
            if node.devices:  # free shares of devices cannot be added up
                node.count_devices(node.devices_without(victims), left)
            slots += len(victims)
            room = left
        if slots < 1:
            return None
        # Even if a resource is overcommitted, the node can run pods that do not request it.
        return room if min(room) >= 0 else [max(0, amount) for amount in room]


def amounts_of(shape: Shape, resources: int) -> Sequence[int]:
    """Returns the requests of a shape, by index of the resource."""
    amounts = [0] * resources
    for resource, amount in shape.requests:
        amounts[resource] = amount
    return tuple(amounts)


def is_within(amounts: Sequence[int], room: Sequence[int]) -> bool:
    """Returns True if `room` is sufficient for each resource."""
    return not any(map(gt, amounts, room))
