"""Nomination, which finds an assignment with which a head could be admitted now.

The assignment is for all pods or, if the job allows it, for fewer pods.

Upstream: `nominate` and `getAssignments` in pkg/scheduler/scheduler.go, and `NextFlavorToTry...` and
`LastAssignment` in pkg/workload. For fewer pods: `PodSetReducer` in podset_reducer.go in
pkg/scheduler/flavorassigner (KEP 420).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar, final

from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_assigner import FIT, PREEMPT, Assigner, Assignment, Attempt
from harness_plugins.kueue.rules.flavor_offers import Offers
from harness_plugins.kueue.rules.preemption_oracle import Oracle, OracleFactory
from harness_plugins.kueue.rules.snapshot import Snapshot
from harness_plugins.kueue.state.asks import Asks
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.workload import Chosen, LastAssignment, Tried, Workload

_T = TypeVar("_T")


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
        self, workload: Workload, first: Assignment, snapshot: Snapshot, *, without_victims: bool = False
    ) -> Assignment:
        """Repeats an assignment within the same cycle, with the flavors that were chosen before.

        Args:
            workload: the head.
            first: the assignment from its nomination.
            snapshot: the reservations and victims of the cycle so far.
            without_victims: whether the workloads that this cycle preempts count as gone.
        """

        def assign() -> Assignment:
            return self.assign(workload, (), first.chosen)

        root = workload.cluster_queue.root
        assignment = snapshot.without_victims(root, assign) if without_victims else assign()
        self.remember(workload, assignment, snapshot.cycle)
        return assignment

    def where_to_go_on(self, workload: Workload, cycle: int) -> Tried:
        """Returns the flavors that a workload has tried, or () if its next scan starts with the first flavor.

        The scan starts over if the last attempt is older than the last cycle and the queue has changed in the
        meantime. Without the FlavorFungibility gate, every scan starts with the first flavor.
        """
        last = workload.last_assignment
        if last is None or not self._gates.flavor_fungibility:
            return ()
        if self._gates.flavor_fungibility_preserve_scan_progress and cycle - last.cycle <= 1:
            return last.tried
        return last.tried if workload.cluster_queue.generation <= last.generation else ()

    def remember(self, workload: Workload, assignment: Assignment, cycle: int) -> None:
        """Stores the flavors that were considered. If these were all flavors, the next scans start over."""
        workload.last_assignment = None
        if assignment.untried:
            generation = workload.cluster_queue.generation
            workload.last_assignment = LastAssignment(assignment.tried, cycle, generation)

    def assign(self, workload: Workload, tried: Tried, allowed: Chosen | None = None) -> Assignment:
        """Assigns flavors to all pods. If that fails and the job allows it, assigns flavors to fewer pods.

        `tried` and `allowed` are the same as for `Attempt`.
        """
        offers = self._offers(workload.asks, workload.cluster_queue)
        attempt = Attempt(self._oracle(workload), offers, workload.counts, tried, allowed)
        whole = self._assigner.assign(attempt)
        if _works(whole) or not (self._gates.partial_admission and workload.asks.reducible):
            return whole

        def fewer(counts: tuple[int, ...]) -> Assignment | None:
            again = attempt._replace(oracle=self._oracle(workload), counts=counts)
            found = self._assigner.assign(again)
            return found if _works(found) else None

        return most_that_work(workload.asks, workload.counts, fewer) or whole


def _works(assignment: Assignment) -> bool:
    return assignment.mode == FIT or (assignment.mode == PREEMPT and bool(assignment.targets))


def most_that_work(
    asks: Asks, left: tuple[int, ...], tried: Callable[[tuple[int, ...]], _T | None]
) -> _T | None:
    """Finds the largest number of pods that works, by the same bisection as in Kueue.

    The bisection assumes that a smaller number of pods works if a larger number works. It starts with all
    pods, including finished pods, so the result can be larger than the number of pods that are left. Pod sets
    whose pods have all finished are skipped.

    Args:
        asks: the request, which is reducible.
        left: the number of pods in each pod set that have not finished.
        tried: returns the result for a number of pods in each pod set, or None if these numbers do not work.
    """
    reducible = [
        max(0, count - pod_set.min_count) for count, pod_set in zip(asks.full, asks.pod_sets, strict=True)
    ]
    steps = sum(reducible)
    low, high = 0, steps + 1
    found: _T | None = None
    while low < high:
        step = (low + high) // 2
        answer = tried(
            tuple(
                count - most * step // steps if any_left else 0
                for count, most, any_left in zip(asks.full, reducible, left, strict=True)
            )
        )
        if answer is not None:
            found, high = answer, step
        else:
            low = step + 1
    return found


@final
class Fit:
    """Checks whether there is quota for a workload without preemption. Topology capacity is ignored."""

    def __init__(self, cache: Cache, offers: Offers, gates: Gates, *, fair: bool) -> None:
        assigner = Assigner(cache, fair=fair, gates=gates)
        self._nominator = Nominator(offers, assigner, partial(Oracle, cache, None), gates)

    def fits(self, workload: Workload) -> bool:
        """Returns True if a workload could get quota now.

        With partial admission, quota for fewer pods is enough.
        """
        if not workload.cluster_queue.usable or workload.namespace_mismatch or workload.asks.invalid:
            return False
        return self._nominator.assign(workload, ()).mode == FIT
