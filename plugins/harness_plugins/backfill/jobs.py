"""Jobs as backfilling sees them: waiting with a place in the order, running with an expected end."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar, final

from harness import Job
from harness.policy import ENDLESS
from harness_plugins.backfill.expected import Expected

BEHIND = "WaitsForFirst"
"""Why a job is refused that may start before the first one only where that keeps its place."""

RESERVED = "WaitsForReserved"
"""Why a job is refused that has room now, and would delay others that have reservations."""

R = TypeVar("R")
A = TypeVar("A")

Key = tuple[int, int]
"""What waiting jobs are ordered by; the job's index decides ties."""


class Waiting(NamedTuple, Generic[R]):
    """A job that waits; the index within the key is unique, so nothing behind the key is ever compared."""

    key: Key
    job: Job
    request: R
    expected: int


@final
class Running(Generic[A]):
    """A job that runs.

    Attributes:
        job: the job.
        assignment: what it holds.
        began: when it started, microseconds.
        end: when it is expected to end.
        step: how often its expected end was moved because it ran longer.
        pods: how many of its pods have not ended.
        ending: whether it ends at this very instant, and what it holds is not given back yet.
        going: whether it was told to go, or lost a pod, so that the rest of it is to go too.
        stays: until when it may stay, by its tolerations of NoExecute taints; None for ever.
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
        """Move the expected end of a job that has outlived it."""
        whole, self.step = expected.prolonged(self.job, self.end - self.began, now - self.began, self.step)
        self.end = min(self.began + whole, ENDLESS)

    @property
    def place(self) -> tuple[int, int]:
        """What running jobs are ordered by: their expected ends."""
        return self.end, self.job.index


Entry = tuple[tuple[int, int], Running[A]]
"""A running job behind its place in the order of expected ends."""
