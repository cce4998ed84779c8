"""What ClusterQueues and cohorts have, keep, lend and use, restated for checkers.

It is as Kueue's documentation reads. A node has its own quota and what those below it lend. No other node
sees what its lending limit keeps back. What it uses beyond counts above.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.base.units import INT64_MAX
from harness.cluster.model import Cluster, ClusterQueue, Cohort, ResourceQuota

ENDLESS = 1 << 100
_NOTHING = ResourceQuota(0)

Cell = tuple[str, str]
"""A flavor and a resource."""


class Node(NamedTuple):
    """A ClusterQueue or a Cohort, which may have one name."""

    kind: str
    name: str


class QuotaForest:
    """What ClusterQueues use, and what they may.

    Attributes:
        used: what each ClusterQueue uses of each cell.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.used: dict[Node, dict[Cell, int]] = {}
        self.become(cluster)

    def become(self, cluster: Cluster) -> None:
        """What there is from now on; what queues use stays."""
        self._owners: dict[Node, ClusterQueue | Cohort] = {
            **{Node("queue", name): queue for name, queue in cluster.cluster_queues.items()},
            **{Node("cohort", name): cohort for name, cohort in cluster.cohorts.items()},
        }
        self._below: dict[Node, list[Node]] = {node: [] for node in self._owners}
        for node in self._owners:
            above = self.above(node)
            if above is not None:
                self._below[above].append(node)
        for node in self._owners:
            self.used.setdefault(node, {})
        self._known: dict[tuple[Node, Cell], tuple[int, int]] = {}

    def cells(self) -> list[Cell]:
        """Every flavor and resource that somebody has a quota for, sorted."""
        groups = [group for owner in self._owners.values() for group in owner.resource_groups]
        flavors = [flavor for group in groups for flavor in group.flavors]
        return sorted({(flavor.flavor, resource) for flavor in flavors for resource in flavor.resources})

    def above(self, node: Node) -> Node | None:
        """The cohort that a node belongs to."""
        owner = self._owners[node]
        name = owner.cohort if isinstance(owner, ClusterQueue) else owner.parent
        return Node("cohort", name) if name else None

    def top(self, node: Node) -> Node:
        """The node at the top of its tree."""
        above = self.above(node)
        return node if above is None else self.top(above)

    def quota(self, node: Node, cell: Cell) -> ResourceQuota:
        """What its manifest says of a cell."""
        for group in self._owners[node].resource_groups:
            for flavor in group.flavors:
                if flavor.flavor == cell[0] and cell[1] in flavor.resources:
                    return flavor.resources[cell[1]]
        return _NOTHING

    def has(self, node: Node, cell: Cell) -> int:
        """Its own quota and what is lent to it from below; `ENDLESS` without end."""
        return self._own(node, cell)[0]

    def keeps(self, node: Node, cell: Cell) -> int:
        """What no other node may use."""
        return self._own(node, cell)[1]

    def _own(self, node: Node, cell: Cell) -> tuple[int, int]:
        known = self._known.get((node, cell))
        if known is None:
            nominal, limit = self.quota(node, cell).nominal, self.quota(node, cell).lending_limit
            has = sum(self.lends(child, cell) for child in self._below[node])
            has += ENDLESS if nominal >= INT64_MAX else nominal
            has = ENDLESS if has >= INT64_MAX else has
            kept = 0 if limit is None or limit >= INT64_MAX else max(0, has - limit)
            known = self._known[node, cell] = has, ENDLESS if kept and has == ENDLESS else kept
        return known

    def lends(self, node: Node, cell: Cell) -> int:
        """What it gives to its cohort; of what it keeps without end it lends nothing."""
        return self.has(node, cell) - self.keeps(node, cell)

    def uses(self, node: Node, cell: Cell) -> int:
        """What it uses; of a cohort what those below use beyond what they keep."""
        if node.kind == "queue":
            return self.used[node].get(cell, 0)
        return sum(max(0, self.uses(child, cell) - self.keeps(child, cell)) for child in self._below[node])

    def left(self, node: Node, cell: Cell) -> int:
        """What it could use beside; negative where it, or a cohort above, uses more than it may."""
        above, uses, keeps = self.above(node), self.uses(node, cell), self.keeps(node, cell)
        if above is None:
            return self.has(node, cell) - uses
        there = self.left(above, cell)
        limit = self.quota(node, cell).borrowing_limit
        if limit is not None and limit < INT64_MAX:
            there = min(there, self.lends(node, cell) - max(0, uses - keeps) + limit)
        return max(0, keeps - uses) + there

    def over(self, node: Node, cell: Cell) -> int:
        """How much more a queue uses than is its own and than it might borrow."""
        own = self.quota(node, cell).nominal
        return max(0, min(self.uses(node, cell) - own, -self.left(node, cell)))
