"""Nomination: the assignment with which a head could be admitted now, with all pods or, if allowed, fewer.

Upstream: `nominate` and `getAssignments` in pkg/scheduler/scheduler.go; `NextFlavorToTry...` and
`LastAssignment` in pkg/workload.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, final

from harness_plugins.kueue.rules.assignment import FIT, PREEMPT, Assignment
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_assigner import Assigner
from harness_plugins.kueue.rules.flavor_offers import Offers
from harness_plugins.kueue.rules.pod_set_reducer import most_that_work
from harness_plugins.kueue.rules.preemption_oracle import Oracle, OracleFactory
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.last_assignment import Chosen, LastAssignment, Tried
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

Nomination: TypeAlias = tuple[Assignment, bool]
"""The assignment of a head, and whether its scan continued after the flavors that were tried before."""

Reservation: TypeAlias = tuple[int, Amounts, tuple[Placed, ...]]
"""The node of a queue, and the quota and the places that a cycle reserves for an entry."""

Deed: TypeAlias = Reservation | tuple[Workload, ...]
"""An action of a cycle that affects later entries: a reservation, or new victims."""


class Nominates(Protocol):
    """Finds assignments for heads."""

    def nominate(self, workload: Workload, cycle: int) -> Nomination:
        """Returns the assignment of a head in this cycle, and remembers the considered flavors."""

    def reassign(self, workload: Workload, first: Assignment, cycle: int, *, changed: bool) -> Assignment:
        """Assigns again within a cycle, with the flavors that were chosen before.

        Args:
            workload: the head.
            first: the assignment of its nomination.
            cycle: the number of the cycle.
            changed: whether the cycle has reserved quota or removed victims since the nomination.
        """

    def reassign_without(
        self,
        workload: Workload,
        first: Assignment,
        cycle: int,
        *,
        done: Sequence[Deed],
        reassign: Callable[[], Assignment],
    ) -> Assignment:
        """Assigns again within a cycle as if the cycle's victims were gone.

        Args:
            workload: the head.
            first: the assignment of its nomination.
            cycle: the number of the cycle.
            done: the actions of the cycle so far; one list for the whole cycle.
            reassign: removes the cycle's victims, assigns again, and puts the victims back.
        """


@final
class Nominator:
    """Finds assignments for heads in the current state of the cache.

    Args:
        offers: returns the offers of queues to jobs.
        assigner: assigns flavors to a fixed number of pods.
        oracle: makes the oracle that answers the assigner's questions about the state.
        gates: the feature gates.
    """

    def __init__(self, offers: Offers, assigner: Assigner, oracle: OracleFactory, gates: Gates) -> None:
        self._offers = offers
        self._assigner = assigner
        self._oracle = oracle
        self._gates = gates

    def nominate(self, workload: Workload, cycle: int) -> Nomination:
        """Returns the assignment of a head in this cycle, and remembers the considered flavors."""
        tried = self.where_to_go_on(workload, cycle)
        assignment = self.assign(workload, tried)
        self.remember(workload, assignment, cycle)
        return assignment, bool(tried)

    def reassign(self, workload: Workload, first: Assignment, cycle: int, *, changed: bool) -> Assignment:
        """Assigns again within a cycle, with the flavors that were chosen before."""
        assignment = self.assign(workload, (), first.chosen)
        self.remember(workload, assignment, cycle)
        return assignment

    def reassign_without(
        self,
        workload: Workload,
        first: Assignment,
        cycle: int,
        *,
        done: Sequence[Deed],
        reassign: Callable[[], Assignment],
    ) -> Assignment:
        """Assigns again within a cycle as if the cycle's victims were gone."""
        return reassign()

    def where_to_go_on(self, workload: Workload, cycle: int) -> Tried:
        """Returns the flavors that were tried before; none if the scan position is invalid.

        The position is invalid if it is older than the last cycle and the queue has changed. Without the gate
        FlavorFungibility every scan begins with the first flavor.
        """
        last = workload.place.last_assignment
        if last is None or not self._gates.flavor_fungibility:
            return ()
        if self._gates.flavor_fungibility_preserve_scan_progress and cycle - last.cycle <= 1:
            return last.tried
        return last.tried if workload.cluster_queue.generation <= last.generation else ()

    def remember(self, workload: Workload, assignment: Assignment, cycle: int) -> None:
        """Remembers where scans continue; if every scan has ended, the next one begins again."""
        workload.place.last_assignment = None
        if assignment.untried:
            generation = workload.cluster_queue.generation
            workload.place.last_assignment = LastAssignment(assignment.tried, cycle, generation)

    def assign(
        self,
        workload: Workload,
        tried: Tried,
        allowed: Chosen | None = None,
        oracle: Oracle | None = None,
    ) -> Assignment:
        """Assigns flavors to all pods or, if that fails and the job allows it, to fewer pods.

        Args:
            workload: the head.
            tried: where to continue.
            allowed: the only flavors that may be taken; None for any.
            oracle: answers questions about the state; None for a new one.
        """
        offers = self._offers(workload.asks, workload.cluster_queue)
        oracle = oracle or self._oracle(workload)
        whole = self._assigner.assign(oracle, offers, workload.counts, tried, allowed)
        if _works(whole) or not (self._gates.partial_admission and workload.asks.reducible):
            return whole

        def fewer(counts: tuple[int, ...]) -> Assignment | None:
            found = self._assigner.assign(self._oracle(workload), offers, counts, tried, allowed)
            return found if _works(found) else None

        return most_that_work(workload.asks, workload.counts, fewer) or whole


def _works(assignment: Assignment) -> bool:
    return assignment.mode == FIT or (assignment.mode == PREEMPT and bool(assignment.targets))
