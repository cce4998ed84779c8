"""The dominant resource share of a ClusterQueue or Cohort: its borrowed quota, relative to lendable quota.

Kueue computes the share in double precision and bases its decisions on the unrounded value. For the same
results, this module performs the same operations in the same order.

Upstream: `dominantResourceShare` in pkg/cache/scheduler/fair_sharing.go (KEP 1714).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.models.cluster import Cluster
from harness.models.quota import NO_PARENT, QuotaTree, plus
from harness_plugins.kueue.state.amounts import Amounts

Share = tuple[bool, float]
"""A weighted share that sorts as in Kueue. Infinite shares (weight 0) come last and are sorted by ratio."""

NOTHING: Share = (False, 0.0)


class Shares:
    """Computes the shares of ClusterQueues and Cohorts, which are the nodes of a quota tree.

    The shares result from the current usage. The share of a node depends only on the usage of the node
    itself.

    Args:
        counts_unlendable: whether a node counts as borrowing if it exceeds its own quota only for resources
            that nothing in its tree can lend. The share of such a node is 0. Before PR 9738, it did not count
            as borrowing.
    """

    def __init__(self, tree: QuotaTree, weights: Sequence[float], *, counts_unlendable: bool = True) -> None:
        self._tree = tree
        self._counts_unlendable = counts_unlendable
        self._weights = weights
        lendable: dict[int, dict[str, float]] = {}
        # For each resource: the lendable quota, its first cell, and the cells of its other flavors.
        self._columns: list[list[tuple[float, int, list[int]]]] = []
        for node, parent in enumerate(tree.parent):
            by_resource: dict[str, list[int]] = {}
            if parent != NO_PARENT:
                if parent not in lendable:
                    lendable[parent] = _lendable(tree, parent)
                for cell in tree.declared[node]:
                    resource = tree.flavor_resources[cell].resource
                    by_resource.setdefault(resource, []).append(node * tree.width + cell)
            self._columns.append(
                [(lendable[parent][name], cells[0], cells[1:]) for name, cells in by_resource.items()]
            )

    def of(self, node: int) -> tuple[bool, Share]:
        """Returns True if a ClusterQueue or Cohort exceeds its own quota of any resource, and its share.

        The share is weighted. A root has no share. A ClusterQueue or Cohort also counts as borrowing if it
        exceeds its quota of a resource that nothing in its tree can lend. Such a resource adds 0 to its
        share.
        """
        return self.weighted(node, self.parts(node))

    def ranking(self, cohort: int) -> list[tuple[Share, int]]:
        """Returns the share and number of each child of a cohort, in ascending order.

        The list holds until the next call for this cohort.
        """
        return sorted((self.of(node)[1], node) for node in self._tree.children[cohort])

    def changed(self, node: int, amounts: Amounts, sign: int) -> Share:
        """Returns the share that a ClusterQueue or Cohort would have if it used more (or less).

        The usage of its parents and children is not changed for this.

        Args:
            node: the ClusterQueue or Cohort.
            amounts: how much more or less it would use.
            sign: 1 for more, -1 for less.
        """
        usage, first, end = self._tree.usage, node * self._tree.width, (node + 1) * self._tree.width
        before = usage[first:end]
        for cell, amount in amounts:
            usage[first + cell] += sign * amount
        share = self.of(node)[1]
        usage[first:end] = before
        return share

    def resources(self, node: int) -> list[list[int]]:
        """Returns the flavor-resources for which a tree node has quota, grouped by resource."""
        first = node * self._tree.width
        return [[at - first for at in (cell, *others)] for _, cell, others in self._columns[node]]

    def parts(self, node: int) -> list[float]:
        """Returns, for each resource, how far a tree node exceeds its own quota. See `part`."""
        return [self.part(node, place) for place in range(len(self._columns[node]))]

    def part(self, node: int, place: int) -> float:
        """Returns how far a tree node exceeds its own quota of a resource, in 1/1000 of the lendable quota.

        The result is -1 if the node does not exceed its own quota. It is 0 if no quota can be lent.
        """
        usage, subtree = self._tree.usage, self._tree.subtree
        lendable, cell, others = self._columns[node][place]
        over = usage[cell] - subtree[cell]
        if over < 0:
            over = 0
        for at in others:
            if usage[at] > subtree[at]:
                over += usage[at] - subtree[at]
        if not over:
            return -1.0
        return over * 1000.0 / lendable if lendable > 0.0 else 0.0

    def weighted(self, node: int, parts: Sequence[float]) -> tuple[bool, Share]:
        """Returns the result of `of` for a tree node whose `parts` are already known."""
        ratio = max(parts, default=-1.0)
        if ratio <= 0.0:
            return ratio == 0.0 and self._counts_unlendable, NOTHING
        weight = self._weights[node]
        if weight == 0.0:
            return True, (True, ratio)
        return True, (False, ratio / weight)


def weights_of(tree: QuotaTree, cluster: Cluster, instead: Mapping[str, float]) -> list[float]:
    """Returns the fair-sharing weight of each ClusterQueue and Cohort. `instead` overrides the manifests."""
    weights = [1.0] * len(tree.names)
    for nodes, specs in ((tree.cohorts, cluster.cohorts), (tree.queues, cluster.cluster_queues)):
        for name, node in nodes.items():
            spec = specs.get(name)
            weights[node] = instead.get(name, 1.0 if spec is None else float(spec.weight))
    return weights


def _lendable(tree: QuotaTree, parent: int) -> dict[str, float]:
    """Returns the most quota of each resource that a node below `parent` could use, over all flavors."""
    total: dict[str, int] = {}
    for cell in tree.declared[tree.root[parent]]:
        resource = tree.flavor_resources[cell].resource
        total[resource] = plus(total.get(resource, 0), tree.potential_available[parent * tree.width + cell])
    return {resource: float(amount) for resource, amount in total.items()}
