"""Tracks workloads from their admission until their pods are gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, final

from harness.models.evictions import Evictions, Round
from harness_plugins.kueue.manifests.beginning import Start
from harness_plugins.kueue.rules.maximum_execution_time import ExecutionTimes
from harness_plugins.kueue.rules.wait_for_pods_ready import PodsReady
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

if TYPE_CHECKING:
    from harness_plugins.kueue.binding import Binder


@final
class _Execution:
    """The state of a workload in the replay. The scheduler may learn about it only after its cycle.

    Attributes:
        admitted: when the admission checks are ready, if there are any.
        holding: whether the workload was admitted and its pods are not gone.
        leaving: whether the pods are gone, but the scheduler does not know this yet.
        round: the last eviction, or None if there was none.
    """

    __slots__ = ("admitted", "holding", "leaving", "round")

    def __init__(self) -> None:
        self.admitted = 0
        self.holding = False
        self.leaving = False
        self.round: Round | None = None


@final
class Executions:
    """The workloads that are running or being evicted.

    Args:
        latency: the time until the scheduler learns that an evicted job is gone, in microseconds. If it is
            None, the scheduler always learns this immediately (see `Evictions`).

    Attributes:
        evictions: the workloads that are being evicted, and the eviction loops.
        times: the workloads with a limited execution time.
    """

    def __init__(self, latency: int | None, binder: Binder | None, pods_ready: PodsReady | None) -> None:
        self.evictions: Evictions[Workload] = Evictions(latency)
        self.times = ExecutionTimes()
        self._binder = binder
        self._pods_ready = pods_ready
        self._known: dict[Workload, _Execution] = {}

    def begin(
        self,
        workload: Workload,
        flavors: Mapping[str, Mapping[str, str]],
        counts: Mapping[str, int],
        now: int,
        *,
        placed: Sequence[Placed] = (),
        delay: int = 0,
    ) -> None:
        """Starts a workload that has just reserved quota, and assigns its places in topologies to its pods.

        The pods are created after `delay`, when the admission checks are ready.
        """
        job = workload.job
        execution = self._known.get(workload)
        if execution is None:
            execution = self._known[workload] = _Execution()
        execution.holding = True
        execution.admitted = now + delay
        self.times.admitted(workload, now + delay)
        if self._binder is not None:
            self._binder.start(job, flavors, counts, placed, now + delay)
        if self._pods_ready is not None:
            pods = job.pods
            if counts:
                pods = sum(counts.get(each.name, each.count) for each in job.pod_sets)
            self._pods_ready.reserved(workload, pods - sum(workload.ended), now + delay)

    def take_over(self, workload: Workload, start: Start, now: int, admitted: int | None) -> None:
        """Takes over a workload that held quota before the replay, with its pods on their nodes.

        Args:
            workload: the workload, which is already in the cache.
            start: the data from the manifests.
            now: the current time.
            admitted: when the workload was admitted, or None if the manifests do not show this.
        """
        job = workload.job
        self._known[workload] = _Execution()
        self._known[workload].holding = True
        self.times.admitted(workload, now if admitted is None else admitted)
        if self._binder is not None:
            self._binder.start(job, start.flavors, start.counts, workload.placed, now, start.pods)
        if self._pods_ready is not None:
            pods = sum(start.counts.get(each.name, each.count) for each in job.pod_sets)
            since = now if admitted is None or not start.expected else admitted
            self._pods_ready.reserved(workload, pods, since)
            if start.ready:
                self._pods_ready.started(workload, range(job.pods))

    def told_to_go(self, workload: Workload, now: int) -> None:
        """Stops the pods of an evicted workload."""
        self.times.told_to_go(workload, now)
        if self._binder is not None:
            self._binder.stop(workload.job)
        if self._pods_ready is not None:
            self._pods_ready.told_to_go(workload)

    def preempted(self, workload: Workload, preemptor: Workload, now: int) -> int:
        """Stops a preempted workload, and returns the number of this eviction in its eviction loop."""
        execution = self._known[workload]
        held = now - workload.reserved
        execution.round = self.evictions.begin(execution.round, preemptor, held, now)
        self.told_to_go(workload, now)
        return execution.round.number

    def is_admitted(self, workload: Workload, now: int) -> bool:
        """Returns True if a workload holds quota and all its admission checks are ready."""
        return self._known[workload].admitted <= now

    def holds(self, workload: Workload) -> bool:
        """Returns True if a workload was admitted, and the scheduler has not learned that it is gone."""
        execution = self._known.get(workload)
        return execution is not None and execution.holding

    def goes_for_nobody(self, workload: Workload, now: int) -> None:
        """Stops a workload that is evicted without a preemptor. Eviction loops do not count this eviction."""
        self._known[workload].round = None
        self.told_to_go(workload, now)

    def left(self, workload: Workload, now: int) -> bool:
        """Removes an evicted workload's pods, and returns whether the scheduler notices this immediately."""
        if self._binder is not None:
            self._binder.leave(workload.job)
        execution = self._known.get(workload)
        if execution is None or not execution.holding or execution.leaving:
            return False
        if self.evictions.leave(workload, workload.name, execution.round, now) == now:
            return True
        execution.leaving = True
        return False

    def gone(self, workload: Workload, now: int) -> None:
        """Marks an evicted workload as gone. If it still held quota, its quota is released."""
        self.released(workload, now)
        execution = self._known[workload]
        execution.leaving = execution.holding = False

    def released(self, workload: Workload, now: int) -> None:
        """Ends an admission when the quota is released. The pods of a deactivated workload keep running."""
        self.times.gone(workload, now)
        if self._pods_ready is not None and self._pods_ready.holds(workload):
            self._pods_ready.gone(workload)

    def ended(self, workload: Workload, pods: range) -> None:
        """Handles the completion of some or all pods of a workload."""
        if self._binder is not None:
            self._binder.end(workload.job, pods)
        if self._pods_ready is not None:
            self._pods_ready.ended(workload, pods)

    def forget(self, workload: Workload) -> None:
        """Removes a workload that finished or was deactivated."""
        self.times.forget(workload)
        self._known.pop(workload, None)
        if self._binder is not None:
            self._binder.forget(workload.job)
