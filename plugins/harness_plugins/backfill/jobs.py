"""Represents the waiting and running jobs in backfilling."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar, final

from harness import Job
from harness.policy import ENDLESS
from harness_plugins.backfill.expected import Expected

BEHIND = "WaitsForFirst"
"""The reason code for a job that is behind the first waiting job and must not delay it."""

RESERVED = "WaitsForReserved"
"""The reason code for a job that fits now but would delay jobs with reservations."""

R = TypeVar("R")
A = TypeVar("A")

Key = tuple[int, int]
"""The sort key of waiting jobs. The index of the job decides ties."""


class Waiting(NamedTuple, Generic[R]):
    """A waiting job. Only the key is compared, because it contains the index, which is unique."""

    key: Key
    job: Job
    request: R
    expected: int


@final
class Running(Generic[A]):
    """A running job.

    Attributes:
        began: the start of the job, in microseconds.
        step: how often the expected end was moved because the job ran longer.
        pods: the number of pods that have not finished.
        ending: whether the job ends at the current time but its assignment is not released yet.
        going: whether the job was evicted, or lost a pod so that it must be evicted as a whole.
        stays: the time until which the job tolerates NoExecute taints, or None if there is no limit.
    """

    __slots__ = ("assignment", "began", "end", "ending", "going", "job", "pods", "stays", "step")

    def __init__(self, job: Job, assignment: A, began: int, end: int) -> None:
        self.job = job
        self.assignment = assignment
        self.began = began
        self.end = end
        self.step = 0
        self.pods = job.pods
        self.ending = self.going = False
        self.stays: int | None = None

    def prolong(self, expected: Expected, now: int) -> None:
        """Moves the expected end of a job that is still running after its expected end."""
        whole, self.step = expected.prolonged(self.job, self.end - self.began, now - self.began, self.step)
        self.end = min(self.began + whole, ENDLESS)

    def is_due(self, expected: Expected, now: int) -> bool:
        """Returns True if the job is expected to end at exactly this time."""
        if self.end >= now:
            return self.end == now
        before = now - self.began - 1
        whole, _ = expected.prolonged(self.job, self.end - self.began, before, self.step)
        return self.began + whole == now

    @property
    def place(self) -> tuple[int, int]:
        """The sort key of a running job: its expected end, and then its index."""
        return self.end, self.job.index


Entry = tuple[tuple[int, int], Running[A]]
"""A running job with its sort key."""
