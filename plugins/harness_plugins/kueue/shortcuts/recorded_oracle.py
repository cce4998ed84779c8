"""An oracle that computes each answer only once, and records the answers for one assignment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

from harness_plugins.kueue.rules.preemption import Incoming, Target
from harness_plugins.kueue.rules.preemption_oracle import Oracle, Quota, TargetSearch, quota_of
from harness_plugins.kueue.rules.topology.placement import WorkloadTopology
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

Check = tuple[int, int, Quota]
"""A flavor-resource, the requested quantity, and its quota."""

InVain: TypeAlias = Callable[[Incoming], bool]
"""Returns whether a search is known to find no targets."""


@final
class RecordedOracle(Oracle):
    """Answers the questions of one assignment. The state of the cache does not change during the assignment.

    Searches are cached by their arguments. The search for a single flavor-resource often has the same
    arguments as the search for the whole workload.

    Attributes:
        checks: the answers about the quota of the flavor-resources that were considered.
        no_place: the topology request of the workload if no place was found for it, or None.
        failed: the searches that found no targets. A queue that may preempt nothing needs no search.
    """

    def __init__(
        self, cache: Cache, search: TargetSearch, workload: Workload, in_vain: InVain | None
    ) -> None:
        super().__init__(cache, search, workload)
        self._in_vain = in_vain
        self.checks: list[Check] = []
        self.no_place: WorkloadTopology | None = None
        self.failed: list[Incoming] = []
        self.found_targets = False
        self._known: dict[tuple[Amounts, tuple[int, ...], WorkloadTopology | None], list[Target]] = {}

    def quota_for(self, cell: int, amount: int) -> Quota:
        """Returns what `Quota` says about `amount` of a flavor-resource."""
        quota = quota_of(self._cache, self.workload.cluster_queue, cell, amount)
        self.checks.append((cell, amount, quota))
        return quota

    def place(self, topology: WorkloadTopology) -> tuple[Placed, ...] | None:
        """Returns places that the present pods leave free, or None if some pod set has no place."""
        placed = super().place(topology)
        if placed is None:
            self.no_place = topology
        return placed

    def targets(
        self, requests: Amounts, need: tuple[int, ...], topology: WorkloadTopology | None = None
    ) -> list[Target]:
        """Returns the workloads to preempt so that `requests` fit."""
        if not self.workload.cluster_queue.preempts:
            return []
        question = requests, need, topology
        found = self._known.get(question)
        if found is None:
            place = None if topology is None else topology.place
            incoming = Incoming(self.workload, requests, need, place)
            vain = self._in_vain is not None and self._in_vain(incoming)
            found = [] if vain else self.found(incoming)
            self._known[question] = found
            if found:
                self.found_targets = True
            else:
                self.failed.append(incoming)
        return found
