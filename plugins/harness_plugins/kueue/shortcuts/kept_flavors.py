"""Caches results that depend only on the request and the cluster, once for all equal requests.

The cache key of each result is the content of the input that it depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from harness.base.memo import Memo
from harness.policy import PodSet
from harness_plugins.kueue.rules.flavor_offers import Offers
from harness_plugins.kueue.rules.topology.placement import SuitableLeaves, Topologies
from harness_plugins.kueue.state.topology.tree import TopologyTree

_T = TypeVar("_T")


def kept_offers(offers: Offers) -> Offers:
    """Returns a function that caches the flavors that queues offer, by the request's `number`."""
    return _kept(offers, lambda asks, queue: (queue.number, asks.number))


def kept_topologies(topologies: Topologies) -> Topologies:
    """Returns a function that caches the topology requests of workloads."""
    return _kept(topologies, lambda *asked: asked)


def kept_suitable_leaves(suitable: SuitableLeaves) -> SuitableLeaves:
    """Returns a function that caches which leaves suit a pod set, by the fields that restrict its nodes."""

    def key(tree: TopologyTree, pod_set: PodSet) -> tuple[object, ...]:
        selector = tuple(pod_set.node_selector.items())
        return tree, selector, pod_set.tolerations, pod_set.affinity, pod_set.pod_template

    return _kept(suitable, key)


def _kept(answer: Callable[..., _T], key: Callable[..., object]) -> Callable[..., _T]:
    known: Memo[object, tuple[_T]] = Memo()

    def of(*asked: object) -> _T:
        question = key(*asked)
        found = known.get(question)
        if found is None:
            found = known[question] = (answer(*asked),)
        return found[0]

    return of
