"""Code for both methods of choosing targets: the incoming workload, the fit check, and the final check.

The final check drops targets that are not needed. Upstream: `workloadFits` and `fillBackWorkloads` in
pkg/scheduler/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, final

from harness.models.quota import QuotaTree
from harness_plugins.kueue.state.amounts import Amounts, amounts_of
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

IN_CLUSTER_QUEUE = "InClusterQueue"
IN_COHORT_RECLAMATION = "InCohortReclamation"
IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"
IN_COHORT_FAIR_SHARING = "InCohortFairSharing"


class Target(NamedTuple):
    """A workload to preempt, and the rule that allows its preemption."""

    workload: Workload
    reason: str


@final
class Incoming:
    """A workload that needs quota.

    Args:
        need: the flavor-resources that only preemption can free.
        place: returns places that the present pods leave free, or None if some pod set has no place. None if
            no pod needs a place in a topology.

    Attributes:
        mask: `need` as a bit mask.
        cells: all flavor-resources that are requested or needed.
    """

    __slots__ = ("_place", "cells", "mask", "need", "queue", "requests", "workload")

    def __init__(
        self,
        workload: Workload,
        requests: Amounts,
        need: tuple[int, ...],
        place: Callable[[], Sequence[Placed] | None] | None = None,
    ) -> None:
        self.workload = workload
        self.queue = workload.cluster_queue
        self.requests = requests
        self.need = need
        self.mask = 0
        for cell in need:
            self.mask |= 1 << cell
        self.cells = sorted({*need, *[cell for cell, _ in requests]})
        self._place = place

    def has_place(self) -> bool:
        """Returns True if the present pods leave a place for each pod that needs a place."""
        return self._place is None or self._place() is not None


def fits(tree: QuotaTree, node: int, requests: Amounts, *, borrowing: bool) -> bool:
    """Returns True if a queue has enough quota for `requests` now.

    If `borrowing` is False, only the queue's own quota counts.
    """
    for cell, amount in requests:
        if not borrowing and tree.borrows(node, cell, amount):
            return False
        if amount > tree.available(node, cell):
            return False
    return True


def within_nominal(tree: QuotaTree, node: int, need: tuple[int, ...]) -> bool:
    """Returns True if a ClusterQueue or Cohort stays within its own quota of all needed resources."""
    first, usage, subtree = node * tree.width, tree.usage, tree.subtree
    for cell in need:
        at = first + cell
        if usage[at] > subtree[at]:
            return False
    return True


def remove(tree: QuotaTree, workload: Workload, cells: Sequence[int] | None = None) -> None:
    """Removes a workload's usage from the tree and its pods from the topologies. `put_back` reverts this.

    `cells` lists the flavor-resources to refund. None means all of them.
    """
    node, usage = workload.cluster_queue.node, workload.usage
    tree.refund(node, usage if cells is None else amounts_of(usage, cells))
    for each in workload.placed:
        each.refund()


def put_back(tree: QuotaTree, workload: Workload, cells: Sequence[int] | None = None) -> None:
    """Reverts a call of `remove` that had the same arguments."""
    node, usage = workload.cluster_queue.node, workload.usage
    tree.charge(node, usage if cells is None else amounts_of(usage, cells))
    for each in workload.placed:
        each.charge()


def restore(tree: QuotaTree, targets: Iterable[Target], cells: Sequence[int] | None = None) -> None:
    """Puts back the targets of a search (upstream's restoreSnapshot). `cells` is the same as for `remove`."""
    for target in targets:
        put_back(tree, target.workload, cells)


def fill_back(
    tree: QuotaTree,
    incoming: Incoming,
    targets: list[Target],
    *,
    borrowing: bool,
    cells: Sequence[int] | None = None,
) -> None:
    """Drops targets that are not needed. Checks each target except the last, from the end to the start.

    When this is called, the usage of all targets must be removed from the tree. The usage of dropped targets
    is put back. As in Kueue, the last target in the list takes the position of a dropped target.
    """
    node = incoming.queue.node
    for at in range(len(targets) - 2, -1, -1):
        put_back(tree, targets[at].workload, cells)
        if fits(tree, node, incoming.requests, borrowing=borrowing) and incoming.has_place():
            targets[at] = targets[-1]
            targets.pop()
        else:
            remove(tree, targets[at].workload, cells)
