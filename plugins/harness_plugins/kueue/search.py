"""What both ways of choosing whom to preempt share: the question, the fit test, and filling back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cmp_to_key
from typing import NamedTuple, Protocol, final

from harness.models.quota import QuotaTree
from harness_plugins.kueue.cache import Queue
from harness_plugins.kueue.shares import NOTHING, Share
from harness_plugins.kueue.topology.workload import WorkloadTopology
from harness_plugins.kueue.workload import Amounts, Workload

IN_CLUSTER_QUEUE = "InClusterQueue"
IN_COHORT_RECLAMATION = "InCohortReclamation"
IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"
IN_COHORT_FAIR_SHARING = "InCohortFairSharing"

EVERY_PRIORITY = 1 << 62
"""Above every priority."""


class Target(NamedTuple):
    """A workload to preempt, and the rule that allows it."""

    workload: Workload
    reason: str


@final
class Incoming:
    """A workload that asks for room.

    Args:
        workload: the preemptor.
        queue: the queue that it was submitted to.
        requests: what it asks for, all of it.
        need: the flavor-resources that only preemption can give.
        topology: what of it is to be placed in topologies; None for nothing.

    Attributes:
        mask: `need` as a bit mask.
        given: queue -> what holders of it would give up for the incoming, None for enough, as far as that is
            known; before it the queue's generation and the share of the incoming's queue that it is good for.
    """

    __slots__ = ("_topology", "given", "mask", "need", "queue", "requests", "workload")

    def __init__(
        self,
        workload: Workload,
        queue: Queue,
        requests: Amounts,
        need: tuple[int, ...],
        topology: WorkloadTopology | None = None,
    ) -> None:
        self.workload = workload
        self.queue = queue
        self.requests = requests
        self.need = need
        self.mask = 0
        for cell in need:
            self.mask |= 1 << cell
        self.given: dict[Queue, tuple[int, Share, list[Amounts] | None]] = {}
        self._topology = topology

    def has_place(self) -> bool:
        """Whether there is a place for all that is to be placed, beside what is left now."""
        return self._topology is None or self._topology.place() is not None


class WhyNone(NamedTuple):
    """Why a search fails: by the queue's own state alone, or because others give up too little.

    Attributes:
        incoming: for whom others give up too little.
        share: of its queue, with the incoming.
    """

    incoming: Incoming | None = None
    share: Share = NOTHING


class Search(Protocol):
    """A way of choosing whom to preempt."""

    def find_targets(self, incoming: Incoming) -> list[Target]:
        """Choose whom to preempt; an empty list when that cannot help. The cache is left as it was."""

    def why_none(self, incoming: Incoming) -> WhyNone | None:
        """What makes a search fail for everything of the incoming's kin; None if that is not known.

        Asked only where no cohort lies between the queue and its root.
        """

    def still_none(self, why: WhyNone) -> bool:
        """Whether a reason still holds while nothing changes in the queue itself."""


class Bounds(NamedTuple):
    """Which holders a preemption policy allows: those with a priority below `below`.

    Of those with priority `below - 1`, only the ones that are newer than `newer_than`, unless that is None.
    """

    below: int
    newer_than: int | None = None


_ANYBODY = Bounds(EVERY_PRIORITY)


def bounds(policy: str, preemptor: Workload) -> Bounds | None:
    """What a policy of the preemptor's queue allows; None for `Never`.

    Args:
        policy: `withinClusterQueue` for the queue's own holders, `reclaimWithinCohort` for others.
        preemptor: the incoming workload.
    """
    match policy:
        case "Any":
            return _ANYBODY
        case "LowerPriority":
            return Bounds(preemptor.priority)
        case "LowerOrNewerEqualPriority":
            return Bounds(preemptor.priority + 1, preemptor.timestamp)
    return None


def has_own_candidates(incoming: Incoming, *, of_kin: bool = False) -> bool:
    """Whether the queue's own policy lets the incoming preempt anything that it needs.

    Args:
        incoming: the incoming.
        of_kin: answer for everything of its kin, whatever its place in the queue.
    """
    queue = incoming.queue
    allowed = bounds(queue.spec.preemption.within_cluster_queue, incoming.workload)
    if allowed is None:
        return False
    if of_kin and allowed.newer_than is not None:
        allowed = Bounds(allowed.below)
    return has_candidate(queue, incoming.mask, allowed)


def has_candidate(queue: Queue, mask: int, allowed: Bounds) -> bool:
    """Whether any holder of a queue may be preempted and uses what is needed."""
    holders, evicted = queue.holders, queue.evicted
    if not evicted:
        if not holders or holders[0].priority >= allowed.below:
            return False
        return next(preemptible(holders, mask, allowed), None) is not None
    return any(
        next(preemptible(part, mask, allowed), None) is not None
        for part in (holders[:evicted], holders[evicted:])
    )


def candidates_of(queue: Queue, mask: int, allowed: Bounds, *, evicted: bool) -> Iterator[Workload]:
    """Holders of a queue that a policy allows to preempt and that use what is needed, in order.

    Args:
        queue: the queue; where it orders by usage, holders of the LocalQueue with the highest usage go first,
            but those of LocalQueues that cannot be told apart keep their order among each other.
        mask: the flavor-resources that are needed.
        allowed: what the policy allows.
        evicted: look at those that are going anyway, else at the others.
    """
    holders = queue.holders
    if evicted:
        holders = holders[: queue.evicted]
    elif queue.evicted:
        holders = holders[queue.evicted :]
    found = preemptible(holders, mask, allowed)
    return iter(_most_used_first(list(found))) if queue.spec.by_usage else found


def _most_used_first(found: list[Workload]) -> list[Workload]:
    """Candidates by the usage of their LocalQueues, at equal usage in the order in which they are given."""
    if any(each.account is not None and each.account.namesakes for each in found):
        # Two namesakes keep their order and others may stand between them: not all of it need be an order.
        # What is decided by chance in Kueue then is decided by the order given here.
        return sorted(found, key=cmp_to_key(_compared))
    return sorted(found, key=_unused)


def _unused(workload: Workload) -> float:
    return 0.0 if workload.account is None else -workload.account.usage


def _compared(left: Workload, right: Workload) -> int:
    one, other = left.account, right.account
    if one is not None and other is not None and one.label != other.label and one.usage != other.usage:
        return -1 if one.usage > other.usage else 1
    return -1 if left.rank < right.rank else 1


def preemptible(workloads: list[Workload], mask: int, allowed: Bounds) -> Iterator[Workload]:
    """Holders that a policy allows to preempt and that use what is needed, in their given order.

    Args:
        workloads: holders in the order of candidates, all evicted or none.
        mask: the flavor-resources that are needed.
        allowed: what the policy allows.
    """
    below, newer_than = allowed
    for workload in workloads:
        if workload.priority >= below:
            return
        if not workload.uses & mask:
            continue
        if newer_than is not None and workload.priority == below - 1 and workload.timestamp <= newer_than:
            continue
        yield workload


def fits(tree: QuotaTree, node: int, requests: Amounts, *, borrowing: bool) -> bool:
    """Whether a queue has room for all of `requests` now, if need be without borrowing."""
    for cell, amount in requests:
        if not borrowing and tree.borrows(node, cell, amount):
            return False
        if amount > tree.available(node, cell):
            return False
    return True


def within_nominal(tree: QuotaTree, node: int, need: tuple[int, ...]) -> bool:
    """Whether a node uses no more than it has itself of everything that is needed."""
    first, usage, subtree = node * tree.width, tree.usage, tree.subtree
    for cell in need:
        at = first + cell
        if usage[at] > subtree[at]:
            return False
    return True


def remove(tree: QuotaTree, workload: Workload) -> None:
    """Take a holder's usage out of the tree, for a trial, and its pods out of the room of their flavor."""
    assert workload.queue is not None
    node = workload.queue.node
    tree.refund(node, workload.usage)
    for each in workload.placed:
        each.refund()


def put_back(tree: QuotaTree, workload: Workload) -> None:
    """Undo `remove`."""
    assert workload.queue is not None
    node = workload.queue.node
    tree.charge(node, workload.usage)
    for each in workload.placed:
        each.charge()


def fill_back(tree: QuotaTree, incoming: Incoming, targets: list[Target], *, borrowing: bool) -> None:
    """Give up targets that turn out not to be needed, from the last but one to the first.

    Their usage is out of the tree before and, for those that remain, after. A target that is given up makes
    room in the list for the one at its end, as in Kueue.
    """
    node = incoming.queue.node
    for at in range(len(targets) - 2, -1, -1):
        put_back(tree, targets[at].workload)
        if fits(tree, node, incoming.requests, borrowing=borrowing) and incoming.has_place():
            targets[at] = targets[-1]
            targets.pop()
        else:
            remove(tree, targets[at].workload)
