"""Fair-sharing preemption: from whoever takes the largest share, as long as that makes shares more equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import final

from harness.cluster.kueue_configuration import TO_FINAL_SHARE
from harness.quota import QuotaTree
from harness_plugins.kueue.cache import Cache, Queue
from harness_plugins.kueue.search import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAMATION,
    Bounds,
    Incoming,
    Target,
    WhyNone,
    bounds,
    candidates_of,
    fill_back,
    fits,
    has_own_candidates,
    put_back,
    remove,
    within_nominal,
)
from harness_plugins.kueue.shares import NOTHING, Share, Shares
from harness_plugins.kueue.workload import Amounts, Workload


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
class FairSharing:
    """Chooses whom to preempt by shares.

    Args:
        cache: who holds which quota.
        shares: the shares of all nodes.
        strategies: one or two of `LessThanOrEqualToFinalShare` and `LessThanInitialShare`.
        within_nominal: whether a queue that stays within its nominal quota takes back what is its own
            without comparing shares (the gate FairSharingPreemptWithinNominal).
    """

    def __init__(
        self, cache: Cache, shares: Shares, strategies: tuple[str, ...], *, within_nominal: bool
    ) -> None:
        self._cache = cache
        self._shares = shares
        self._strategies = strategies
        self._within_nominal = within_nominal
        self._largest: dict[int, tuple[int, Share, int, Share]] = {}
        self._now: dict[int, tuple[int, Share]] = {}
        self._keeps: dict[int, tuple[int, bool]] = {}

    def find_targets(self, incoming: Incoming) -> list[Target]:
        """Choose whom to preempt."""
        found = list(_candidates(self._cache, incoming))
        if not found:
            return []
        tree = self._cache.tree
        search = _Search(self._cache, incoming, self._shares)
        _admit(tree, incoming)
        done = search.by_first_strategy(
            found, to_final=self._strategies[0] == TO_FINAL_SHARE, free=self._takes_back(incoming)
        )
        if not done and len(self._strategies) > 1:
            done = search.by_second_strategy()
        _withdraw(tree, incoming)
        targets = search.targets
        if done:
            fill_back(tree, incoming, targets, borrowing=True)
        for target in targets:
            put_back(tree, target.workload)
        return targets if done else []

    def why_none(self, incoming: Incoming) -> WhyNone | None:
        """Nobody can be preempted: no own holder may be, and nobody else has enough of a share."""
        if has_own_candidates(incoming, of_kin=True):
            return None
        queue = incoming.queue
        if not queue.path or queue.spec.preemption.reclaim_within_cohort == "Never":
            return WhyNone()
        tree = self._cache.tree
        _admit(tree, incoming)
        share = None if self._takes_back(incoming) else self._shares.of(queue.node)[1]
        _withdraw(tree, incoming)
        return WhyNone(share) if share is not None and self._takes_nothing(queue, share) else None

    def still_none(self, queue: Queue, why: WhyNone) -> bool:
        """Whether still nobody else has enough of a share."""
        return why.share is None or self._takes_nothing(queue, why.share)

    def _takes_nothing(self, queue: Queue, share: Share) -> bool:
        """Whether a queue right below its root that would get `share` takes nothing from others for it.

        From those who have less it never does. From those who have as much it does only by the final share,
        if some holder's end leaves them theirs.
        """
        largest = self._largest_of_others(queue)
        if share != largest:
            return share > largest
        if self._strategies[0] != TO_FINAL_SHARE:
            return True
        cache = self._cache
        return not any(
            self._may_keep_its_share(cache.at[node])
            for node in cache.tree.children[queue.root]
            if node != queue.node and self._share_now(node) == share
        )

    def _share_now(self, node: int) -> Share:
        """The share of a node while nothing is tried: that of a queue is as old as its holders."""
        queue = self._cache.at[node]
        if queue is None:
            return self._shares.of(node)[1]
        known = self._now.get(node)
        if known is None or known[0] != queue.generation:
            known = self._now[node] = queue.generation, self._shares.of(node)[1]
        return known[1]

    def _may_keep_its_share(self, queue: Queue | None) -> bool:
        """Whether some holder's end may leave a queue the share that it has; of cohorts that is not known."""
        if queue is None:
            return True
        known = self._keeps.get(queue.node)
        if known is None or known[0] != queue.generation:
            tree, node = self._cache.tree, queue.node
            share = self._shares.of(node)[1]
            keeps = False
            for usage in queue.usages:
                tree.refund(node, usage)
                keeps = keeps or self._shares.of(node)[1] >= share
                tree.charge(node, usage)
            known = self._keeps[node] = queue.generation, keeps
        return known[1]

    def _takes_back(self, incoming: Incoming) -> bool:
        """Whether the queue, the incoming included, uses no more than its own of what is needed."""
        return self._within_nominal and within_nominal(self._cache.tree, incoming.queue.node, incoming.need)

    def _largest_of_others(self, queue: Queue) -> Share:
        """The largest share of what hangs beside a queue at the root; kept until something changes."""
        cache = self._cache
        version = cache.version[queue.root]
        known = self._largest.get(queue.root)
        if known is None or known[0] != version:
            first, second, node = NOTHING, NOTHING, -1
            for other in cache.tree.children[queue.root]:
                share = self._share_now(other)
                if share > second:
                    if share > first:
                        first, second, node = share, first, other
                    else:
                        second = share
            known = self._largest[queue.root] = version, first, node, second
        return known[3] if known[2] == queue.node else known[1]


def _admit(tree: QuotaTree, incoming: Incoming) -> None:
    """Count the incoming as admitted."""
    tree.charge(incoming.queue.node, incoming.requests)


def _withdraw(tree: QuotaTree, incoming: Incoming) -> None:
    """Undo `_admit`."""
    tree.refund(incoming.queue.node, incoming.requests)


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
    others = candidates_of(queue, mask, allowed, evicted=False)
    if not queue.evicted:
        return _Candidates(queue, others)
    return _Candidates(queue, chain(candidates_of(queue, mask, allowed, evicted=True), others))


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
        self._retry: dict[Queue, Workload] = {}  # only the first one of each queue is ever tried again
        self._too_large = False
        self.targets: list[Target] = []
        own = incoming.queue
        self._flat = len(own.path) == 1
        self._own_side = dict(zip(own.path, (own.node, *own.path), strict=False))

    def by_first_strategy(self, found: list[_Candidates], *, to_final: bool, free: bool) -> bool:
        """Take targets by the first strategy until the incoming fits; answers whether it does.

        Args:
            found: all candidates.
            to_final: compare with the share that the other side ends up with, not that it has now.
            free: take from others without comparing shares.
        """
        contest = _Contest(self, self._cache, self._incoming.queue, found)
        own = [candidates for candidates in found if candidates.queue is self._incoming.queue]
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
            if self._too_large and self._flat and not any(each.head for each in own):
                return False  # all others have smaller shares still, and ours will not become smaller
        return False

    def by_second_strategy(self) -> bool:
        """Go through what the first strategy refused, at most one target a queue."""
        refused = [_Candidates(queue, iter((workload,))) for queue, workload in self._retry.items()]
        contest = _Contest(self, self._cache, self._incoming.queue, refused)
        while (candidates := contest.next()) is not None:
            mine, theirs = self._sides(candidates.queue)
            contest.leave(candidates)
            if self.share(mine)[1] < self.share(theirs)[1]:
                if self._take(candidates.pop(), IN_COHORT_FAIR_SHARING):
                    return True
            elif self._flat:
                return False  # all others have smaller shares still
        return False

    def share(self, node: int) -> tuple[bool, Share]:
        """Whether a node borrows, and its share, as things stand in this search."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._shares.of(node)
        return known

    def _take_fairly(self, candidates: _Candidates, *, to_final: bool) -> bool:
        """Take the first candidate of a queue that passes the test of shares; keep the others for later."""
        queue = candidates.queue
        mine, theirs = self._sides(queue)
        share, initial = self.share(mine)[1], self.share(theirs)[1]
        self._too_large = share > initial
        if share <= initial and (to_final or share < initial):
            assert candidates.head is not None
            # What fails with one holder fails with every other one that holds as much.
            if not to_final or self._passes(queue, candidates.head.usage, theirs, share):
                return self._take(candidates.pop(), IN_COHORT_FAIR_SHARING)
            passing = {usage for usage in queue.usages if self._passes(queue, usage, theirs, share)}
            while passing and candidates.head is not None:
                workload = candidates.pop()
                if workload.usage in passing:
                    return self._take(workload, IN_COHORT_FAIR_SHARING)
                self._retry.setdefault(queue, workload)
        if candidates.head is not None:
            self._retry.setdefault(queue, candidates.head)
            candidates.head = None
        return False

    def _passes(self, queue: Queue, usage: Amounts, theirs: int, share: Share) -> bool:
        """Whether a queue's side would still have no smaller share without a holder of as much."""
        self._tree.refund(queue.node, usage)
        final = self._shares.of(theirs)[1]
        self._tree.charge(queue.node, usage)
        return share <= final

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
        _withdraw(tree, incoming)
        enough = fits(tree, incoming.queue.node, incoming.requests, borrowing=True)
        _admit(tree, incoming)
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
