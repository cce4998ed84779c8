"""Jobs in backfilling: waiting with a place in the order, running with an expected end."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar, final

from harness import Job
from harness.policy import ENDLESS
from harness_plugins.backfill.expected import Expected

BEHIND = "WaitsForFirst"
"""The refusal of a job that may start before the first one only if that job keeps its place."""

RESERVED = "WaitsForReserved"
"""The refusal of a job that has room now, but would delay others with reservations."""

R = TypeVar("R")
A = TypeVar("A")

Key = tuple[int, int]
"""The sort key of waiting jobs; the job's index decides ties."""


class Waiting(NamedTuple, Generic[R]):
    """A job that waits; the index within the key is unique, so fields after the key are never compared."""

    key: Key
    job: Job
    request: R
    expected: int


@final
class Running(Generic[A]):
    """A job that runs.

    Attributes:
        job: the job.
        assignment: the resources that it holds.
        began: its start, microseconds.
        end: its expected end.
        step: the number of times its expected end was moved because it ran longer.
        pods: the number of its pods that have not ended.
        ending: True if it ends at this very instant, and its assignment is not given back yet.
        going: True if it was ordered to go, or lost a pod, so that the rest of it must go too.
        stays: the time until which it may stay, by its tolerations of NoExecute taints; None for ever.
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
        """Moves the expected end of a job that has outlived it."""
        whole, self.step = expected.prolonged(self.job, self.end - self.began, now - self.began, self.step)
        self.end = min(self.began + whole, ENDLESS)

    def is_due(self, expected: Expected, now: int) -> bool:
        """Returns True if it is expected to end at this very instant."""
        if self.end >= now:
            return self.end == now
        before = now - self.began - 1
        whole, _ = expected.prolonged(self.job, self.end - self.began, before, self.step)
        return self.began + whole == now

    @property
    def place(self) -> tuple[int, int]:
        """The sort key of running jobs: their expected ends."""
        return self.end, self.job.index


Entry = tuple[tuple[int, int], Running[A]]
"""A running job behind its place in the order of expected ends."""
