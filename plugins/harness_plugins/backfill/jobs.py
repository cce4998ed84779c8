"""Jobs in backfilling: waiting jobs with a place in the order, running jobs with an expected end."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar, final

from harness import Job
from harness.policy import ENDLESS
from harness_plugins.backfill.expected import Expected

BEHIND = "WaitsForFirst"
"""The refusal of a job that waits behind the first job, which it must not delay."""

RESERVED = "WaitsForReserved"
"""The refusal of a job that fits now, but would delay other jobs with reservations."""

R = TypeVar("R")
A = TypeVar("A")

Key = tuple[int, int]
"""The sort key of waiting jobs; the job's index decides ties."""


class Waiting(NamedTuple, Generic[R]):
    """A waiting job; the index within the key is unique, so fields after the key are never compared."""

    key: Key
    job: Job
    request: R
    expected: int


@final
class Running(Generic[A]):
    """A running job.

    Attributes:
        job: the job.
        assignment: the resources that it holds.
        began: the job's start, microseconds.
        end: the job's expected end.
        step: the number of times that the expected end was moved because the job ran longer.
        pods: the number of the job's pods that have not ended.
        ending: True if the job ends at this instant, and its assignment is not given back yet.
        going: True if the job was evicted, or lost a pod and so must be evicted as a whole.
        stays: the time until which the job tolerates NoExecute taints; None without a limit.
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
        """Moves the expected end of a job that still runs after it."""
        whole, self.step = expected.prolonged(self.job, self.end - self.began, now - self.began, self.step)
        self.end = min(self.began + whole, ENDLESS)

    def is_due(self, expected: Expected, now: int) -> bool:
        """Returns True if the job is expected to end at exactly this instant."""
        if self.end >= now:
            return self.end == now
        before = now - self.began - 1
        whole, _ = expected.prolonged(self.job, self.end - self.began, before, self.step)
        return self.began + whole == now

    @property
    def place(self) -> tuple[int, int]:
        """The sort key among running jobs: the expected end."""
        return self.end, self.job.index


Entry = tuple[tuple[int, int], Running[A]]
"""A running job, preceded by its place in the order of expected ends."""
