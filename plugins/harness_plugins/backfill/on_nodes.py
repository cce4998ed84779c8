"""Implements `Capacity` for clusters with nodes. kube-scheduler's filters and scores place the pods of jobs.

The first waiting job has a reservation for a time at which its pods find nodes. These nodes can change when
other jobs start, but the job will still find nodes at that time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import gt
from typing import final

from harness import Bind, Cluster, Decision, Job, Never, PodSet, Refuse
from harness.models.kube.drains import is_left
from harness.models.kube.most_room import amounts_of
from harness.models.kube.pod import Shape
from harness.models.kube.refusal import UNSCHEDULABLE
from harness.models.kube.taint_evictions import no_execute
from harness.policy import ENDLESS
from harness_plugins.backfill.jobs import Entry
from harness_plugins.backfill.node_plan import NodePlan
from harness_plugins.backfill.outlook import Outlook
from harness_plugins.backfill.snapshot import Places, Snapshot

MAINTENANCE = "ReqNodeNotAvail"
"""The reason code for a job that would still run when nodes are removed or shrink, as in Slurm."""

_MAINTENANCE = {"message": "the job fits now, but it would not end before an announced change"}


@final
class NodeRequest:
    """A request, which all jobs with the same shape share.

    Attributes:
        job: one of these jobs.
        home: always 0, because all nodes belong to one cluster.
        never: the reason why such jobs can never run, or None if they can.
        shapes: the shapes of their pods, once `has_room` was asked.
        amounts: the largest request of any of these pods for each resource.
    """

    __slots__ = ("amounts", "home", "job", "never", "shapes")

    def __init__(self, job: Job, never: Never | None) -> None:
        self.job = job
        self.home = 0
        self.never = never
        self.shapes: Sequence[Shape] = ()
        self.amounts: Sequence[int] = ()


@final
class NodeReservation:
    """The time at which the first waiting job is expected to find nodes.

    Attributes:
        at, job: see `capacity.Reservation`.
        until: the expected end of the job.
        places: the nodes, or None if the job finds none even after all running jobs have ended.
        refused: the requests of jobs that would leave no nodes for the reserved job.
    """

    __slots__ = ("at", "job", "places", "refused", "until")

    def __init__(self, job: Job, at: int, until: int, places: Places | None) -> None:
        self.job = job
        self.at = at
        self.until = until
        self.places = places
        self.refused: set[NodeRequest] = set()


@final
class OnNodes:
    """The nodes of a cluster. See `capacity.Capacity`."""

    def __init__(self, cluster: Cluster) -> None:
        self._outlook = Outlook(cluster)
        self._time = 0
        self._drained: frozenset[str] = frozenset()
        self._begin(cluster)

    def _begin(self, cluster: Cluster) -> None:
        cluster = self._cluster = self._outlook.with_coming(cluster)
        self._now = Snapshot(cluster)
        # The nodes as expected when the first waiting job starts, without that job.
        self._then = Snapshot(cluster)
        self._requests: dict[tuple[str, tuple[PodSet, ...]], NodeRequest] = {}
        self._empty: Snapshot | None = None
        self._tainted = {
            name: taints for name, node in cluster.nodes.items() if (taints := no_execute(node.taints))
        }

    def follow(self, cluster: Cluster, held: Mapping[int, Places]) -> dict[int, Places]:
        """Switches to the nodes of another cluster. Earlier requests become invalid.

        Args:
            cluster: the cluster. Jobs on nodes that the cluster no longer has are lost afterwards.
            held: the nodes of each job.

        Returns:
            The nodes of each job, by their new positions.
        """
        before = [node.name for node in self._now.cache.nodes]
        known = self._cluster.nodes
        self._drained = frozenset(
            name
            for name, node in cluster.nodes.items()
            if node.drain is not None and (name not in known or known[name].drain is None)
        )
        self._begin(cluster)
        positions = {node.name: node.position for node in self._now.cache.nodes}
        found = {}
        for index, places in held.items():
            names = [before[node] if node >= 0 else "" for node in places.nodes]
            at = tuple([positions.get(name, -1) for name in names])
            found[index] = Places(places.job, at, places.devices)
            self._now.put(found[index])
        return found

    def stays(self, assignment: Places) -> int | None:
        """Returns for how many seconds a job tolerates its nodes' NoExecute taints. None means no limit."""
        if not self._tainted:
            return None
        return self._now.stays(assignment, self._tainted)

    def is_drained(self, assignment: Places) -> bool:
        """Returns True if the last change started a drain of a node that the job uses."""
        nodes = self._now.cache.nodes
        return bool(self._drained) and any(
            node >= 0 and nodes[node].name in self._drained and not is_left(assignment.job, pod)
            for pod, node in enumerate(assignment.nodes)
        )

    @property
    def others_matter(self) -> bool:
        """See `Capacity`. It is True if pods may have to be near pods of other jobs."""
        return self._now.between_pods

    @property
    def foresees(self) -> bool:
        """See `Capacity`."""
        return self._outlook.ahead

    def advance(self, now: int) -> None:
        """See `Capacity`."""
        self._time = now
        self._outlook.advance(now)

    def request(self, job: Job) -> NodeRequest:
        """See `Capacity`."""
        key = job.namespace, job.pod_sets
        found = self._requests.get(key)
        if found is None:
            found = self._requests[key] = NodeRequest(job, self._never(job))
        return found

    def held(self, job: Job) -> Places | None:
        """See `Capacity`. The assignment of a running Pod is its node."""
        return self._now.held(job)

    def assign(self, request: NodeRequest, job: Job, expected: int) -> Places | None:
        """See `Capacity`."""
        return self._now.find_during(job, self._outlook, self._time, self._time + expected)

    def has_room(self, request: NodeRequest) -> bool:
        """See `Capacity`. Each pod by itself must fit on some node."""
        return all(map(self._now.scheduling.any_fits, request.shapes or self._shapes_of(request)))

    def _shapes_of(self, request: NodeRequest) -> Sequence[Shape]:
        shapes = request.shapes = self._now.shapes(request.job)
        resources = len(self._now.cache.names)
        request.amounts = list(map(max, zip(*[amounts_of(each, resources) for each in shapes], strict=True)))
        return shapes

    def roomy(self, requests: Iterable[NodeRequest]) -> set[NodeRequest]:
        """See `Capacity`. No pod may request more of a resource than some node has free."""
        most = self._now.most_free()
        return {each for each in requests if not any(map(gt, each.amounts, most))}

    def fits(self, assignment: Places) -> bool:
        """See `Capacity`."""
        return self._now.fits(assignment)

    def charge(self, assignment: Places) -> None:
        """See `Capacity`."""
        self._now.put(assignment)
        assignment.devices = self._now.devices_of(assignment.job)

    def refund(self, assignment: Places) -> None:
        """See `Capacity`."""
        for snapshot in (self._now, self._then):
            snapshot.forget(assignment.job)

    def decisions(self, job: Job, assignment: Places) -> Iterator[Decision]:
        """See `Capacity`. Consecutive pods on a node share one binding, unless they use devices."""
        for pod, devices in enumerate(assignment.devices):
            name = self._now.cache.nodes[assignment.nodes[pod]].name
            yield Bind(job, range(pod, pod + 1), name, {"devices": list(devices)} if devices else {})
        if assignment.devices:
            return
        first = 0
        for node, pods in groupby(assignment.nodes):
            last = first + len(list(pods))
            yield Bind(job, range(first, last), self._now.cache.nodes[node].name)
            first = last

    def refusal(self, request: NodeRequest, job: Job, expected: int) -> Refuse | None:
        """See `Capacity`."""
        failure = self._now.failure(job)
        if failure is None:
            foreseen = self.foresees and self.assign(request, job, expected) is None
            return Refuse(job, MAINTENANCE, _MAINTENANCE) if foreseen else None
        pod = {"pod": failure.pod.name} if job.pods > 1 else {}
        return Refuse(job, UNSCHEDULABLE, {**pod, **failure.detail})

    def reserve(
        self,
        request: NodeRequest,
        job: Job,
        expected: int,
        running: Sequence[Entry[Places]],
        before: NodeReservation | None,
    ) -> NodeReservation:
        """See `Capacity`.

        Because pods are placed one by one, a job may not find nodes although more nodes are free than before.
        In this case, its reservation keeps the nodes that were reserved before.
        """
        snapshot = self._then
        snapshot.show({each.job.index: each.assignment for _, each in running})
        ends: Iterable[tuple[int, Sequence[Entry[Places]]]]
        ends = ((at, tuple(group)) for at, group in groupby(running, key=_expected_end))
        if self._outlook.ahead:
            ends = sorted((dict.fromkeys(self._outlook.moments(self._time), ()) | dict(ends)).items())
        for at, ending in ends:
            for _, each in ending:
                snapshot.take(each.job)
            until = min(at + expected, ENDLESS)
            with snapshot.during(self._outlook, at, until):
                places = snapshot.find(job)
                if places is None and before is not None and before.places is not None:
                    places = before.places if snapshot.fits(before.places) else None
            if places is not None:
                return NodeReservation(job, at, until, places)
        return NodeReservation(job, ENDLESS, ENDLESS, None)

    def reserved(self, reservation: NodeReservation) -> Places | None:
        """See `Capacity`."""
        places, length = reservation.places, reservation.until - reservation.at
        with self._now.during(self._outlook, self._time, self._time + length):
            return places if places is not None and self._now.fits(places) else None

    def beside(
        self, reservation: NodeReservation, request: NodeRequest, job: Job, expected: int, assignment: Places
    ) -> Places | None:
        """See `Capacity`. The job gets the best nodes, or else nodes that are not reserved."""
        if request in reservation.refused or reservation.places is None:
            return None
        if self._leave(reservation, assignment):
            return assignment
        with self._now.during(self._outlook, self._time, self._time + expected):
            others = self._but_reserved(job, reservation.places)
        if others is not None and self._leave(reservation, others):
            return others
        if not self.foresees:
            reservation.refused.add(request)
        return None

    def plan(self) -> NodePlan:
        """See `Capacity`."""
        return NodePlan(self._then, self._outlook)

    def _leave(self, reservation: NodeReservation, places: Places) -> bool:
        """Puts a job on its places, and returns True if the reservation can still be kept."""
        snapshot = self._then
        snapshot.put(places)
        found = snapshot.find_during(reservation.job, self._outlook, reservation.at, reservation.until)
        if found is None:
            snapshot.take(places.job)
            return False
        reservation.places = found
        return True

    def _but_reserved(self, job: Job, reserved: Places) -> Places | None:
        then = self._then
        then.put(reserved)
        with self._now.limited(then, reserved.nodes):
            found = self._now.find(job)
        then.take(reserved.job)
        return found

    def _never(self, job: Job) -> Never | None:
        """Returns why a job can never run: a pod fits on no node, or the pods don't fit together."""
        never = self._now.never(job)
        if never is not None or job.pods == 1:
            return never
        if self._empty is None:
            self._empty = Snapshot(self._cluster)
        failure = self._empty.failure(job)
        self._empty.forget(job)
        if failure is None or not failure.by_nodes:
            return None
        return Never(
            "nodes", f"its {job.pods:,} pods do not fit on the nodes together, even when all nodes are empty"
        )


def _expected_end(entry: Entry[Places]) -> int:
    return entry[0][0]
