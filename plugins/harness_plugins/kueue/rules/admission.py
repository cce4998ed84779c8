"""The admission cycle, which nominates the head of each queue and then serves the heads one by one.

The quota tree takes the place of Kueue's snapshot. The cycle charges reservations to the tree as it serves
entries, and refunds them when the cycle ends. Heads that are not admitted stay in their queues. Upstream:
`schedule`, `nominate`, `processEntry` and `requeueAndUpdate` in pkg/scheduler/scheduler.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias, final

from harness.models.quota import QuotaTree
from harness_plugins.kueue.previews.preemption_rate import PreemptionRate
from harness_plugins.kueue.rules.entry import (
    DEFERRED,
    FAILED_AFTER_NOMINATION,
    LIMITED,
    NO_LONGER_FITS,
    NO_PREEMPTION_CANDIDATES,
    NO_QUOTA,
    NOBODY,
    OVERLAP,
    PENDING,
    PENDING_PREEMPTION,
    Admitted,
    Entry,
    Evicted,
    Order,
    Outcome,
    Preempted,
    Replaced,
    Victims,
)
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_assigner import DEFERRED_FIT, FIT, NO_FIT, PREEMPT, Assignment
from harness_plugins.kueue.rules.nomination import Nominator
from harness_plugins.kueue.rules.preemption import fits
from harness_plugins.kueue.rules.second_pass import SecondPassNominator
from harness_plugins.kueue.rules.snapshot import Reservation, Snapshot
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.second_passes import SecondPass
from harness_plugins.kueue.state.topology.flavors import without
from harness_plugins.kueue.state.workload import Workload

Fails: TypeAlias = Callable[[Entry, str, Victims, Sequence[Reservation]], None]
"""Called when an entry fails. The arguments are the entry with its reason, and Kueue's message if the reason
alone is not specific enough. The last ones are the evicted workloads whose termination could make room, and
the reservations so far.
"""


@final
class AdmissionCycle:
    """Runs admission cycles.

    Args:
        cache: the workloads that hold quota. Only admissions change the cache.

    Attributes:
        entries: the heads of the last cycle.
        in_vain: the second passes that failed in the last cycle and must be repeated. In a second pass, Kueue
            looks for other places for a workload that already holds quota.
    """

    def __init__(
        self,
        cache: Cache,
        pending: Sequence[PendingQueue],
        nominator: Nominator,
        order: Order,
        gates: Gates,
        failed: Fails,
        rate: PreemptionRate | None = None,
        second_pass: SecondPassNominator | None = None,
    ) -> None:
        self._cache = cache
        self._rate = rate
        self._pending = pending
        self._tree = cache.tree
        self._nominator = nominator
        self._order = order
        self._gates = gates
        self._recomputes = gates.recompute_assignment_upon_preemption_targets_overlap
        self._places_anew = gates.tas_recompute_assignment_within_scheduling_cycle
        self._second_pass = second_pass
        self.entries: list[Entry] = []
        self.in_vain: list[SecondPass] = []
        self._failed = failed
        self._snapshot = Snapshot(cache, 0)

    def run(self, heads: list[Workload], cycle: int, second: Sequence[SecondPass] = ()) -> Iterator[Outcome]:
        """Runs one cycle, and requeues the heads that the cycle does not admit."""
        self._snapshot = Snapshot(self._cache, cycle)
        entries = self.entries = [self._nominate(workload, cycle) for workload in heads]
        first = [] if self._second_pass is None else list(map(self._second_pass.entry, second))
        self.in_vain = []
        for entry in self._order([*first, *entries] if first else entries):
            if not entry.reason:
                one = entry.second
                outcome = self._serve(entry) if one is None else self._serve_second_pass(entry, one)
                if outcome is not None:
                    yield outcome
        self._snapshot.end()
        for entry in entries:
            if entry.reason:
                self._requeue(entry)

    def _nominate(self, workload: Workload, cycle: int) -> Entry:
        """Returns the entry of a head. The entry has a reason to wait if serving it would change nothing."""
        assignment = self._nominator.nominate(workload, cycle)
        marked = self._pending[workload.cluster_queue.number].preemptor is workload
        entry = Entry(workload, assignment, marked=marked)
        if assignment.mode == NO_FIT:
            self._fails(entry, NO_QUOTA)
        elif assignment.mode == PREEMPT and not (assignment.targets or assignment.placed):
            self._fails(entry, NO_PREEMPTION_CANDIDATES)  # earlier entries cannot add candidates
            if reserves(workload.cluster_queue, self._gates, marked=marked):
                entry.reason = ""  # so that it is served
        return entry

    def _fails(self, entry: Entry, reason: str, message: str = "", waits_for: Victims = NOBODY) -> None:
        """Sets why an entry waits."""
        entry.reason = reason
        self._failed(entry, message, waits_for, self._snapshot.reserved)

    def _serve(self, entry: Entry) -> Admitted | Preempted | None:
        """Serves one entry after the earlier entries of the cycle, and returns its immediate outcome."""
        workload = entry.workload
        queue = workload.cluster_queue
        victims = self._snapshot.victims.setdefault(queue.root, {})
        assignment = entry.assignment
        if victims and self._recomputes and _overlap(assignment, victims):
            anew = self._nominator.reassign(workload, assignment, self._snapshot, without_victims=True)
            assignment = entry.assignment = _deferred(anew)
        elif (
            assignment.placed
            and self._places_anew
            and self._fits(assignment, queue.node, victims)
            and not self._has_place(assignment)
        ):
            assignment = entry.assignment = self._nominator.reassign(workload, assignment, self._snapshot)
        targets = assignment.targets
        overlaps = bool(victims) and _overlap(assignment, victims)
        if assignment.mode == NO_FIT:
            self._fails(entry, NO_QUOTA)
        elif assignment.mode == PREEMPT and not targets:
            self._fails(entry, NO_PREEMPTION_CANDIDATES)
            self._reserve_for_later(entry)
        elif assignment.mode == DEFERRED_FIT:
            workload.last_assignment = None
            self._fails(entry, PENDING_PREEMPTION, DEFERRED, victims)
            self._reserve(entry, assignment.usage)
        elif overlaps or not (self._fits(assignment, queue.node, victims) and self._has_place(assignment)):
            if not self._gates.flavor_fungibility_preserve_scan_progress:
                workload.last_assignment = None
            if overlaps:
                both = [each.workload for each in targets if each.workload in victims]
                self._fails(entry, FAILED_AFTER_NOMINATION, OVERLAP, {each: victims[each] for each in both})
            else:
                gone = {each.workload: victims.get(each.workload) for each in targets} | victims
                self._fails(entry, FAILED_AFTER_NOMINATION, NO_LONGER_FITS, gone)
        elif assignment.mode == FIT:
            self._reserve(entry, assignment.usage)
            self._pending[queue.number].remove(workload)
            return Admitted(workload, assignment)
        else:
            taken = tuple(target.workload for target in targets)
            fresh = [target for target in targets if not target.workload.evicted]
            if fresh and self._rate is not None and not self._rate.allows(workload, fresh):
                workload.last_assignment = None
                self._fails(entry, FAILED_AFTER_NOMINATION, LIMITED, dict.fromkeys(taken))
                self._reserve_for_later(entry)
                return None
            if taken and not fresh:
                self._fails(entry, PENDING_PREEMPTION, PENDING, dict.fromkeys(taken))
            self._reserve(entry, assignment.usage)
            self._snapshot.preempt(taken, workload)
            entry.reason = PENDING_PREEMPTION
            workload.last_assignment = None
            if fresh:
                if self._rate is not None:
                    self._rate.preempted(fresh)
                told = workload.told  # the preemptions record this reason themselves
                workload.told = told._replace(last=PENDING_PREEMPTION + PENDING)
                return Preempted(workload, assignment, fresh)
        return None

    def _serve_second_pass(self, entry: Entry, one: SecondPass) -> Replaced | Evicted | Preempted | None:
        """Serves a workload that lost a node. The workload gets places on other nodes but needs no new quota.

        The workload still occupies its place on the lost node until the next cycle. If the workload became a
        preemption target earlier in this cycle, it is preempted and gets no other place.
        """
        assert self._second_pass is not None
        workload, nominate = entry.workload, self._second_pass.nominate
        root = workload.cluster_queue.root
        victims = self._snapshot.victims.setdefault(root, {})
        if victims and self._recomputes and _overlap(entry.assignment, victims):
            found, entry.placed = self._snapshot.without_victims(root, lambda: nominate(one))
            entry.assignment = _deferred(found)
        elif self._places_anew and not self._has_place(entry.assignment):
            entry.assignment, entry.placed = nominate(one)
        assignment = entry.assignment
        if workload.evicted or workload in victims:
            return None
        if assignment.mode == NO_FIT:
            return Evicted(workload, one.node)
        if assignment.mode == DEFERRED_FIT:
            self._reserve(entry, ())
        elif (
            (assignment.mode == FIT or assignment.targets)
            and not _overlap(assignment, victims)
            and self._has_place(assignment)
        ):
            self._reserve(entry, ())
            if assignment.mode == FIT:
                return Replaced(workload, entry.placed, one.node)
            self.in_vain.append(one)
            taken = tuple([target.workload for target in assignment.targets])
            self._snapshot.preempt(taken, workload)
            fresh = [target for target in assignment.targets if not target.workload.evicted]
            return Preempted(workload, assignment, fresh) if fresh else None
        self.in_vain.append(one)
        return None

    def _fits(self, assignment: Assignment, node: int, victims: dict[Workload, Workload]) -> bool:
        """Returns True if the quota suffices once this tree's victims and the entry's targets are gone."""
        tree = self._tree
        gone = dict.fromkeys([*victims, *[target.workload for target in assignment.targets]])
        if not gone:
            return fits(tree, node, assignment.usage, borrowing=True)
        usage, tree.usage = tree.usage, tree.usage.copy()
        for each in gone:
            tree.refund(each.cluster_queue.node, each.usage)
        enough = fits(tree, node, assignment.usage, borrowing=True)
        tree.usage = usage
        return enough

    def _has_place(self, assignment: Assignment) -> bool:
        """Returns True if the assigned places are free once all victims and the entry's targets are gone.

        Victims in all trees count, because trees can share topologies.
        """
        if not assignment.placed:
            return True
        targets = [target.workload for target in assignment.targets]
        gone = [
            placed
            for workload in dict.fromkeys(chain(*self._snapshot.victims.values(), targets))
            for placed in workload.placed
        ]
        return without(gone, lambda: all(placed.fits() for placed in assignment.placed))

    def _reserve(self, entry: Entry, amounts: Amounts) -> None:
        self._snapshot.reserve(entry.workload, amounts, entry.assignment.placed)

    def _reserve_for_later(self, entry: Entry) -> None:
        """Reserves quota for an entry that cannot preempt, so that later entries cannot take that quota."""
        queue, assignment = entry.workload.cluster_queue, entry.assignment
        if reserves(queue, self._gates, marked=entry.marked):
            borrows = bool(assignment.borrowing)
            self._reserve(entry, kept_for_later(self._tree, queue, assignment.usage, borrows=borrows))

    def _requeue(self, entry: Entry) -> None:
        """Keeps a waiting head in its queue for the next cycle, or marks it as inadmissible."""
        workload, reason = entry.workload, entry.reason
        pending = self._pending[workload.cluster_queue.number]
        if reason == PENDING_PREEMPTION:
            pending.preempts(workload)
        again = reason in (PENDING_PREEMPTION, FAILED_AFTER_NOMINATION)
        if pending.queue.strict or again or workload.last_assignment is not None:
            return
        entry.inadmissible = True
        if self._gates.scheduling_equivalence_hashing:
            pending.set_class_inadmissible(workload.equivalence_class)
        else:
            pending.set_inadmissible(workload)


def reserves(queue: ClusterQueueState, gates: Gates, *, marked: bool) -> bool:
    """Returns True if a waiting head reserves quota. A queue that always reclaims needs no reservation."""
    always = gates.always_reclaims and queue.spec.preemption.reclaim_within_cohort == "Any"
    return not always or (gates.prioritize_preemptor_workloads and marked)


def kept_for_later(tree: QuotaTree, queue: ClusterQueueState, usage: Amounts, *, borrows: bool) -> Amounts:
    """Returns the quota to reserve for an entry: its requests, limited to the quota left for the queue."""
    reserved = []
    for cell, amount in usage:
        at = queue.node * tree.width + cell
        left = tree.nominal[at] - tree.usage[at]
        if borrows:
            limit = tree.borrowing_limit[at]
            reserved.append((cell, amount if limit is None else min(amount, left + limit)))
        else:
            reserved.append((cell, max(0, min(amount, left))))
    return tuple(reserved)


def _deferred(assignment: Assignment) -> Assignment:
    """Returns an assignment that must wait if it fits, because it fits only after the victims are gone."""
    return assignment._replace(mode=DEFERRED_FIT) if assignment.mode == FIT else assignment


def _overlap(assignment: Assignment, victims: dict[Workload, Workload]) -> bool:
    return any(target.workload in victims for target in assignment.targets)
