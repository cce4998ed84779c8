"""Nomination, which finds an assignment with which a head could be admitted now.

The assignment is for all pods or, if the job allows it, for fewer pods.

Upstream: `nominate` and `getAssignments` in pkg/scheduler/scheduler.go, and `NextFlavorToTry...` and
`LastAssignment` in pkg/workload.
"""

from __future__ import annotations

from typing import Protocol, final

from harness_plugins.kueue.rules.assignment import FIT, PREEMPT, Assignment
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_assigner import Assigner
from harness_plugins.kueue.rules.flavor_offers import Offers
from harness_plugins.kueue.rules.pod_set_reducer import most_that_work
from harness_plugins.kueue.rules.preemption_oracle import OracleFactory
from harness_plugins.kueue.rules.snapshot import Snapshot
from harness_plugins.kueue.state.last_assignment import Chosen, LastAssignment, Tried
from harness_plugins.kueue.state.workload import Workload


class Nominates(Protocol):
    """Finds assignments for the heads of queues."""

    def nominate(self, workload: Workload, cycle: int) -> Assignment:
        """Returns the assignment of a head in this cycle, and remembers which flavors were considered."""

    def reassign(
        self,
        workload: Workload,
        first: Assignment,
        cycle: int,
        snapshot: Snapshot,
        *,
        without_victims: bool = False,
    ) -> Assignment:
        """Repeats an assignment within the same cycle, with the flavors that were chosen before.

        Args:
            workload: the head.
            first: the assignment from its nomination.
            cycle: the number of the cycle.
            snapshot: the reservations and victims of the cycle so far.
            without_victims: whether the workloads that this cycle preempts count as gone.
        """


@final
class Nominator:
    """Finds assignments for heads, based on the current state of the cache."""

    def __init__(self, offers: Offers, assigner: Assigner, oracle: OracleFactory, gates: Gates) -> None:
        self._offers = offers
        self._assigner = assigner
        self._oracle = oracle
        self._gates = gates

    def nominate(self, workload: Workload, cycle: int) -> Assignment:
        """Returns the assignment of a head in this cycle, and remembers which flavors were considered."""
        assignment = self.assign(workload, self.where_to_go_on(workload, cycle))
        self.remember(workload, assignment, cycle)
        return assignment

    def reassign(
        self,
        workload: Workload,
        first: Assignment,
        cycle: int,
        snapshot: Snapshot,
        *,
        without_victims: bool = False,
    ) -> Assignment:
        """Repeats an assignment within the same cycle, with the flavors that were chosen before."""

        def assign() -> Assignment:
            return self.assign(workload, (), first.chosen)

        root = workload.cluster_queue.root
        assignment = snapshot.without_victims(root, assign) if without_victims else assign()
        self.remember(workload, assignment, cycle)
        return assignment

    def where_to_go_on(self, workload: Workload, cycle: int) -> Tried:
        """Returns the flavors that a workload has tried, or () if its next scan starts with the first flavor.

        The scan starts over if the last attempt is older than the last cycle and the queue has changed in the
        meantime. Without the FlavorFungibility gate, every scan starts with the first flavor.
        """
        last = workload.place.last_assignment
        if last is None or not self._gates.flavor_fungibility:
            return ()
        if self._gates.flavor_fungibility_preserve_scan_progress and cycle - last.cycle <= 1:
            return last.tried
        return last.tried if workload.cluster_queue.generation <= last.generation else ()

    def remember(self, workload: Workload, assignment: Assignment, cycle: int) -> None:
        """Stores the flavors that were considered. If these were all flavors, the next scans start over."""
        workload.place.last_assignment = None
        if assignment.untried:
            generation = workload.cluster_queue.generation
            workload.place.last_assignment = LastAssignment(assignment.tried, cycle, generation)

    def assign(self, workload: Workload, tried: Tried, allowed: Chosen | None = None) -> Assignment:
        """Assigns flavors to all pods. If that fails and the job allows it, assigns flavors to fewer pods.

        `tried` and `allowed` are the same as for `Assigner.assign`.
        """
        offers = self._offers(workload.asks, workload.cluster_queue)
        whole = self._assigner.assign(self._oracle(workload), offers, workload.counts, tried, allowed)
        if _works(whole) or not (self._gates.partial_admission and workload.asks.reducible):
            return whole

        def fewer(counts: tuple[int, ...]) -> Assignment | None:
            found = self._assigner.assign(self._oracle(workload), offers, counts, tried, allowed)
            return found if _works(found) else None

        return most_that_work(workload.asks, workload.counts, fewer) or whole


def _works(assignment: Assignment) -> bool:
    return assignment.mode == FIT or (assignment.mode == PREEMPT and bool(assignment.targets))
