"""The admission cycle: every queue's head is nominated, then served one by one; who waits stays in its queue.

The quota tree takes the place of Kueue's snapshot. What entries of a cycle only reserve is charged while the
cycle lasts and taken back at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

from harness_plugins.kueue.assignment import DEFERRED_FIT, FIT, NO_FIT, PREEMPT, Assignment
from harness_plugins.kueue.cache import Cache
from harness_plugins.kueue.configuration import Gates
from harness_plugins.kueue.entries import Entry, Order
from harness_plugins.kueue.nomination import Nominator
from harness_plugins.kueue.search import Target, fits, put_back, remove
from harness_plugins.kueue.topology.flavors import Placed
from harness_plugins.kueue.workload import Amounts, Workload

NO_QUOTA = "NoFit"
NO_PREEMPTION_CANDIDATES = "PreemptionNoCandidates"
PENDING_PREEMPTION = "PendingPreemption"
FAILED_AFTER_NOMINATION = "FailedAfterNomination"


class Admitted(NamedTuple):
    """A head gets its quota."""

    workload: Workload
    assignment: Assignment


class Preempted(NamedTuple):
    """Workloads have to go so that a head can be admitted in a later cycle.

    Attributes:
        preemptor: the head.
        assignment: what it is to get.
        targets: who is told to go; those that are going already are not told again.
    """

    preemptor: Workload
    assignment: Assignment
    targets: list[Target]


class Refused(NamedTuple):
    """A head goes back to its queue, and nothing was done that helps it."""

    workload: Workload
    assignment: Assignment
    reason: str


@final
class AdmissionCycle:
    """Runs admission cycles.

    Args:
        cache: who holds which quota; changed only by what is admitted.
        nominator: finds assignments.
        order: the order in which entries are served.
        gates: the feature gates.

    Attributes:
        parked: whether the last cycle found some head inadmissible.
        refused: the heads of the last cycle that nothing helps, if that is the first time since they wait.
        restless: the roots of trees in which the next cycle would not go the same way.
    """

    def __init__(self, cache: Cache, nominator: Nominator, order: Order, gates: Gates) -> None:
        self._cache = cache
        self._tree = cache.tree
        self._nominator = nominator
        self._order = order
        self._gates = gates
        self._by_kin = gates.scheduling_equivalence_hashing
        self._recomputes = gates.recompute_assignment_upon_preemption_targets_overlap
        self._places_anew = gates.tas_recompute_assignment_within_scheduling_cycle
        self.parked = False
        self.refused: list[Refused] = []
        self.restless: set[int] = set()
        self._reserved: list[tuple[int, Amounts, Sequence[Placed]]] = []
        self._victims: dict[int, dict[Workload, None]] = {}

    def run(self, heads: list[Workload], cycle: int) -> Iterator[Admitted | Preempted]:
        """Run one cycle over its heads, and put those back that were not admitted.

        Args:
            heads: one workload of each queue that has any.
            cycle: the number of the cycle.
        """
        entries = [self._nominate(workload, cycle) for workload in heads]
        self._victims.clear()
        self.parked = False
        self.restless.clear()
        for entry in self._order(entries):
            if not entry.reason:
                entry.served = True
                outcome = self._serve(entry, cycle)
                if outcome is not None:
                    yield outcome
        for node, amounts, places in reversed(self._reserved):
            self._tree.refund(node, amounts)
            for placed in places:
                placed.refund()
        self._reserved.clear()
        for entry in entries:
            if entry.reason:
                self._requeue(entry)
                if (
                    entry.reason in (NO_PREEMPTION_CANDIDATES, NO_QUOTA)
                    and entry.reason not in entry.workload.refused
                ):
                    entry.workload.refused += (entry.reason,)
                    self.refused.append(Refused(entry.workload, entry.assignment, entry.reason))
            else:
                self.restless.add(entry.workload.home.queue.root)

    def in_vain(self, workload: Workload) -> bool:
        """Whether a head would be parked with its kin as before, and nothing else would come of its turn."""
        hopeless = workload.kin.hopeless
        if hopeless is None or not self._by_kin or workload.home.strict:
            return False
        if hopeless.assignment.mode == NO_FIT:
            told = NO_QUOTA in workload.refused
        else:
            told = NO_PREEMPTION_CANDIDATES in workload.refused and not self._reserves(workload)
        return told and self._nominator.in_vain(workload, hopeless)

    def _nominate(self, workload: Workload, cycle: int) -> Entry:
        """A head's entry; it has its reason already if to serve it would change nothing."""
        entry = Entry(workload, self._nominator.nominate(workload, cycle))
        mode = entry.assignment.mode
        if mode == NO_FIT:
            entry.reason = NO_QUOTA
        elif (
            mode == PREEMPT
            and not (entry.assignment.targets or entry.assignment.placed)
            and not self._reserves(workload)
        ):
            entry.reason = NO_PREEMPTION_CANDIDATES
        return entry

    def _serve(self, entry: Entry, cycle: int) -> Admitted | Preempted | None:
        """Serve one entry in the state that those before it left; answers what comes of it at once."""
        workload = entry.workload
        queue = workload.home.queue
        victims = self._victims.setdefault(queue.root, {})
        assignment = entry.assignment
        if victims and self._recomputes and _overlap(assignment, victims):
            assignment = entry.assignment = self._reassign(entry, victims, cycle)
        elif (
            assignment.placed
            and self._places_anew
            and self._fits(assignment, queue.node, victims)
            and not self._has_place(assignment, victims)
        ):
            assignment = entry.assignment = self._nominator.reassign(workload, assignment, cycle)
        targets = assignment.targets
        if assignment.mode == NO_FIT:
            entry.reason = NO_QUOTA
        elif assignment.mode == PREEMPT and not targets:
            entry.reason = NO_PREEMPTION_CANDIDATES
            self._reserve_for_later(entry)
        elif assignment.mode == DEFERRED_FIT:
            entry.reason = PENDING_PREEMPTION
            workload.memory = None
            self._reserve(queue.node, assignment.usage, assignment.placed)
        elif (
            (victims and _overlap(assignment, victims))
            or not self._fits(assignment, queue.node, victims)
            or not self._has_place(assignment, victims)
        ):
            entry.reason = FAILED_AFTER_NOMINATION
            if not self._gates.flavor_fungibility_preserve_scan_progress:
                workload.memory = None
        else:
            self._reserve(queue.node, assignment.usage, assignment.placed)
            if assignment.mode == FIT:
                workload.home.remove(workload)
                return Admitted(workload, assignment)
            victims.update(dict.fromkeys(target.workload for target in targets))
            entry.reason = PENDING_PREEMPTION
            workload.memory = None
            fresh = [target for target in targets if not target.workload.evicted]
            if fresh:
                self.restless.add(queue.root)
                return Preempted(workload, assignment, fresh)
        return None

    def _reassign(self, entry: Entry, victims: dict[Workload, None], cycle: int) -> Assignment:
        """Look for other targets as if the victims of this cycle were gone already.

        What fits then has to wait until they are.
        """
        for victim in victims:
            remove(self._tree, victim)
            self._cache.strike(victim)
        assignment = self._nominator.reassign(entry.workload, entry.assignment, cycle)
        for victim in victims:
            put_back(self._tree, victim)
            assert victim.queue is not None
            self._cache.enrol(victim, victim.queue)
        return assignment._replace(mode=DEFERRED_FIT) if assignment.mode == FIT else assignment

    def _fits(self, assignment: Assignment, node: int, victims: dict[Workload, None]) -> bool:
        """Whether the quota for an assignment is there once all victims, its own among them, are gone."""
        tree = self._tree
        gone = [*victims, *[target.workload for target in assignment.targets]]
        for workload in gone:
            remove(tree, workload)
        enough = fits(tree, node, assignment.usage, borrowing=True)
        for workload in gone:
            put_back(tree, workload)
        return enough

    def _has_place(self, assignment: Assignment, victims: dict[Workload, None]) -> bool:
        """Whether the places of an assignment are free once all victims, its own among them, are gone."""
        if not assignment.placed:
            return True
        gone = [
            placed
            for workload in (*victims, *(target.workload for target in assignment.targets))
            for placed in workload.placed
        ]
        for placed in gone:
            placed.refund()
        free = all(placed.fits() for placed in assignment.placed)
        for placed in gone:
            placed.charge()
        return free

    def _reserve(self, node: int, amounts: Amounts, places: Sequence[Placed]) -> None:
        """Let the entries that follow see an amount as used, and places as taken."""
        self._tree.charge(node, amounts)
        for placed in places:
            placed.charge()
        self._reserved.append((node, amounts, places))

    def _reserve_for_later(self, entry: Entry) -> None:
        """Keep for an entry that cannot preempt what others could otherwise take from it for good."""
        workload, tree = entry.workload, self._tree
        if not self._reserves(workload):
            return
        queue = workload.home.queue
        reserved = []
        for cell, amount in entry.assignment.usage:
            at = queue.node * tree.width + cell
            left = tree.nominal[at] - tree.usage[at]
            if entry.assignment.borrowing:
                limit = tree.borrowing_limit[at]
                reserved.append((cell, amount if limit is None else min(amount, left + limit)))
            else:
                reserved.append((cell, max(0, min(amount, left))))
        self._reserve(queue.node, tuple(reserved), entry.assignment.placed)

    def _reserves(self, workload: Workload) -> bool:
        """Whether a reservation helps: who may reclaim from anybody always gets its quota back."""
        marked = self._gates.prioritize_preemptor_workloads and workload.home.preemptor is workload
        return workload.home.queue.spec.preemption.reclaim_within_cohort != "Any" or marked

    def _requeue(self, entry: Entry) -> None:
        """Leave a head that waits where it is, to try again at once, or park it until quota becomes free."""
        workload, reason = entry.workload, entry.reason
        pending = workload.home
        root = pending.queue.root
        if reason == PENDING_PREEMPTION and pending.preemptor is not workload:
            pending.preemptor = workload
            self.restless.add(root)
        again = reason in (PENDING_PREEMPTION, FAILED_AFTER_NOMINATION)
        untried = workload.memory is not None
        if untried or (workload.nomination is not None and workload.nomination.tried):
            self.restless.add(root)  # it begins with another flavor next time
        if pending.strict or again or untried:
            return
        self.parked = True
        if entry.served or not self._by_kin or len(pending.queue.path) > 1:
            self.restless.add(root)  # others may have taken notice: of what it reserved, or of its share
        if self._by_kin:
            pending.park_kin(workload.kin)
        else:
            pending.park(workload)


def _overlap(assignment: Assignment, victims: dict[Workload, None]) -> bool:
    """Whether an assignment counts on some victim of another entry."""
    return any(target.workload in victims for target in assignment.targets)
