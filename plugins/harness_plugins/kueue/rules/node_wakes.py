"""Requeues pending workloads one second after a node changed.

Upstream: `nodeHandler` in pkg/controller/tas/resource_flavor.go.
"""

from __future__ import annotations

from typing import final

from harness.base.units import SECOND
from harness.models.cluster import Node
from harness.policy import Edit
from harness_plugins.kueue.state.topology.flavors import TopologyFlavors

_BATCH = SECOND


@final
class NodeWakes:
    """The times of the next wake-ups, by flavor.

    One second after a node of a flavor has changed, Kueue tries all queues again.
    """

    def __init__(self) -> None:
        self._due: dict[str, int] = {}

    def change(self, edit: Edit, flavors: TopologyFlavors, now: int) -> None:
        """Schedules a wake-up for each flavor that the node had or has, unless one is already scheduled."""
        for name, flavor in flavors.by_name.items():
            if any(flavor.tree.is_of(node) for node in (edit.before, edit.after) if isinstance(node, Node)):
                self._due.setdefault(name, now + _BATCH)

    @property
    def due(self) -> int | None:
        """The time of the next wake-up, or None if none is scheduled."""
        return min(self._due.values(), default=None)

    def take(self, now: int) -> bool:
        """Removes the wake-ups that are due, and returns True if there were any."""
        over = [name for name, due in self._due.items() if due <= now]
        for name in over:
            del self._due[name]
        return bool(over)
