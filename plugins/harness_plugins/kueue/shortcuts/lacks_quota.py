"""Detects workloads that lack quota in every flavor, so that no scan of the flavors is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from harness_plugins.kueue.rules.flavor_offers import Offers
from harness_plugins.kueue.rules.preemption_oracle import available
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.workload import Workload


@final
class LacksQuota:
    """Finds out whether workloads could get quota. If quota is insufficient, no flavor has to be tried."""

    def __init__(self, cache: Cache, offers: Offers, fits: Callable[[Workload], bool]) -> None:
        self._cache = cache
        self._offers = offers
        self._fits = fits

    def fits(self, workload: Workload) -> bool:
        """Returns True if a workload could get quota now. See `Fit.fits`."""
        return not self._lacks(workload) and self._fits(workload)

    def _lacks(self, workload: Workload) -> bool:
        """Returns True if some pod set lacks quota in every flavor of a group."""
        queue, asks = workload.cluster_queue, workload.asks
        if not (queue.usable and asks.valid) or asks.reducible:
            return False
        return not all(
            any(
                cells is not None
                and all(
                    available(self._cache, queue, cell, amount * count)
                    for cell, amount in zip(cells, group.amounts, strict=True)
                )
                for cells in group.cells
            )
            for offer, count in zip(self._offers(asks, queue), workload.counts, strict=True)
            for group in offer.groups
        )
