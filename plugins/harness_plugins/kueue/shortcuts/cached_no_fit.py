"""Lets the scheduler know, without another search, that a workload still cannot be admitted.

When quota becomes free anywhere in a tree, Kueue tries every inadmissible workload of the tree again, and
nearly all of them in vain. If the reasons lie in a queue's own state and in the quota available to it, they
can be checked without a search. The answer is the one that the search would have given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.base.memo import Memo
from harness_plugins.kueue.rules.admission import reserves
from harness_plugins.kueue.rules.assignment import FIT, NO_FIT, Assignment
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.outcomes import NO_PREEMPTION_CANDIDATES, NO_QUOTA, why_not
from harness_plugins.kueue.rules.preemption_oracle import available, height
from harness_plugins.kueue.rules.topology.workload import WorkloadTopology
from harness_plugins.kueue.shortcuts.no_targets import FailedSearch, NoTargets, Reasons
from harness_plugins.kueue.shortcuts.recorded_oracle import Check, RecordedOracle
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.topology.flavors import TopologyFlavors
from harness_plugins.kueue.state.workload import Workload


@final
class CachedNoFit:
    """An assignment that failed, and the facts that it depends on.

    Valid for the generation of the ClusterQueue, as far as the searches depend on its own state. The effects
    of others are checked for each version of the tree.

    Args:
        assignment: the assignment; it is valid for the whole equivalence class of a workload.
        queue: the queue.
        version: of the queue's tree, when all of it was looked at last.
        checks: how its flavor-resources stood.
        no_place: what had no place in a topology although there was quota; None for nothing.
        searches: the searches for targets.
        why: why each search failed that depends on others.

    Attributes:
        assignment: the assignment.
        refusal: the key of its failure, see `why_not`.
        turn_matters: whether the result may differ when it is served, after earlier reservations. If it has
            no place then, but has one in an empty topology, it is assigned again. That finds no more than
            before, unless others may give up workloads: their shares are different by then.
    """

    __slots__ = (
        "_checks",
        "_fails_at",
        "_generation",
        "_holds_at",
        "_no_place",
        "_queue",
        "_searches",
        "_why",
        "assignment",
        "refusal",
        "turn_matters",
    )

    def __init__(
        self,
        assignment: Assignment,
        queue: ClusterQueueState,
        version: int,
        checks: list[Check],
        no_place: WorkloadTopology | None,
        searches: list[FailedSearch],
        why: list[NoTargets],
    ) -> None:
        self.assignment = assignment
        self.refusal = why_not(
            assignment, NO_QUOTA if assignment.mode == NO_FIT else NO_PREEMPTION_CANDIDATES
        )
        self._queue = queue
        self._generation = queue.generation
        self._checks = checks
        self._no_place = no_place
        self._searches = searches
        self._why = why
        self._holds_at, self._fails_at = version, -1
        self.turn_matters = bool(assignment.placed and why)

    def still(self, cache: Cache, reasons: Reasons, version: int) -> bool:
        """Whether all that it rests on is so now.

        While nothing changes in the queue itself, only the effects of others count.

        Args:
            cache: tells how flavor-resources stand.
            reasons: tells why searches fail.
            version: of the queue's tree.
        """
        if version == self._holds_at:
            return True
        if version == self._fails_at:
            return False
        self._fails_at = version
        queue = self._queue
        changed = queue.generation != self._generation
        # Below a root it follows from the queue's own usage how high the quota has to come from.
        may_be_higher = changed or len(queue.path) > 1
        for cell, amount, (was_available, was_height) in self._checks:
            if available(cache, queue, cell, amount) is not was_available:
                return False
            if may_be_higher and height(cache, queue, cell, amount) != was_height:
                return False
        if changed:
            found = _why_all_fail(self._searches, reasons)
            if found is None:
                return False
            self._generation, self._why = queue.generation, found
            self.turn_matters = bool(self.assignment.placed and found)
        else:
            for why in self._why:
                if not reasons.still_no_targets(why):
                    return False
        if self._no_place is not None and self._no_place.place() is not None:
            return False
        self._holds_at, self._fails_at = version, -1
        return True


@final
class CachedNoFits:
    """The failed assignments of equivalence classes.

    Valid by content: ClusterQueue and scheduling hash; each as long as its facts are still so.

    Args:
        cache: the holders of quota.
        pending: the pending queues, by number of the ClusterQueue.
        reasons: know why searches fail.
        gates: the feature gates.
        topologies: the flavors with a topology; None where there is none.
    """

    def __init__(
        self,
        cache: Cache,
        pending: Sequence[PendingQueue],
        reasons: Reasons,
        gates: Gates,
        topologies: TopologyFlavors | None,
    ) -> None:
        self._cache = cache
        self._pending = pending
        self._reasons = reasons
        self._topologies = topologies
        self._known: Memo[str, CachedNoFit] = Memo(most=max(4096, 16 * len(pending)))
        self._by_class = gates.scheduling_equivalence_hashing
        # Number of a queue -> whether its heads reserve something, as a rule and for its preemptor.
        self._reserves = [
            (reserves(each.queue, gates, marked=False), reserves(each.queue, gates, marked=True))
            for each in pending
        ]

    def version(self, queue: ClusterQueueState) -> int:
        """The version of a queue's tree; room in topologies is shared between trees."""
        version = self._cache.version[queue.root]
        return version if self._topologies is None else version + self._topologies.version

    def of(self, workload: Workload, version: int) -> Assignment | None:
        """The failed assignment of a workload's class, if it would fail in the same way now.

        Args:
            workload: the workload.
            version: the version of its queue's tree.
        """
        no_fit = self._known.get(workload.place.equivalence_class.key)
        if no_fit is None or not no_fit.still(self._cache, self._reasons, version):
            return None
        return no_fit.assignment

    def note(self, workload: Workload, assignment: Assignment, oracle: RecordedOracle) -> None:
        """Keep a failed assignment, unless it may change in ways that the cache does not check.

        Args:
            workload: who failed.
            assignment: the assignment, of all pods and from the first flavor on.
            oracle: all questions that were asked to find it.
        """
        queue = workload.cluster_queue
        if assignment.mode == FIT or assignment.untried or oracle.found_targets:
            return
        if not self._reasons.are_known(queue):
            return
        if oracle.no_place is not None and not oracle.no_place.alone:
            return
        why = _why_all_fail(oracle.failed, self._reasons)
        if why is not None:  # else what was in vain before may be so again
            self._known[workload.place.equivalence_class.key] = CachedNoFit(
                assignment,
                queue,
                self.version(queue),
                oracle.checks,
                oracle.no_place,
                oracle.failed,
                why,
            )

    def still_reserves(self, workload: Workload) -> bool | None:
        """Whether a head keeps quota from others in its turn, if nothing else comes of that turn.

        None if more may come of it than that it becomes inadmissible with its class.
        """
        place, number = workload.place, workload.cluster_queue.number
        no_fit = self._known.get(place.equivalence_class.key)
        if no_fit is None or no_fit.refusal != place.told.last or not self._by_class:
            return None
        pending = self._pending[number]
        if pending.strict or no_fit.turn_matters or place.last_assignment is not None:
            return None
        if not no_fit.still(self._cache, self._reasons, self.version(workload.cluster_queue)):
            return None
        return no_fit.assignment.mode != NO_FIT and self._reserves[number][pending.preemptor is workload]


def _why_all_fail(searches: list[FailedSearch], reasons: Reasons) -> list[NoTargets] | None:
    """Why searches fail for other reasons than the queue's own state; None if one may succeed."""
    found = []
    for failed in searches:
        why = reasons.no_targets(failed)
        if why is None:
            return None
        if why.failed is not None:
            found.append(why)
    return found
