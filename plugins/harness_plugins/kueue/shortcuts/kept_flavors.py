"""What follows from what is asked and from the cluster alone: it is worked out once for all that ask alike.

Everything here is valid by content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.base.memo import Memo
from harness.policy import PodSet
from harness_plugins.kueue.rules.assignment import Assemble, Assignment, Choice
from harness_plugins.kueue.rules.flavor_offers import Offers, PodSetOffer
from harness_plugins.kueue.rules.topology.placement import SuitableLeaves
from harness_plugins.kueue.rules.topology.workload import Topologies, WorkloadTopology
from harness_plugins.kueue.state.asks import Asks
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.topology.tree import TopologyTree


@final
class KeptOffers:
    """What queues can offer, by the number of what is asked for."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers
        self._known: Memo[tuple[int, int], tuple[PodSetOffer, ...]] = Memo()

    def __call__(self, asks: Asks, queue: ClusterQueueState) -> tuple[PodSetOffer, ...]:
        """What a queue can offer to a job, pod set by pod set."""
        key = queue.number, asks.number
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._offers(asks, queue)
        return found


@final
class KeptAssignments:
    """The assignments that follow from flavors chosen."""

    def __init__(self, assemble: Assemble) -> None:
        self._assemble = assemble
        self._known: Memo[
            tuple[tuple[PodSetOffer, ...], tuple[int, ...], tuple[tuple[Choice, ...], ...]], Assignment
        ] = Memo()

    def __call__(
        self,
        offers: tuple[PodSetOffer, ...],
        counts: tuple[int, ...],
        choices: tuple[tuple[Choice, ...], ...],
    ) -> Assignment:
        """The assignment that follows from the flavors chosen, but for its targets."""
        key = offers, counts, choices
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._assemble(*key)
        return found


@final
class KeptTopologies:
    """What workloads ask of topologies."""

    def __init__(self, topologies: Topologies) -> None:
        self._topologies = topologies
        self._known: Memo[
            tuple[tuple[PodSetOffer, ...], tuple[tuple[int, ...], ...], tuple[int, ...]],
            tuple[WorkloadTopology | None],
        ] = Memo()

    def asked(
        self,
        offers: tuple[PodSetOffer, ...],
        chosen: tuple[tuple[int, ...], ...],
        counts: tuple[int, ...],
    ) -> WorkloadTopology | None:
        """What a workload asks; None where a pod set got no flavor with a topology, or two of them."""
        key = offers, chosen, counts
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (self._topologies.asked(*key),)
        return found[0]


@final
class KeptSuitableLeaves:
    """Which leaves of topologies the pods of pod sets may run in, by what their templates say of that."""

    def __init__(self, suitable: SuitableLeaves) -> None:
        self._suitable = suitable
        self._known: Memo[tuple[object, ...], tuple[Sequence[bool] | None]] = Memo()

    def __call__(self, tree: TopologyTree, pod_set: PodSet) -> Sequence[bool] | None:
        """Which leaves the pods of a pod set may run in; None for all."""
        selector = tuple(pod_set.node_selector.items())
        key = tree, selector, pod_set.tolerations, pod_set.affinity, pod_set.pod_template
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (self._suitable(tree, pod_set),)
        return found[0]
