"""The data that a pending queue and the scheduler keep about a waiting workload."""

from __future__ import annotations

from typing import final

from harness.models.told import NOTHING_TOLD
from harness_plugins.kueue.state.equivalence_class import EquivalenceClass
from harness_plugins.kueue.state.last_assignment import LastAssignment


@final
class QueuePlace:
    """A workload's place in the pending queue of its ClusterQueue.

    Attributes:
        ticket: identifies the workload's valid entry in the queue; 0 without an entry.
        equivalence_class: the equal workloads in the queue; set when the workload is queued.
        last_assignment: the flavors that were tried before, or None.
        namespace_mismatch: whether the queue admits no workloads from the workload's namespace.
        told: the recorded reasons of failed tries during this wait.
    """

    __slots__ = ("equivalence_class", "last_assignment", "namespace_mismatch", "ticket", "told")

    equivalence_class: EquivalenceClass

    def __init__(self) -> None:
        self.ticket = 0
        self.last_assignment: LastAssignment | None = None
        self.namespace_mismatch = False
        self.told = NOTHING_TOLD
