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
        at: the time when it is expected to find room, microseconds.
        job: the job that has the reservation.
    """

    at: int
    job: Job


V = TypeVar("V", bound=Reservation)

_R = TypeVar("_R", contravariant=True)


class Plan(Protocol[_R, A]):
    """The assignments of all jobs from now on, under their expected run times."""

    def forget(self, now: int) -> None:
        """Drops everything that is over."""

    def charge(self, assignment: A, start: int, end: int) -> None:
        """Takes an assignment from `start` to before `end`."""

    def refund(self, assignment: A, start: int, end: int) -> None:
        """Gives back an assignment from `start` to before `end`."""

    def earliest(self, request: _R, job: Job, length: int, now: int) -> tuple[int, A]:
        """Returns the first moment from `now` on when a job finds room for so long, and its assignment."""

    def may_begin_before(self, time: int, request: _R) -> bool:
        """Returns True if a job with a reservation at a time might get an earlier one, or another place."""


class Capacity(Protocol[R, A, V]):
    """The available resources, their current holders, and the room for others.

    Attributes:
        others_matter: True if a job that finds no room may find some when others start.
        foresees: True if a change is announced, so that a job with a shorter run time may find room.
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
        """Returns the assignment that a job of the manifests has already when it arrives.

        None for nothing.
        """

    def assign(self, request: R, job: Job, expected: int) -> A | None:
        """Returns the assignment that a job can have now, for its expected run time, or None."""

    def has_room(self, request: R) -> bool:
        """Returns True if a job could have something now; if False, `assign` returns None as well."""

    def fits(self, assignment: A) -> bool:
        """Returns True if an assignment could be taken now."""

    def charge(self, assignment: A) -> None:
        """Takes an assignment."""

    def refund(self, assignment: A) -> None:
        """Gives back the assignment of a job that has ended."""

    def stays(self, assignment: A) -> int | None:
        """Returns the number of seconds for which a job may stay in its place; None for ever."""

    def decisions(self, job: Job, assignment: A) -> Iterator[Decision]:
        """Yields the decisions that start a job."""

    def refusal(self, request: R, job: Job, expected: int) -> Refuse | None:
        """Returns the reason why a job cannot start now, for the record; None if it could."""

    def reserve(
        self, request: R, job: Job, expected: int, running: Sequence[Entry[A]], before: V | None
    ) -> V:
        """Returns the first moment at which a job finds room, if running jobs end as expected.

        Args:
            request: its request.
            job: the job.
            expected: its expected run time.
            running: running jobs by expected end.
            before: a reservation of the same job that was made earlier.
        """

    def reserved(self, reservation: V) -> A | None:
        """Returns the reserved assignment, if it is available already although `assign` finds nothing."""

    def beside(self, reservation: V, request: R, job: Job, expected: int, assignment: A) -> A | None:
        """Returns an assignment for a job that outlasts a reservation and still leaves it enough.

        None if there is none.

        From then on, the reservation counts with the returned assignment.
        """

    def plan(self) -> Plan[R, A]:
        """Returns an empty plan."""
