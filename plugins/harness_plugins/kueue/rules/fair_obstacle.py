"""Explains why fair sharing preempts no workload, for example because shares protect all candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter

from harness.models.cluster import Strategy
from harness_plugins.kueue.rules.candidates import borrowers, candidates_in_order, has_candidate
from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares
from harness_plugins.kueue.rules.fair_search import Candidates, FairSearch, Refuses
from harness_plugins.kueue.rules.preemption import (
    BY_SHARES,
    FORBIDDEN,
    NOBODY,
    TOO_LITTLE,
    Compared,
    Incoming,
    Obstacle,
    put_back,
    remove,
)
from harness_plugins.kueue.rules.preemption_policy import ANY, Allowed, allowed_by
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

_SHARE = itemgetter(0)


def fair_obstacle(
    cache: Cache,
    incoming: Incoming,
    shares: Shares,
    strategies: tuple[Strategy, ...],
    takes_back: Callable[[Incoming], bool],
    refuses: Refuses,
) -> Obstacle:
    """Returns the reason why there are no preemption targets for a workload. The cache does not change.

    `takes_back` returns True if the workload can preempt in other queues without comparing shares. The
    requests of the workload are already charged when it is called. `refuses` returns True if a strategy is
    known to refuse all workloads below a cohort.
    """
    own, workload = incoming.queue, incoming.workload
    mask, preemption, holders = incoming.mask, own.spec.preemption, cache.holders
    within = allowed_by(preemption.within_cluster_queue, workload)
    reclaim = allowed_by(preemption.reclaim_within_cohort, workload) if own.path else None
    mine = within is not None and has_candidate(holders[own.node], mask, within)
    others = borrowers(cache, own, incoming.need, cache.holding_below(own.root)) if own.path else []
    theirs = reclaim is not None and any(has_candidate(holders[each.node], mask, reclaim) for each in others)
    if not (mine or theirs):
        fields = {}
        if has_candidate(holders[own.node], mask, ANY):
            fields["withinClusterQueue"] = preemption.within_cluster_queue
        if any(has_candidate(holders[each.node], mask, ANY) for each in others):
            fields["reclaimWithinCohort"] = preemption.reclaim_within_cohort
        return Obstacle(FORBIDDEN if fields else NOBODY, fields)
    if reclaim is None or not theirs:
        return Obstacle(TOO_LITTLE)
    ranked = _ranked(shares, own, others)
    cache.tree.charge(own.node, incoming.requests)
    reclaims_anyway = takes_back(incoming)
    all_have_less = len(own.path) == 1 and ranked[0][0] < shares.of(own.node)[1]
    search: FairSearch | None = None
    taken: tuple[Workload, ...] = ()
    if mine or reclaims_anyway or not all_have_less:  # otherwise no workload can be taken
        candidates = Candidates(cache, incoming, within, reclaim, set())
        search = FairSearch(cache, incoming, shares, candidates, refuses)
        search.run(strategies, takes_back=reclaims_anyway)
        taken = tuple(target.workload for target in search.targets)
    cache.tree.refund(own.node, incoming.requests)
    if taken:
        ranked = _ranked(shares, own, others)
    compared = None
    if not reclaims_anyway:
        compared = _compared(cache, incoming, shares, strategies, ranked, reclaim, taken)
    if search is not None:
        search.put_back()
    return Obstacle(BY_SHARES if compared else TOO_LITTLE, compared=compared, taken=taken)


def _ranked(
    shares: Shares, own: ClusterQueueState, queues: Sequence[ClusterQueueState]
) -> list[tuple[Share, ClusterQueueState]]:
    ranked = [(shares.of(own.sides(each)[1])[1], each) for each in queues]
    return sorted(ranked, key=_SHARE, reverse=True)


def _compared(
    cache: Cache,
    incoming: Incoming,
    shares: Shares,
    strategies: tuple[Strategy, ...],
    ranked: Sequence[tuple[Share, ClusterQueueState]],
    reclaim: Allowed,
    taken: tuple[Workload, ...],
) -> Compared | None:
    """Returns the shares that protect the next candidate on the side with the largest share.

    The queues in `ranked` can have candidates. The candidates in `taken` are no longer in the tree.
    """
    own, of = incoming.queue, shares.of
    gone = set(taken)
    left = next(
        (
            (share, queue, candidate)
            for share, queue in ranked
            for candidate in candidates_in_order(cache.holders[queue.node], incoming.mask, reclaim)
            if candidate not in gone
        ),
        None,
    )
    if left is None:
        return None
    initial, queue, candidate = left
    sides = own.sides(queue)
    before = of(sides[0])[1], initial
    cache.tree.charge(own.node, incoming.requests)
    share = of(sides[0])[1]
    remove(cache.tree, candidate)
    final = of(sides[1])[1]
    put_back(cache.tree, candidate)
    cache.tree.refund(own.node, incoming.requests)
    for strategy in strategies:
        if strategy.allows(share, initial, final):
            return None
    names = tuple(strategy.name for strategy in strategies)
    return Compared(candidate, sides, before, (share, final), names)
