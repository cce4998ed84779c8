"""Kueue's `waitForPodsReady`: workloads whose pods are not ready, their time limits, and their backoffs.

This module measures time and counts time-outs; the policy evicts and queues workloads accordingly. Every
workload has at most one term: the instant when its pods must be ready, or when it is queued again.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from sys import maxsize
from typing import NamedTuple, final

from harness.base.units import SECOND, format_duration
from harness.models.cluster import WaitForPodsReady
from harness_plugins.kueue.state.workload import Workload

TIMED_OUT = "PodsReadyTimeout"
WAITING = "Waiting"
"""The reason why a workload that fits is not admitted: other workloads are not ready."""
DEACTIVATED = "DeactivatedDueToRequeuingLimitExceeded"
FOR_START, FOR_RECOVERY = "WaitForStart", "WaitForRecovery"


class TimedOut(NamedTuple):
    """A time-out: a workload must leave because its pods were not ready in time.

    Attributes:
        cause: whether the pods were never ready in this admission, or were lost and did not recover.
        times: the number of time-outs of the workload so far.
        requeue_at: when the workload is requeued, in microseconds; None for never.
    """

    cause: str
    times: int
    requeue_at: int | None

    @property
    def figures(self) -> dict[str, str | int]:
        """The figures for decisions, with the time in seconds."""
        figures: dict[str, str | int] = {"cause": self.cause, "count": self.times}
        if self.requeue_at is not None:
            figures["requeueAt"] = self.requeue_at // SECOND
        return figures


class _Admission:
    """A workload from its admission until its quota is free.

    Attributes:
        left: how many pods have not ended.
        missing: how many pods have not been ready yet in this admission.
        seen: the pods that have been ready, if pods become ready one by one.
        away: the pods that were lost after all were ready, and have not recovered.
        ready: whether all pods are ready now.
        going: whether the workload was evicted.
        recovers: whether the pods were ready before the replay, and were lost.
    """

    __slots__ = ("away", "going", "left", "missing", "ready", "recovers", "seen")

    def __init__(self, pods: int) -> None:
        self.left = self.missing = pods
        self.seen: set[int] = set()
        self.away: set[int] = set()
        self.ready = False
        self.going = False
        self.recovers = False


@final
class PodsReady:
    """The workloads that hold quota, and evicted workloads that may not return to their queue yet.

    Args:
        settings: time-outs, backoff and limit.

    Attributes:
        first: the earliest instant at which a term may be over.
        woken: the last requested instant.
    """

    def __init__(self, settings: WaitForPodsReady) -> None:
        self._settings = settings
        self._admissions: dict[Workload, _Admission] = {}
        self._unready = 0
        self._counts: dict[Workload, int] = {}
        self._terms: dict[Workload, int] = {}
        self._due: list[tuple[int, str, int, Workload]] = []
        self._serial = 0
        self.first = maxsize
        self.woken = -1
        self._given_up: set[Workload] = set()

    # --- what happens to a workload -----------------------------------------------------------------------

    def reserved(self, workload: Workload, pods: int, admitted: int) -> None:
        """Adds a workload that holds quota from now on, for this many pods; none of them is ready.

        Its term begins at its admission, after its admission checks.
        """
        self._admissions[workload] = _Admission(pods)
        self._unready += 1
        self._set_term(workload, _whole_seconds(admitted) + self._settings.timeout)

    def resumed(self, workload: Workload, cause: str, since: int) -> None:
        """Sets the term of a workload whose pods were awaited before the replay, to start or to recover."""
        settings = self._settings
        recovers = self._admissions[workload].recovers = cause == FOR_RECOVERY
        limit = settings.recovery_timeout if recovers else settings.timeout
        self._terms.pop(workload, None)
        if limit is not None:
            self._set_term(workload, since + limit)

    def timed_out_before(self, workload: Workload, times: int, requeue_at: int | None) -> None:
        """Sets the time-outs of a workload before the replay, and until when it stays out of its queue."""
        self._counts[workload] = times
        if requeue_at is not None:
            self._set_term(workload, requeue_at)

    def started(self, workload: Workload, pods: range) -> None:
        """Marks pods as ready in this admission; ended pods count as ready."""
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
        """Handles the end of pods; with its last pods, a workload is over."""
        admission = self._admissions[workload]
        if len(pods) >= admission.left:
            self.gone(workload)
            self.forget(workload)
        else:
            self.started(workload, pods)
            admission.left -= len(pods)

    def recovered(self, workload: Workload) -> None:
        """Marks all pods of a workload as ready."""
        admission = self._admissions[workload]
        if not admission.ready:
            admission.ready = True
            self._unready -= 1
            self._terms.pop(workload, None)

    def lost(self, workload: Workload, now: int, pods: range = range(0)) -> None:
        """Marks pods of a workload as not ready any more.

        Args:
            workload: the workload of the pods.
            now: the time.
            pods: the lost pods, if the workload is ready again as soon as these pods are.
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
            self._unready += 1
            if self._settings.recovery_timeout is not None:
                self._set_term(workload, _whole_seconds(now) + self._settings.recovery_timeout)

    def told_to_go(self, workload: Workload) -> None:
        """Ends the term of an evicted workload, which counts as not ready until it is gone."""
        admission = self._admissions[workload]
        admission.going = True
        if admission.ready:
            admission.ready = False
            self._unready += 1
        self._terms.pop(workload, None)

    def gone(self, workload: Workload) -> None:
        """Removes a workload that no longer holds quota."""
        admission = self._admissions.pop(workload)
        self._unready -= not admission.ready

    def forget(self, workload: Workload) -> int:
        """Forgets a workload that is over; returns how often it timed out."""
        self._given_up.discard(workload)
        self._terms.pop(workload, None)
        return self._counts.pop(workload, 0)

    # --- what follows from it -----------------------------------------------------------------------------

    @property
    def blocks(self) -> bool:
        """True if no workload may be admitted now, because some workload is not ready."""
        return self._settings.block_admission and self._unready > 0

    def unready(self) -> list[Workload]:
        """Returns the workloads whose pods are not ready, in the order of their admission."""
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

    def stays_away(self, workload: Workload) -> bool:
        """Returns True if a workload without quota must not be queued, for a while or permanently."""
        return workload in self._terms or workload in self._given_up

    def due(self, now: int) -> Iterator[Workload]:
        """Yields workloads whose term is over now, by name: a time-out with quota, a backoff without."""
        while self._due and self._due[0][0] <= now:
            due, _, _, workload = heappop(self._due)
            if self._terms.get(workload) == due:
                del self._terms[workload]
                yield workload
        self._settle()

    def time_out(self, workload: Workload, now: int) -> TimedOut:
        """Counts a time-out of a workload; it stays out of its queue for a while or permanently."""
        settings = self._settings
        admission = self._admissions[workload]
        cause = FOR_START if admission.missing and not admission.recovers else FOR_RECOVERY
        count = self._counts[workload] = self._counts.get(workload, 0) + 1
        if settings.limit is not None and count > settings.limit:
            self._given_up.add(workload)
            return TimedOut(cause, count, None)
        requeue_at = _whole_seconds(now) + backoff(settings, count)
        if requeue_at > now:
            self._set_term(workload, requeue_at)
        return TimedOut(cause, count, requeue_at)

    def told(self, timed_out: TimedOut) -> str:
        """Returns a time-out as a sentence."""
        settings, late = self._settings, f"time-out {timed_out.times:,}: not all pods were ready"
        if timed_out.cause == FOR_START:
            late += f" {format_duration(settings.timeout)} after the admission"
        else:
            late += f" again {format_duration(settings.recovery_timeout or 0)} after some pods were lost"
        if timed_out.requeue_at is None:
            return f"{late}, which is one time-out more than the limit"
        away = format_duration(backoff(settings, timed_out.times))
        return f"{late}; it stays out of its queue for {away}"

    def next_term(self) -> int | None:
        """Returns when the next term is over, or None."""
        while self._due and self._terms.get(self._due[0][3]) != self._due[0][0]:
            heappop(self._due)
        self._settle()
        return self._due[0][0] if self._due else None

    def next_wake(self, now: int) -> int | None:
        """Returns the next instant to request; None if it is already requested or there is no term."""
        term = self.next_term()
        if term is None or now < self.woken <= term:
            return None
        self.woken = term
        return term

    def _set_term(self, workload: Workload, due: int) -> None:
        self._serial += 1
        self._terms[workload] = due
        heappush(self._due, (due, workload.name, self._serial, workload))
        self.first = self._due[0][0]

    def _settle(self) -> None:
        self.first = self._due[0][0] if self._due else maxsize


def backoff(settings: WaitForPodsReady, count: int) -> int:
    """Returns how long a workload stays out of its queue after `count` time-outs, in microseconds.

    The first backoff has the length of the base, even if the base exceeds the maximum. Each further backoff
    is twice as long, up to the maximum. Kueue adds up to a ten-thousandth at random, which has no effect in
    whole seconds unless it amounts to a second.
    """
    if count == 1 or not settings.backoff_base:
        return settings.backoff_base
    return min(settings.backoff_base << min(count - 1, 64), settings.backoff_max)


def _whole_seconds(time: int) -> int:
    """Returns a time in the precision of the API's conditions."""
    return time // SECOND * SECOND
