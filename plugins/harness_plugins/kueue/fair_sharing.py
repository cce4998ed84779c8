"""Fair-sharing preemption: from whoever takes the largest share, as long as that makes shares more equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import final

from harness.cluster.kueue_configuration import TO_FINAL_SHARE
from harness_plugins.kueue.cache import Cache, Queue
from harness_plugins.kueue.search import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAMATION,
    Bounds,
    Incoming,
    Target,
    bounds,
    fill_back,
    fits,
    preemptible,
    put_back,
    remove,
    within_nominal,
)
from harness_plugins.kueue.shares import NOTHING, Share, Shares
from harness_plugins.kueue.workload import Workload


@final
class _Candidates:
    """The candidates of one queue in their order; `head` is the next one, None when there is none left."""

    __slots__ = ("_rest", "head", "queue")

    def __init__(self, queue: Queue, workloads: Iterator[Workload]) -> None:
        self.queue = queue
        self._rest = workloads
        self.head = next(workloads, None)

    def pop(self) -> Workload:
        head = self.head
        assert head is not None
        self.head = next(self._rest, None)
        return head


@final
@dataclass(frozen=True, slots=True)
class FairSharing:
    """Chooses whom to preempt by shares.

    Args:
        shares: the shares of all nodes.
        strategies: one or two of `LessThanOrEqualToFinalShare` and `LessThanInitialShare`.
        within_nominal: whether a queue that stays within its nominal quota takes back what is its own
            without comparing shares (the gate FairSharingPreemptWithinNominal).
    """

    shares: Shares
    strategies: tuple[str, ...]
    within_nominal: bool = True

    def find_targets(self, cache: Cache, incoming: Incoming) -> list[Target]:
        """Choose whom to preempt, by fair sharing."""
        found = list(_candidates(cache, incoming))
        if not found:
            return []
        tree, node = cache.tree, incoming.queue.node
        for cell, amount in incoming.requests:
            tree.charge(node, cell, amount)
        search = _Search(cache, incoming, self.shares)
        done = search.by_first_strategy(
            found,
            to_final=self.strategies[0] == TO_FINAL_SHARE,
            free=self.within_nominal and within_nominal(tree, node, incoming.need),
        )
        if not done and len(self.strategies) > 1:
            done = search.by_second_strategy()
        for cell, amount in incoming.requests:
            tree.refund(node, cell, amount)
        targets = search.targets
        if done:
            fill_back(tree, incoming, targets, borrowing=True)
        for target in targets:
            put_back(tree, target.workload)
        return targets if done else []


def _candidates(cache: Cache, incoming: Incoming) -> Iterator[_Candidates]:
    """The queues that have candidates: the incoming's own, and those that borrow something it needs."""
    tree, own, need = cache.tree, incoming.queue, incoming.need
    preemption = own.spec.preemption
    within = bounds(preemption.within_cluster_queue, incoming.workload)
    if within is not None and (found := _of_queue(own, incoming.mask, within)).head is not None:
        yield found
    reclaim = bounds(preemption.reclaim_within_cohort, incoming.workload)
    if reclaim is None or not own.path:
        return
    width, usage, nominal = tree.width, tree.usage, tree.nominal
    for queue in cache.members[own.root]:
        if not queue.holders or queue is own:
            continue
        first = queue.node * width
        for cell in need:
            if usage[first + cell] > nominal[first + cell]:
                found = _of_queue(queue, incoming.mask, reclaim)
                if found.head is not None:
                    yield found
                break


def _of_queue(queue: Queue, mask: int, allowed: Bounds) -> _Candidates:
    holders, evicted = queue.holders, queue.evicted
    if not evicted:
        return _Candidates(queue, preemptible(holders, mask, allowed))
    parts = (preemptible(holders[:evicted], mask, allowed), preemptible(holders[evicted:], mask, allowed))
    return _Candidates(queue, chain(*parts))


@final
class _Search:
    """One search: the incoming counts as admitted in all shares, and targets as gone.

    Attributes:
        targets: what was taken so far; out of the tree.
    """

    def __init__(self, cache: Cache, incoming: Incoming, shares: Shares) -> None:
        self._cache = cache
        self._tree = cache.tree
        self._incoming = incoming
        self._shares = shares
        self._known: dict[int, tuple[bool, Share]] = {}
        self._retry: dict[Queue, list[Workload]] = {}
        self.targets: list[Target] = []
        own = incoming.queue
        self._own_side = dict(zip(own.path, (own.node, *own.path), strict=False))

    def by_first_strategy(self, found: list[_Candidates], *, to_final: bool, free: bool) -> bool:
        """Take targets by the first strategy until the incoming fits; answers whether it does.

        Args:
            found: all candidates.
            to_final: compare with the share that the other side ends up with, not that it has now.
            free: take from others without comparing shares.
        """
        contest = _Contest(self, self._cache, self._incoming.queue, found)
        while (candidates := contest.next()) is not None:
            queue = candidates.queue
            if queue is self._incoming.queue:
                done = self._take(candidates.pop(), IN_CLUSTER_QUEUE)
            elif free:
                done = self._take(candidates.pop(), IN_COHORT_RECLAMATION)
            else:
                done = self._take_fairly(candidates, to_final=to_final)
            if done:
                return True
        return False

    def by_second_strategy(self) -> bool:
        """Go through what the first strategy refused, at most one target a queue."""
        refused = [_Candidates(queue, iter(workloads)) for queue, workloads in self._retry.items()]
        contest = _Contest(self, self._cache, self._incoming.queue, refused)
        while (candidates := contest.next()) is not None:
            mine, theirs = self._sides(candidates.queue)
            contest.leave(candidates)
            if self.share(mine)[1] < self.share(theirs)[1] and self._take(
                candidates.pop(), IN_COHORT_FAIR_SHARING
            ):
                return True
        return False

    def share(self, node: int) -> tuple[bool, Share]:
        """Whether a node borrows, and its share, as things stand in this search."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._shares.of(node)
        return known

    def _take_fairly(self, candidates: _Candidates, *, to_final: bool) -> bool:
        """Take the first candidate of a queue that passes the test of shares; keep the others for later."""
        tree, queue = self._tree, candidates.queue
        mine, theirs = self._sides(queue)
        share, initial = self.share(mine)[1], self.share(theirs)[1]
        while candidates.head is not None:
            if not to_final and share < initial:
                return self._take(candidates.pop(), IN_COHORT_FAIR_SHARING)
            workload = candidates.pop()
            if to_final and share <= initial:
                remove(tree, workload)
                final = self._shares.of(theirs)[1]
                put_back(tree, workload)
                if share <= final:
                    return self._take(workload, IN_COHORT_FAIR_SHARING)
            self._retry.setdefault(queue, []).append(workload)
        return False

    def _sides(self, queue: Queue) -> tuple[int, int]:
        """The nodes right below the lowest common ancestor: on the incoming's side, and on the queue's."""
        theirs = queue.node
        for ancestor in queue.path:
            mine = self._own_side.get(ancestor)
            if mine is not None:
                return mine, theirs
            theirs = ancestor
        raise AssertionError("queues of one tree have a common ancestor")

    def _take(self, workload: Workload, reason: str) -> bool:
        """Make a candidate a target; answers whether the incoming fits now."""
        tree, incoming, queue = self._tree, self._incoming, workload.queue
        assert queue is not None
        remove(tree, workload)
        self.targets.append(Target(workload, reason))
        for node in (queue.node, *queue.path):
            self._known.pop(node, None)
        node = incoming.queue.node
        for cell, amount in incoming.requests:
            tree.refund(node, cell, amount)
        enough = fits(tree, node, incoming.requests, borrowing=True)
        for cell, amount in incoming.requests:
            tree.charge(node, cell, amount)
        return enough


@final
class _Contest:
    """Finds the queue to take from next: from the root down, always towards the largest share.

    Queues without candidates and nodes that do not borrow leave for good, unless they are the incoming's
    own queue or above it. Ties: a cohort before a queue; of queues the one whose next candidate ranks
    first; of cohorts the larger name.
    """

    def __init__(self, search: _Search, cache: Cache, own: Queue, found: Iterable[_Candidates]) -> None:
        self._search = search
        self._names = cache.tree.names
        self._own = own
        self._queues: dict[int, list[_Candidates]] = {}
        self._cohorts: dict[int, list[int]] = {}
        entered = set()
        for candidates in found:
            self._queues.setdefault(candidates.queue.path[0] if own.path else own.root, []).append(candidates)
            for below, above in pairwise(candidates.queue.path):
                if below not in entered:
                    entered.add(below)
                    self._cohorts.setdefault(above, []).append(below)

    def next(self) -> _Candidates | None:
        """The queue to take from, None when there is none left."""
        root = cohort = self._own.root
        way: list[int] = []
        while True:
            queue, queue_share = self._best_queue(cohort)
            below, below_share = self._best_cohort(cohort)
            if below is not None and (queue is None or below_share >= queue_share):
                way.append(cohort)
                cohort = below
            elif queue is not None:
                return queue
            elif cohort == root:
                return None
            else:
                self._cohorts[way[-1]].remove(cohort)
                cohort = root
                way.clear()

    def leave(self, candidates: _Candidates) -> None:
        """Take a queue out of the contest."""
        self._queues[candidates.queue.path[0] if self._own.path else self._own.root].remove(candidates)

    def _best_queue(self, cohort: int) -> tuple[_Candidates | None, Share]:
        present = self._queues.get(cohort)
        best: _Candidates | None = None
        most = NOTHING
        if not present:
            return best, most
        gone = []
        for candidates in present:
            borrowing, share = self._search.share(candidates.queue.node)
            if candidates.head is None or not (borrowing or candidates.queue is self._own):
                gone.append(candidates)
            elif (
                best is None or share > most or (share == most and self._rank(candidates) < self._rank(best))
            ):
                best, most = candidates, share
        for candidates in gone:
            present.remove(candidates)
        return best, most

    def _best_cohort(self, cohort: int) -> tuple[int | None, Share]:
        present = self._cohorts.get(cohort)
        best: int | None = None
        most = NOTHING
        if not present:
            return best, most
        gone = []
        for below in present:
            borrowing, share = self._search.share(below)
            if not borrowing and below not in self._own.path:
                gone.append(below)
            elif best is None or share > most or (share == most and self._names[below] > self._names[best]):
                best, most = below, share
        for below in gone:
            present.remove(below)
        return best, most

    def _rank(self, candidates: _Candidates) -> tuple[bool, bool, int, int, str]:
        assert candidates.head is not None
        evicted_last, priority, reserved, uid = candidates.head.rank
        return evicted_last, candidates.queue is self._own, priority, reserved, uid
