"""Finds the reason why a target search fails for an equivalence class, and checks whether it still holds.

There are two kinds of reasons. A reason in the queue's own state is valid until the queue changes. With fair
sharing, the reason can also be that all other queues together give up too little quota. This reason is
checked again after every change.

Fair sharing may also preempt workloads of the queue itself. The reason must then cover the quota of these
workloads and the quota that other queues give up. The lower the queue's own share is, the more it can take
from other queues. The other queues are therefore compared with the share that the queue has without all of
its own candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, final

from harness_plugins.kueue.rules.borrow_within_cohort import may_borrow
from harness_plugins.kueue.rules.candidates import all_candidates, candidates_in_order
from harness_plugins.kueue.rules.classical import over_nominal
from harness_plugins.kueue.rules.dominant_resource_share import NOTHING, Share, Shares, share_without
from harness_plugins.kueue.rules.fair_sharing import FairSharing
from harness_plugins.kueue.rules.preemption import Incoming
from harness_plugins.kueue.rules.preemption_policy import Allowed, allowed_by
from harness_plugins.kueue.shortcuts.refused_sides import keeping
from harness_plugins.kueue.shortcuts.share_ranking import ShareRanking
from harness_plugins.kueue.shortcuts.usages_below import UsagesBelow
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload


class NoTargets(NamedTuple):
    """The reason why a search fails: the queue's own state, or other queues that give up too little quota.

    Attributes:
        incoming: the workload for which other queues give up too little, or None if other queues do not
            matter.
        share: the share of the queue with the incoming workload and without the queue's own candidates.
        own: the usage of the queue's own candidates.
    """

    incoming: Incoming | None = None
    share: Share = NOTHING
    own: Sequence[Amounts] = ()


class Reasons(Protocol):
    """Finds the reasons why target searches fail, either in classic preemption or in fair sharing."""

    def are_known(self, queue: ClusterQueueState) -> bool:
        """Returns True if the reasons for failed searches are known for a queue."""

    def no_targets(self, incoming: Incoming) -> NoTargets | None:
        """Returns the reason why a search fails for the incoming workload's whole class, or None if unknown.

        Call this method only for queues with known reasons.
        """

    def still_no_targets(self, why: NoTargets) -> bool:
        """Returns True if a reason still holds, provided that nothing has changed in the queue itself."""

    def reach(self, queue: ClusterQueueState, first: Workload, cell: int, amount: int, free: int) -> bool:
        """Returns True if a search might find targets that free enough for a request of `amount` or more.

        Args:
            queue: the queue of the incoming workload.
            first: a workload of the queue. The priority of the incoming workload is not higher.
            cell: a flavor-resource.
            amount: the smallest request of the incoming workload.
            free: how much of the flavor-resource is available.
        """

    def crashes(self, queue: ClusterQueueState) -> bool:
        """Returns True if a search might crash. Such a search cannot be skipped."""


@final
class ClassicReasons:
    """Finds reasons in classic preemption: the queue has no own candidates and cannot reclaim quota."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def are_known(self, queue: ClusterQueueState) -> bool:
        """Returns True if the queue has no cohort, or if its cohort is the root of the tree."""
        return len(queue.path) <= 1

    def no_targets(self, incoming: Incoming) -> NoTargets | None:
        """Returns `NoTargets` if other queues do not matter and the queue itself has no candidate."""
        preemption = incoming.queue.spec.preemption
        reclaims = preemption.reclaim_within_cohort != "Never" and incoming.queue.path
        if reclaims and (may_borrow(incoming.queue.spec) or not over_nominal(self._cache.tree, incoming)):
            return None
        return None if next(own_candidates(self._cache, incoming), None) else NoTargets()

    def still_no_targets(self, why: NoTargets) -> bool:
        """Returns True, because other queues do not matter."""
        return True

    def reach(self, queue: ClusterQueueState, first: Workload, cell: int, amount: int, free: int) -> bool:
        """Returns True if the queue's own candidates hold enough quota, or if it can preempt in other queues.

        A queue that may borrow or has a hierarchical advantage can preempt in other queues for any request.
        Any other queue can do so only if the request fits within its own quota without its own candidates.
        """
        own = own_usages(self._cache, queue, first)
        held = total(own, cell) if own else 0
        if own and amount <= free + held:
            return True
        if not queue.path or queue.spec.preemption.reclaim_within_cohort == "Never":
            return False
        if may_borrow(queue.spec):
            return True
        tree, below, left = self._cache.tree, queue.node, amount
        for ancestor in queue.path[:-1]:
            left = max(0, left - tree.local_available(below, cell))
            if not tree.borrows(ancestor, cell, left):
                return True
            below = ancestor
        return not tree.borrows(queue.node, cell, amount - held)

    def crashes(self, queue: ClusterQueueState) -> bool:
        """Returns False, because classic preemption never crashes."""
        return False


@final
class FairReasons:
    """Finds reasons in fair sharing: own candidates and other queues together give up too little quota."""

    def __init__(self, cache: Cache, shares: Shares, search: FairSharing) -> None:
        self._cache = cache
        self._shares = shares
        self._search = search
        self._strategy, *self._others = search.strategies
        self._ranking = ShareRanking(cache, shares)
        self._usages = UsagesBelow(cache)
        # For each queue, its generation, and what it gives up to a share, for a mask, under a policy.
        self._known: list[tuple[int, dict[tuple[Share, int, Allowed], Amounts]]] = [(-1, {})] * len(cache.at)
        self._keeps = keeping(cache.tree)

    def are_known(self, queue: ClusterQueueState) -> bool:
        """Returns False for queues in which a search might crash, because only a search reveals the crash."""
        return self._search.crashed is None or bool(queue.path)

    def no_targets(self, incoming: Incoming) -> NoTargets | None:
        """Returns `NoTargets` if other queues and the queue's own candidates would give up too little."""
        queue = incoming.queue
        own = [workload.usage for workload in own_candidates(self._cache, incoming)]
        reclaims = queue.path and queue.spec.preemption.reclaim_within_cohort != "Never"
        if not (reclaims or own):
            return NoTargets()
        # What follows depends only on the queue's own usage, so the usage above the queue need not change.
        used, first = self._cache.tree.usage, queue.node * self._cache.tree.width
        before = used[first : first + self._cache.tree.width]
        for cell, amount in incoming.requests:
            used[first + cell] += amount
        takes_back = reclaims and self._search.takes_back(incoming)
        for usage in own:
            for cell, amount in usage:
                used[first + cell] -= amount
        why = NoTargets(incoming, self._shares.of(queue.node)[1], own)
        used[first : first + self._cache.tree.width] = before
        return why if not takes_back and self.still_no_targets(why) else None

    def still_no_targets(self, why: NoTargets) -> bool:
        """Returns True if other queues still give up too little."""
        incoming, share, own = why
        if incoming is None:
            return True
        queue = incoming.queue
        if own or len(queue.path) > 1:
            return self._all_is_too_little(incoming, own)
        if self.all_have_less(queue.root, share):
            return True  # the most common case
        return self._too_little(incoming, share, self._ranking.of(queue.root))

    def all_have_less(self, root: int, share: Share) -> bool:
        """Returns True if all children of a root have a smaller share. None of them then gives up quota."""
        ranked = self._ranking.of(root)
        return not ranked or ranked[-1][0] < share

    def reach(self, queue: ClusterQueueState, first: Workload, cell: int, amount: int, free: int) -> bool:
        """Returns True if a search might free enough quota, or if shares need not be compared."""
        own = own_usages(self._cache, queue, first)
        if own and amount <= free + total(own, cell):
            return True
        if not queue.path or queue.spec.preemption.reclaim_within_cohort == "Never":
            return False
        if not self._cache.tree.borrows(queue.node, cell, amount):
            return True
        return not self._all_is_too_little(Incoming(first, queue, ((cell, amount),), (cell,)), own)

    def crashes(self, queue: ClusterQueueState) -> bool:
        """Returns True for queues without a cohort in releases that crash if candidates are not enough."""
        return not self.are_known(queue)

    def _too_little(self, incoming: Incoming, share: Share, ranked: Sequence[tuple[Share, int]]) -> bool:
        """Returns True if all that other queues would give up to a queue right below its root is too little.

        What a queue gives up depends on its own workloads and on the share that the incoming workload's queue
        would have. Queues with a smaller share give up nothing. The incoming workload has no targets in its
        own queue. `ranked` is in ascending order of share.
        """
        own = incoming.queue
        freeable: list[Amounts] = []
        for theirs, node in reversed(ranked):
            if theirs < share:
                break
            if node != own.node:
                from_here = self._freeable(incoming, share, self._cache.at[node])
                if from_here is None:
                    return False
                if from_here:
                    freeable.append(from_here)
        return not freeable or self._lacks(incoming, freeable)

    def _all_is_too_little(self, incoming: Incoming, own: Sequence[Amounts]) -> bool:
        """Returns True if even the most that preemption could free is not enough.

        At each cohort above the queue, from the bottom up, one branch contains the queue. Preemption can free
        at most the whole usage of the branch's siblings. It frees nothing of a sibling with a smaller share
        than the queue's branch, after all earlier candidates are removed. `own` is the usage of the
        candidates in the workload's own queue.
        """
        queue, tree = incoming.queue, self._cache.tree
        freeable = list(own)
        reclaims = queue.spec.preemption.reclaim_within_cohort != "Never"
        # The ranking must be read before the trial, because it must not include the usage of the trial.
        sides = [(side, self._ranking.of(cohort)) for cohort, side in queue.below.items()] if reclaims else []
        tree.charge(queue.node, incoming.requests)
        gone = [(queue.node, usage) for usage in own]
        for node, usage in gone:
            tree.refund(node, usage)
        for side, ranked in sides:
            mine = self._shares.of(side)[1]
            beside = []
            for theirs, node in reversed(ranked):
                if theirs < mine:
                    break
                if node != side and (theirs > mine or self._may_keep_its_share(node, mine)):
                    first = node * tree.width
                    used = tree.usage[first : first + tree.width]
                    beside.append((node, tuple((cell, each) for cell, each in enumerate(used) if each > 0)))
            for node, usage in beside:
                tree.refund(node, usage)
                freeable.append(usage)
            gone += beside
        for node, usage in reversed(gone):
            tree.charge(node, usage)
        tree.refund(queue.node, incoming.requests)
        return not freeable or self._lacks(incoming, freeable)

    def _may_keep_its_share(self, node: int, share: Share) -> bool:
        """Returns True if a node may still have at least `share` without one of the workloads below it."""
        queue = self._cache.at[node]
        if queue is None and self._keeps[node]:
            return True
        usages = self._usages.below(node) if queue is None else self._cache.holders[node].usages
        tree, shares = self._cache.tree, self._shares
        return any(share_without(tree, shares, node, usage) >= share for usage in usages)

    def _lacks(self, incoming: Incoming, freeable: Sequence[Amounts]) -> bool:
        """Returns True if the request would still not fit if these amounts were free."""
        node, available = incoming.queue.node, self._cache.tree.available
        freed: dict[int, int] = {}
        for usage in freeable:
            for cell, amount in usage:
                freed[cell] = freed.get(cell, 0) + amount
        return any(
            available(node, needed) + freed.get(needed, 0) < amount for needed, amount in incoming.requests
        )

    def _freeable(self, incoming: Incoming, share: Share, queue: ClusterQueueState | None) -> Amounts | None:
        """Returns all that a queue right below the root would give up, however much is needed.

        Returns None for cohorts and for queues that order workloads by the usage of LocalQueues, because the
        result then depends on more than the workloads of the queue.
        """
        if queue is None or queue.spec.by_usage:
            return None
        allowed = allowed_by(incoming.queue.spec.preemption.reclaim_within_cohort, incoming.workload)
        if not queue.usable or allowed is None:
            return ()
        generation, known = self._known[queue.node]
        if generation != queue.generation:
            known = {}
            self._known[queue.node] = queue.generation, known
        question = share, incoming.mask, allowed
        found = known.get(question)
        if found is None:
            freed: dict[int, int] = {}
            for usage in self._given_up(queue, *question):
                for cell, amount in usage:
                    freed[cell] = freed.get(cell, 0) + amount
            found = known[question] = tuple(freed.items())
        return found

    def _given_up(self, queue: ClusterQueueState, share: Share, mask: int, allowed: Allowed) -> list[Amounts]:
        """Returns the usages that a queue right below the root gives up to a queue with a constant share.

        The result is the same as in a search, but other queues are not needed, because each share depends
        only on the node's own usage. The share of the queue only falls. If one workload fails, all later
        workloads with the same usage therefore fail, too.
        """
        tree, node, holders = self._cache.tree, queue.node, self._cache.holders[queue.node]
        usage, first = tree.usage, node * tree.width
        given_up: list[Amounts] = []
        refused: Amounts | None = None  # the first workload that failed
        passing: set[Amounts] = set(holders.usages)
        borrowing, theirs = self._shares.of(node)
        for workload in candidates_in_order(holders, mask, allowed) if borrowing else ():
            held = workload.usage
            if held in passing:
                if self._passes(node, held, share):
                    given_up.append(held)
                    for cell, amount in held:
                        usage[first + cell] -= amount
                    borrowing, theirs = self._shares.of(node)
                    if not borrowing:
                        break
                    continue
                passing = {each for each in passing if each != held and self._passes(node, each, share)}
            if refused is None:
                refused = held
            if not passing:
                break
        for held in given_up:
            for cell, amount in held:
                usage[first + cell] += amount
        if refused is not None and any(each.allows(share, theirs, theirs) for each in self._others):
            given_up.append(refused)
        return given_up

    def _passes(self, node: int, held: Amounts, share: Share) -> bool:
        """Returns True if a queue gives up a workload with this usage by the first strategy."""
        after = share_without(self._cache.tree, self._shares, node, held)
        return self._strategy.allows(share, self._shares.of(node)[1], after)


def own_candidates(cache: Cache, incoming: Incoming) -> Iterator[Workload]:
    """Returns the workloads of the queue that the incoming workload's class can preempt."""
    queue = incoming.queue
    allowed = allowed_by(queue.spec.preemption.within_cluster_queue, incoming.workload)
    if allowed is None:
        return iter(())
    if allowed.newer_than is not None:
        allowed = Allowed(allowed.below)  # a class contains workloads of all ages
    return all_candidates(cache.holders[queue.node], incoming.mask, allowed)


def own_usages(cache: Cache, queue: ClusterQueueState, first: Workload) -> list[Amounts]:
    """Returns the usage of each workload of the queue that `first` could preempt if age did not matter."""
    allowed = allowed_by(queue.spec.preemption.within_cluster_queue, first)
    if allowed is None:
        return []
    return [each.usage for each in all_candidates(cache.holders[queue.node], -1, Allowed(allowed.below))]


def total(usages: Iterable[Amounts], cell: int) -> int:
    """Returns the total quantity of a flavor-resource in these usages."""
    return sum(amount for usage in usages for taken, amount in usage if taken == cell)
