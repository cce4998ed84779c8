"""Kueue's `maximumExecutionTimeSeconds`, which limits the total time for which a workload is admitted.

A workload stays admitted until its quota is released. The time in which its pods terminate after an eviction
therefore counts, as do earlier admissions. This module only measures the time. The policy evicts and
deactivates the workloads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from harness_plugins.kueue.rules.wait_for_pods_ready import Terms, whole_seconds
from harness_plugins.kueue.state.workload import Workload

EXCEEDED = "DeactivatedDueToMaximumExecutionTimeExceeded"


@final
class ExecutionTimes:
    """The workloads with a time limit, with their remaining time and the start of their admission.

    Attributes:
        terms: the admitted workloads, with the times at which they reach their limits.
        going: the workloads that were evicted and whose quota was not released yet.
        over: the workloads that reached their limit during their last admission.
    """

    def __init__(self) -> None:
        self._left: dict[Workload, int] = {}
        self._since: dict[Workload, int] = {}
        self.terms = Terms()
        self.going: set[Workload] = set()
        self.over: set[Workload] = set()

    def limit(self, workload: Workload, left: int) -> None:
        """Limits how long a workload can stay admitted, in microseconds."""
        self._left[workload] = left

    def admitted(self, workload: Workload, at: int) -> None:
        """Records that a workload is admitted at `at`, which can be later because of admission checks.

        The time of the admission counts in whole seconds.
        """
        if workload in self._left:
            self._since[workload] = at
            self.over.discard(workload)
            self.terms.set(workload, max(at, whole_seconds(at) + self._left[workload]))

    def told_to_go(self, workload: Workload, now: int) -> None:
        """Records an eviction. The workload stays admitted unless it was waiting for admission checks."""
        since = self._since.get(workload)
        if since is None:
            return
        if since > now:
            del self._since[workload]
            self.terms.drop(workload)
        else:
            self.going.add(workload)

    def gone(self, workload: Workload, now: int) -> None:
        """Ends an admission when the quota is released. The time since its start counts in whole seconds.

        If no time remains, the workload counts as deactivated (upstream's SyncAdmittedCondition).
        """
        self.going.discard(workload)
        self.terms.drop(workload)
        since = self._since.pop(workload, None)
        if since is not None:
            passed = whole_seconds(now - whole_seconds(since))
            left = self._left[workload] = max(0, self._left[workload] - passed)
            if not left:
                self.over.add(workload)

    def due(self, now: int) -> Iterator[Workload]:
        """Yields the workloads that have reached their limit by now, each of them once.

        This includes evicted workloads that still hold quota, because they stay admitted.
        """
        for workload in self.terms.due(now):
            del self._since[workload]
            self._left[workload] = 0
            self.over.add(workload)
            yield workload

    def forget(self, workload: Workload) -> None:
        """Removes a workload that is finished."""
        if self._left.pop(workload, None) is not None:
            self._since.pop(workload, None)
            self.terms.drop(workload)
            self.going.discard(workload)
            self.over.discard(workload)
