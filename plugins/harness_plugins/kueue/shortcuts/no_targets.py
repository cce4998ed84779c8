"""Reasons why a search for targets fails for a whole equivalence class, and whether it still would.

If the reason lies in the queue's own state, it is valid until the queue changes. With fair sharing it can
also be that all others together would give up too little. That is checked again whenever something changes.
If the queue's own holders may be preempted, too, all that they and the others could give is not enough. The
more of them leave, the more may be taken from others. So others are compared with the share that is left at
the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias, final

from harness_plugins.kueue.rules.borrow_within_cohort import may_borrow
from harness_plugins.kueue.rules.candidates import all_candidates, candidates_in_order
from harness_plugins.kueue.rules.classical import ClassicPreemption, over_nominal
from harness_plugins.kueue.rules.dominant_resource_share import NOTHING, Share, Shares, share_without
from harness_plugins.kueue.rules.fair_sharing import FairSharing
from harness_plugins.kueue.rules.preemption import Incoming, Target
from harness_plugins.kueue.rules.preemption_policy import Allowed, allowed_by
from harness_plugins.kueue.rules.strategy import less_than_initial_share
from harness_plugins.kueue.shortcuts.held import Held
from harness_plugins.kueue.shortcuts.share_ranking import ShareRanking
from harness_plugins.kueue.shortcuts.usages_below import UsagesBelow
from harness_plugins.kueue.state.amounts import Amounts, amounts_of
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

Freeable: TypeAlias = tuple[int, Share, list[Amounts]]
"""The amounts that holders of a queue would give up for an incoming.

The first element is the generation of that queue, for which they are valid. The next is the share of the
incoming's queue; they are valid for this share by content.
"""


class FailedSearch(NamedTuple):
    """A search without targets, and the facts about the queues that it considered."""

    incoming: Incoming
    freeable: dict[ClusterQueueState, Freeable]


class NoTargets(NamedTuple):
    """Why a search fails: by the queue's own state alone, or because others give up too little.

    Attributes:
        failed: the search for which others give up too little; None if others do not matter.
        share: of the incoming's queue, with the incoming and without what its own candidates hold.
        own: what its own candidates hold.
    """

    failed: FailedSearch | None = None
    share: Share = NOTHING
    own: Sequence[Amounts] = ()


class Reasons(Protocol):
    """Knows why searches of one kind of preemption fail."""

    def find_targets(self, incoming: Incoming) -> tuple[list[Target], FailedSearch | None, bool]:
        """Chooses the targets; if there are none, the failed search has further facts.

        Returns also whether the only target is the only workload that was ever taken.
        """

    def are_known(self, queue: ClusterQueueState) -> bool:
        """Returns True if the reasons of failed searches are known for a queue."""

    def no_targets(self, failed: FailedSearch) -> NoTargets | None:
        """Why a search fails for the incoming's whole class; None if that is not known.

        It is called only for queues with known reasons.
        """

    def still_no_targets(self, why: NoTargets) -> bool:
        """Returns True if a reason is still valid while nothing changes in the queue itself."""

    def reach(self, queue: ClusterQueueState, first: Workload, cell: int, amount: int, free: int) -> bool:
        """Whether a search that asks for an amount might find somebody, or so much more.

        Args:
            queue: the queue of the incoming.
            first: a workload of the queue; the incoming has no higher priority.
            cell: a flavor-resource.
            amount: how much the incoming asks for at least.
            free: how much of it is available.
        """

    def crashes(self, queue: ClusterQueueState) -> bool:
        """Whether a search may crash, so that none may be left out."""


@final
class ClassicReasons:
    """No targets: no own holder may be preempted, and others only by a queue that stays within nominal.

    Args:
        cache: the holders of quota.
        search: classic preemption.
    """

    def __init__(self, cache: Cache, search: ClassicPreemption) -> None:
        self._cache = cache
        self._search = search
        self._held = Held(cache)

    def find_targets(self, incoming: Incoming) -> tuple[list[Target], FailedSearch | None, bool]:
        """Chooses the targets."""
        targets, alone = self._search.search(incoming)
        return targets, None if targets else FailedSearch(incoming, _NOTHING_KNOWN), alone

    def are_known(self, queue: ClusterQueueState) -> bool:
        """Returns True if no cohort lies between the queue and its root."""
        return len(queue.path) <= 1

    def no_targets(self, failed: FailedSearch) -> NoTargets | None:
        """`NoTargets` if other queues do not count and the queue itself has no candidate."""
        incoming = failed.incoming
        preemption = incoming.queue.spec.preemption
        reclaims = preemption.reclaim_within_cohort != "Never" and incoming.queue.path
        if reclaims and (may_borrow(incoming.queue.spec) or not over_nominal(self._cache.tree, incoming)):
            return None
        return None if next(own_candidates(self._cache, incoming), None) else NoTargets()

    def still_no_targets(self, why: NoTargets) -> bool:
        """Always true: others do not count."""
        return True

    def reach(self, queue: ClusterQueueState, first: Workload, cell: int, amount: int, free: int) -> bool:
        """Whether own candidates hold what lacks, or others may be asked for it."""
        held = self._held.by(queue, first, cell)
        if held is not None and amount <= free + held:
            return True
        if not queue.path or queue.spec.preemption.reclaim_within_cohort == "Never":
            return False
        if held is not None or len(queue.path) > 1 or may_borrow(queue.spec):
            return True
        return not self._cache.tree.borrows(queue.node, cell, amount)

    def crashes(self, queue: ClusterQueueState) -> bool:
        """No: it never does."""
        return False


_NOTHING_KNOWN: dict[ClusterQueueState, Freeable] = {}


@final
class FairReasons:
    """No targets: no own holder may be preempted, and no other queue has a large enough share.

    Args:
        cache: the holders of quota.
        shares: the shares of all nodes.
        search: preemption with fair sharing.
    """

    def __init__(self, cache: Cache, shares: Shares, search: FairSharing) -> None:
        self._cache = cache
        self._shares = shares
        self._search = search
        self._strategy, *others = search.strategies
        self._tried_again = bool(others)
        self._held = Held(cache)
        self._ranking = ShareRanking(cache, shares)
        self._usages = UsagesBelow(cache)
        # Node -> whether anything below it keeps quota, so that usage there need not show at the node.
        tree = cache.tree
        self._keeps = [False] * len(tree.names)
        for node in range(len(tree.names) - 1, -1, -1):
            parent, first = tree.parent[node], node * tree.width
            if parent >= 0 and (self._keeps[node] or any(tree.local_quota[first : first + tree.width])):
                self._keeps[parent] = True

    def find_targets(self, incoming: Incoming) -> tuple[list[Target], FailedSearch | None, bool]:
        """Chooses the targets; of a failed search, the workloads taken are what others would give up."""
        targets, queues, share, takes_back, taken, alone = self._search.search(incoming)
        if targets:
            return targets, None, alone
        freeable: dict[ClusterQueueState, Freeable] = {}
        if not takes_back and queues[:1] != [incoming.queue] and len(incoming.queue.path) == 1:
            nobody: list[Amounts] = []
            freeable.update({queue: (queue.generation, share, nobody) for queue in queues})
            for queue in {target.workload.cluster_queue: None for target in taken}:
                freeable[queue] = queue.generation, share, _held_in(queue, taken)
        return [], FailedSearch(incoming, freeable), False

    def are_known(self, queue: ClusterQueueState) -> bool:
        """Returns True for all queues except those in which a search may crash: only a search shows that."""
        return self._search.crashed is None or bool(queue.path)

    def no_targets(self, failed: FailedSearch) -> NoTargets | None:
        """`NoTargets` if other queues would give up too little and the queue itself has no more."""
        incoming = failed.incoming
        queue = incoming.queue
        own = [workload.usage for workload in own_candidates(self._cache, incoming)]
        reclaims = queue.path and queue.spec.preemption.reclaim_within_cohort != "Never"
        if not (reclaims or own):
            return NoTargets()
        # What is asked here follows from what the queue itself uses, so that nothing above it is touched.
        used, first = self._cache.tree.usage, queue.node * self._cache.tree.width
        before = used[first : first + self._cache.tree.width]
        for cell, amount in incoming.requests:
            used[first + cell] += amount
        takes_back = reclaims and self._search.takes_back(incoming)
        for usage in own:
            for cell, amount in usage:
                used[first + cell] -= amount
        why = NoTargets(failed, self._shares.of(queue.node)[1], own)
        used[first : first + self._cache.tree.width] = before
        return why if not takes_back and self.still_no_targets(why) else None

    def still_no_targets(self, why: NoTargets) -> bool:
        """Returns True if others still give up too little."""
        failed, share, own = why
        if failed is None:
            return True
        queue = failed.incoming.queue
        if own or len(queue.path) > 1:
            return self._all_is_too_little(failed.incoming, own)
        if self.all_have_less(queue.root, share):
            return True  # as nearly always
        return self._too_little(failed, share, self._ranking.of(queue.root))

    def all_have_less(self, root: int, share: Share) -> bool:
        """Returns True if no share right below a root is as large, so that nothing is given up for it."""
        ranked = self._ranking.of(root)
        return not ranked or ranked[-1][0] < share

    def reach(self, queue: ClusterQueueState, first: Workload, cell: int, amount: int, free: int) -> bool:
        """Whether own candidates hold what lacks, or somebody has as large a share as it would make."""
        held = self._held.by(queue, first, cell)
        if held is not None and amount <= free + held:
            return True
        if not queue.path or queue.spec.preemption.reclaim_within_cohort == "Never":
            return False
        tree = self._cache.tree
        if held is not None or len(queue.path) > 1 or not tree.borrows(queue.node, cell, amount):
            return True
        at = queue.node * tree.width + cell
        tree.usage[at] += amount
        share = self._shares.of(queue.node)[1]
        tree.usage[at] -= amount
        return not self.all_have_less(queue.root, share)

    def crashes(self, queue: ClusterQueueState) -> bool:
        """Of queues without cohort, in releases in which the end of their candidates is no end."""
        return not self.are_known(queue)

    def _too_little(self, failed: FailedSearch, share: Share, ranked: Sequence[tuple[Share, int]]) -> bool:
        """Returns True if all that others would give up for a queue right below its root is not enough.

        What a queue gives up depends on its own holders and on the share that the incoming's queue would
        have. Queues with less than that share give up nothing.

        Args:
            failed: the search of an incoming without targets in its own queue.
            share: of its queue, with the incoming.
            ranked: everything right below its root, the smallest share first.
        """
        own = failed.incoming.queue
        freeable: list[Amounts] = []
        for theirs, node in reversed(ranked):
            if theirs < share:
                break
            if node != own.node:
                from_here = self._freeable(failed, share, self._cache.at[node])
                if from_here is None:
                    return False
                freeable += from_here
        return not freeable or self._lacks(failed.incoming, freeable)

    def _all_is_too_little(self, incoming: Incoming, own: Sequence[Amounts]) -> bool:
        """Returns True if even the most that could be taken is not enough.

        From the bottom up, nodes beside the own side below a cohort count with their whole usage there. A
        node does not count if its share is less than what the own side keeps when everything below that
        cohort is gone.

        Args:
            incoming: the workload that looks for targets.
            own: what the candidates of its own queue hold.
        """
        queue, tree = incoming.queue, self._cache.tree
        freeable = list(own)
        reclaims = queue.spec.preemption.reclaim_within_cohort != "Never"
        # The ranking is asked before the trial, which it is not to see.
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
        """Returns True if a node may keep at least a share without one of the workloads at or below it."""
        queue = self._cache.at[node]
        if queue is None and self._keeps[node]:
            return True
        usages = self._usages.below(node) if queue is None else self._cache.holders[node].usages
        tree, shares = self._cache.tree, self._shares
        return any(share_without(tree, shares, node, usage) >= share for usage in usages)

    def _lacks(self, incoming: Incoming, freeable: Sequence[Amounts]) -> bool:
        """Returns True if something would be lacking even if this much became free."""
        node, available = incoming.queue.node, self._cache.tree.available
        freed: dict[int, int] = {}
        for usage in freeable:
            for cell, amount in amounts_of(usage, incoming.cells):
                freed[cell] = freed.get(cell, 0) + amount
        return any(
            available(node, needed) + freed.get(needed, 0) < amount for needed, amount in incoming.requests
        )

    def _freeable(
        self, failed: FailedSearch, share: Share, queue: ClusterQueueState | None
    ) -> list[Amounts] | None:
        """The holdings that holders of a queue right below the root would give up, however much is needed.

        None if that depends on more than the queue's holders: for cohorts, and if LocalQueues take turns.
        """
        if queue is None or queue.spec.by_usage:
            return None
        known = failed.freeable.get(queue)
        if known is not None and known[0] == queue.generation and known[1] == share:
            return known[2]
        incoming = failed.incoming
        allowed = allowed_by(incoming.queue.spec.preemption.reclaim_within_cohort, incoming.workload)
        given_up: list[Amounts] = []
        if queue.usable and allowed is not None:
            given_up = self._given_up(queue, share, incoming.mask, allowed)
        failed.freeable[queue] = queue.generation, share, given_up
        return given_up

    def _given_up(self, queue: ClusterQueueState, share: Share, mask: int, allowed: Allowed) -> list[Amounts]:
        """The holdings that a queue right below the root gives up to one that has a share, and keeps it.

        This is as in a search, but without the effects of others: each share depends on the node's own usage,
        so nothing else changes. The share only falls. So a holder that fails rules out all later holders of
        the same amount.
        """
        tree, node, holders = self._cache.tree, queue.node, self._cache.holders[queue.node]
        usage, first = tree.usage, node * tree.width
        given_up: list[Amounts] = []
        refused: Amounts | None = None  # the first one
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
        if refused is not None and self._tried_again and less_than_initial_share(share, theirs):
            given_up.append(refused)
        return given_up

    def _passes(self, node: int, held: Amounts, share: Share) -> bool:
        """Returns True if a queue gives up a holder of this amount by the first strategy."""
        if self._strategy.without_target:
            return self._strategy.allows(share, share_without(self._cache.tree, self._shares, node, held))
        return self._strategy.allows(share, self._shares.of(node)[1])


def own_candidates(cache: Cache, incoming: Incoming) -> Iterator[Workload]:
    """The workloads that a queue's own policy lets the incoming's class preempt for its needs there."""
    queue = incoming.queue
    allowed = allowed_by(queue.spec.preemption.within_cluster_queue, incoming.workload)
    if allowed is None:
        return iter(())
    if allowed.newer_than is not None:
        allowed = Allowed(allowed.below)  # whatever its time
    return all_candidates(cache.holders[queue.node], incoming.mask, allowed)


def _held_in(queue: ClusterQueueState, targets: list[Target]) -> list[Amounts]:
    return [target.workload.usage for target in targets if target.workload.cluster_queue is queue]
