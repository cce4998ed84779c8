"""Checks whether a workload could get quota now, without preempting other workloads."""

from __future__ import annotations

from typing import final

from harness_plugins.kueue.rules.assignment import FIT, Assignment
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_assigner import Assigner
from harness_plugins.kueue.rules.flavor_offers import Offers
from harness_plugins.kueue.rules.pod_set_reducer import most_that_work
from harness_plugins.kueue.rules.preemption_oracle import PreemptionOracle
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.workload import Workload


@final
class Fit:
    """Checks whether there is quota for a workload without preemption. Topology capacity is ignored."""

    def __init__(self, cache: Cache, offers: Offers, gates: Gates, *, fair: bool) -> None:
        self._cache = cache
        self._offers = offers
        self._partial = gates.partial_admission
        self._assigner = Assigner(cache, fair=fair, gates=gates)

    def fits(self, workload: Workload) -> bool:
        """Returns True if a workload could get quota now.

        With partial admission, quota for fewer pods is enough.
        """
        queue = workload.cluster_queue
        if not queue.usable or workload.place.namespace_mismatch or not workload.asks.valid:
            return False
        offers, oracle = self._offers(workload.asks, queue), PreemptionOracle(self._cache, None, workload)

        def tried(counts: tuple[int, ...]) -> Assignment | None:
            found = self._assigner.assign(oracle, offers, counts)
            return found if found.mode == FIT else None

        if tried(workload.counts) is not None:
            return True
        reducible = self._partial and workload.asks.reducible
        return reducible and most_that_work(workload.asks, workload.counts, tried) is not None
