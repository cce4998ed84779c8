"""An oracle that computes each answer only once, and records the answers for one assignment."""

from __future__ import annotations

from typing import final

from harness_plugins.kueue.rules.preemption import Incoming, Target
from harness_plugins.kueue.rules.preemption_oracle import Quota, available, height
from harness_plugins.kueue.rules.topology.workload import WorkloadTopology
from harness_plugins.kueue.shortcuts.no_targets import FailedSearch, Reasons
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

Check = tuple[int, int, Quota]
"""A flavor-resource, the requested amount, and its quota."""


@final
class RecordedOracle:
    """Answers the questions of one assignment, during which nothing changes.

    Searches are kept by the content of their question: the trial for one flavor-resource is often the same as
    the search for the whole workload.

    Args:
        cache: the holders of quota.
        reasons: finds preemption targets, or why a search has none.
        workload: the workload of the assignment.

    Attributes:
        checks: the quota of the considered flavor-resources.
        no_place: the workload's topology request if the search found no place for it; None otherwise.
        failed: the searches without targets.
        found_targets: whether any search found targets.
        alone: whether there was exactly one search, and it only ever took the one target that it found.
    """

    __slots__ = (
        "_cache",
        "_known",
        "_reasons",
        "alone",
        "checks",
        "failed",
        "found_targets",
        "no_place",
        "workload",
    )

    def __init__(self, cache: Cache, reasons: Reasons, workload: Workload) -> None:
        self._cache = cache
        self._reasons = reasons
        self.workload = workload
        self.checks: list[Check] = []
        self.no_place: WorkloadTopology | None = None
        self.failed: list[FailedSearch] = []
        self.found_targets = False
        self.alone = False
        self._known: dict[tuple[Amounts, tuple[int, ...], WorkloadTopology | None], list[Target]] = {}

    @property
    def searched(self) -> bool:
        """Returns True if there was any search for workloads to preempt."""
        return bool(self._known)

    def quota_for(self, cell: int, amount: int) -> Quota:
        """Returns the quota of a flavor-resource if the workload takes `amount` of it."""
        cache, queue = self._cache, self.workload.cluster_queue
        quota = available(cache, queue, cell, amount), height(cache, queue, cell, amount)
        self.checks.append((cell, amount, quota))
        return quota

    def place(self, topology: WorkloadTopology) -> tuple[Placed, ...] | None:
        """Returns places for the pods beside all present pods; None if some pod set has no place."""
        placed = topology.place()
        if placed is None:
            self.no_place = topology
        return placed

    def targets(
        self, requests: Amounts, need: tuple[int, ...], topology: WorkloadTopology | None = None
    ) -> list[Target]:
        """Returns the targets for `requests`, if preemption must free `need`."""
        question = requests, need, topology
        found = self._known.get(question)
        if found is None:
            incoming = Incoming(self.workload, self.workload.cluster_queue, requests, need, topology)
            found, failed, alone = self._reasons.find_targets(incoming)
            self.alone = alone and not self._known
            self._known[question] = found
            if failed is None:
                self.found_targets = True
            else:
                self.failed.append(failed)
        return found
