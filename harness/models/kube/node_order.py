"""Models the order in which kube-scheduler checks nodes, which comes from a tree of zones.

Upstream: `nodeTree` in pkg/scheduler/backend/cache/node_tree.go, `updateNodeInfoSnapshotList` in cache.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from harness.cluster.model import Node

_ZONE = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")

Zone = tuple[str, str]
"""A region and one of its zones, which are "" for nodes without these labels."""


@final
class NodeOrder:
    """Zones sorted by their first node, and the nodes of each zone in the order in which they joined it.

    Args:
        nodes: the initial nodes, in the order in which they joined.

    Attributes:
        listed: the names of nodes in the order that attempts use. The list is empty before the first attempt.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.listed: list[str] = []
        self._zones: dict[Zone, dict[str, None]] = {}
        self._zone_of: dict[str, Zone] = {}
        for node in nodes:
            self.put(node)

    def put(self, node: Node) -> None:
        """Adds a node or changes its labels. If its zone changes, it becomes the last node of that zone."""
        zone = _label(node, _REGION), _label(node, _ZONE)
        before = self._zone_of.get(node.name)
        if before == zone:
            return
        if before is not None:
            self.drop(node.name)
        self._zone_of[node.name] = zone
        self._zones.setdefault(zone, {})[node.name] = None

    def drop(self, name: str) -> None:
        """Removes a node, and its zone if it was the last node there. If the zone returns, it comes last."""
        zone = self._zone_of.pop(name)
        del self._zones[zone][name]
        if not self._zones[zone]:
            del self._zones[zone]

    def in_turn(self) -> list[str]:
        """Returns the nodes, taking one node from each zone in turn."""
        zones = [list(zone) for zone in self._zones.values()]
        if len(zones) == 1:
            return zones[0]
        longest = max(map(len, zones), default=0)
        return [zone[turn] for turn in range(longest) for zone in zones if turn < len(zone)]

    def renew(self) -> list[str]:
        """Returns the order for an attempt.

        The list is rebuilt only if a node is missing from it, or if it contains removed nodes. If the zone of
        a node changes, the node therefore keeps its place until another node is added or removed.
        """
        known = set(self.listed)
        if len(known) > len(self._zone_of) or not known.issuperset(self._zone_of):
            self.listed = self.in_turn()
        return self.listed


def _label(node: Node, keys: Iterable[str]) -> str:
    return next((node.labels[key] for key in keys if key in node.labels), "")
