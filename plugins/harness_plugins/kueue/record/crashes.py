"""Records crashes in fair-sharing searches of releases up to 0.17 (PR 10891)."""

from __future__ import annotations

from typing import final

from harness.models.cluster import Release
from harness.policy import CONTROLLER_CRASH
from harness_plugins.kueue.record.refusals import Refused
from harness_plugins.kueue.state.workload import Workload


@final
class Crashes:
    """Records, once for each workload, that the controller crashes while it searches for targets.

    Attributes:
        told: the list to which the records are added.
    """

    def __init__(self, release: Release) -> None:
        self._release = release
        self._known: set[Workload] = set()
        self.told: list[Refused] = []

    def __call__(self, workload: Workload) -> None:
        """Records a crash: the workload's queue has no cohort, and all its candidates free too little."""
        if workload in self._known:
            return
        self._known.add(workload)
        message = (
            f"Kueue {self._release} crashes here: ClusterQueue {workload.cluster_queue.name} has no cohort, "
            "and preempting all its candidates would free too little quota; later releases preempt nothing"
        )
        self.told.append(Refused(workload, CONTROLLER_CRASH, {"message": message}))
