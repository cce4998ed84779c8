"""Evicted pods: when the scheduler knows that they are gone, and the round of their eviction in a loop."""

from __future__ import annotations

from typing import TypeAlias, final

from harness.models.evictions import Evictions, Round
from harness.policy import Bind, Job, Preempt

Place: TypeAlias = tuple[int, int]
"""A pod as its job's index and its number in the job; its successors have the same place."""


@final
class PreemptingJob:
    """A job for which pods were preempted, with the number of its pods that were bound since."""

    __slots__ = ("admissions",)

    def __init__(self) -> None:
        self.admissions = 0


@final
class Victim:
    """A preempted pod: its last eviction, and the time at which its successor was bound."""

    __slots__ = ("round", "since")

    def __init__(self) -> None:
        self.round: Round | None = None
        self.since = 0


@final
class PodEvictions:
    """Tracks the decisions of a scheduler about its pods, and pods that leave.

    Args:
        latency: how long it takes until the scheduler knows that an evicted pod is gone, in microseconds.
            None if it always knows immediately.

    Attributes:
        left: the pods that are gone, but that the scheduler does not know to be gone yet.
    """

    def __init__(self, latency: int | None) -> None:
        self.left: Evictions[tuple[Job, int]] = Evictions(latency)
        self._victims: dict[Place, Victim] = {}
        self._preempting: dict[int, PreemptingJob] = {}

    def end(self, job: Job, pods: range) -> None:
        """Notes that pods have ended."""
        self.left.progressed += 1
        if self._victims:
            for pod in pods:
                self._victims.pop((job.index, pod), None)
        if self._preempting and len(pods) == job.pods:
            self._preempting.pop(job.index, None)

    def leave(self, job: Job, pod: int, now: int) -> int:
        """Notes that an evicted pod is gone; returns when the scheduler knows."""
        victim = self._victims.get((job.index, pod))
        last = victim.round if victim is not None else None
        return self.left.leave((job, pod), job.pod_name(pod), last, now)

    def bound(self, bind: Bind, now: int) -> None:
        """Notes a binding."""
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
        """Notes a preemption, and determines its round in a loop."""
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
