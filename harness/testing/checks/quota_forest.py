"""Computes the quotas of ClusterQueues and cohorts for checkers, without the code of the policies.

The model follows Kueue's documentation. A node, which is a ClusterQueue or a cohort, has its own quota and
the quota that nodes below it lend. The node's lending limit reserves a part for the node alone. Usage beyond
that part counts in the node above.
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
    """A ClusterQueue or a Cohort. A queue and a cohort may have the same name."""

    kind: str
    name: str


class QuotaForest:
    """The usage of ClusterQueues, and their limits."""

    def __init__(self, cluster: Cluster) -> None:
        self.used: dict[Node, dict[Cell, int]] = {}
        self.become(cluster)

    def become(self, cluster: Cluster) -> None:
        """Update queues and cohorts, and keep the usage."""
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
        """Returns every flavor and resource with a quota, sorted."""
        groups = [group for owner in self._owners.values() for group in owner.resource_groups]
        return sorted({(flavor, resource) for group in groups for flavor, resource, _ in group.quotas()})

    def above(self, node: Node) -> Node | None:
        """Returns the cohort that a node belongs to."""
        owner = self._owners[node]
        name = owner.cohort if isinstance(owner, ClusterQueue) else owner.parent
        return Node("cohort", name) if name else None

    def top(self, node: Node) -> Node:
        """Returns the node at the top of a node's tree."""
        above = self.above(node)
        return node if above is None else self.top(above)

    def quota(self, node: Node, cell: Cell) -> ResourceQuota:
        """Returns a node's quota of a flavor and a resource (a cell), according to its manifest."""
        for group in self._owners[node].resource_groups:
            for flavor, resource, quota in group.quotas():
                if (flavor, resource) == cell:
                    return quota
        return _NOTHING

    def has(self, node: Node, cell: Cell) -> int:
        """Returns a node's own quota plus the quota that nodes below lend to it; `ENDLESS` if unlimited."""
        return self._own(node, cell)[0]

    def keeps(self, node: Node, cell: Cell) -> int:
        """Returns the part of a node's quota that no other node may use."""
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
        """Returns the part of a node's quota that it lends to its cohort; 0 if it keeps all of it."""
        return self.has(node, cell) - self.keeps(node, cell)

    def uses(self, node: Node, cell: Cell) -> int:
        """Returns the usage of a node. A cohort's usage is what its members use beyond their kept parts."""
        if node.kind == "queue":
            return self.used[node].get(cell, 0)
        return sum(max(0, self.uses(child, cell) - self.keeps(child, cell)) for child in self._below[node])

    def left(self, node: Node, cell: Cell) -> int:
        """Returns how much more a node could use; negative if the node or a cohort above exceeds a limit."""
        above, uses, keeps = self.above(node), self.uses(node, cell), self.keeps(node, cell)
        if above is None:
            return self.has(node, cell) - uses
        there = self.left(above, cell)
        limit = self.quota(node, cell).borrowing_limit
        if limit is not None and limit < INT64_MAX:
            there = min(there, self.lends(node, cell) - max(0, uses - keeps) + limit)
        return max(0, keeps - uses) + there

    def over(self, node: Node, cell: Cell) -> int:
        """Returns the part of a queue's usage beyond both its own quota and the quota that it may borrow."""
        own = self.quota(node, cell).nominal
        return max(0, min(self.uses(node, cell) - own, -self.left(node, cell)))
