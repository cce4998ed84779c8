"""Finds out why a head preempts no workload.

The reasons describe the moment of the failure. A fair-sharing search is repeated to find the shares that
protect other workloads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter
from typing import Any

from harness_plugins.kueue.record.shares import number
from harness_plugins.kueue.rules.candidates import borrowers, candidates_in_order, has_candidate
from harness_plugins.kueue.rules.classical import by_priority, over_nominal, sources_of
from harness_plugins.kueue.rules.fair_search import Candidates
from harness_plugins.kueue.rules.fair_sharing import FairSharing
from harness_plugins.kueue.rules.preemption import Incoming, put_back, remove, restore
from harness_plugins.kueue.rules.preemption_oracle import TargetSearch
from harness_plugins.kueue.rules.preemption_policy import (
    ANY,
    Allowed,
    allowed_by,
    may_borrow,
    may_preempt_for,
)
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

_FORBIDDEN = "the queue's policies do not allow it to preempt the workloads that hold the quota"
_NOBODY = "no other workload holds quota that this workload could use"
_WHILE_BORROWING = "the workload cannot preempt while its queue borrows"
_TOO_LITTLE = "all workloads that it can preempt would together free too little"
_BY_SHARES = "there are candidates, but their queues' fair shares do not allow their preemption"
_TOO_YOUNG = "the workloads that it might preempt have not run for their minimum time yet (preview)"

_SHARE = itemgetter(0)


def why_no_targets(cache: Cache, search: TargetSearch, incoming: Incoming) -> dict[str, Any]:
    """Returns why a search finds no targets, with figures. See `docs/explain.md` for the fields."""
    if isinstance(search, FairSharing):
        detail = _why_not_by_shares(cache, search, incoming)
    else:
        detail = _why_not(cache, incoming)
    if detail["preemption"] in (_NOBODY, _TOO_LITTLE) and _spares(cache, incoming):
        detail["preemption"] = _TOO_YOUNG
    return detail


def why_no_search(
    cache: Cache, search: TargetSearch, queue: ClusterQueueState, requests: Amounts
) -> dict[str, Any]:
    """Returns why no search was made for `requests`, or {} if the reason is not that the queue borrows."""
    fair = isinstance(search, FairSharing)
    tree, spec, first = cache.tree, queue.spec, queue.node * cache.tree.width
    borrowed = [
        cell
        for cell, amount in requests
        if tree.available(queue.node, cell) < amount <= tree.potential_available[first + cell]
        and not may_preempt_for(spec, amount, tree.nominal[first + cell], fair=fair)
    ]
    if not borrowed:
        return {}
    fields: dict[str, str | int] = {"borrowWithinCohort": spec.preemption.borrow_within_cohort}
    if fair:
        fields["reclaimWithinCohort"] = spec.preemption.reclaim_within_cohort
    return _while_borrowing(cache, fields, borrowed)


def _while_borrowing(cache: Cache, fields: dict[str, str | int], borrowed: Sequence[int]) -> dict[str, Any]:
    labels = [cache.tree.labels[cell] for cell in borrowed]
    return {"preemption": _WHILE_BORROWING, "fields": fields, "borrows": labels}


def _forbidden(cache: Cache, incoming: Incoming, *, others: bool) -> dict[str, str | int]:
    """Returns the policies that protect workloads of the queue and, if `others` is True, of other queues."""
    queue, fields = incoming.queue, dict[str, str | int]()
    if has_candidate(cache.holders[queue.node], incoming.mask, ANY):
        fields["withinClusterQueue"] = queue.spec.preemption.within_cluster_queue
    if others:
        fields["reclaimWithinCohort"] = queue.spec.preemption.reclaim_within_cohort
    return fields


def _no_candidates(fields: dict[str, str | int]) -> dict[str, Any]:
    return {"preemption": _FORBIDDEN, "fields": fields} if fields else {"preemption": _NOBODY}


def _spares(cache: Cache, incoming: Incoming) -> bool:
    """Returns True if any workload in the tree uses a needed resource but cannot be preempted yet."""
    return any(
        workload.uses & incoming.mask
        for holders in cache.holders.values()
        if holders.queue.root == incoming.queue.root
        for workload in holders.spared
    )


def _why_not(cache: Cache, incoming: Incoming) -> dict[str, Any]:
    """Returns why a search by the classic rules finds no targets."""
    queue, preemptor = incoming.queue, incoming.workload
    preemption, mask = queue.spec.preemption, incoming.mask
    own = allowed_by(preemption.within_cluster_queue, preemptor)
    if own is not None and has_candidate(cache.holders[queue.node], mask, own):
        return {"preemption": _TOO_LITTLE}
    reclaim = allowed_by(preemption.reclaim_within_cohort, preemptor)
    if reclaim is None or not any(sources_of(cache, incoming, reclaim, priority_usable=True)):
        others = any(sources_of(cache, incoming, ANY, priority_usable=True))
        return _no_candidates(_forbidden(cache, incoming, others=others))
    borrowed, usable = over_nominal(cache.tree, incoming), may_borrow(queue.spec)
    allowed = by_priority([], reclaim, incoming, borrowing=True).allowed
    if not borrowed or any(
        advantage or has_candidate(source.holders, mask, allowed)
        for advantage, source in sources_of(cache, incoming, reclaim, priority_usable=usable)
    ):
        return {"preemption": _TOO_LITTLE}
    fields = _forbidden(cache, incoming, others=False)
    fields["borrowWithinCohort"] = preemption.borrow_within_cohort
    if usable and preemption.max_priority_threshold is not None:
        fields["maxPriorityThreshold"] = preemption.max_priority_threshold
    return _while_borrowing(cache, fields, borrowed)


def _why_not_by_shares(cache: Cache, rules: FairSharing, incoming: Incoming) -> dict[str, Any]:
    """Returns why a fair-sharing search finds no targets, with the shares that protect other workloads."""
    own, candidates = incoming.queue, Candidates(cache, incoming, rules.shares)
    others = list(borrowers(cache, own, incoming.need, cache.members_below(own.root)))
    reclaim, theirs = candidates.reclaim, any(candidates.head(queue) is not None for queue in others)
    if not theirs and candidates.head(own) is None:
        held = any(has_candidate(cache.holders[each.node], incoming.mask, ANY) for each in others)
        return _no_candidates(_forbidden(cache, incoming, others=held))
    if reclaim is None or not theirs:
        return {"preemption": _TOO_LITTLE}
    if candidates.head(own) is None and _all_have_less(cache, rules, incoming, others):
        return {"preemption": _BY_SHARES, **_compared(cache, rules, incoming, others, reclaim, ())}
    search, _ = rules.search(incoming, candidates)
    gone = {target.workload for target in search.targets}
    compared = {} if search.takes_back else _compared(cache, rules, incoming, others, reclaim, gone)
    restore(cache.tree, search.targets, search.cells)
    tried = {"tried": len(gone)} if gone else {}
    return {"preemption": _BY_SHARES if compared else _TOO_LITTLE, **tried, **compared}


def _all_have_less(
    cache: Cache, rules: FairSharing, incoming: Incoming, queues: Iterable[ClusterQueueState]
) -> bool:
    """Returns True if strategies refuse all workloads of these queues, because of the current shares alone.

    Each queue is then on a side with a smaller share than the incoming workload's side would have. A search
    would need many steps to find nothing.
    """
    if rules.takes_back(incoming):
        return False
    own, tree, of = incoming.queue, cache.tree, rules.shares.of
    tree.charge(own.node, incoming.requests)
    less = all(of(theirs)[1] < of(mine)[1] for mine, theirs in map(own.sides, queues))
    tree.refund(own.node, incoming.requests)
    return less


def _compared(
    cache: Cache,
    rules: FairSharing,
    incoming: Incoming,
    queues: Iterable[ClusterQueueState],
    reclaim: Allowed,
    gone: Collection[Workload],
) -> dict[str, Any]:
    """Returns the shares that protect the next candidate on the side with the largest share.

    These are the shares of two children of the lowest common cohort. The first contains the queue of the
    incoming workload, and the second contains the queue of the candidate. Each child has its current share,
    and its share with the incoming workload and without the candidate. The result is {} if shares are not the
    obstacle. `queues` can have candidates. The candidates in `gone` are no longer in the tree.
    """
    own, tree, of = incoming.queue, cache.tree, rules.shares.of
    ranked = [(of(own.sides(queue)[1])[1], queue) for queue in queues]
    ranked.sort(key=_SHARE, reverse=True)
    left = (
        (initial, queue, candidate)
        for initial, queue in ranked
        for candidate in candidates_in_order(cache.holders[queue.node], incoming.mask, reclaim)
        if candidate not in gone
    )
    found = next(left, None)
    if found is None:
        return {}
    initial, queue, candidate = found
    mine, theirs = own.sides(queue)
    before = of(mine)[1]
    tree.charge(own.node, incoming.requests)
    share = of(mine)[1]
    remove(tree, candidate)
    final = of(theirs)[1]
    put_back(tree, candidate)
    tree.refund(own.node, incoming.requests)
    if any(strategy.allows(share, initial, final) for strategy in rules.strategies):
        return {}
    return {
        "share": {
            tree.names[mine]: [number(before), number(share)],
            tree.names[theirs]: [number(initial), number(final)],
        },
        "candidate": candidate.name,
        "strategies": [strategy.name for strategy in rules.strategies],
    }
