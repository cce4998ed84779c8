"""Fair-sharing preemption: from whoever takes the largest share, as long as that makes shares more equal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import final

from harness.cluster.kueue_configuration import TO_FINAL_SHARE
from harness_plugins.kueue.cache import Cache, Queue
from harness_plugins.kueue.contest import Contest
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
    has_own_candidates,
    put_back,
    remove,
    within_nominal,
)
from harness_plugins.kueue.shares import Share, Shares
from harness_plugins.kueue.standing import Standing
from harness_plugins.kueue.workload import Amounts, Workload


@final
class _Candidates:
    """The candidates of each queue in their order; those of a queue are looked for when it is asked for them.

    Args:
        incoming: who asks for room.
        within: what the policy of its queue allows there; None for nothing.
        reclaim: what it allows in other queues.
    """

    __slots__ = ("_heads", "_mask", "_own", "_reclaim", "_rest", "_within")

    def __init__(self, incoming: Incoming, within: Bounds | None, reclaim: Bounds | None) -> None:
        self._own = incoming.queue
        self._mask = incoming.mask
        self._within = within
        self._reclaim = reclaim
        self._heads: dict[Queue, Workload | None] = {}
        self._rest: dict[Queue, Iterator[Workload]] = {}

    def head(self, queue: Queue) -> Workload | None:
        """The next candidate of a queue, None when there is none left."""
        if queue in self._heads:
            return self._heads[queue]
        allowed = self._within if queue is self._own else self._reclaim
        if allowed is None:
            return None
        rest = candidates_of(queue, self._mask, allowed, evicted=False)
        if queue.evicted:
            rest = chain(candidates_of(queue, self._mask, allowed, evicted=True), rest)
        self._rest[queue] = rest
        head = self._heads[queue] = next(rest, None)
        return head

    def pop(self, queue: Queue) -> Workload:
        """Take the next candidate of a queue, which has one."""
        head = self.head(queue)
        assert head is not None
        self._heads[queue] = next(self._rest[queue], None)
        return head

    def leave(self, queue: Queue) -> None:
        """A queue has no more candidates."""
        self._heads[queue] = None


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
        self._standing = Standing(cache, shares)

    def find_targets(self, incoming: Incoming) -> list[Target]:
        """Choose whom to preempt."""
        cache, own, workload = self._cache, incoming.queue, incoming.workload
        preemption = own.spec.preemption
        within = bounds(preemption.within_cluster_queue, workload)
        reclaim = bounds(preemption.reclaim_within_cohort, workload) if own.path else None
        queues = [own] if within is not None and own.holders else []
        if reclaim is not None:
            queues += _borrowers(cache, own, incoming.need)
        if not queues:
            return []
        tree = cache.tree
        tree.charge(own.node, incoming.requests)
        share = self._shares.of(own.node)[1]
        free = self._takes_back(incoming)
        search = _Search(cache, incoming, self._shares, _Candidates(incoming, within, reclaim))
        done = search.run(queues, self._strategies, free=free)
        tree.refund(own.node, incoming.requests)
        targets = search.targets
        if done:
            fill_back(tree, incoming, targets, borrowing=True)
        for target in targets:
            put_back(tree, target.workload)
        if done:
            return targets
        if not free:
            for queue in queues:
                incoming.given[queue] = queue.generation, share, _taken_from(queue, targets)
        return []

    def why_none(self, incoming: Incoming) -> WhyNone | None:
        """Nobody can be preempted: no own holder may be, and nobody else has enough of a share."""
        if has_own_candidates(incoming, of_kin=True):
            return None
        queue = incoming.queue
        if not queue.path or queue.spec.preemption.reclaim_within_cohort == "Never":
            return WhyNone()
        tree = self._cache.tree
        tree.charge(queue.node, incoming.requests)
        share = self._shares.of(queue.node)[1]
        free = self._takes_back(incoming)
        tree.refund(queue.node, incoming.requests)
        return None if free or not self._too_little(incoming, share) else WhyNone(incoming, share)

    def still_none(self, why: WhyNone) -> bool:
        """Whether others still give up too little."""
        return why.incoming is None or self._too_little(why.incoming, why.share)

    def _too_little(self, incoming: Incoming, share: Share) -> bool:
        """Whether all that others would give up for a queue right below its root is not enough.

        What a queue gives up follows from its own holders and from the share that the incoming's queue would
        have. Those with less than that give up nothing.

        Args:
            incoming: the incoming, who has nobody to preempt in its own queue.
            share: of its queue, with the incoming.
        """
        own = incoming.queue
        given: list[Amounts] = []
        for theirs, node in reversed(self._standing.of(own.root)):
            if theirs < share:
                break
            if node != own.node:
                from_here = self._given(incoming, share, self._cache.at[node])
                if from_here is None:
                    return False
                given += from_here
        if not given:
            return True
        tree = self._cache.tree
        for needed, amount in incoming.requests:
            freed = sum(amount for usage in given for cell, amount in usage if cell == needed)
            if tree.available(own.node, needed) + freed < amount:
                return True
        return False

    def _given(self, incoming: Incoming, share: Share, queue: Queue | None) -> list[Amounts] | None:
        """What holders of a queue right below the root would give up, as long as that is not enough.

        None where it is enough, and where it does not follow from the queue's holders alone: of cohorts, and
        where LocalQueues take turns.
        """
        if queue is None or queue.spec.by_usage:
            return None
        known = incoming.given.get(queue)
        if known is not None and known[0] == queue.generation and known[1] == share:
            return known[2]
        own = incoming.queue
        allowed = bounds(own.spec.preemption.reclaim_within_cohort, incoming.workload)
        given: list[Amounts] | None = []
        if queue.usable:
            tree = self._cache.tree
            search = _Search(self._cache, incoming, self._shares, _Candidates(incoming, None, allowed))
            tree.charge(own.node, incoming.requests)
            enough = search.exhaust(queue, self._strategies)
            tree.refund(own.node, incoming.requests)
            for target in search.targets:
                put_back(tree, target.workload)
            given = None if enough else _taken_from(queue, search.targets)
        incoming.given[queue] = queue.generation, share, given
        return given

    def _takes_back(self, incoming: Incoming) -> bool:
        """Whether the queue, the incoming included, uses no more than its own of what is needed."""
        return self._within_nominal and within_nominal(self._cache.tree, incoming.queue.node, incoming.need)


def _taken_from(queue: Queue, targets: list[Target]) -> list[Amounts]:
    return [target.workload.usage for target in targets if target.workload.queue is queue]


def _borrowers(cache: Cache, own: Queue, need: tuple[int, ...]) -> list[Queue]:
    """The other queues of a tree that hold more than their nominal quota of something that is needed."""
    width, usage, nominal = cache.tree.width, cache.tree.usage, cache.tree.nominal
    found = []
    for queue in cache.members[own.root]:
        first = queue.node * width
        for cell in need:
            if usage[first + cell] > nominal[first + cell] and queue is not own:
                found.append(queue)
                break
    return found


@final
class _Search:
    """One search: the incoming counts as admitted, and targets as gone.

    Attributes:
        targets: what was taken so far; out of the tree.
    """

    __slots__ = (
        "_cache",
        "_candidates",
        "_flat",
        "_incoming",
        "_own",
        "_retry",
        "_shares",
        "_too_large",
        "_tree",
        "targets",
    )

    def __init__(self, cache: Cache, incoming: Incoming, shares: Shares, candidates: _Candidates) -> None:
        self._cache = cache
        self._tree = cache.tree
        self._incoming = incoming
        self._own = incoming.queue
        self._shares = shares
        self._candidates = candidates
        self._retry: dict[Queue, Workload] = {}  # only the first one of each queue is ever tried again
        self._flat = len(self._own.path) == 1
        self._too_large = False
        self.targets: list[Target] = []

    def run(self, queues: list[Queue], strategies: tuple[str, ...], *, free: bool) -> bool:
        """Take targets until the incoming fits; answers whether it does.

        Args:
            queues: those that may have candidates.
            strategies: one or two strategies.
            free: take from others without comparing shares.
        """
        if self._by_first_strategy(queues, to_final=strategies[0] == TO_FINAL_SHARE, free=free):
            return True
        return len(strategies) > 1 and self._by_second_strategy()

    def exhaust(self, queue: Queue, strategies: tuple[str, ...]) -> bool:
        """Take from a single queue what `run` would take from it, if that does not come to its end before.

        Answers whether the incoming fits.
        """
        to_final = strategies[0] == TO_FINAL_SHARE
        candidates, shares = self._candidates, self._shares
        while shares.of(queue.node)[0] and candidates.head(queue) is not None:
            if self._take_fairly(queue, to_final=to_final):
                return True
        refused = self._retry.get(queue)
        if len(strategies) == 1 or refused is None:
            return False
        mine, theirs = self._sides(queue)
        return shares.of(mine)[1] < shares.of(theirs)[1] and self._take(refused, IN_COHORT_FAIR_SHARING)

    def _by_first_strategy(self, queues: list[Queue], *, to_final: bool, free: bool) -> bool:
        """Take what the first strategy allows.

        `to_final`: compare with the share that the other side ends up with, not that it has now.
        """
        own, candidates = self._own, self._candidates
        contest = Contest(self._cache, self._shares, own, queues, candidates.head)
        while (queue := contest.next()) is not None:
            if queue is own:
                done = self._take(candidates.pop(queue), IN_CLUSTER_QUEUE)
            elif free:
                done = self._take(candidates.pop(queue), IN_COHORT_RECLAMATION)
            else:
                done = self._take_fairly(queue, to_final=to_final)
            if done:
                return True
            if self._too_large and self._flat and candidates.head(own) is None:
                return False  # all others have smaller shares still, and ours will not become smaller
        return False

    def _by_second_strategy(self) -> bool:
        """Go through what the first strategy refused, at most one target a queue."""
        retry, shares = self._retry, self._shares
        contest = Contest(self._cache, shares, self._own, list(retry), retry.get)
        while (queue := contest.next()) is not None:
            mine, theirs = self._sides(queue)
            workload = retry.pop(queue)
            if shares.of(mine)[1] < shares.of(theirs)[1]:
                if self._take(workload, IN_COHORT_FAIR_SHARING):
                    return True
            elif self._flat:
                return False  # all others have smaller shares still
        return False

    def _take_fairly(self, queue: Queue, *, to_final: bool) -> bool:
        """Take the first candidate of a queue that passes the test of shares; keep the others for later."""
        candidates = self._candidates
        mine, theirs = self._sides(queue)
        share, initial = self._shares.of(mine)[1], self._shares.of(theirs)[1]
        self._too_large = share > initial
        head = candidates.head(queue)
        assert head is not None
        if share <= initial and (to_final or share < initial):
            # What fails with one holder fails with every other one that holds as much.
            if not to_final or self._passes(queue, head.usage, theirs, share):
                return self._take(candidates.pop(queue), IN_COHORT_FAIR_SHARING)
            passing = {usage for usage in queue.usages if self._passes(queue, usage, theirs, share)}
            while passing and candidates.head(queue) is not None:
                workload = candidates.pop(queue)
                if workload.usage in passing:
                    return self._take(workload, IN_COHORT_FAIR_SHARING)
                self._retry.setdefault(queue, workload)
        if (refused := candidates.head(queue)) is not None:
            self._retry.setdefault(queue, refused)
            candidates.leave(queue)
        return False

    def _passes(self, queue: Queue, usage: Amounts, theirs: int, share: Share) -> bool:
        """Whether a queue's side would still have no smaller share without a holder of as much."""
        self._tree.refund(queue.node, usage)
        final = self._shares.of(theirs)[1]
        self._tree.charge(queue.node, usage)
        return share <= final

    def _sides(self, queue: Queue) -> tuple[int, int]:
        """The nodes right below the lowest common ancestor: on the incoming's side, and on the queue's."""
        own_side = self._own.below
        for ancestor in queue.path:
            if ancestor in own_side:
                return own_side[ancestor], queue.below[ancestor]
        raise AssertionError("queues of one tree have a common ancestor")

    def _take(self, workload: Workload, reason: str) -> bool:
        """Make a candidate a target; answers whether the incoming fits now."""
        remove(self._tree, workload)
        self.targets.append(Target(workload, reason))
        return self._tree.covers(self._own.node, self._incoming.requests) and self._incoming.has_place()
