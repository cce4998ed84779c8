"""Defines the data that a pending queue and the scheduler store for each pending workload."""

from __future__ import annotations

from typing import final

from harness.models.told import NOTHING_TOLD
from harness_plugins.kueue.state.equivalence_class import EquivalenceClass
from harness_plugins.kueue.state.last_assignment import LastAssignment


@final
class QueuePlace:
    """The place of a workload in the pending queue of its ClusterQueue.

    Attributes:
        ticket: the number of the valid entry of the workload in the queue, or 0 if it has none.
        equivalence_class: the class of equal workloads in the queue. It is set when the workload is queued.
        last_assignment: the flavors that were tried before, or None if the scan starts over.
        namespace_mismatch: whether the queue does not admit workloads from the workload's namespace.
        told: the reasons that were recorded for failed attempts since the workload was queued.
    """

    __slots__ = ("equivalence_class", "last_assignment", "namespace_mismatch", "ticket", "told")

    equivalence_class: EquivalenceClass

    def __init__(self) -> None:
        self.ticket = 0
        self.last_assignment: LastAssignment | None = None
        self.namespace_mismatch = False
        self.told = NOTHING_TOLD
