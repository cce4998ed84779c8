"""Detects, without another search, workloads that still cannot be admitted.

When quota is freed anywhere in a tree, Kueue tries every inadmissible workload of the tree again, and almost
all of these attempts fail. If the reasons are the queue's own state and its available quota, they can be
checked without a search. A search would have the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.base.memo import Memo
from harness.models.told import Told
from harness_plugins.kueue.rules.admission import reserves
from harness_plugins.kueue.rules.entry import (
    FAILED_AFTER_NOMINATION,
    NO_PREEMPTION_CANDIDATES,
    NO_QUOTA,
    why_not,
)
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_assigner import FIT, NO_FIT, Assignment
from harness_plugins.kueue.rules.preemption import Incoming
from harness_plugins.kueue.rules.preemption_oracle import quota_of
from harness_plugins.kueue.rules.topology.placement import WorkloadTopology
from harness_plugins.kueue.shortcuts.no_targets import NoTargets, Reasons
from harness_plugins.kueue.shortcuts.recorded_oracle import Check, RecordedOracle
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.topology.flavors import TopologyFlavors
from harness_plugins.kueue.state.workload import Workload


@final
class CachedNoFit:
    """An assignment that failed, and the facts that it depends on.

    The facts about the queue's own state are valid for one generation of the ClusterQueue. The effects of
    other queues are checked for each version of the tree.

    Args:
        assignment: the assignment, which is valid for the whole equivalence class of a workload.
        version: the version of the queue's tree at the last check.
        checks: the recorded quota of the flavor-resources.
        no_place: the topology request for which there was quota but no place, or None if there was none.
        why: the reason for each failed search that depends on other queues.

    Attributes:
        refusal: the reason of the failure. See `why_not`.
        turn_matters: whether the result can be different when the head is served after other entries of the
            cycle. A head that would have a place only in an empty topology is then assigned again. The new
            assignment can succeed only if changed shares now allow the preemption of other queues' workloads.
    """

    def __init__(
        self,
        assignment: Assignment,
        queue: ClusterQueueState,
        version: int,
        checks: list[Check],
        no_place: WorkloadTopology | None,
        searches: list[Incoming],
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
        self._version, self._holds = version, True
        self._branch = -1  # the version of the queue's branch at the last check that succeeded
        self.turn_matters = bool(assignment.placed and why)

    def still(self, cache: Cache, reasons: Reasons, version: int) -> bool:
        """Returns True if all facts that the failure depends on still hold.

        While the queue itself does not change, only the effects of other queues are checked.
        """
        if version == self._version:
            return self._holds
        self._version, self._holds = version, False
        queue, available = self._queue, cache.tree.available
        branch, changed = cache.version[queue.branch], queue.generation != self._generation
        # The usage of the nodes below the root says which node has the quota.
        may_move = changed or (branch != self._branch and len(queue.path) > 1)
        for cell, amount, quota in self._checks:
            if may_move:
                if quota_of(cache, queue, cell, amount) != quota:
                    return False
            elif amount and (amount <= available(queue.node, cell)) is not quota[0]:
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
        self._branch, self._holds = branch, True
        return True


@final
class CachedNoFits:
    """The failed assignments of equivalence classes.

    The cache key consists of the ClusterQueue and the scheduling hash. An entry is valid while the facts that
    it depends on hold.
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
        self._reasons = reasons
        self._topologies = topologies
        # The last two failures of each class. A class often fails now in one way, and now in the other.
        self._known: Memo[str, tuple[CachedNoFit, ...]] = Memo(most=max(4096, 16 * len(pending)))
        self._by_class = gates.scheduling_equivalence_hashing
        # For each queue, whether its heads reserve quota: an ordinary head, and the preemptor.
        self._reserves = [
            (reserves(each.queue, gates, marked=False), reserves(each.queue, gates, marked=True))
            for each in pending
        ]

    def version(self, queue: ClusterQueueState) -> int:
        """Returns the version of a queue's tree, plus the version of the topologies if there are any.

        Evictions do not change the version if the order of candidates stays the same. No search fails because
        of such evictions.
        """
        version = self._cache.unmarked_version[queue.root]
        return version if self._topologies is None else version + self._topologies.version

    def of(self, workload: Workload, version: int) -> Assignment | None:
        """Returns the failed assignment of a workload's class if it would fail in the same way now."""
        no_fit = self._still(workload, version)
        return None if no_fit is None else no_fit.assignment

    def _still(self, workload: Workload, version: int) -> CachedNoFit | None:
        for no_fit in self._known.get(workload.equivalence_class.key, ()):
            if no_fit.still(self._cache, self._reasons, version):
                return no_fit
        return None

    def note(self, workload: Workload, assignment: Assignment, oracle: RecordedOracle) -> None:
        """Caches a failed assignment, unless it depends on facts that the cache does not check.

        The assignment must be for all pods of the workload, and its scan must have started with the first
        flavor.
        """
        queue = workload.cluster_queue
        if assignment.mode == FIT or assignment.untried or oracle.found_targets:
            return
        if not self._reasons.are_known(queue):
            return
        if oracle.no_place is not None and not oracle.no_place.alone:
            return
        why = _why_all_fail(oracle.failed, self._reasons)
        if why is not None:
            no_fit = CachedNoFit(
                assignment, queue, self.version(queue), oracle.checks, oracle.no_place, oracle.failed, why
            )
            key = workload.equivalence_class.key
            self._known[key] = no_fit, *self._known.get(key, ())[:1]

    def futile(
        self, workload: Workload, pending: PendingQueue, version: int
    ) -> tuple[Assignment, bool, Told | None] | None:
        """Returns the assignment of a futile head, and whether the head reserves quota when it is served.

        The last element is the head's new recorded reasons, or None if its reason for waiting stays the same.
        Returns None if serving the head may have other effects than making its class inadmissible. `version`
        is the result of the method `version`.
        """
        queue = pending.queue
        if queue.strict or not self._by_class or workload.last_assignment is not None:
            return None
        no_fit = self._still(workload, version)
        if no_fit is None or no_fit.turn_matters:
            return None
        told, after = workload.told, None
        if no_fit.refusal != told.last:
            after = told.then(no_fit.refusal)
            if told.tells(after) or not str(told.last).startswith(FAILED_AFTER_NOMINATION):
                return None
        assignment = no_fit.assignment
        reserving = assignment.mode != NO_FIT and self._reserves[queue.number][pending.preemptor is workload]
        return assignment, reserving, after


def _why_all_fail(searches: list[Incoming], reasons: Reasons) -> list[NoTargets] | None:
    """Returns why searches fail, apart from the queue's own state, or None if some search might succeed."""
    found = []
    for failed in searches:
        why = reasons.no_targets(failed)
        if why is None:
            return None
        if why.incoming is not None:
            found.append(why)
    return found
