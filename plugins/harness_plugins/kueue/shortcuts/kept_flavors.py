"""Caches results that depend only on the request and the cluster, once for all equal requests.

The cache key of each result is the content of the input that it depends on.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.memo import Memo
from harness.policy import PodSet
from harness_plugins.kueue.rules.flavor_offers import Offers, PodSetOffer
from harness_plugins.kueue.rules.topology.placement import SuitableLeaves, Topologies, WorkloadTopology
from harness_plugins.kueue.state.asks import Asks
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.topology.tree import TopologyTree
from harness_plugins.kueue.state.workload import Chosen


def kept_offers(offers: Offers) -> Offers:
    """Returns a function that caches the flavors that queues offer, by the request's `number`."""
    known: Memo[tuple[int, int], tuple[PodSetOffer, ...]] = Memo()

    def of(asks: Asks, queue: ClusterQueueState) -> tuple[PodSetOffer, ...]:
        key = queue.number, asks.number
        found = known.get(key)
        if found is None:
            found = known[key] = offers(asks, queue)
        return found

    return of


def kept_topologies(topologies: Topologies) -> Topologies:
    """Returns a function that caches the topology requests of workloads."""
    known: Memo[tuple[object, ...], tuple[WorkloadTopology | None]] = Memo()

    def of(
        offers: tuple[PodSetOffer, ...], chosen: Chosen, counts: tuple[int, ...]
    ) -> WorkloadTopology | None:
        key = offers, chosen, counts
        found = known.get(key)
        if found is None:
            found = known[key] = (topologies(*key),)
        return found[0]

    return of


def kept_suitable_leaves(suitable: SuitableLeaves) -> SuitableLeaves:
    """Returns a function that caches which leaves suit a pod set, by the fields that restrict its nodes."""
    known: Memo[tuple[object, ...], tuple[Sequence[bool] | None]] = Memo()

    def of(tree: TopologyTree, pod_set: PodSet) -> Sequence[bool] | None:
        selector = tuple(pod_set.node_selector.items())
        key = tree, selector, pod_set.tolerations, pod_set.affinity, pod_set.pod_template
        found = known.get(key)
        if found is None:
            found = known[key] = (suitable(tree, pod_set),)
        return found[0]

    return of
