"""Models the quota tree, with nominal quota, borrowing and lending of queues and cohorts as integers.

The leaves of the tree are ClusterQueues, and its inner nodes are Cohorts. The arithmetic is that of Kueue's
hierarchical quotas. The tree contains only quantities, and no jobs, order of queues or times. Several
policies use it.

Values are flat lists. The value for node `n` and flavor-resource `c` (an index, see `QuotaTree.cell`) has the
index `n * tree.width + c`. Parents come before their children.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, final

from harness.base.errors import ClusterError, Fault
from harness.base.units import INT64_MAX
from harness.cluster.model import ClusterQueue, Cohort, ResourceGroup

UNLIMITED: Final = INT64_MAX
"""Quotas and limits of at least this value are unlimited, and so is every sum that contains one."""

NO_PARENT: Final = -1

Amounts = Iterable[tuple[int, int]]
"""Pairs of a flavor-resource's index and a quantity, with each index at most once."""


class FlavorResource(NamedTuple):
    """A resource of one flavor. Quotas apply to flavor-resources."""

    flavor: str
    resource: str


@final
class QuotaTree:
    """The quotas and usage of ClusterQueues and their cohorts.

    A cohort without a manifest exists if another object names it, but has no quota of its own. The usage
    starts at zero. Quantities of cpu are in millicores, and other quantities are in base units. The usage is
    exact, whereas quotas saturate at `UNLIMITED`.

    Args:
        cluster_queues: the leaves, by name.
        cohorts: the cohorts that have a manifest, by name.
        also: flavor-resources that need an index because they are in use, although no queue has quota for
            them.

    Attributes:
        width: the number of flavor-resources.
        flavor_resources: the flavor-resources, in the order of their indices.
        labels: the names of flavor-resources in decisions.
        names: the name of each node. A ClusterQueue and a Cohort can have the same name.
        queues: the node of each ClusterQueue.
        cohorts: the node of each Cohort.
        parent: for each node, the node of its cohort, or `NO_PARENT`.
        children: for each node, its child nodes in ascending order.
        root: for each node, the node at the top of its tree.
        declared: for each node, the flavor-resources for which the node or a node below it has quota, in
            ascending order.
        nominal, borrowing_limit, lending_limit: the values in the manifests (flat, where None means no
            limit).
        subtree: the quota that a node can provide, which is its own quota and the quota that its children do
            not keep (flat).
        local_quota: the part of `subtree` that the lending limit keeps from the parent (flat).
        kept: the sum of `local_quota` over all nodes below a node (flat).
        potential_available: the largest quantity that a node could use if nothing else were used (flat).
        usage: the usage. For a cohort, it is the part of its children's usage that exceeds the quota that
            they keep (flat).

    Raises:
        ClusterError: a cohort is its own ancestor.
    """

    __slots__ = (
        "_bound", "_ceiling", "_chains", "_numbers", "_saturates", "_up", "borrowing_limit", "children",
        "cohorts", "declared", "flavor_resources", "kept", "labels", "lending_limit", "local_quota",
        "names", "nominal", "parent", "potential_available", "queues", "root", "subtree", "usage", "width",
    )  # fmt: skip

    def __init__(
        self,
        cluster_queues: Mapping[str, ClusterQueue],
        cohorts: Mapping[str, Cohort],
        *,
        also: Iterable[FlavorResource] = (),
    ) -> None:
        parents = _parents(cluster_queues, cohorts)
        ordered = _top_down(parents)
        self.cohorts: dict[str, int] = {name: node for node, name in enumerate(ordered)}
        self.queues: dict[str, int] = {name: len(ordered) + at for at, name in enumerate(cluster_queues)}
        self.names: list[str] = [*ordered, *cluster_queues]
        above = [parents[name] for name in ordered] + [queue.cohort for queue in cluster_queues.values()]
        self.parent: list[int] = [self.cohorts[name] if name else NO_PARENT for name in above]
        self.children: list[list[int]] = [[] for _ in self.names]
        self.root: list[int] = []
        for node, parent in enumerate(self.parent):
            if parent == NO_PARENT:
                self.root.append(node)
            else:
                self.children[parent].append(node)
                self.root.append(self.root[parent])

        groups = [cohorts[name].resource_groups if name in cohorts else () for name in ordered]
        groups += [queue.resource_groups for queue in cluster_queues.values()]
        numbers = _numbered(groups, also)
        self._numbers: dict[tuple[str, str], int] = dict(numbers.items())
        self.flavor_resources: tuple[FlavorResource, ...] = tuple(numbers)
        self.labels: tuple[str, ...] = tuple(map("/".join, self._numbers))
        self.width: int = len(self._numbers)
        size = self.width * len(self.names)
        self.nominal: list[int] = [0] * size
        self.borrowing_limit: list[int | None] = [None] * size
        self.lending_limit: list[int | None] = [None] * size
        self.usage: list[int] = [0] * size
        self._up: list[int] = [NO_PARENT] * size
        own = [self._read_quotas(node, of_node) for node, of_node in enumerate(groups)]
        self._derive(own)

    def cell(self, flavor: str, resource: str) -> int | None:
        """Returns a flavor-resource's index among a node's values, or None if no queue has quota for it."""
        return self._numbers.get((flavor, resource))

    def most(self, node: int, flavor: str, resource: str, *, borrow: bool = True) -> int:
        """Returns the largest quantity of a cell that a node could use if nothing else were used."""
        cell = self.cell(flavor, resource)
        at = node * self.width + (cell or 0)
        return 0 if cell is None else self.potential_available[at] if borrow else self.nominal[at]

    def charge(self, node: int, amounts: Amounts) -> None:
        """Adds quantities to the usage of a node.

        The part that exceeds the quota that the node keeps is also added to its parent. A negative quantity
        reduces only the usage of this node. The usage becomes negative only if the node has a borrowing
        limit.
        """
        usage, first, chains = self.usage, node * self.width, self._chains
        for cell, amount in amounts:
            chain = chains[first + cell]
            if chain and amount >= 0:
                for at in chain:
                    usage[at] += amount
            else:
                self._charge_by_level(first + cell, amount)

    def _charge_by_level(self, at: int, amount: int) -> None:
        usage, local_quota, up = self.usage, self.local_quota, self._up
        if amount < 0:
            usage[at] += amount
            return
        while at >= 0:
            used = usage[at]
            usage[at] = used + amount
            if used < local_quota[at]:
                amount -= local_quota[at] - used
                if amount <= 0:
                    break
            at = up[at]

    def refund(self, node: int, amounts: Amounts) -> None:
        """Reverts `charge` exactly, even if other quantities were charged in between."""
        usage, first, chains = self.usage, node * self.width, self._chains
        for cell, amount in amounts:
            chain = chains[first + cell]
            if chain and amount >= 0:
                for at in chain:
                    usage[at] -= amount
            else:
                self._refund_by_level(first + cell, amount)

    def _refund_by_level(self, at: int, amount: int) -> None:
        usage, local_quota, up = self.usage, self.local_quota, self._up
        if amount < 0:
            usage[at] -= amount
            return
        while at >= 0:
            used = usage[at]
            usage[at] = used - amount
            if used - local_quota[at] < amount:
                amount = used - local_quota[at]
                if amount <= 0:
                    break
            at = up[at]

    def available(self, node: int, cell: int) -> int:
        """Returns the quantity that a node could still use now, including quota that it could borrow.

        The result is negative if the node or a cohort above it uses more than it may. Queues treat a negative
        result as zero when they admit jobs.
        """
        if self._saturates[cell]:
            return self._available_saturating(node * self.width + cell)
        usage, up, bound = self.usage, self._up, self._bound
        at = bound[node * self.width + cell]
        above = up[at]
        if above < 0:  # nothing is kept or limited below the root
            return self.subtree[at] - usage[at]
        found = 0
        least = UNLIMITED
        while above >= 0:
            used = usage[at]
            limit = self._ceiling[at]
            if limit is not None and limit - used + found < least:
                least = limit - used + found
            free = self.local_quota[at] - used
            if free > 0:
                found += free
            at = bound[above]
            above = up[at]
        found += self.subtree[at] - usage[at]
        if least < found:
            return least
        return found

    def covers(self, node: int, charged: Amounts) -> bool:
        """Returns True if the quantities that were just charged to a node exceed no quota.

        A charge reduces `available` by exactly its quantity. Therefore, the quantity was available before if
        `available` is not negative now.
        """
        available = self.available
        for cell, _ in charged:  # noqa: SIM110 `all` of a generator takes twice as long, and targets ask often
            if available(node, cell) < 0:
                return False
        return True

    def local_available(self, node: int, cell: int) -> int:
        """Returns the unused part of the quota that a node does not lend to its parent, or 0."""
        at = node * self.width + cell
        local_quota, used = self.local_quota[at], self.usage[at]
        if local_quota >= UNLIMITED:
            return 0 if used >= UNLIMITED else UNLIMITED
        return min(local_quota - used, UNLIMITED) if local_quota > used else 0

    def lowest_with_room(self, node: int, cell: int, amount: int) -> int:
        """Returns the first node, on the path from this node to the root, that need not borrow the quantity.

        If every node on the path must borrow, the result is the root. On the way, the quantity is reduced by
        the unused quota that a node does not lend.
        """
        usage, subtree, up, width = self.usage, self.subtree, self._up, self.width
        at = node * width + cell
        while usage[at] + amount > subtree[at] and (above := up[at]) >= 0:
            if self.local_quota[at] > usage[at]:
                amount -= self.local_available(at // width, cell)
            at = above
        return at // width

    def borrows(self, node: int, cell: int, amount: int = 0) -> bool:
        """Returns True if a node would use more than its own quota after a charge of `amount`."""
        at = node * self.width + cell
        return self.usage[at] + amount > self.subtree[at]

    def path(self, node: int) -> list[int]:
        """Returns the cohorts above a node, starting with its parent."""
        found = []
        while (node := self.parent[node]) != NO_PARENT:
            found.append(node)
        return found

    def _read_quotas(self, node: int, groups: tuple[ResourceGroup, ...]) -> list[int]:
        first = node * self.width
        parent = self.parent[node]
        if parent != NO_PARENT:
            self._up[first : first + self.width] = range(parent * self.width, (parent + 1) * self.width)
        named = []
        for group in groups:
            for flavor, resource, quota in group.quotas():
                cell = self._numbers[flavor, resource]
                named.append(cell)
                self.nominal[first + cell] = min(quota.nominal, UNLIMITED)
                self.borrowing_limit[first + cell] = quota.borrowing_limit
                self.lending_limit[first + cell] = quota.lending_limit
        return named

    def _derive(self, own: list[list[int]]) -> None:
        """Computes what nodes have, starting at the leaves, and what they can use, starting at the root."""
        width = self.width
        self.subtree: list[int] = list(self.nominal)
        self.local_quota: list[int] = [0] * len(self.subtree)
        self.kept: list[int] = [0] * len(self.subtree)
        declared = [set(cells) for cells in own]
        for node in range(len(self.names) - 1, -1, -1):
            parent = self.parent[node]
            for at in range(node * width, (node + 1) * width):
                limit = self.lending_limit[at]
                if limit is not None:
                    self.local_quota[at] = max(0, minus(self.subtree[at], limit))
                if (above := self._up[at]) >= 0:
                    lent = minus(self.subtree[at], self.local_quota[at])
                    self.subtree[above] = plus(self.subtree[above], lent)
                    below = plus(self.kept[at], self.local_quota[at])
                    self.kept[above] = plus(self.kept[above], below)
            if parent != NO_PARENT:
                declared[parent] |= declared[node]
        self.declared: list[tuple[int, ...]] = [tuple(sorted(cells)) for cells in declared]

        self.potential_available: list[int] = list(self.subtree)
        self._ceiling: list[int | None] = [None] * len(self.subtree)
        for at, above in enumerate(self._up):
            if above < 0:
                continue
            self.potential_available[at] = plus(self.local_quota[at], self.potential_available[above])
            borrowing = self.borrowing_limit[at]
            if borrowing is not None:
                ceiling = plus(self.subtree[at], borrowing)
                self._ceiling[at] = ceiling
                self.potential_available[at] = min(self.potential_available[at], ceiling)
        # A node that neither keeps nor limits quantities does not affect what is available below it.
        self._bound: list[int] = list(range(len(self.subtree)))
        for at, above in enumerate(self._up):
            if above >= 0 and self._ceiling[at] is None and not self.local_quota[at]:
                self._bound[at] = self._bound[above]
        # The values that a charge changes, if every node below the root lends everything and borrows freely.
        self._chains: list[tuple[int, ...]] = [()] * len(self._up)
        for at, above in enumerate(self._up):
            if above < 0:
                self._chains[at] = (at,)
            elif self._bound[at] != at and self._chains[above]:
                self._chains[at] = (at, *self._chains[above])
        # Without unlimited quotas, plain integers are sufficient, and much faster than sums that saturate.
        self._saturates: list[bool] = [
            any(
                self.subtree[at] >= UNLIMITED or (self._ceiling[at] or 0) >= UNLIMITED
                for at in range(cell, len(self.subtree), width)
            )
            for cell in range(width)
        ]

    def _available_saturating(self, at: int) -> int:
        above = self._up[at]
        if above < 0:
            return minus(self.subtree[at], self.usage[at])
        reachable = self._available_saturating(above)
        borrowing = self.borrowing_limit[at]
        if borrowing is not None:
            lent = minus(self.subtree[at], self.local_quota[at])
            lent = minus(lent, max(0, minus(self.usage[at], self.local_quota[at])))
            reachable = min(reachable, plus(lent, borrowing))
        return plus(max(0, minus(self.local_quota[at], self.usage[at])), reachable)


def plus(left: int, right: int) -> int:
    """Returns a sum within 64 bits. `UNLIMITED` plus any quantity is `UNLIMITED`."""
    if left >= UNLIMITED or right >= UNLIMITED:
        return UNLIMITED
    return _within_bounds(left + right)


def minus(left: int, right: int) -> int:
    """Returns a difference within 64 bits. `UNLIMITED` minus any limited quantity is `UNLIMITED`."""
    if left >= UNLIMITED:
        return 0 if right >= UNLIMITED else UNLIMITED
    if right >= UNLIMITED:
        return -UNLIMITED - 1
    return _within_bounds(left - right)


def _within_bounds(value: int) -> int:
    return max(-UNLIMITED - 1, min(UNLIMITED, value))


def _parents(cluster_queues: Mapping[str, ClusterQueue], cohorts: Mapping[str, Cohort]) -> dict[str, str]:
    parents = {name: cohort.parent for name, cohort in cohorts.items()}
    for named in [*parents.values(), *(queue.cohort for queue in cluster_queues.values())]:
        if named:
            parents.setdefault(named, "")
    return parents


def _top_down(parents: Mapping[str, str]) -> list[str]:
    below: dict[str, list[str]] = {}
    for name, parent in parents.items():
        below.setdefault(parent, []).append(name)
    ordered: list[str] = []
    level = below.get("", [])
    while level:
        ordered += level
        level = [name for parent in level for name in below.get(parent, ())]
    if len(ordered) < len(parents):
        placed = set(ordered)
        faults = [
            Fault(
                f"Cohort {name}",
                f"is its own ancestor, or is below a cohort that is its own ancestor (parent {parent})",
            )
            for name, parent in parents.items()
            if name not in placed
        ]
        raise ClusterError("cohorts", faults, hint="remove one parentName of the cycle")
    return ordered


def _numbered(
    groups: Iterable[tuple[ResourceGroup, ...]], also: Iterable[FlavorResource]
) -> dict[FlavorResource, int]:
    """Returns numbers for all flavor-resources, in alphabetical order."""
    found = set(also)
    for of_node in groups:
        for group in of_node:
            found.update(FlavorResource(flavor, resource) for flavor, resource, _ in group.quotas())
    return {flavor_resource: number for number, flavor_resource in enumerate(sorted(found))}
