"""Tracks evicted pods, the times at which the scheduler learns that they are gone, and loops of evictions."""

from __future__ import annotations

from typing import TypeAlias, final

from harness.models.evictions import Evictions, Round
from harness.policy import Bind, Job, Preempt

Place: TypeAlias = tuple[int, int]
"""The index of a job and the number of a pod in the job. A pod and its replacements have the same values."""


@final
class PreemptingJob:
    """A job for which pods were preempted, with the number of its pods that were bound since then."""

    __slots__ = ("admissions",)

    def __init__(self) -> None:
        self.admissions = 0


@final
class Victim:
    """A preempted pod, with its last eviction and the time at which its replacement was bound."""

    __slots__ = ("round", "since")

    def __init__(self) -> None:
        self.round: Round | None = None
        self.since = 0


@final
class PodEvictions:
    """Tracks the bindings and preemptions of pods, and the pods that have finished or are gone.

    Args:
        latency: the time until the scheduler learns that an evicted pod is gone, in microseconds. If it is
            None, the scheduler always learns this immediately.

    Attributes:
        left: the pods that are gone, although the scheduler does not know this yet.
    """

    def __init__(self, latency: int | None) -> None:
        self.left: Evictions[tuple[Job, int]] = Evictions(latency)
        self._victims: dict[Place, Victim] = {}
        self._preempting: dict[int, PreemptingJob] = {}

    def end(self, job: Job, pods: range) -> None:
        """Records that pods have finished."""
        self.left.progressed += 1
        if self._victims:
            for pod in pods:
                self._victims.pop((job.index, pod), None)
        if self._preempting and len(pods) == job.pods:
            self._preempting.pop(job.index, None)

    def leave(self, job: Job, pod: int, now: int) -> int:
        """Records that an evicted pod is gone, and returns the time at which the scheduler learns this."""
        victim = self._victims.get((job.index, pod))
        last = victim.round if victim is not None else None
        return self.left.leave((job, pod), job.pod_name(pod), last, now)

    def bound(self, bind: Bind, now: int) -> None:
        """Records a binding."""
        job, victims = bind.job, self._victims
        if not victims:
            self.left.progressed += 1
        for pod in bind.pods if victims else ():
            victim = victims.get((job.index, pod))
            if victim is None:
                self.left.progressed += 1
            else:
                victim.since = now
        preempting = self._preempting.get(job.index)
        if preempting is not None:
            preempting.admissions += 1

    def preempted(self, preempt: Preempt, now: int) -> None:
        """Records a preemption. If it is part of a loop, adds its number within the loop to its detail."""
        preempting = None
        if preempt.by is not None:
            preempting = self._preempting.setdefault(preempt.by.index, PreemptingJob())
        number = 1
        for pod in preempt.pods or ():
            place = preempt.job.index, pod
            victim = self._victims.get(place)
            if victim is None:
                victim = self._victims[place] = Victim()
            victim.round = self.left.begin(victim.round, preempting, now - victim.since, now)
            number = max(number, victim.round.number)
        if number > 1:
            preempt.detail = {**preempt.detail, "round": number}
