"""Implements `Capacity` for clusters without nodes, where jobs share quotas. Only quantities matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

from harness import Admit, Cluster, Decision, Job, Refuse
from harness.models.job_quotas import NO_QUOTA, Assignment, Cells, Quotas, Request
from harness.policy import ENDLESS
from harness_plugins.backfill.jobs import Entry
from harness_plugins.backfill.profile import Profile


@final
class QuotaReservation:
    """The time at which the first waiting job is expected to get quota.

    Attributes:
        at, job: see `capacity.Reservation`.
        request: the request of the job.
        usage: the usage at that time, without the job.
        delaying: assignments of other jobs that would delay this job. They were found by earlier checks.
    """

    __slots__ = ("at", "delaying", "job", "request", "usage")

    def __init__(self, job: Job, request: Request, at: int, usage: list[int]) -> None:
        self.job = job
        self.request = request
        self.at = at
        self.usage = usage
        self.delaying: set[tuple[int, Cells]] = set()


@final
class OnQuotas:
    """The quota trees of a cluster. See `Capacity`."""

    others_matter = False
    foresees = False

    def __init__(self, cluster: Cluster, options: Mapping[str, Any]) -> None:
        quotas = self._quotas = Quotas(cluster, borrow=options["borrow"])
        self.request = quotas.request
        self.has_room = quotas.has_room
        self.roomy = quotas.roomy
        self.fits = quotas.fits
        self.charge = quotas.charge
        self.refund = quotas.refund
        self.follow = quotas.follow

    def advance(self, now: int) -> None:
        """See `Capacity`. Quota changes are not announced."""

    def assign(self, request: Request, job: Job, expected: int) -> Assignment | None:
        """See `Capacity`."""
        return self._quotas.assign(request, job)

    def held(self, job: Job) -> Assignment | None:
        """See `Capacity`. Pods in the manifests run on nodes, and this cluster has no nodes."""
        return None

    def stays(self, assignment: Assignment) -> int | None:
        """See `Capacity`. Quotas have no taints."""
        return None

    def decisions(self, job: Job, assignment: Assignment) -> Iterator[Decision]:
        """See `Capacity`."""
        yield Admit(job, assignment.flavors)

    def refusal(self, request: Request, job: Job, expected: int) -> Refuse | None:
        """See `Capacity`."""
        return None if self.has_room(request) else Refuse(job, NO_QUOTA, self._quotas.shortage(request))

    def reserve(
        self,
        request: Request,
        job: Job,
        expected: int,
        running: Sequence[Entry[Assignment]],
        before: QuotaReservation | None,
    ) -> QuotaReservation:
        """See `Capacity`."""
        quotas = self._quotas
        held = quotas.usage
        quotas.usage = list(held)
        at = None
        for (end, _), each in running:
            if at is not None and end > at:
                break
            quotas.refund(each.assignment)
            if at is None and quotas.has_room(request):
                at = end
        then, quotas.usage = quotas.usage, held
        return QuotaReservation(job, request, ENDLESS if at is None else at, then)

    def reserved(self, reservation: QuotaReservation) -> Assignment | None:
        """See `Capacity`. If `assign` finds nothing, the reserved quota is not free either."""
        return None

    def beside(
        self, reservation: QuotaReservation, request: Request, job: Job, expected: int, assignment: Assignment
    ) -> Assignment | None:
        """See `Capacity`."""
        taken = assignment.node, assignment.cells
        if taken in reservation.delaying:
            return None
        quotas = self._quotas
        held, quotas.usage = quotas.usage, reservation.usage
        quotas.charge(assignment)
        delays = not quotas.has_room(reservation.request)
        if delays:
            quotas.refund(assignment)
            reservation.delaying.add(taken)
        quotas.usage = held
        return None if delays else assignment

    def plan(self) -> Profile:
        """See `Capacity`."""
        return Profile(self._quotas)
