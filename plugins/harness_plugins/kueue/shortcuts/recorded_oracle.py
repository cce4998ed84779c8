"""An oracle that computes each answer only once, and records the answers for one assignment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

from harness_plugins.kueue.rules.preemption import Incoming, Target
from harness_plugins.kueue.rules.preemption_oracle import Oracle, Quota, TargetSearch, quota_of
from harness_plugins.kueue.rules.topology.placement import WorkloadTopology
from harness_plugins.kueue.shortcuts.no_targets import NoTargets
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

Check = tuple[int, int, Quota]
"""A flavor-resource, the requested quantity, and its quota."""

WhyNot: TypeAlias = Callable[[Incoming], NoTargets | None]
"""Returns why a search finds no targets, or None if only the search shows whether it finds any."""


@final
class RecordedOracle(Oracle):
    """Answers the questions of one assignment. The state of the cache does not change during the assignment.

    Searches are cached by the arguments on which their results depend. These are often the same for a single
    flavor-resource and for the whole workload.

    Attributes:
        checks: the answers about the quota of the flavor-resources that were considered.
        no_place: the topology request of the workload if no place was found for it, or None.
        failed: the searches that find no targets, with the reasons that were known before them. A queue that
            may preempt nothing needs no search.
    """

    def __init__(
        self, cache: Cache, search: TargetSearch, workload: Workload, why_not: WhyNot | None
    ) -> None:
        super().__init__(cache, search, workload)
        self._why_not = why_not
        self.checks: list[Check] = []
        self.no_place: WorkloadTopology | None = None
        self.failed: dict[Incoming, NoTargets | None] = {}
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
            alike = self._decisive(incoming), need, topology
            found = self._known.get(alike)
            if not found:
                why = None if self._why_not is None else self._why_not(incoming)
                if found is None:
                    found = self.found(incoming) if why is None else []
                if not found:
                    self.failed[incoming] = why
            self._known[question] = self._known[alike] = found
            self.found_targets = self.found_targets or bool(found)
        return found

    def _decisive(self, incoming: Incoming) -> Amounts:
        """Returns the requests on which the result of a search depends.

        The other requests fit, whoever is preempted. Neither the queue nor a cohort above it exceeds its own
        quota for them, so that they change no share either.
        """
        tree, queue = self._cache.tree, incoming.queue
        sides = (queue.node, *queue.path[:-1])
        return tuple(
            [
                (cell, amount)
                for cell, amount in incoming.requests
                if cell in incoming.need
                or amount > tree.available(queue.node, cell)
                or any(tree.borrows(side, cell, amount) for side in sides)
            ]
        )
