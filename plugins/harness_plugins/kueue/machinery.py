"""Builds the parts of the scheduler that depend on the cluster.

When the cluster changes, all of these parts are built again, so that no result outlives the quotas, limits,
weights or policies that it depends on. The new parts take over the data that remain: the workloads with and
without quota, and the generations of the ClusterQueues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, final

from harness.models.cluster import Cluster, ClusterQueue
from harness.models.quota import FlavorResource
from harness_plugins.kueue.previews.preemption_rate import PreemptionRate
from harness_plugins.kueue.record.crashes import Crashes
from harness_plugins.kueue.record.refusals import Refusals
from harness_plugins.kueue.rules.admission import AdmissionCycle
from harness_plugins.kueue.rules.classical import ClassicPreemption
from harness_plugins.kueue.rules.dominant_resource_share import weights_of
from harness_plugins.kueue.rules.entry_order import ClassicOrder, FairOrder
from harness_plugins.kueue.rules.fair_search import may_allow_any
from harness_plugins.kueue.rules.fair_sharing import FairSharing
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_assigner import Assigner
from harness_plugins.kueue.rules.flavor_offers import FlavorOffers, PodSetOffer
from harness_plugins.kueue.rules.nomination import Fit
from harness_plugins.kueue.rules.preemption_oracle import TargetSearch
from harness_plugins.kueue.rules.second_pass import SecondPassNominator
from harness_plugins.kueue.rules.topology.placement import Topologies
from harness_plugins.kueue.shortcuts.shortcuts import Shortcuts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.topology.flavors import TopologyFlavors
from harness_plugins.kueue.state.workload import Admission, Workload

_Names: TypeAlias = tuple[tuple[str, ...], ...]
"""The name of a flavor for each pod set and each resource group."""


def topologies_of(
    cluster: Cluster, gates: Gates, shortcuts: Shortcuts
) -> tuple[TopologyFlavors | None, Topologies | None]:
    """Returns the flavors with a topology and the finder of topology requests, or None if there are none."""
    if not (gates.topology_aware_scheduling and any(each.topology for each in cluster.flavors.values())):
        return None, None
    flavors = TopologyFlavors(cluster, overlapping=gates.tas_handle_overlapping_flavors)
    return flavors, shortcuts.topologies(flavors, mixed=gates.tas_profile_mixed)


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a scheduler that do not depend on the cluster.

    Attributes:
        also: flavor-resources that are in use although no queue has quota for them.
        crashes: records the crashes that occur in this release of Kueue, or None if the release does not
            crash.
    """

    gates: Gates
    strategies: tuple[str, ...] | None
    weights: Mapping[str, float]
    also: Iterable[FlavorResource]
    shortcuts: Shortcuts
    topologies: TopologyFlavors | None = field(default=None)
    asked: Topologies | None = field(default=None)
    crashes: Crashes | None = field(default=None)
    rate: PreemptionRate | None = field(default=None)


@final
class Machinery:
    """The quota tree and everything that depends on it.

    Args:
        before: the machinery before the cluster changed, or None at the start.

    Attributes:
        pending: the pending workloads, by the name of the ClusterQueue.
        by_number: the pending workloads, by the number of the ClusterQueue.
        within_quota: a function that returns whether there is quota for a workload without preemption.
    """

    def __init__(self, cluster: Cluster, settings: Settings, before: Machinery | None = None) -> None:
        gates, shortcuts, fair = settings.gates, settings.shortcuts, settings.strategies is not None
        cache = Cache(cluster, also=settings.also, before=None if before is None else before.cache)
        self.cache: Cache = cache
        known = {} if before is None else before.pending
        self.pending: Mapping[str, PendingQueue] = {
            name: known.get(name) or PendingQueue(queue, sticky=gates.rules.sticky_preemptors)
            for name, queue in cache.queues.items()
        }
        pending = self.by_number = list(self.pending.values())
        weights = weights_of(cache.tree, cluster, settings.weights)
        unlendable = gates.rules.counts_unlendable
        shares = self.shares = shortcuts.shares(cache.tree, weights, counts_unlendable=unlendable)
        search: TargetSearch = ClassicPreemption(cache)
        order: ClassicOrder | FairOrder = ClassicOrder(gates)
        if settings.strategies is not None:
            within_nominal = gates.fair_sharing_preempt_within_nominal
            search = FairSharing(
                cache,
                shares,
                settings.strategies,
                within_nominal=within_nominal,
                crashed=settings.crashes,
                refuses=shortcuts.refuses(cache, shares, may_allow_any),
            )
            order = FairOrder(cache, shares, gates)
        self._offers = shortcuts.offers(FlavorOffers(cluster, cache.tree, gates))
        assigner = Assigner(cache, fair=fair, gates=gates, topologies=settings.asked)
        nominator, turns, self.heads = shortcuts.nomination(
            cache, pending, shares, search, settings.topologies, gates, order, self._offers, assigner
        )
        refusals = self.refusals = Refusals(cache, self.offers, search, settings.asked)
        again = None
        if settings.topologies is not None:
            again = SecondPassNominator(cache, search, settings.topologies, self.offers, gates)
        self.cycle = AdmissionCycle(cache, pending, nominator, turns, gates, refusals, settings.rate, again)
        if settings.crashes is not None:
            settings.crashes.told = refusals.refused
        fits = Fit(cache, self._offers, gates, fair=fair).fits
        self.within_quota = shortcuts.within_quota(cache, self._offers, fits)

    def offers(self, workload: Workload) -> tuple[PodSetOffer, ...]:
        """Returns the flavors of the ClusterQueue that each pod set of a workload could use."""
        return self._offers(workload.asks, workload.cluster_queue)

    def other_flavors(self, cluster: Cluster) -> list[tuple[Workload, _Names]]:
        """Returns the workloads that hold quota in queues whose flavors change, with their flavor names."""
        return [
            (workload, tuple(map(_names, self.offers(workload), workload.admission.chosen)))
            for name, queue in self.cache.queues.items()
            if name in cluster.cluster_queues
            and _flavors(queue.spec) != _flavors(cluster.cluster_queues[name])
            for workload in self.cache.holders[queue.node].everybody
            if workload.admission is not None
        ]

    def number_again(self, workload: Workload, names: _Names) -> None:
        """Updates the flavor indices of an admission after the order of flavors in its ClusterQueue changed.

        If the queue no longer has one of the flavors, the workload releases no quota until it is finished.
        """
        admission = workload.admission
        assert admission is not None
        try:
            chosen = tuple(
                tuple(group.flavors.index(name) for group, name in zip(offer.groups, of_pod_set, strict=True))
                for offer, of_pod_set in zip(self.offers(workload), names, strict=True)
            )
        except ValueError:
            workload.admission = None
        else:
            workload.admission = Admission(chosen, admission.counts)


def _names(offer: PodSetOffer, chosen: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(group.flavors[flavor] for group, flavor in zip(offer.groups, chosen, strict=True))


def _flavors(spec: ClusterQueue) -> list[tuple[str, ...]]:
    return [
        (*group.covered_resources, *(each.flavor for each in group.flavors)) for group in spec.resource_groups
    ]
