"""Reuses assignments while nothing changes in the queue's tree."""

from __future__ import annotations

from typing import final

from harness.base.memo import Memo
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_assigner import Assigner, Assignment
from harness_plugins.kueue.rules.flavor_offers import Offers
from harness_plugins.kueue.rules.nomination import Nominator
from harness_plugins.kueue.rules.preemption_oracle import TargetSearch
from harness_plugins.kueue.rules.snapshot import Snapshot
from harness_plugins.kueue.shortcuts.cached_fit import CachedFits
from harness_plugins.kueue.shortcuts.cached_no_fit import CachedNoFits
from harness_plugins.kueue.shortcuts.no_targets import Reasons
from harness_plugins.kueue.shortcuts.recorded_oracle import InVain, RecordedOracle
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.workload import Tried, Workload


@final
class KeptNominations(Nominator):
    """Finds assignments for heads, and reuses known assignments without a search.

    An assignment is reused in three cases:

    - It fitted the same request before and still fits.
    - It failed for a workload of the same class, and the failure is still valid.
    - It was found for the same workload, and nothing has changed in the queue's tree since then.

    Attributes:
        stirred: the heads of this cycle that may evict workloads, or whose scan continued after tried
            flavors.
    """

    def __init__(
        self,
        offers: Offers,
        assigner: Assigner,
        gates: Gates,
        fits: CachedFits,
        no_fits: CachedNoFits,
        cache: Cache,
        reasons: Reasons,
        search: TargetSearch,
    ) -> None:
        super().__init__(offers, assigner, self._recorded, gates)
        self._reasons = reasons
        self._cache = cache
        self._search = search
        self._in_vain: InVain | None = None
        self._last: RecordedOracle | None = None  # the oracle of the last assignment
        self._fits = fits
        self._no_fits = no_fits
        # The key consists of the workload, its pods, the flavors that it has tried or must get, the version
        # of its tree, and the cycle's reservations and victims. A preemptor is assigned again in every cycle
        # until its targets are gone.
        self._known: Memo[tuple[object, ...], Assignment] = Memo()
        self._cycle = -1
        self.stirred: set[Workload] = set()

    def _recorded(self, workload: Workload) -> RecordedOracle:
        self._last = RecordedOracle(self._cache, self._search, workload, self._in_vain)
        return self._last

    def nominate(self, workload: Workload, cycle: int) -> Assignment:
        """Returns the assignment of a head in this cycle, and remembers which flavors were considered."""
        last = workload.last_assignment
        tried = () if last is None else self.where_to_go_on(workload, cycle)
        assignment = self.assigned(workload, tried)
        self.remember(workload, assignment, cycle)
        if cycle != self._cycle:
            self._cycle = cycle
            self.stirred.clear()
        if tried:
            self.stirred.add(workload)
        return self._stirs(workload, assignment) if assignment.targets else assignment

    def _stirs(self, workload: Workload, assignment: Assignment) -> Assignment:
        for each in assignment.targets:
            if not each.workload.evicted:
                self.stirred.add(workload)
                break
        return assignment

    def assigned(self, workload: Workload, tried: Tried = ()) -> Assignment:
        """Returns the assignment of a head in the next cycle, without remembering any flavors."""
        if not tried:
            fit = self._fits.of(workload)
            if fit is not None:
                return fit
        version = self._no_fits.version(workload.cluster_queue)
        no_fit = None if tried else self._no_fits.of(workload, version)
        if no_fit is not None:
            return no_fit
        versions = version, self._cache.version[workload.cluster_queue.root]
        question = workload, workload.counts, tried, versions, (), ()
        known = self._known.get(question)
        if known is not None:
            return known
        assignment = self.assign(workload, tried)
        if self._last is not None and not (tried or workload.asks.reducible):
            self._fits.note(workload, assignment, self._last)
            self._no_fits.note(workload, assignment, self._last)
        self._known[question] = assignment
        return assignment

    def reassign(
        self, workload: Workload, first: Assignment, snapshot: Snapshot, *, without_victims: bool = False
    ) -> Assignment:
        """Repeats an assignment within the same cycle, with the flavors that were chosen before.

        If the cycle has no reservations or victims yet, the result is the same, unless fewer pods can be
        admitted.
        """
        if not without_victims:
            if snapshot.reserved or workload.asks.reducible:
                again = super().reassign(workload, first, snapshot)
                return self._stirs(workload, again)
            self.remember(workload, first, snapshot.cycle)
            return first
        queue = workload.cluster_queue
        versions = self._no_fits.version(queue), self._cache.version[queue.root]
        gone = tuple(snapshot.gone(queue.root))
        question = workload, workload.counts, first.chosen, versions, tuple(snapshot.reserved), gone
        known = self._known.get(question)
        if known is not None:
            self.remember(workload, known, snapshot.cycle)
            return self._stirs(workload, known)
        if all(amount >= 0 for each in snapshot.reserved for _, amount in each.amounts):
            self._in_vain = self._reasons.in_vain
        found = super().reassign(workload, first, snapshot, without_victims=True)
        self._in_vain = None
        self._known[question] = found
        return self._stirs(workload, found)
