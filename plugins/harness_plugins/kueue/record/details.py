"""Collects the details of a decision for the record: Kueue's message and the numbers that explain it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

from harness.base.memo import Memo
from harness.models.quota import UNLIMITED
from harness.policy import QueueShare
from harness_plugins.kueue.record.shares import number, published, ratio
from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares
from harness_plugins.kueue.rules.flavor_assigner import Assignment
from harness_plugins.kueue.rules.preemption import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAIM_WHILE_BORROWING,
    IN_COHORT_RECLAMATION,
    Target,
)
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.local_queue_usage import LocalQueueUsage
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import Workload

_IN_WORDS: Mapping[str, str] = {
    IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    IN_COHORT_RECLAMATION: "reclamation within the cohort",
    IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    IN_COHORT_RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}


@final
class DecisionDetails:
    """Collects the numbers that explain decisions, such as usage, quotas and shares.

    Args:
        shares: the shares of all ClusterQueues and Cohorts. With classic preemption, it is None, and the
            results contain no shares.
    """

    def __init__(self, cache: Cache, pending: Sequence[PendingQueue], shares: Shares | None) -> None:
        self._told: dict[str, Share] = {}
        self.follow(cache, pending, shares)

    def follow(self, cache: Cache, pending: Sequence[PendingQueue], shares: Shares | None) -> None:
        """Switches to changed queues and quotas, and keeps the recorded shares."""
        self._cache = cache
        self._pending = pending
        self._tree = cache.tree
        self._shares = shares
        self._labels = self._tree.labels
        self._paths: dict[int, str] = {}
        # Shares depend only on the usage of a node.
        self._known_shares: Memo[tuple[object, ...], list[float | str]] = Memo()
        # Decisions with equal figures share one detail, which must not be changed.
        self._known: Memo[tuple[object, ...], dict[str, Any]] = Memo()

    def admission(self, workload: Workload, assignment: Assignment) -> dict[str, Any]:
        """Returns the numbers that explain an admission. Its usage is already charged to the quota tree.

        - `borrowing`: how many levels above the queue the quota comes from. 0 means the queue's own quota.
        - `lenders`: for each borrowed flavor-resource, the lowest cohort that can lend it.
        - `localQueues`: the usage of the workload's LocalQueue and of the next one, if usage orders
          LocalQueues.
        """
        tree, queue, usage = self._tree, workload.cluster_queue, assignment.usage
        lenders = [
            (self._labels[cell], self._lender(queue, cell))
            for cell, _ in usage
            if queue.path and tree.borrows(queue.node, cell)
        ]
        share = self._around(queue.node, usage) if self._shares is not None else []
        key = (queue.node, assignment.borrowing, *lenders, *share)
        detail = self._known.get(key)
        if detail is None:
            detail = {"borrowing": assignment.borrowing}
            if lenders:
                detail["lenders"] = dict(lenders)
            if share:
                detail["share"] = {queue.name: share}
            self._known[key] = detail
        if workload.local_queue is not None:
            pending = self._pending[queue.number]
            usages = _usages(workload.local_queue, pending.next_local_queue(workload.local_queue))
            detail = {**detail, "localQueues": usages}
        return detail

    def preemptions(
        self, preemptor: Workload, assignment: Assignment, targets: Sequence[Target]
    ) -> dict[Workload, dict[str, Any]]:
        """Returns the numbers that explain a preemptor's preemptions, by target.

        The preemptor's usage is already charged to the quota tree.

        - `queue` and `request`: the preemptor's queue, and its request.
        - `usage`: the usage of the preemptor's and the target's queues before the preemption, for the
          resources that the preemptor lacks.
        - `quota`: the own quotas of these queues.
        - `share`: the weighted shares that Kueue compares. They belong to two children of the queues' lowest
          common cohort. Each child is a ClusterQueue or a Cohort that contains one of the queues. The
          preemptor counts as admitted. Each share is given before and after the target is removed. Kueue
          itself compares the shares at the start of the cycle, before it handles earlier entries.
        - `localQueues`: the usage of both LocalQueues, if usage orders candidates.
        """
        tree, queue = self._tree, preemptor.cluster_queue
        request = {self._labels[cell]: amount for cell, amount in assignment.usage}
        details: dict[Workload, dict[str, Any]] = {}
        tree.refund(queue.node, assignment.usage)
        others = {target.workload.cluster_queue: None for target in targets}
        tables = {other: self._table(assignment.need, queue, other) for other in others}
        tree.charge(queue.node, assignment.usage)
        for victim, reason in targets:
            other = victim.cluster_queue
            message = self._message(preemptor, victim, reason)
            detail = {"message": message, "queue": queue.name, "request": request, **tables[other]}
            sides = self._compared(queue, other)
            before = [self._share(node) for node in sides]
            tree.refund(other.node, victim.usage)
            if preemptor.local_queue is not None and victim.local_queue is not None and other is queue:
                detail["localQueues"] = _usages(preemptor.local_queue, victim.local_queue)
            if sides:
                detail["share"] = {
                    tree.names[node]: [share, self._share(node)]
                    for node, share in zip(sides, before, strict=True)
                }
            details[victim] = detail
        for victim in details:
            tree.charge(victim.cluster_queue.node, victim.usage)
        return details

    def changed_shares(self) -> Iterable[QueueShare]:
        """Returns the shares of the queues whose share has changed since the last call."""
        changed = self._cache.changed
        if self._shares is None or not changed:
            return ()
        found = []
        for node in sorted(changed):
            share = self._shares.of(node)[1]
            name = changed[node].name
            if share != self._told.get(name):
                self._told[name] = share
                found.append(QueueShare(name, ratio(self._shares, node), published(share)))
        changed.clear()
        return found

    def _message(self, preemptor: Workload, victim: Workload, reason: str) -> str:
        return (
            f"Preempted to accommodate a workload (UID: {preemptor.uid or 'UNKNOWN'}, "
            f"JobUID: {preemptor.name}) due to {_IN_WORDS[reason]}; "
            f"preemptor path: {self._path(preemptor.cluster_queue)}; "
            f"preemptee path: {self._path(victim.cluster_queue)}"
        )

    def _path(self, queue: ClusterQueueState) -> str:
        path = self._paths.get(queue.node)
        if path is None:
            nodes = (*reversed(queue.path), queue.node)
            path = self._paths[queue.node] = "".join(f"/{self._tree.names[node]}" for node in nodes)
        return path

    def _lender(self, queue: ClusterQueueState, cell: int) -> str:
        for cohort in queue.path:
            if not self._tree.borrows(cohort, cell):
                return self._tree.names[cohort]
        return self._tree.names[queue.root]

    def _table(self, need: Iterable[int], *queues: ClusterQueueState) -> dict[str, dict[str, dict[str, int]]]:
        tree = self._tree
        usage: dict[str, dict[str, int]] = {}
        quota: dict[str, dict[str, int]] = {}
        for queue in queues:
            first = queue.node * tree.width
            usage[queue.name] = {self._labels[cell]: tree.usage[first + cell] for cell in need}
            quota[queue.name] = {
                self._labels[cell]: tree.nominal[first + cell]
                for cell in need
                if tree.nominal[first + cell] < UNLIMITED
            }
        return {"usage": usage, "quota": quota}

    def _compared(self, queue: ClusterQueueState, other: ClusterQueueState) -> tuple[int, ...]:
        """Returns the nodes whose shares decide whether a queue may preempt in another queue or in itself."""
        if self._shares is None:
            return ()
        return (queue.node,) if other is queue else queue.sides(other)

    def _around(self, node: int, usage: Amounts) -> list[float | str]:
        """Returns the shares of a queue before and after a charge, which depend only on its own usage."""
        tree = self._tree
        first = node * tree.width
        key = (node, usage, *tree.usage[first : first + tree.width])
        shares = self._known_shares.get(key)
        if shares is None:
            after = self._share(node)
            tree.refund(node, usage)
            shares = [self._share(node), after]
            tree.charge(node, usage)
            self._known_shares[key] = shares
        return shares

    def _share(self, node: int) -> float | str:
        assert self._shares is not None
        return number(self._shares.of(node)[1])


def _usages(*local_queues: LocalQueueUsage | None) -> dict[str, float | str]:
    return {
        each.name: each.usage if each.usage < math.inf else "infinite"
        for each in local_queues
        if each is not None
    }
