"""Caches results that depend only on the request and the cluster, once for all equal requests.

The cache key of each result is the content of the input that it depends on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.base.memo import Memo
from harness.policy import PodSet
from harness_plugins.kueue.rules.flavor_offers import Offers, PodSetOffer, restrictions
from harness_plugins.kueue.rules.topology.placement import SuitableLeaves, Topologies, WorkloadTopology
from harness_plugins.kueue.state.asks import Asks
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.topology.tree import TopologyTree
from harness_plugins.kueue.state.workload import Chosen


@final
class KeptOffers:
    """Caches the flavors that queues offer, by the request's `number`."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers
        self._known: Memo[tuple[int, int], tuple[PodSetOffer, ...]] = Memo()

    def __call__(self, asks: Asks, queue: ClusterQueueState) -> tuple[PodSetOffer, ...]:
        """Returns what a queue offers to each pod set of a job."""
        key = queue.number, asks.number
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._offers(asks, queue)
        return found


@final
class KeptTopologies:
    """Caches the topology requests of workloads."""

    def __init__(self, topologies: Topologies) -> None:
        self._topologies = topologies
        self._known: Memo[
            tuple[tuple[PodSetOffer, ...], Chosen, tuple[int, ...]], tuple[WorkloadTopology | None]
        ] = Memo()

    def __call__(
        self, offers: tuple[PodSetOffer, ...], chosen: Chosen, counts: tuple[int, ...]
    ) -> WorkloadTopology | None:
        """Returns the topology request of a workload. See `WorkloadTopologies`."""
        key = offers, chosen, counts
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (self._topologies(*key),)
        return found[0]


@final
class KeptSuitableLeaves:
    """Caches the leaves that suit a pod set, by the relevant fields of its template."""

    def __init__(self, suitable: SuitableLeaves) -> None:
        self._suitable = suitable
        self._known: Memo[tuple[object, ...], tuple[Sequence[bool] | None]] = Memo()

    def __call__(self, tree: TopologyTree, pod_set: PodSet) -> Sequence[bool] | None:
        """Returns which leaves suit the pods of a pod set, or None for all leaves."""
        key = tree, *restrictions(pod_set)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (self._suitable(tree, pod_set),)
        return found[0]
