"""Models quotas for whole jobs.

A job gets the first flavor with enough quota in each resource group, or nothing. Policies that have no flavor
assignment of their own use these quotas. `Quotas.assign` returns the assignment that a job can have, `charge`
takes this assignment, and `refund` releases it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from operator import gt
from typing import Any, NamedTuple, final

from harness.base.memo import Memo
from harness.base.options import Option, boolean
from harness.cluster.model import Cluster
from harness.models.cluster import ClusterQueue
from harness.models.constraints import Constraints
from harness.models.never import by_quota, no_queue, parts_of, uncovered
from harness.models.quota import QuotaTree
from harness.models.shortage import shortage
from harness.policy import Job, Never, PodSet

_SHAPES = 1 << 16  # how many distinct job shapes to cache

BORROW = Option("borrow", True, "whether a queue can use quota that its cohort leaves unused", type=boolean)

NO_QUOTA = "NoQuota"
"""The reason code for a job that is next in line but lacks free quota in its queue and cohort."""


Cells = tuple[tuple[int, int], ...]
"""Cells of the quota tree. Each cell has the quantity that a job requests."""


class Assignment(NamedTuple):
    """The quota that a job takes.

    Attributes:
        home: the root of the queue's quota tree.
        node: the node of the queue in this tree.
        cells: the quantity of each cell. A cell is the index of a pair of flavor and resource.
        flavors: maps each pod set to its flavors by resource.
    """

    home: int
    node: int
    cells: Cells
    flavors: Mapping[str, Mapping[str, str]]


@final
class Kind:
    """Requests for the same resources of one queue, which differ only in their quantities.

    Attributes:
        node: the node of the queue in the quota tree.
        cells: for each requested quantity, the cells of the flavors that could provide it.
    """

    __slots__ = ("cells", "node")

    def __init__(self, node: int, cells: Sequence[Sequence[int]]) -> None:
        self.node = node
        self.cells = cells


@final
class Request:
    """The quantities that jobs of the same shape request from their queue.

    Attributes:
        queue: the ClusterQueue, or "" if the cluster has none.
        node: the node of the queue in the quota tree.
        home: the root of this tree. Quota that becomes free in other trees does not help these jobs.
        groups: for each resource group, the flavors in the order in which they are tried. Each flavor comes
            with the cells and quantities that the job would take from it.
        kind: the kind of the request. Requests of the same kind share the object.
        amounts: the requested quantities, in the order of the kind's cells.
        never: the reason why these jobs can never run, or None if they can.
        assignments: a cache of earlier assignments, by the indices of the flavors that were chosen.
    """

    __slots__ = ("amounts", "assignments", "groups", "home", "kind", "never", "node", "queue")

    kind: Kind
    amounts: Sequence[int]

    def __init__(self, queue: str, node: int, home: int) -> None:
        self.queue = queue
        self.node = node
        self.home = home
        self.groups: list[list[tuple[str, Cells]]] = []
        self.never: Never | None = None
        self.assignments: dict[tuple[int, ...], Assignment] = {}


@final
class Quotas:
    """The quota tree of a cluster for whole jobs. Without ClusterQueues, every job fits.

    Args:
        cluster: the cluster.
        borrow: whether a queue can use quota that its cohort leaves unused.
    """

    def __init__(self, cluster: Cluster, *, borrow: bool) -> None:
        self._borrow = borrow
        self._use(cluster, QuotaTree(cluster.cluster_queues, cluster.cohorts))

    def _use(self, cluster: Cluster, tree: QuotaTree) -> None:
        self._cluster = cluster
        self._tree = tree
        self._requests: Memo[tuple[str, str, tuple[PodSet, ...]], Request] = Memo(_SHAPES)
        self._kinds: dict[tuple[int, tuple[tuple[int, ...], ...]], Kind] = {}

    def follow(self, cluster: Cluster, held: Mapping[int, Assignment]) -> dict[int, Assignment]:
        """Switches to the quotas of another cluster. Earlier `Request` objects become invalid.

        Args:
            cluster: the new cluster. A queue that it no longer has gets no quota, but its jobs keep their
                assignments.
            held: the assignment of each job.

        Returns:
            For each job, an assignment of the same quota that refers to the new tree.
        """
        before = self._tree
        queues = {name: ClusterQueue(name) for name in before.queues} | dict(cluster.cluster_queues)
        used = {before.flavor_resources[cell] for each in held.values() for cell, _ in each.cells}
        tree = QuotaTree(queues, cluster.cohorts, also=used)
        self._use(cluster, tree)
        found = {}
        for job, (_, node, cells, flavors) in held.items():
            there = tree.queues[before.names[node]] if cells else node
            called = [(tree.cell(*before.flavor_resources[cell]), amount) for cell, amount in cells]
            numbered = tuple((cell, amount) for cell, amount in called if cell is not None)
            home = tree.root[there] if cells else there
            found[job] = Assignment(home, there, numbered, flavors)
            self.charge(found[job])
        return found

    def request(self, job: Job) -> Request:
        """Returns the request of a job to its queue. All jobs of the same shape share the object."""
        key = (job.namespace, job.queue, job.pod_sets)
        request = self._requests.get(key)
        if request is None:
            request = self._requests[key] = self._read(job)
            # Each flavor of a group provides the same quantities.
            groups = [zip(*[cells for _, cells in flavors], strict=True) for flavors in request.groups]
            quantities = [each for group in groups for each in group]
            cells = tuple([tuple([cell for cell, _ in each]) for each in quantities])
            request.kind = self._kinds.setdefault((request.node, cells), Kind(request.node, cells))
            request.amounts = [each[0][1] for each in quantities]
        return request

    def assign(self, request: Request, job: Job) -> Assignment | None:
        """Returns the quota that a job can have now, or None if it can't have any."""
        chosen = []
        for flavors in request.groups:
            for number, (_, cells) in enumerate(flavors):
                if self._has_room(request.node, cells):
                    chosen.append(number)
                    break
            else:
                return None
        return self._known(request, tuple(chosen), job)

    def _known(self, request: Request, numbers: tuple[int, ...], job: Job) -> Assignment:
        assignment = request.assignments.get(numbers)
        if assignment is None:
            assignment = request.assignments[numbers] = self._read_assignment(request, numbers, job)
        return assignment

    def assign_throughout(self, request: Request, job: Job, usages: Sequence[list[int]]) -> Assignment | None:
        """Returns quota that a job can have at each of several times, or None if there is no such quota.

        `usages` has the usage of the quota tree at each of these times; see the property `usage`.
        """
        tree, held = self._tree, self._tree.usage
        chosen: list[int] = []
        for flavors in request.groups:
            left = list(range(len(flavors)))
            for tree.usage in usages:
                left = [number for number in left if self._has_room(request.node, flavors[number][1])]
                if not left:
                    break
            chosen += left[:1]
        tree.usage = held
        if len(chosen) < len(request.groups):
            return None
        return self._known(request, tuple(chosen), job)

    def has_room(self, request: Request) -> bool:
        """Returns True if a job could get quota now."""
        for flavors in request.groups:
            for _, cells in flavors:
                if self._has_room(request.node, cells):
                    break
            else:
                return False
        return True

    def room(self, kind: Kind) -> list[int]:
        """Returns, for each quantity of a kind, the largest quantity that is free in one of its cells."""
        available, node = self._tree.available, kind.node
        return [
            available(node, cells[0]) if len(cells) == 1 else max([available(node, cell) for cell in cells])
            for cells in kind.cells
        ]

    def roomy(self, requests: Collection[Request]) -> set[Request]:
        """Returns the requests that could get quota now, and perhaps requests that could not."""
        rooms = {kind: self.room(kind) for kind in {request.kind for request in requests}}
        return {each for each in requests if not any(map(gt, each.amounts, rooms[each.kind]))}

    def fits(self, assignment: Assignment) -> bool:
        """Returns True if the quota for an assignment is free now."""
        return self._has_room(assignment.node, assignment.cells)

    @property
    def usage(self) -> list[int]:
        """The current usage of the quota tree, as one list.

        Callers can temporarily set the usage at another time, and then compute results for that time.
        """
        return self._tree.usage

    @usage.setter
    def usage(self, usage: list[int]) -> None:
        self._tree.usage = usage

    def shortage(self, request: Request) -> dict[str, Any]:
        """Returns how much quota is missing, for each resource group in which no flavor has enough."""
        cells = [
            cell
            for flavors in request.groups
            if not any(self._has_room(request.node, of_flavor) for _, of_flavor in flavors)
            for _, of_flavor in flavors
            for cell in of_flavor
        ]
        return shortage(self._tree, request.node, cells, borrow=self._borrow)

    def charge(self, assignment: Assignment) -> None:
        """Takes the quota of an assignment."""
        self._tree.charge(assignment.node, assignment.cells)

    def refund(self, assignment: Assignment) -> None:
        """Releases the quota of an assignment."""
        self._tree.refund(assignment.node, assignment.cells)

    def _has_room(self, node: int, cells: Cells) -> bool:
        tree = self._tree
        for cell, amount in cells:
            if tree.available(node, cell) < amount:
                return False
            if not self._borrow and tree.borrows(node, cell, amount):
                return False
        return True

    def _read(self, job: Job) -> Request:
        queue = self._cluster.cluster_queue_of(job.namespace, job.queue)
        if queue is None:
            request = Request("", 0, 0)
            if self._cluster.cluster_queues:
                request.never = no_queue(self._cluster, job.namespace, job.queue)
                request.groups = [[]]
            return request
        tree = self._tree
        node = tree.queues[queue.name]
        request = Request(queue.name, node, tree.root[node])
        wanted = job.requests_of(range(job.pods))
        constraints = [Constraints(pod_set) for pod_set in job.pod_sets]
        why = uncovered(queue, wanted)
        for part in parts_of(queue, self._cluster, partial(self._most, node), constraints, wanted):
            fitting = [flavor for flavor, misfit in part.misfits.items() if not misfit]
            request.groups.append([(flavor, self._cells(flavor, part.asked)) for flavor in fitting])
            why = why or part.never(queue.name)
        if why:
            request.never = by_quota(queue.name, why)
            request.groups = [[]]  # no flavor fits until then
        return request

    def _cells(self, flavor: str, asked: Mapping[str, int]) -> Cells:
        cells = ((self._tree.cell(flavor, resource), amount) for resource, amount in asked.items())
        return tuple((cell, amount) for cell, amount in cells if cell is not None)

    def _most(self, node: int, flavor: str, resource: str) -> int:
        return self._tree.most(node, flavor, resource, borrow=self._borrow)

    def _read_assignment(self, request: Request, numbers: tuple[int, ...], job: Job) -> Assignment:
        cells: Cells = ()
        flavor_of: dict[str, str] = {}
        for flavors, number in zip(request.groups, numbers, strict=True):
            flavor, of_group = flavors[number]
            cells += of_group
            for cell, _ in of_group:
                flavor_of[self._tree.flavor_resources[cell].resource] = flavor
        flavors_of = {
            pod_set.name: {each: flavor_of[each] for each in pod_set.requests if each in flavor_of}
            for pod_set in job.pod_sets
        }
        return Assignment(request.home, request.node, cells, flavors_of)
