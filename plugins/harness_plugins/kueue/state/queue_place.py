"""What a pending queue and the scheduler note of a workload while it waits."""

from __future__ import annotations

from typing import final

from harness.models.told import NOTHING_TOLD
from harness_plugins.kueue.state.equivalence_class import EquivalenceClass
from harness_plugins.kueue.state.last_assignment import LastAssignment


@final
class QueuePlace:
    """A workload's place in the pending queue of its ClusterQueue.

    Attributes:
        ticket: tells its valid entry in the queue; 0 while it has none.
        equivalence_class: those that wait in its queue and are just like it; set when it is queued.
        last_assignment: the flavors that were tried before, or None.
        namespace_mismatch: whether its queue takes no workloads from its namespace.
        told: why it was not admitted when it was tried, since it waits.
    """

    __slots__ = ("equivalence_class", "last_assignment", "namespace_mismatch", "ticket", "told")

    equivalence_class: EquivalenceClass

    def __init__(self) -> None:
        self.ticket = 0
        self.last_assignment: LastAssignment | None = None
        self.namespace_mismatch = False
        self.told = NOTHING_TOLD
