"""One search by shares: candidates are taken one after another, as long as that makes shares more equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from harness_plugins.kueue.rules.candidates import candidates_in_order
from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares, share_without
from harness_plugins.kueue.rules.preemption import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAMATION,
    Incoming,
    Target,
    put_back,
    remove,
)
from harness_plugins.kueue.rules.preemption_policy import Allowed
from harness_plugins.kueue.rules.strategy import Strategy, less_than_initial_share
from harness_plugins.kueue.rules.target_ordering import ordering_of
from harness_plugins.kueue.state.amounts import Amounts, amounts_besides
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload


@final
class Candidates:
    """The candidates of each queue in their order, found when a queue is first asked for them.

    Args:
        cache: the holders of quota.
        incoming: the workload that asks for room.
        within: what the policy of its queue allows there; None for nothing.
        reclaim: what it allows in other queues.
    """

    __slots__ = ("_heads", "_holders", "_mask", "_own", "_reclaim", "_rest", "_within")

    def __init__(
        self, cache: Cache, incoming: Incoming, within: Allowed | None, reclaim: Allowed | None
    ) -> None:
        self._holders = cache.holders
        self._own = incoming.queue
        self._mask = incoming.mask
        self._within = within
        self._reclaim = reclaim
        self._heads: dict[ClusterQueueState, Workload | None] = {}
        self._rest: dict[ClusterQueueState, Iterator[Workload]] = {}

    def head(self, queue: ClusterQueueState) -> Workload | None:
        """The next candidate of a queue, None when there is none left."""
        if queue in self._heads:
            return self._heads[queue]
        allowed = self._within if queue is self._own else self._reclaim
        if allowed is None:
            return None
        rest = self._rest[queue] = candidates_in_order(self._holders[queue.node], self._mask, allowed)
        head = self._heads[queue] = next(rest, None)
        return head

    def pop(self, queue: ClusterQueueState) -> Workload:
        """Takes the next candidate of a queue, the one that `head` returned."""
        heads = self._heads
        head = heads[queue]
        assert head is not None
        heads[queue] = next(self._rest[queue], None)
        return head

    def may_have(self, queue: ClusterQueueState) -> bool:
        """Returns True if a queue may have a next candidate, as far as is known."""
        return queue not in self._heads or self._heads[queue] is not None

    def leave(self, queue: ClusterQueueState) -> None:
        """Notes that a queue has no more candidates."""
        self._heads[queue] = None


@final
class FairSearch:
    """One search: the incoming counts as admitted, and targets as gone.

    Attributes:
        targets: the targets so far; they are out of the tree.
        cells: the flavor-resources with which targets are out of the tree; None for all of them.
    """

    __slots__ = (
        "_cache",
        "_candidates",
        "_flat",
        "_incoming",
        "_own",
        "_retry",
        "_shares",
        "_tree",
        "cells",
        "targets",
    )

    def __init__(self, cache: Cache, incoming: Incoming, shares: Shares, candidates: Candidates) -> None:
        self._cache = cache
        self._tree = cache.tree
        self._incoming = incoming
        self._own = incoming.queue
        self._shares = shares
        self._candidates = candidates
        # The first workload of each queue that was refused: only that one is ever tried again.
        self._retry: dict[ClusterQueueState, Workload] = {}
        self._flat = len(self._own.path) == 1
        self.targets: list[Target] = []
        self.cells: list[int] | None = None

    def run(
        self, queues: list[ClusterQueueState], strategies: tuple[Strategy, ...], *, takes_back: bool
    ) -> bool:
        """Takes targets until the incoming fits; returns whether it does.

        Args:
            queues: those that may have candidates.
            strategies: one or two strategies.
            takes_back: whether to take from others without comparing shares.
        """
        if self._by_first_strategy(queues, strategies[0], takes_back=takes_back):
            return True
        return len(strategies) > 1 and bool(self._retry) and self._by_second_strategy()

    def put_back(self) -> None:
        """Put all targets back into the tree."""
        for target in self.targets:
            put_back(self._tree, target.workload, self.cells)

    def _by_first_strategy(
        self, queues: list[ClusterQueueState], strategy: Strategy, *, takes_back: bool
    ) -> bool:
        """Takes what the first strategy allows."""
        own, candidates = self._own, self._candidates
        if self._flat and not takes_back and candidates.head(own) is None:
            queues = self._worth_asking(queues)
        ordering = ordering_of(self._cache, self._shares, own, queues, candidates.head)
        looked_at = -1  # how many had been taken when it was looked at last who is worth asking
        while (queue := ordering.next()) is not None:
            if queue is own:
                done = self._take(candidates.pop(queue), IN_CLUSTER_QUEUE)
            elif takes_back:
                done = self._take(candidates.pop(queue), IN_COHORT_RECLAMATION)
            elif (workload := self._next_allowed(queue, strategy)) is not None:
                done = self._take(workload, IN_COHORT_FAIR_SHARING)
            else:
                self._leave(queue)
                done = False
                if looked_at < len(self.targets) and candidates.head(own) is None:
                    looked_at = len(self.targets)
                    queues = self._worth_asking([each for each in queues if candidates.may_have(each)])
                    ordering = ordering_of(self._cache, self._shares, own, queues, candidates.head)
            if done:
                return True
        return False

    def _worth_asking(self, queues: list[ClusterQueueState]) -> list[ClusterQueueState]:
        """Queues that may still give up a workload by shares, once the own queue gives up no more.

        Neither strategy takes from a side with a smaller share than the own side. From a side with the same
        share, it takes only what does not change that share. The own sides keep their shares up to the first
        cohort below which something may be taken. If some side has more, equal ones are not examined closely.
        """
        of, holders = self._shares.of, self._cache.holders
        if self._flat:
            root, share = self._own.root, of(self._own.node)[1]
            return [queue for queue in queues if of(queue.below[root])[1] >= share]
        for ancestor, mine in self._own.below.items():
            share = of(mine)[1]
            sides: dict[int, list[ClusterQueueState]] = {}
            above = []
            for queue in queues:
                theirs = queue.below.get(ancestor)
                if theirs is None:
                    above.append(queue)
                elif theirs in sides:
                    sides[theirs].append(queue)
                else:
                    sides[theirs] = [queue]
            shares = {theirs: of(theirs)[1] for theirs in sides}
            if any(theirs > share for theirs in shares.values()):
                return [each for theirs in sides if shares[theirs] >= share for each in sides[theirs]] + above
            found = [
                queue
                for theirs in sides
                if shares[theirs] == share
                for queue in sides[theirs]
                if any(self._without(queue, usage, theirs) >= share for usage in holders[queue.node].usages)
            ]
            if found or any(
                ancestor in queue.below and of(queue.below[ancestor])[1] > share for queue in self._retry
            ):
                return found + above
            queues = above
        return []

    def _by_second_strategy(self) -> bool:
        """Goes through what the first strategy refused, at most one target per queue."""
        retry, shares = self._retry, self._shares
        ordering = ordering_of(self._cache, shares, self._own, list(retry), retry.get)
        while (queue := ordering.next()) is not None:
            mine, theirs = self._own.sides(queue)
            workload = retry.pop(queue)
            if less_than_initial_share(shares.of(mine)[1], shares.of(theirs)[1]):
                if self._take(workload, IN_COHORT_FAIR_SHARING):
                    return True
            elif self._flat:
                return False  # all others have smaller shares still
        return False

    def _next_allowed(self, queue: ClusterQueueState, strategy: Strategy) -> Workload | None:
        """The first candidate of a queue that passes the test of shares; those before it are refused."""
        mine, theirs = self._own.sides(queue)
        share, initial = self._shares.of(mine)[1], self._shares.of(theirs)[1]
        if not strategy.allows(share, initial):  # without a workload, the side has no more than now
            return None
        if strategy.without_target:
            return self._next_that_passes(queue, theirs, share, strategy)
        return self._candidates.pop(queue)

    def _leave(self, queue: ClusterQueueState) -> None:
        """A queue gives up nothing more by the first strategy."""
        refused = self._candidates.head(queue)
        if refused is not None:
            self._retry.setdefault(queue, refused)
            self._candidates.leave(queue)

    def _next_that_passes(
        self, queue: ClusterQueueState, theirs: int, share: Share, strategy: Strategy
    ) -> Workload | None:
        """The next candidate for which a strategy allows the share of a queue's side without it."""
        candidates = self._candidates
        head = candidates.head(queue)
        assert head is not None
        if strategy.allows(share, self._without(queue, head.usage, theirs)):
            return candidates.pop(queue)
        # What fails with one holder fails with every other one that holds as much.
        usages = self._cache.holders[queue.node].usages
        passing = {each for each in usages if strategy.allows(share, self._without(queue, each, theirs))}
        while passing and candidates.head(queue) is not None:
            workload = candidates.pop(queue)
            if workload.usage in passing:
                return workload
            self._retry.setdefault(queue, workload)
        return None

    def _without(self, queue: ClusterQueueState, usage: Amounts, theirs: int) -> Share:
        """The share of a queue's side without one of its holders."""
        if theirs == queue.node:
            return share_without(self._tree, self._shares, theirs, usage)
        self._tree.refund(queue.node, usage)
        final = self._shares.of(theirs)[1]
        self._tree.charge(queue.node, usage)
        return final

    def _take(self, workload: Workload, reason: str) -> bool:
        """Makes a candidate a target; returns whether the incoming fits now.

        Amounts that the incoming does not request count only in shares, which do not matter once it fits. Of
        many resources each is checked alone, and one target is nearly always enough.
        """
        tree, targets, cells = self._tree, self.targets, self._incoming.cells
        remove(tree, workload, cells)
        done = tree.covers(self._own.node, self._incoming.requests) and self._incoming.has_place()
        if done:
            self.cells = cells
            for each in targets:
                tree.charge(each.workload.cluster_queue.node, amounts_besides(each.workload.usage, cells))
        else:
            tree.refund(workload.cluster_queue.node, amounts_besides(workload.usage, cells))
        targets.append(Target(workload, reason))
        return done
