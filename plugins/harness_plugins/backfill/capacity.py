"""What jobs share, as both algorithms see it: quotas, or nodes. Neither says who may pass whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from harness import Decision, Job, Refuse
from harness_plugins.backfill.jobs import Entry

R = TypeVar("R")
"""What jobs of one shape ask for."""

A = TypeVar("A")
"""What one job gets."""


class Reservation(Protocol):
    """The first waiting job's.

    Attributes:
        at: when it is expected to find room, microseconds.
        job: whose it is.
    """

    at: int
    job: Job


V = TypeVar("V", bound=Reservation)

_R = TypeVar("_R", contravariant=True)


class Plan(Protocol[_R, A]):
    """Who has what from now on, as jobs are expected to run."""

    def forget(self, now: int) -> None:
        """Drop what is over."""

    def charge(self, assignment: A, start: int, end: int) -> None:
        """Take what is assigned from `start` to before `end`."""

    def refund(self, assignment: A, start: int, end: int) -> None:
        """Give back what was taken from `start` to before `end`."""

    def earliest(self, request: _R, job: Job, length: int, now: int) -> tuple[int, A]:
        """The first moment from `now` on at which a job finds room for so long, and what it gets."""

    def may_begin_before(self, time: int, request: _R) -> bool:
        """Whether a job that has a reservation at a time might get an earlier one, or another place."""


class Capacity(Protocol[R, A, V]):
    """What there is, who has what of it, and who could have what.

    Attributes:
        others_matter: whether somebody who finds no room may find some when others start.
        foresees: whether something is announced, so that who runs for a shorter time may find room.
    """

    @property
    def others_matter(self) -> bool:
        """See the class."""

    @property
    def foresees(self) -> bool:
        """See the class."""

    def advance(self, now: int) -> None:
        """It is `now`."""

    def request(self, job: Job) -> R:
        """What a job asks for; jobs of one shape share the answer."""

    def held(self, job: Job) -> A | None:
        """What a job of the manifests has already when it arrives; None for nothing."""

    def assign(self, request: R, job: Job, expected: int) -> A | None:
        """What a job can have now, for as long as it is expected to run, or None."""

    def has_room(self, request: R) -> bool:
        """Whether a job could have something now; where it could not, `assign` has nothing either."""

    def fits(self, assignment: A) -> bool:
        """Whether what is assigned could be taken now."""

    def charge(self, assignment: A) -> None:
        """Take what was assigned."""

    def refund(self, assignment: A) -> None:
        """Give back what a job had that has ended."""

    def stays(self, assignment: A) -> int | None:
        """For how many seconds a job may stay where it is; None for ever."""

    def decisions(self, job: Job, assignment: A) -> Iterator[Decision]:
        """What starts a job."""

    def refusal(self, request: R, job: Job, expected: int) -> Refuse | None:
        """Why a job cannot start now, for the record; None where it could."""

    def reserve(
        self, request: R, job: Job, expected: int, running: Sequence[Entry[A]], before: V | None
    ) -> V:
        """The first moment at which a job finds room, when those that run end as expected.

        Args:
            request: what it asks for.
            job: the job.
            expected: how long it is expected to run.
            running: by expected end.
            before: a reservation of the same job that was made earlier.
        """

    def reserved(self, reservation: V) -> A | None:
        """What is reserved, where it can be had already though `assign` has nothing."""

    def beside(self, reservation: V, request: R, job: Job, expected: int, assignment: A) -> A | None:
        """What a job can have that runs beyond a reservation and leaves that what it needs; None for nothing.

        Where there is something the reservation counts with it from then on.
        """

    def plan(self) -> Plan[R, A]:
        """An empty one."""
