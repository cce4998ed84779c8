"""The resources that jobs share, in the form that both algorithms use: quotas, or nodes.

Neither form decides which job may overtake another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from harness import Decision, Job, Refuse
from harness_plugins.backfill.jobs import Entry

R = TypeVar("R")
"""The request of jobs of one shape."""

A = TypeVar("A")
"""The assignment of one job."""


class Reservation(Protocol):
    """The reservation of the first waiting job.

    Attributes:
        at: the time when the job is expected to find free capacity, microseconds.
        job: the job that has the reservation.
    """

    at: int
    job: Job


V = TypeVar("V", bound=Reservation)

_R = TypeVar("_R", contravariant=True)


class Plan(Protocol[_R, A]):
    """The assignments of all jobs from now on, under their expected run times."""

    def forget(self, now: int) -> None:
        """Drops assignments that have ended."""

    def charge(self, assignment: A, start: int, end: int) -> None:
        """Adds an assignment from `start` to before `end`."""

    def refund(self, assignment: A, start: int, end: int) -> None:
        """Removes an assignment from `start` to before `end`."""

    def earliest(self, request: _R, job: Job, length: int, now: int) -> tuple[int, A]:
        """Returns the first moment from `now` on when a job fits for `length`, and its assignment."""

    def may_begin_before(self, time: int, request: _R) -> bool:
        """Returns True if a job that is reserved at `time` might start earlier, or elsewhere."""


class Capacity(Protocol[R, A, V]):
    """The available resources, the jobs that hold them, and the free capacity.

    Attributes:
        others_matter: True if a job that does not fit may fit after other jobs start.
        foresees: True if a change is announced, so that a job with a shorter run time may fit.
    """

    @property
    def others_matter(self) -> bool:
        """See the class."""

    @property
    def foresees(self) -> bool:
        """See the class."""

    def advance(self, now: int) -> None:
        """Moves the time to `now`."""

    def request(self, job: Job) -> R:
        """Returns the request of a job; jobs of one shape share it."""

    def held(self, job: Job) -> A | None:
        """Returns the assignment that a job of the manifests already has when it arrives, or None."""

    def assign(self, request: R, job: Job, expected: int) -> A | None:
        """Returns the assignment that a job can have now, for its expected run time, or None."""

    def has_room(self, request: R) -> bool:
        """Returns True if a job may fit now; if False, `assign` returns None as well."""

    def fits(self, assignment: A) -> bool:
        """Returns True if an assignment fits now."""

    def charge(self, assignment: A) -> None:
        """Marks an assignment as held."""

    def refund(self, assignment: A) -> None:
        """Gives back the assignment of a job that has ended."""

    def stays(self, assignment: A) -> int | None:
        """Returns the number of seconds for which a job may stay in its place; None without a limit."""

    def decisions(self, job: Job, assignment: A) -> Iterator[Decision]:
        """Yields the decisions that start a job."""

    def refusal(self, request: R, job: Job, expected: int) -> Refuse | None:
        """Returns the recorded reason why a job cannot start now; None if it can."""

    def reserve(
        self, request: R, job: Job, expected: int, running: Sequence[Entry[A]], before: V | None
    ) -> V:
        """Returns a reservation at the first moment when a job fits, if running jobs end as expected.

        Args:
            request: the job's request.
            job: the job.
            expected: the job's expected run time.
            running: running jobs by expected end.
            before: an earlier reservation of the same job.
        """

    def reserved(self, reservation: V) -> A | None:
        """Returns the reserved assignment if it is already free although `assign` finds nothing."""

    def beside(self, reservation: V, request: R, job: Job, expected: int, assignment: A) -> A | None:
        """Returns an assignment for a job that runs past a reservation's start, or None.

        The assignment leaves the reserved job enough. From then on, the reservation takes the assignment into
        account.
        """

    def plan(self) -> Plan[R, A]:
        """Returns an empty plan."""
