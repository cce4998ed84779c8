"""The most room that nodes could offer a pod: what is free, and what those hold whom it may preempt.

It is a bound. A pod for which no node has that much fits nowhere, and nobody can be preempted for it.
Whatever else counts, such as budgets or room that is kept for nominated pods, only leaves it less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import Shape


@final
class MostRoom:
    """The bound for pods of one priority that the same nodes can never run.

    Args:
        cache: nodes and pods.
        closed: by position, whether a node can never run them.
        above: their priority, if they preempt pods of lower priority; None if they preempt nobody.
    """

    __slots__ = ("_above", "_cache", "_closed")

    def __init__(self, cache: Cache, closed: bytes, above: int | None) -> None:
        self._cache = cache
        self._closed = closed
        self._above = above

    @property
    def version(self) -> int:
        """What answers depend on: at equal versions they are the same."""
        return self._cache.version

    @property
    def has_victims(self) -> bool:
        """Whether there is anybody whom they may preempt."""
        return self._above is not None and self._cache.has_lower(self._above)

    def since(self, version: int) -> list[Sequence[int]]:
        """The bound of each node that has changed after a version and may take another pod, by resource.

        Answers are only to be read, and before anything changes.
        """
        nodes, closed = self._cache.nodes, self._closed
        rooms = []
        for position in self._cache.changed_since(version):
            if not closed[position]:
                room = self._of(nodes[position])
                if room is not None:
                    rooms.append(room)
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
            if node.devices:  # what they leave of devices is no sum
                node.count_devices(node.devices_without(victims), left)
            slots += len(victims)
            room = left
        if slots < 1:
            return None
        # What a node has too little of for the pods on it does not keep out those that ask for none of it.
        return room if min(room) >= 0 else [max(0, amount) for amount in room]


def amounts_of(shape: Shape, resources: int) -> Sequence[int]:
    """What a shape asks for of each resource, by index."""
    amounts = [0] * resources
    for resource, amount in shape.requests:
        amounts[resource] = amount
    return tuple(amounts)


def is_within(amounts: Sequence[int], room: Sequence[int]) -> bool:
    """Whether there is as much of each resource."""
    for asked, left in zip(amounts, room, strict=False):  # noqa: SIM110 `all` takes three times as long
        if asked > left:
            return False
    return True
