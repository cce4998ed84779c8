"""Detects workloads that lack quota in every flavor, so that no scan of the flavors is needed."""

from __future__ import annotations

from harness_plugins.kueue.rules.flavor_offers import Offers
from harness_plugins.kueue.rules.preemption_oracle import quota_of
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.workload import Workload


def lacks_quota(cache: Cache, offers: Offers, workload: Workload) -> bool:
    """Returns True if some pod set of a workload lacks quota in every flavor of a group."""
    queue, asks = workload.cluster_queue, workload.asks
    if not queue.usable or asks.invalid or asks.reducible:
        return False
    return not all(
        any(
            cells is not None
            and all(
                quota_of(cache, queue, cell, amount * count)[0]
                for cell, amount in zip(cells, group.amounts, strict=True)
            )
            for cells in group.cells
        )
        for offer, count in zip(offers(asks, queue), workload.counts, strict=True)
        for group in offer.groups
    )
