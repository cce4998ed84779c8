"""Defines an interface to the resources that jobs share, which are either quotas or nodes.

Both backfilling algorithms use this interface. An algorithm decides which jobs may overtake others, and the
capacity decides which jobs fit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol, TypeVar

from harness import Decision, Job, Refuse
from harness_plugins.backfill.jobs import Entry

R = TypeVar("R")
"""The type of requests. All jobs with the same shape share one request."""

A = TypeVar("A")
"""The type of the resources that are assigned to one job."""


class Reservation(Protocol):
    """The reservation of the first waiting job.

    Attributes:
        at: the time at which the job is expected to fit, in microseconds.
    """

    at: int
    job: Job


V = TypeVar("V", bound=Reservation)

_R = TypeVar("_R", contravariant=True)


class Plan(Protocol[_R, A]):
    """A plan of the quota or nodes that each job uses from now on, based on the jobs' expected run times."""

    def forget(self, now: int) -> None:
        """Drops assignments that have ended."""

    def charge(self, assignment: A, start: int, end: int) -> None:
        """Adds an assignment from `start` until just before `end`."""

    def refund(self, assignment: A, start: int, end: int) -> None:
        """Removes an assignment from `start` until just before `end`."""

    def earliest(self, request: _R, job: Job, length: int, now: int) -> tuple[int, A]:
        """Returns the first time from `now` on at which a job fits for `length`, and the assignment then."""

    def may_begin_before(self, time: int, request: _R) -> bool:
        """Returns True if a job with a reservation at `time` might start earlier, or with other resources.

        If the result is False, there is no need to look for a better reservation.
        """


class Capacity(Protocol[R, A, V]):
    """The resources, the jobs that use them, and the free capacity.

    Attributes:
        others_matter: whether a job that does not fit now may fit after the start of another job.
        foresees: whether a change of the capacity is announced. In this case, a job may have to end before
            the change, so that only short jobs fit.
    """

    @property
    def others_matter(self) -> bool:
        """See the class."""

    @property
    def foresees(self) -> bool:
        """See the class."""

    def advance(self, now: int) -> None:
        """Advances to `now`."""

    def request(self, job: Job) -> R:
        """Returns the request of a job. All jobs with the same shape share the object."""

    def held(self, job: Job) -> A | None:
        """Returns the assignment of a job that is already running according to the manifests, or None."""

    def assign(self, request: R, job: Job, expected: int) -> A | None:
        """Returns an assignment that a job can have now for its expected run time, or None."""

    def has_room(self, request: R) -> bool:
        """Returns False if no job with this request can fit now, so that `assign` would return None."""

    def roomy(self, requests: Collection[R]) -> set[R]:
        """Returns at least the requests for which `has_room` is True."""

    def fits(self, assignment: A) -> bool:
        """Returns True if an assignment fits now."""

    def charge(self, assignment: A) -> None:
        """Marks an assignment as used."""

    def refund(self, assignment: A) -> None:
        """Releases the assignment of a job that has ended."""

    def stays(self, assignment: A) -> int | None:
        """Returns for how many seconds a job can keep its assignment, or None if there is no limit."""

    def decisions(self, job: Job, assignment: A) -> Iterator[Decision]:
        """Yields the decisions that start a job."""

    def refusal(self, request: R, job: Job, expected: int) -> Refuse | None:
        """Returns a record of the reason why a job cannot start now, or None if it can start."""

    def reserve(
        self, request: R, job: Job, expected: int, running: Sequence[Entry[A]], before: V | None
    ) -> V:
        """Returns a reservation at the earliest time at which a job fits if running jobs end as expected.

        Args:
            request: the request of the job.
            job: the job.
            expected: the expected run time of the job.
            running: the running jobs, sorted by their expected end.
            before: an earlier reservation of the same job.
        """

    def reserved(self, reservation: V) -> A | None:
        """Returns the reserved assignment if it is already free now, or None.

        Call this method only if `assign` has found no assignment for the job.
        """

    def beside(self, reservation: V, request: R, job: Job, expected: int, assignment: A) -> A | None:
        """Finds an assignment for a job that is expected to run beyond the start of a reservation.

        The assignment must leave enough resources for the reserved job. After this call, the reservation
        takes the assignment into account.

        Returns:
            `assignment`, or another one, or None if each of them would delay the reserved job.
        """

    def plan(self) -> Plan[R, A]:
        """Returns an empty plan."""
