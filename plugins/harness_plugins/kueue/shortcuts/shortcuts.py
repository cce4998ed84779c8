"""Combines the shortcuts with the rules that they speed up. Either all shortcuts are used or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from harness.models.quota import QuotaTree
from harness_plugins.kueue.rules.dominant_resource_share import Shares
from harness_plugins.kueue.rules.entry import Order
from harness_plugins.kueue.rules.entry_order import ClassicOrder, FairOrder
from harness_plugins.kueue.rules.fair_search import Refuses
from harness_plugins.kueue.rules.fair_sharing import FairSharing
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_assigner import Assigner
from harness_plugins.kueue.rules.flavor_offers import Offers
from harness_plugins.kueue.rules.nomination import Nominator
from harness_plugins.kueue.rules.preemption_oracle import Oracle, TargetSearch
from harness_plugins.kueue.rules.topology.capacity import capacity_of
from harness_plugins.kueue.rules.topology.placement import Topologies, WorkloadTopologies, suitable_leaves
from harness_plugins.kueue.shortcuts.bystanders import Bystanders
from harness_plugins.kueue.shortcuts.cached_fit import CachedFits
from harness_plugins.kueue.shortcuts.cached_no_fit import CachedNoFits
from harness_plugins.kueue.shortcuts.heads import EveryCycle
from harness_plugins.kueue.shortcuts.in_vain import InVain
from harness_plugins.kueue.shortcuts.kept_capacities import KeptCapacities
from harness_plugins.kueue.shortcuts.kept_flavors import kept_offers, kept_suitable_leaves, kept_topologies
from harness_plugins.kueue.shortcuts.kept_nominations import KeptNominations
from harness_plugins.kueue.shortcuts.kept_out import KeptOut
from harness_plugins.kueue.shortcuts.kept_shares import KeptShares
from harness_plugins.kueue.shortcuts.lacks import Lacks
from harness_plugins.kueue.shortcuts.lacks_quota import lacks_quota
from harness_plugins.kueue.shortcuts.no_targets import ClassicReasons, FairReasons, Reasons
from harness_plugins.kueue.shortcuts.refused_sides import RefusedSides
from harness_plugins.kueue.shortcuts.resting_heads import RestingHeads
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.topology.flavors import TopologyFlavors
from harness_plugins.kueue.state.workload import Workload


@final
class Shortcuts:
    """The shortcuts of one scheduler.

    Without them, all decisions, figures, cycles and heads are the same, but replays take longer.
    """

    def __init__(self, *, on: bool = True) -> None:
        self._on = on

    @classmethod
    def none(cls) -> Shortcuts:
        """Returns an object without shortcuts. Every call then computes its result."""
        return cls(on=False)

    def shares(self, tree: QuotaTree, weights: Sequence[float], *, counts_unlendable: bool = True) -> Shares:
        """Returns an object that computes the shares of ClusterQueues and Cohorts. See `Shares`."""
        return (KeptShares if self._on else Shares)(tree, weights, counts_unlendable=counts_unlendable)

    def refuses(self, cache: Cache, shares: Shares, refuses: Refuses) -> Refuses:
        """Returns a function that tells if a strategy is known to refuse all workloads below a cohort."""
        return RefusedSides(cache, shares).refuses if self._on else refuses

    def offers(self, offers: Offers) -> Offers:
        """Returns a function that finds the flavors that queues offer to jobs."""
        return kept_offers(offers) if self._on else offers

    def topologies(self, flavors: TopologyFlavors, *, mixed: bool) -> Topologies:
        """Returns a function that finds the topology requests of workloads. See `WorkloadTopologies`."""
        if not self._on:
            return WorkloadTopologies(flavors, mixed)
        suitable, capacities = kept_suitable_leaves(suitable_leaves), KeptCapacities(capacity_of)
        return kept_topologies(WorkloadTopologies(flavors, mixed, suitable, capacities))

    def within_quota(
        self, cache: Cache, offers: Offers, fits: Callable[[Workload], bool]
    ) -> Callable[[Workload], bool]:
        """Returns a function that finds out whether workloads could get quota."""
        if not self._on:
            return fits
        return lambda workload: not lacks_quota(cache, offers, workload) and fits(workload)

    def nomination(
        self,
        cache: Cache,
        pending: Sequence[PendingQueue],
        shares: Shares,
        search: TargetSearch,
        topologies: TopologyFlavors | None,
        gates: Gates,
        order: ClassicOrder | FairOrder,
        offers: Offers,
        assigner: Assigner,
    ) -> tuple[Nominator, Order, EveryCycle | RestingHeads]:
        """Returns what finds assignments for heads, orders entries, and finds the heads of cycles."""
        if not self._on:

            def oracle(workload: Workload) -> Oracle:
                return Oracle(cache, search, workload)

            return Nominator(offers, assigner, oracle, gates), order, EveryCycle(pending)
        reasons: Reasons = ClassicReasons(cache)
        if isinstance(search, FairSharing):
            reasons = FairReasons(cache, shares, search)
        fits = CachedFits(cache)
        no_fits = CachedNoFits(cache, pending, reasons, gates, topologies)
        fair = isinstance(search, FairSharing)
        kept = KeptNominations(offers, assigner, gates, fits, no_fits, cache, reasons, search)
        bystanders = Bystanders(order, pending, kept.assigned)
        in_vain = InVain(pending, Lacks(cache.tree, offers, fair=fair), no_fits, reasons, gates, cache.tree)
        heads = RestingHeads(
            pending,
            in_vain.run,
            in_vain.reason_changed,
            KeptOut(cache, order, gates, kept.assigned).cycles,
            kept.stirred,
            bystanders.heads,
            gates,
            by_name=fair,
            room=set() if topologies is None else _placed(cache, topologies),
        )
        return kept, bystanders if fair else order, heads


def _placed(cache: Cache, topologies: TopologyFlavors) -> set[int]:
    """Returns the roots of the trees in which a queue has a flavor with a topology."""
    flavors = topologies.by_name.keys()
    return {
        queue.root
        for queue in cache.queues.values()
        if not flavors.isdisjoint(
            each.flavor for group in queue.spec.resource_groups for each in group.flavors
        )
    }
