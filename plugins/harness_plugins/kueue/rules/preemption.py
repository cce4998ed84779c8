"""The common parts of both searches for targets: the incoming workload, the fit test, and filling back.

Upstream: `workloadFits` and `fillBackWorkloads` in pkg/scheduler/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol, final

from harness.models.quota import QuotaTree
from harness_plugins.kueue.rules.dominant_resource_share import Share
from harness_plugins.kueue.state.amounts import Amounts, amounts_of
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
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


class Places(Protocol):
    """Pods to place in topologies."""

    def place(self) -> tuple[Placed, ...] | None:
        """Returns places for the pods beside the present pods; None if some pod set has no place."""


@final
class Incoming:
    """A workload that needs quota.

    Args:
        workload: the preemptor.
        queue: the queue to which it was submitted.
        requests: its whole request.
        need: the flavor-resources that only preemption can free.
        topology: its pods to place in topologies; None for none.

    Attributes:
        mask: `need` as a bit mask.
        cells: all flavor-resources that are requested or needed.
    """

    __slots__ = ("_topology", "cells", "mask", "need", "queue", "requests", "workload")

    def __init__(
        self,
        workload: Workload,
        queue: ClusterQueueState,
        requests: Amounts,
        need: tuple[int, ...],
        topology: Places | None = None,
    ) -> None:
        self.workload = workload
        self.queue = queue
        self.requests = requests
        self.need = need
        self.mask = 0
        for cell in need:
            self.mask |= 1 << cell
        self.cells = sorted({*need, *[cell for cell, _ in requests]})
        self._topology = topology

    def has_place(self) -> bool:
        """Returns True if all pods to be placed have a place beside the pods that are left now."""
        return self._topology is None or self._topology.place() is not None


FORBIDDEN = "the queue's policies do not let it preempt the workloads that hold the quota"
NOBODY = "no workload holds anything that it could take"
WHILE_BORROWING = "it may not preempt while it borrows"
TOO_LITTLE = "all that it may preempt would free too little"
BY_SHARES = "there are candidates, but their shares forbid it"


TOO_YOUNG = "the workloads that it might preempt have not run for their minimum time yet (preview)"


class Compared(NamedTuple):
    """Fair shares that protect a candidate.

    Attributes:
        candidate: the candidate.
        sides: the nodes below the lowest common cohort: the incoming's side, and the candidate's side.
        before: the current shares of both sides.
        after: the shares with the incoming, and without the candidate.
        strategies: the strategies that compared these shares and forbade the preemption.
    """

    candidate: Workload
    sides: tuple[int, int]
    before: tuple[Share, Share]
    after: tuple[Share, Share]
    strategies: tuple[str, ...]


class Obstacle(NamedTuple):
    """Why a search finds no targets.

    Attributes:
        text: the obstacle in words.
        fields: the fields of the queue's manifest that cause it, with their values.
        borrowed: the flavor-resources that would be borrowed, if that matters.
        compared: the shares that forbid preemption; None if they do not.
        taken: the workloads that the search took before it failed.
    """

    text: str
    fields: Mapping[str, str | int] = MappingProxyType({})
    borrowed: tuple[int, ...] = ()
    compared: Compared | None = None
    taken: tuple[Workload, ...] = ()


class TargetSearch(Protocol):
    """A method that chooses targets."""

    def find_targets(self, incoming: Incoming) -> list[Target]:
        """Chooses the targets, and leaves the cache as it was; returns [] if preemption cannot help."""

    def obstacle(self, incoming: Incoming) -> Obstacle:
        """Returns why a search finds no targets, for the record, and leaves the cache as it was."""


def fits(tree: QuotaTree, node: int, requests: Amounts, *, borrowing: bool) -> bool:
    """Returns True if all of `requests` fit a queue now, with borrowing only if that is allowed."""
    for cell, amount in requests:
        if not borrowing and tree.borrows(node, cell, amount):
            return False
        if amount > tree.available(node, cell):
            return False
    return True


def within_nominal(tree: QuotaTree, node: int, need: tuple[int, ...]) -> bool:
    """Returns True if a node stays within its own quota of all needed resources."""
    first, usage, subtree = node * tree.width, tree.usage, tree.subtree
    for cell in need:
        at = first + cell
        if usage[at] > subtree[at]:
            return False
    return True


def remove(tree: QuotaTree, workload: Workload, cells: Sequence[int] | None = None) -> None:
    """Removes a holder's usage from the tree, and its pods from their flavor's leaves, on trial.

    Args:
        tree: the quotas.
        workload: the holder.
        cells: the flavor-resources that the trial needs; None for all.
    """
    node, usage = workload.cluster_queue.node, workload.usage
    tree.refund(node, usage if cells is None else amounts_of(usage, cells))
    for each in workload.placed:
        each.refund()


def put_back(tree: QuotaTree, workload: Workload, cells: Sequence[int] | None = None) -> None:
    """Undoes `remove` with the same arguments."""
    node, usage = workload.cluster_queue.node, workload.usage
    tree.charge(node, usage if cells is None else amounts_of(usage, cells))
    for each in workload.placed:
        each.charge()


def fill_back(
    tree: QuotaTree,
    incoming: Incoming,
    targets: list[Target],
    *,
    borrowing: bool,
    cells: Sequence[int] | None = None,
) -> None:
    """Drops targets that are not needed, from the last but one to the first.

    Before, the usage of all targets is out of the tree; afterwards, only that of the remaining targets. As in
    Kueue, the last target of the list takes the place of a dropped one.
    """
    node = incoming.queue.node
    for at in range(len(targets) - 2, -1, -1):
        put_back(tree, targets[at].workload, cells)
        if fits(tree, node, incoming.requests, borrowing=borrowing) and incoming.has_place():
            targets[at] = targets[-1]
            targets.pop()
        else:
            remove(tree, targets[at].workload, cells)
