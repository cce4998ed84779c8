"""What a decision's record says beside the decision: the figures that allowed it, in Kueue's own words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, final

from harness.policy import QueueShare
from harness.quota import UNLIMITED
from harness_plugins.kueue.admission import Refused
from harness_plugins.kueue.assignment import NO_FIT, Assignment
from harness_plugins.kueue.cache import Cache, Queue
from harness_plugins.kueue.flavors import PodSetOffer
from harness_plugins.kueue.ledger import Account
from harness_plugins.kueue.search import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAIM_WHILE_BORROWING,
    IN_COHORT_RECLAMATION,
    Target,
)
from harness_plugins.kueue.shares import Share, Shares, published
from harness_plugins.kueue.workload import Amounts, Workload
from harness_plugins.shortage import label, shortage

_IN_WORDS: Mapping[str, str] = {
    IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    IN_COHORT_RECLAMATION: "reclamation within the cohort",
    IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    IN_COHORT_RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}


@final
class Figures:
    """Writes the figures of decisions.

    Args:
        cache: who holds which quota.
        shares: the shares of all nodes; None leaves them out (classic preemption).
    """

    def __init__(self, cache: Cache, shares: Shares | None) -> None:
        self._cache = cache
        self._tree = cache.tree
        self._shares = shares
        self._told: dict[str, tuple[int, Share]] = {}

    def admission(self, workload: Workload, assignment: Assignment) -> dict[str, Any]:
        """Of an admission, whose usage is charged already.

        Where the usage of LocalQueues counts, `localQueues` has that of the workload's and of the next one.
        `borrowing` is how many levels up the quota comes from, 0 for the queue's own; `lenders` says for
        every flavor-resource that is borrowed the lowest cohort that can give it.
        """
        queue = workload.home.queue
        detail: dict[str, Any] = {"borrowing": assignment.borrowing}
        lenders = {
            label(self._tree, cell): self._lender(queue, cell)
            for cell, _ in assignment.usage
            if queue.path and self._tree.borrows(queue.node, cell)
        }
        if lenders:
            detail["lenders"] = lenders
        if self._shares is not None:
            after = self._share(queue.node)
            self._take(queue.node, assignment.usage, -1)
            detail["share"] = {queue.name: [self._share(queue.node), after]}
            self._take(queue.node, assignment.usage, 1)
        if workload.account is not None:
            detail["localQueues"] = _usages(workload.account, workload.home.next_account(workload.account))
        return detail

    def preemptions(
        self, preemptor: Workload, assignment: Assignment, targets: Iterable[Target]
    ) -> dict[Workload, dict[str, Any]]:
        """Of the preemptions for one preemptor, whose usage is charged already.

        `queue` is the preemptor's and `request` what it asks for; `usage` and `quota` tell what the queues of
        both sides use, before it, and own of what it lacks. `share` has the weighted shares right below
        their lowest common cohort as Kueue compares them: with the preemptor admitted, before and after the
        target goes. `localQueues` has the usage of both LocalQueues, where it counts.
        """
        queue = preemptor.home.queue
        request = {label(self._tree, cell): amount for cell, amount in assignment.usage}
        details: dict[Workload, dict[str, Any]] = {}
        self._take(queue.node, assignment.usage, -1)
        tables = [self._table(assignment.need, queue, target.workload.home.queue) for target in targets]
        self._take(queue.node, assignment.usage, 1)
        for (victim, reason), table in zip(targets, tables, strict=True):
            message = self._message(preemptor, victim, reason)
            details[victim] = {"message": message, "queue": queue.name, "request": request, **table}
            before = self._sides(queue, victim)
            self._take(victim.home.queue.node, victim.usage, -1)
            after = self._sides(queue, victim)
            if preemptor.account is not None and victim.account is not None and victim.home.queue is queue:
                details[victim]["localQueues"] = _usages(preemptor.account, victim.account)
            if before:
                details[victim]["share"] = {name: [share, after[name]] for name, share in before.items()}
        for victim in details:
            self._take(victim.home.queue.node, victim.usage, 1)
        return details

    def refusal(self, refused: Refused, offers: Iterable[PodSetOffer]) -> dict[str, Any]:
        """Of a head that nothing helps, as things stand after its cycle, see `shortage`."""
        workload, assignment, _ = refused
        cells: Iterable[tuple[int, int]] = assignment.usage
        if assignment.mode == NO_FIT:
            cells = [
                (cell, amount * count)
                for pod_set, count in zip(offers, workload.counts, strict=True)
                for group in pod_set.groups
                for flavor in group.cells
                for cell, amount in zip(flavor or (), group.amounts, strict=bool(flavor))
            ]
        return shortage(self._tree, workload.home.queue.node, cells)

    def changed_shares(self) -> Iterator[QueueShare]:
        """The shares of the queues that have another one than when they were asked for last."""
        if self._shares is None:
            return
        for queue in self._cache.queues.values():
            generation, known = self._told.get(queue.name, (-1, None))
            if queue.generation != generation:
                share = self._shares.of(queue.node)[1]
                self._told[queue.name] = queue.generation, share
                if share != known:
                    yield QueueShare(queue.name, self._shares.ratio(queue.node), published(share))

    def _message(self, preemptor: Workload, victim: Workload, reason: str) -> str:
        """The message of the conditions Evicted and Preempted."""
        return (
            f"Preempted to accommodate a workload (UID: {preemptor.uid or 'UNKNOWN'}, "
            f"JobUID: {preemptor.name}) due to {_IN_WORDS[reason]}; "
            f"preemptor path: {self._path(preemptor.home.queue)}; "
            f"preemptee path: {self._path(victim.home.queue)}"
        )

    def _path(self, queue: Queue) -> str:
        """Where a queue hangs in the tree of cohorts."""
        names = self._tree.names
        return "".join(f"/{names[node]}" for node in (*reversed(queue.path), queue.node))

    def _lender(self, queue: Queue, cell: int) -> str:
        for cohort in queue.path:
            if not self._tree.borrows(cohort, cell):
                return self._tree.names[cohort]
        return self._tree.names[queue.root]

    def _table(self, need: Iterable[int], *queues: Queue) -> dict[str, dict[str, dict[str, int]]]:
        """Usage and nominal quota of queues, for what is needed; quota without end is left out."""
        tree = self._tree
        usage: dict[str, dict[str, int]] = {}
        quota: dict[str, dict[str, int]] = {}
        for queue in queues:
            first = queue.node * tree.width
            usage[queue.name] = {label(self._tree, cell): tree.usage[first + cell] for cell in need}
            quota[queue.name] = {
                label(self._tree, cell): tree.nominal[first + cell]
                for cell in need
                if tree.nominal[first + cell] < UNLIMITED
            }
        return {"usage": usage, "quota": quota}

    def _sides(self, queue: Queue, victim: Workload) -> dict[str, float | str]:
        """The shares of the nodes right below the lowest common cohort of both sides."""
        if self._shares is None:
            return {}
        other = victim.home.queue
        if other is queue:
            return {queue.name: self._share(queue.node)}
        mine = dict(zip(queue.path, (queue.node, *queue.path), strict=False))
        theirs = other.node
        for ancestor in other.path:
            if ancestor in mine:
                nodes = (mine[ancestor], theirs)
                return {self._tree.names[node]: self._share(node) for node in nodes}
            theirs = ancestor
        raise AssertionError("queues of one tree have a common ancestor")

    def _share(self, node: int) -> float | str:
        assert self._shares is not None
        infinite, share = self._shares.of(node)[1]
        return "infinite" if infinite else share

    def _take(self, node: int, amounts: Amounts, sign: int) -> None:
        change = self._tree.charge if sign > 0 else self._tree.refund
        for cell, amount in amounts:
            change(node, cell, amount)


def _usages(*accounts: Account | None) -> dict[str, float | str]:
    """The usage of LocalQueues."""
    return {
        account.name: account.usage if account.usage < math.inf else "infinite"
        for account in accounts
        if account is not None
    }
