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

import math
from collections.abc import Sequence
from typing import TypeAlias, final

from harness.base.memo import Memo
from harness_plugins.kueue.rules.candidates import candidates_in_order, has_candidate
from harness_plugins.kueue.rules.classical import over_nominal
from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares
from harness_plugins.kueue.rules.fair_sharing import FairSharing
from harness_plugins.kueue.rules.preemption import Incoming
from harness_plugins.kueue.rules.preemption_policy import Allowed, allowed_by, may_borrow
from harness_plugins.kueue.shortcuts.refused_sides import keeping
from harness_plugins.kueue.state.amounts import Amounts, total
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

_ABOVE_ALL: Share = (True, math.inf)
"""A share to which no other queue gives up anything."""


@final
class NoTargets:
    """The reason why a search fails: the queue's own state, or the small quota that other queues give up.

    Attributes:
        incoming: the workload for which other queues give up too little, or None if other queues do not
            matter.
        own: the total usage of the queue's own candidates, or None if it has none.
        version: the version of the queue's branch for which `within` holds.
        within: the result of `FairReasons._within_branch`.
    """

    __slots__ = ("incoming", "own", "version", "within")

    def __init__(self, incoming: Incoming | None = None, own: Amounts | None = None) -> None:
        self.incoming = incoming
        self.own = own
        self.version = -1
        self.within: tuple[Share, Sequence[Amounts]] = _ABOVE_ALL, ()


_OWN_STATE = NoTargets()

_Ranking: TypeAlias = Sequence[tuple[Share, int]]

_Given: TypeAlias = list[tuple[int, Amounts]]
"""Children of a cohort, each with the most that it may lose."""

_NEVER: tuple[int, _Given] = (-1, [])

EVERY_CELL = -1
"""The bit mask of all flavor-resources."""


@final
class ClassicReasons:
    """Finds reasons in classic preemption: the queue has no own candidates and cannot reclaim quota."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def are_known(self, queue: ClusterQueueState) -> bool:
        """Returns True if the queue has no cohort, or if its cohort is the root of the tree."""
        return len(queue.path) <= 1

    def no_targets(self, incoming: Incoming) -> NoTargets | None:
        """Returns the reason why a search fails for the incoming workload's whole class, or None if unknown.

        The reason is that other queues do not matter and the queue itself has no candidate. Call this method
        only for queues with known reasons.
        """
        queue = incoming.queue
        if queue.reclaims and (may_borrow(queue.spec) or not over_nominal(self._cache.tree, incoming)):
            return None
        return None if has_own_candidate(self._cache, incoming) else _OWN_STATE

    def still_no_targets(self, why: NoTargets) -> bool:
        """Returns True if a reason still holds, provided that nothing has changed in the queue itself."""
        return True

    def reach(self, queue: ClusterQueueState, first: Workload, cell: int, amount: int, free: int) -> bool:
        """Returns True if the queue's own candidates hold enough quota, or if it can preempt in other queues.

        A queue that may borrow or has a hierarchical advantage can preempt in other queues for any request.
        Any other queue can do so only if the request fits within its own quota without its own candidates.

        Args:
            queue: the queue of the incoming workload.
            first: a workload of the queue. The priority of the incoming workload is not higher.
            cell: a flavor-resource.
            amount: the smallest request of the incoming workload.
            free: how much of the flavor-resource is available.
        """
        held = dict(own_usage(self._cache, queue, first) or ()).get(cell, 0)
        if amount <= free + held:
            return True
        if not queue.reclaims:
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

    def in_vain(self, incoming: Incoming) -> bool:
        """Returns False, because nothing is known about searches within a cycle."""
        return False


@final
class FairReasons:
    """Finds reasons in fair sharing: own candidates and other queues together give up too little quota."""

    def __init__(
        self, cache: Cache, shares: Shares, search: FairSharing, keeps: list[bool] | None = None
    ) -> None:
        self._cache = cache
        self._shares = shares
        self._search = search
        self._strategy, *self._others = search.strategies
        self._rankings: dict[int, tuple[int, _Ranking]] = {}  # for each cohort, its version and its ranking
        # For each node, whether it may keep its share, and the version for which this holds.
        self._may_keep: list[tuple[int, bool]] = [(-1, False)] * len(cache.at)
        # What each queue, in a generation, gives up to a share, for a mask, under a policy.
        self._known: Memo[tuple[int, int, Share, int, Allowed], Amounts] = Memo()
        # What the children of each cohort give up to a share, for a mask, and under a policy if the queue is
        # right below the cohort and keeps its share. It holds for a version of the cohort.
        self._given: Memo[tuple[int, Share, int, Allowed | None], tuple[int, _Given]] = Memo()
        self._keeps = keeps or keeping(cache.tree)

    def are_known(self, queue: ClusterQueueState) -> bool:
        """Returns False for queues in which a search might crash, because only a search reveals the crash."""
        return self._search.crashed is None or bool(queue.path)

    def no_targets(self, incoming: Incoming) -> NoTargets | None:
        """Returns `NoTargets` if other queues and the queue's own candidates would give up too little."""
        queue = incoming.queue
        own = own_usage(self._cache, queue, incoming.workload, incoming.mask)
        if not queue.reclaims and own is None:
            return _OWN_STATE
        if queue.reclaims and self._search.takes_back(incoming):
            return None
        why = NoTargets(incoming, own)
        return why if self.still_no_targets(why) else None

    def still_no_targets(self, why: NoTargets) -> bool:
        """Returns True if other queues still give up too little."""
        incoming, exact = why.incoming, why.own is None
        if incoming is None:
            return True
        version = self._cache.version[incoming.queue.branch]
        if version != why.version:
            why.within = self._within_branch(incoming, why.own, exact=exact)
            why.version = version
        return self._all_is_too_little(incoming, *why.within, exact=exact)

    def reach(self, queue: ClusterQueueState, first: Workload, cell: int, amount: int, free: int) -> bool:
        """Returns True if a search might free enough quota, or if shares need not be compared."""
        own = own_usage(self._cache, queue, first)
        if amount <= free + dict(own or ()).get(cell, 0):
            return True
        if not queue.reclaims:
            return False
        if not self._cache.tree.borrows(queue.node, cell, amount):
            return True
        incoming = Incoming(first, ((cell, amount),), (cell,))
        within = self._within_branch(incoming, own, exact=False)
        return not self._all_is_too_little(incoming, *within, exact=False)

    def crashes(self, queue: ClusterQueueState) -> bool:
        """Returns True for queues without a cohort in releases that crash if candidates are not enough."""
        return not self.are_known(queue)

    def in_vain(self, incoming: Incoming) -> bool:
        """Returns True if a search within a cycle finds no targets, or False if this is not known.

        Nothing that was kept is used or kept, because it holds without the reservations and victims of the
        cycle. None of these reservations may be negative.
        """
        afresh = FairReasons(self._cache, self._shares, self._search, self._keeps)
        return afresh.are_known(incoming.queue) and afresh.no_targets(incoming) is not None

    def _all_is_too_little(
        self, incoming: Incoming, share: Share, within: Sequence[Amounts], *, exact: bool
    ) -> bool:
        """Returns True if even the most that preemption could free is not enough.

        `share` and `within` are the result of `_within_branch` for the same `exact`.
        """
        queue = incoming.queue
        given = self._beside(incoming, queue.branch, self._ranking(queue.root), share, exact=exact)
        freed = [*within, *[usage for _, usage in given]]
        return not freed or self._lacks(incoming, total(freed))

    def _within_branch(
        self, incoming: Incoming, own: Amounts | None, *, exact: bool
    ) -> tuple[Share, Sequence[Amounts]]:
        """Returns the most that preemption could free in the queue's branch.

        Also returns the share that this branch would have if it gave up all of this. The result is valid for
        one version of the branch.

        At each cohort above the queue, from the bottom up, one side contains the queue. Preemption can free
        at most the whole usage of its siblings. It frees nothing of a sibling with a smaller share than this
        side, after all earlier candidates are removed.

        Without own candidates, the queue keeps its share. If `exact` is True, there are none, and this share
        decides what each queue right below the same cohort gives up.
        """
        queue, tree = incoming.queue, self._cache.tree
        gone = [] if own is None else [(queue.node, own)]
        if not queue.reclaims:
            return _ABOVE_ALL, [usage for _, usage in gone]
        # The rankings must be read before the trial, because they must not include the usage of the trial.
        sides = [(queue.below[cohort], self._ranking(cohort)) for cohort in queue.path[:-1]]
        tree.charge(queue.node, incoming.requests)
        tree.refund(queue.node, own or ())
        for side, ranked in sides:
            given = self._beside(incoming, side, ranked, self._shares.of(side)[1], exact=exact)
            for node, usage in given:
                tree.refund(node, usage)
            gone += given
        share = self._shares.of(queue.branch)[1]
        for node, usage in reversed(gone):
            tree.charge(node, usage)
        tree.refund(queue.node, incoming.requests)
        return share, [usage for _, usage in gone]

    def _beside(self, incoming: Incoming, side: int, ranked: _Ranking, mine: Share, *, exact: bool) -> _Given:
        """Returns the siblings of `side` that may lose workloads while the share of `side` is `mine`.

        Each sibling comes with the most that it may lose.
        """
        if not ranked or ranked[-1][0] < mine:
            return []
        queue, cohort, allowed = incoming.queue, self._cache.tree.parent[side], None
        if exact and side == queue.node:
            allowed = allowed_by(queue.spec.preemption.reclaim_within_cohort, incoming.workload)
        key = cohort, mine, incoming.mask, allowed
        version, given = self._given.get(key, _NEVER)
        if version != self._cache.version[cohort]:
            given = []
            for theirs, node in reversed(ranked):
                if theirs < mine:
                    break
                if allowed is not None or theirs > mine or self._may_keep_its_share(node, mine):
                    usage = self._freeable(node, mine, incoming.mask, allowed)
                    if usage:
                        given.append((node, usage))
            self._given[key] = self._cache.version[cohort], given
        return [each for each in given if each[0] != side]

    def _ranking(self, cohort: int) -> _Ranking:
        """Returns `Shares.ranking` for the present version of a cohort."""
        version, ranking = self._rankings.get(cohort, (-1, ()))
        if version != self._cache.version[cohort]:
            ranking = tuple(self._shares.ranking(cohort))
            self._rankings[cohort] = self._cache.version[cohort], ranking
        return ranking

    def _may_keep_its_share(self, node: int, share: Share) -> bool:
        """Returns True if a node with this share may still have it without one of the workloads below it."""
        version, found = self._may_keep[node]
        if version != self._cache.version[node]:
            cache, queue = self._cache, self._cache.at[node]
            queues = cache.members_below(node) if queue is None else [queue]
            usages = {usage for each in queues for usage in cache.holders[each.node].usages}
            found = (queue is None and self._keeps[node]) or any(
                self._shares.changed(node, usage, -1) >= share for usage in usages
            )
            self._may_keep[node] = self._cache.version[node], found
        return found

    def _lacks(self, incoming: Incoming, freeable: Amounts) -> bool:
        """Returns True if the request would still not fit if these amounts were free."""
        node, available, freed = incoming.queue.node, self._cache.tree.available, dict(freeable)
        for needed, amount in incoming.requests:
            if available(node, needed) + freed.get(needed, 0) < amount:
                return True
        return False

    def _freeable(self, node: int, share: Share, mask: int, allowed: Allowed | None) -> Amounts:
        """Returns the most that a child of a cohort may lose to a sibling with this share.

        This is all that a queue would give up to a queue under a policy, however much is needed. Without a
        policy, for cohorts, and for queues that order workloads by the usage of LocalQueues, the result would
        depend on more than the workloads of the queue. In these cases, it is the whole usage.
        """
        queue = self._cache.at[node]
        if allowed is None or queue is None or queue.spec.by_usage:
            width = self._cache.tree.width
            used = self._cache.tree.usage[node * width : (node + 1) * width]
            return tuple((cell, amount) for cell, amount in enumerate(used) if amount > 0)
        if not queue.usable:
            return ()
        key = node, queue.generation, share, mask, allowed
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = total(self._given_up(queue, share, mask, allowed))
        return found

    def _given_up(self, queue: ClusterQueueState, share: Share, mask: int, allowed: Allowed) -> list[Amounts]:
        """Returns the usages that a queue gives up to a queue right below the same cohort.

        The share of the other queue is constant.

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
        after = self._shares.changed(node, held, -1)
        return self._strategy.allows(share, self._shares.of(node)[1], after)


Reasons: TypeAlias = ClassicReasons | FairReasons
"""Finds the reasons why target searches fail, either in classic preemption or in fair sharing."""


def has_own_candidate(cache: Cache, incoming: Incoming) -> bool:
    """Returns True if the incoming workload's class can preempt any workload of the queue."""
    queue = incoming.queue
    allowed = _at_any_age(queue, incoming.workload)
    return allowed is not None and has_candidate(cache.holders[queue.node], incoming.mask, allowed)


def own_usage(
    cache: Cache, queue: ClusterQueueState, first: Workload, mask: int = EVERY_CELL
) -> Amounts | None:
    """Returns the usage of all workloads of the queue that `first` could preempt if age did not matter.

    Returns None if there are none.
    """
    allowed = _at_any_age(queue, first)
    if allowed is None:
        return None
    found = [each.usage for each in candidates_in_order(cache.holders[queue.node], mask, allowed)]
    return total(found) if found else None


def _at_any_age(queue: ClusterQueueState, preemptor: Workload) -> Allowed | None:
    """Returns what a workload can preempt in its queue if age does not matter.

    An equivalence class contains workloads of all ages.
    """
    allowed = allowed_by(queue.spec.preemption.within_cluster_queue, preemptor)
    return allowed if allowed is None or allowed.newer_than is None else Allowed(allowed.below)
