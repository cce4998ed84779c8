"""Kueue's `waitForPodsReady`, which handles the timeouts and backoffs of workloads that are not ready.

This module measures time and counts timeouts. The policy evicts and queues the workloads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from sys import maxsize
from typing import NamedTuple, final

from harness.base.units import INT64_MAX, SECOND
from harness.models.cluster import WaitForPodsReady
from harness_plugins.kueue.state.workload import Workload

TIMED_OUT = "PodsReadyTimeout"
WAITING = "Waiting"
"""The reason why a workload that fits is not admitted while other workloads are not ready."""
DEACTIVATED = "DeactivatedDueToRequeuingLimitExceeded"
FOR_START, FOR_RECOVERY = "WaitForStart", "WaitForRecovery"

_LONGEST = INT64_MAX // 2000
"""The longest backoff without a maximum, in microseconds. It is half of Go's longest duration."""


@final
class Terms:
    """Workloads with the time at which each of them becomes due.

    Attributes:
        woken: the last wake-up time that was requested.
    """

    def __init__(self) -> None:
        self._at: dict[Workload, int] = {}
        self._due: list[tuple[int, str, int, Workload]] = []
        self._serial = 0
        self.woken = -1

    @property
    def first(self) -> int:
        """The earliest time at which a workload could become due."""
        return self._due[0][0] if self._due else maxsize

    def __contains__(self, workload: object) -> bool:
        """Returns True if a workload will become due."""
        return workload in self._at

    def set(self, workload: Workload, at: int) -> None:
        """Sets the time at which a workload becomes due. It replaces the time that was set before."""
        self._serial += 1
        self._at[workload] = at
        heappush(self._due, (at, workload.name, self._serial, workload))

    def drop(self, workload: Workload) -> None:
        """Removes a workload and its time, if it has one."""
        self._at.pop(workload, None)

    def due(self, now: int) -> Iterator[Workload]:
        """Yields and removes the workloads that are due by now, sorted by time and then by name."""
        while self._due and self._due[0][0] <= now:
            at, _, _, workload = heappop(self._due)
            if self._at.get(workload) == at:
                del self._at[workload]
                yield workload

    def next(self) -> int | None:
        """Returns the next time at which a workload becomes due, or None if there is none."""
        while self._due and self._at.get(self._due[0][3]) != self._due[0][0]:
            heappop(self._due)
        return self._due[0][0] if self._due else None

    def next_wake(self, now: int) -> int | None:
        """Returns the next wake-up time to request, or None if there is none or it was already requested."""
        at = self.next()
        if at is None or now < self.woken <= at:
            return None
        self.woken = max(now + 1, at)
        return self.woken


class TimedOut(NamedTuple):
    """A timeout. The workload must be evicted because its pods were not ready in time.

    Attributes:
        cause: whether the pods were never ready in this admission, or were lost and did not recover.
        times: how often the workload has timed out so far.
        requeue_at: when the workload is requeued, in microseconds, or None if it is not requeued.
    """

    cause: str
    times: int
    requeue_at: int | None


@dataclass(slots=True)
class _Admission:
    """A workload from its admission until its quota is released.

    Attributes:
        left: the number of pods that have not finished.
        missing: the number of pods that have not been ready yet in this admission.
        seen: the pods that have been ready, if pods become ready one by one.
        away: the pods that were lost after all pods had been ready, and that have not recovered.
        ready: whether all pods are ready now.
        going: whether the workload was evicted.
        recovers: whether the pods had been ready and were lost before the replay started.
    """

    left: int
    missing: int
    seen: set[int] = field(default_factory=set)
    away: set[int] = field(default_factory=set)
    ready: bool = False
    going: bool = False
    recovers: bool = False


@final
class PodsReady:
    """The workloads that hold quota, and how often their pods were not ready in time.

    Attributes:
        settings: the settings of `waitForPodsReady`.
        deadlines: the times by which the pods of workloads must be ready.
    """

    def __init__(self, settings: WaitForPodsReady) -> None:
        self.settings = settings
        self._admissions: dict[Workload, _Admission] = {}
        self._counts: dict[Workload, int] = {}
        self.deadlines = Terms()
        self._given_up: set[Workload] = set()

    # --- what happens to a workload -----------------------------------------------------------------------

    def reserved(self, workload: Workload, pods: int, admitted: int) -> None:
        """Adds a workload that has just reserved quota for this many pods. No pod is ready yet.

        The timeout starts when the workload is admitted, which is after its admission checks.
        """
        self._admissions[workload] = _Admission(pods, pods)
        self.deadlines.set(workload, whole_seconds(admitted) + self.settings.timeout)

    def resumed(self, workload: Workload, cause: str, since: int) -> None:
        """Sets the deadline of a workload that already waited for its pods before the replay started."""
        settings = self.settings
        recovers = self._admissions[workload].recovers = cause == FOR_RECOVERY
        limit = settings.recovery_timeout if recovers else settings.timeout
        self.deadlines.drop(workload)
        if limit is not None:
            self.deadlines.set(workload, since + limit)

    def timed_out_before(self, workload: Workload, times: int) -> None:
        """Sets how often a workload had timed out before the replay started."""
        self._counts[workload] = times

    def started(self, workload: Workload, pods: range) -> None:
        """Marks pods as ready in this admission. Finished pods count as ready."""
        admission = self._admissions[workload]
        if not admission.missing:
            if admission.away:
                admission.away.difference_update(pods)
                if not (admission.away or admission.going):
                    self.recovered(workload)
            return
        if len(pods) >= admission.left:
            admission.missing = 0
        else:
            before = len(admission.seen)
            admission.seen.update(pods)
            admission.missing -= len(admission.seen) - before
        if not admission.missing:
            self.recovered(workload)

    def ended(self, workload: Workload, pods: range) -> None:
        """Records that pods have finished. The workload finishes when its last pods finish."""
        admission = self._admissions[workload]
        if len(pods) >= admission.left:
            del self._admissions[workload]
            self.forget(workload)
        else:
            self.started(workload, pods)
            admission.left -= len(pods)

    def recovered(self, workload: Workload) -> None:
        """Marks all pods of a workload as ready. As each change of PodsReady, this outdates earlier scans."""
        admission = self._admissions[workload]
        if not admission.ready:
            admission.ready = True
            self.deadlines.drop(workload)
            workload.cluster_queue.generation += 1

    def lost(self, workload: Workload, now: int, pods: range = range(0)) -> None:
        """Marks pods of a workload as no longer ready.

        `pods` has the lost pods if they are known. The workload is ready again as soon as these pods are
        ready.
        """
        admission = self._admissions[workload]
        if admission.missing:
            before = len(admission.seen)
            admission.seen.difference_update(pods)
            admission.missing += before - len(admission.seen)
            return
        admission.away.update(pods)
        if admission.ready:
            admission.ready = False
            workload.cluster_queue.generation += 1
            if self.settings.recovery_timeout is not None:
                self.deadlines.set(workload, whole_seconds(now) + self.settings.recovery_timeout)

    def told_to_go(self, workload: Workload) -> None:
        """Removes the deadline of an evicted workload. The workload counts as not ready until it is gone."""
        admission = self._admissions[workload]
        admission.going, admission.ready = True, False
        self.deadlines.drop(workload)

    def gone(self, workload: Workload) -> None:
        """Removes a workload that no longer holds quota."""
        del self._admissions[workload]

    def forget(self, workload: Workload) -> int:
        """Removes a workload that is finished, and returns the number of its timeouts."""
        self.deadlines.drop(workload)
        if workload not in self._counts:
            return 0
        self._given_up.discard(workload)
        return self._counts.pop(workload)

    # --- what follows from it -----------------------------------------------------------------------------

    @property
    def may_block(self) -> bool:
        """True if Kueue admits no workload while the pods of an admitted workload are not ready."""
        return self.settings.block_admission

    @property
    def blocks(self) -> bool:
        """True if Kueue can admit no workload now, because the pods of an admitted workload are not ready."""
        return self.may_block and bool(self.unready())

    def unready(self) -> list[Workload]:
        """Returns the workloads whose pods are not ready, in the order in which they were admitted."""
        return [workload for workload, admission in self._admissions.items() if not admission.ready]

    def holds(self, workload: Workload) -> bool:
        """Returns True if a workload holds quota."""
        return workload in self._admissions

    def stays(self, workload: Workload) -> bool:
        """Returns True if a workload holds quota and was not evicted."""
        admission = self._admissions.get(workload)
        return admission is not None and not admission.going

    def gives_up(self, workload: Workload) -> bool:
        """Returns True if a workload timed out too often to be requeued."""
        return workload in self._given_up

    def time_out(self, workload: Workload, now: int) -> TimedOut:
        """Counts a timeout of a workload, and returns it with the time at which the workload is requeued."""
        settings = self.settings
        admission = self._admissions[workload]
        cause = FOR_START if admission.missing and not admission.recovers else FOR_RECOVERY
        count = self._counts[workload] = self._counts.get(workload, 0) + 1
        if settings.limit is not None and count > settings.limit:
            self._given_up.add(workload)
            return TimedOut(cause, count, None)
        return TimedOut(cause, count, whole_seconds(now) + backoff(settings, count))


def backoff(settings: WaitForPodsReady, count: int) -> int:
    """Returns how long a workload stays out of its queue after `count` timeouts, in microseconds.

    The first backoff equals the base, even if the base exceeds the maximum. Each later backoff is twice as
    long as the one before, up to the maximum. A maximum of 0 is no maximum. Kueue also adds a random time of
    up to 1/10000 of the backoff. As times are whole seconds, the model ignores this time. It matters only if
    it is at least a second.
    """
    if count == 1 or not settings.backoff_base:
        return settings.backoff_base
    return min(settings.backoff_base << min(count - 1, 64), settings.backoff_max or _LONGEST)


def whole_seconds(time: int) -> int:
    """Returns a time without fractions of a second, which Kueue's objects do not store."""
    return time // SECOND * SECOND
