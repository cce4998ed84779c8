"""The plugin `none`: a queue of whole jobs in which nothing is ever preempted.

Jobs wait in lanes. Within a lane the first job holds back the others; lanes never hold back each other. With
`blocking=strict` every queue is one lane; with `blocking=skip` jobs of one queue that ask for exactly the
same share a lane, because where the first of them does not fit none of them does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Any

from harness import (
    Admit,
    Bind,
    Cluster,
    Decision,
    Job,
    Option,
    PodSet,
    RegisterPolicy,
    Reject,
    View,
    Why,
    boolean,
    hookimpl,
)
from harness_plugins.quotas import Claim, Quotas, Request

OPTIONS = (
    Option(
        "order",
        "priority",
        "which job comes first: the most important (of these the oldest), or simply the oldest (fifo)",
        choices=("priority", "fifo"),
    ),
    Option(
        "blocking",
        "skip",
        "strict: the first job of a queue holds back those behind it; skip: whatever fits starts",
        choices=("strict", "skip"),
    ),
    Option("borrow", True, "whether a queue may use what its cohort leaves unused", type=boolean),
)


@hookimpl
def harness_register_policies(register: RegisterPolicy) -> None:
    """Register `none`."""
    register("none", NoPreemption, help="a queue of whole jobs; nothing is preempted", options=OPTIONS)


Entry = tuple[int, int, Job, Request]
"""A waiting job behind what it is ordered by; the job's index decides ties, so jobs are never compared."""


class Lane:
    """Waiting jobs that hold back each other: a heap of entries."""

    __slots__ = ("jobs",)

    def __init__(self) -> None:
        self.jobs: list[Entry] = []


class NoPreemption:
    """The policy; see the module."""

    def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
        self._by_priority = options["order"] == "priority"
        self._strict = options["blocking"] == "strict"
        self._quotas = Quotas(cluster, borrow=options["borrow"])
        self._nodes = Nodes(cluster) if cluster.nodes else None
        self._lanes: dict[object, Lane] = {}
        self._open: list[Lane] = []  # lanes that may start a job now
        self._blocked: dict[int, list[Lane]] = {}  # home -> lanes whose first job did not fit
        self._claims: dict[int, Claim] = {}
        self._rejected: list[tuple[Job, str]] = []

    def submit(self, job: Job, pods: range, now: int) -> None:
        """A job waits in its lane, or is remembered as one that can never run."""
        request = self._quotas.request(job)
        never = request.never
        if never is None and self._nodes is not None and not self._nodes.could_ever_place(job):
            never = "its pods do not fit the nodes even when these are empty"
        if never is not None:
            self._rejected.append((job, never))
            return
        key: object = request.queue if self._strict else (request.queue, job.pod_sets)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane()
        entry = (-job.priority if self._by_priority else 0, job.index, job, request)
        heappush(lane.jobs, entry)
        if lane.jobs[0] is entry:  # a new first job may fit where the old one did not
            self._open.append(lane)

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """What the job held is free: lanes that were short of it may go on."""
        claim = self._claims.pop(job.index)
        self._quotas.refund(claim)
        if self._nodes is None:  # freed quota serves its own tree of cohorts, room on nodes serves everyone
            self._open += self._blocked.pop(claim.home, ())
            return
        self._nodes.give(job)
        for lanes in self._blocked.values():
            self._open += lanes
        self._blocked.clear()

    def cycle(self, now: int) -> Iterator[Decision]:
        """Start what fits, in order, until every lane is empty or held back by its first job."""
        if self._rejected:
            for job, why in self._rejected:
                yield Reject(job, why)
            self._rejected.clear()
        if not self._open:
            return
        lanes = self._open
        if len(lanes) > 1:  # a lane may have been opened twice; the job in front tells lanes apart
            lanes = list({lane.jobs[0][1]: lane for lane in lanes if lane.jobs}.values())
        heads = [(*lane.jobs[0], lane) for lane in lanes if lane.jobs]
        self._open = []
        heapify(heads)
        while heads:
            _, index, job, request, lane = heappop(heads)
            claim = self._quotas.claim(request, job)
            nodes = self._nodes.place(job) if claim is not None and self._nodes is not None else ()
            if claim is None or nodes is None:
                self._blocked.setdefault(request.home, []).append(lane)
                continue
            heappop(lane.jobs)
            self._quotas.charge(claim)
            self._claims[index] = claim
            yield Admit(job, claim.flavors)
            for pod, node in enumerate(nodes):
                yield Bind(job, range(pod, pod + 1), node)
            if lane.jobs:
                heappush(heads, (*lane.jobs[0], lane))
            else:
                del self._lanes[request.queue if self._strict else (request.queue, job.pod_sets)]


class Nodes:
    """Free room on nodes, packed first-fit in the order of the manifests."""

    def __init__(self, cluster: Cluster) -> None:
        # A node that does not say how many pods it takes takes any number, as the engine counts them.
        self._empty = {
            name: {"pods": sys.maxsize, **node.allocatable} for name, node in cluster.nodes.items()
        }
        self._free = {name: dict(free) for name, free in self._empty.items()}
        self._placed: dict[int, list[str]] = {}
        self._possible: dict[tuple[PodSet, ...], bool] = {}

    def place(self, job: Job) -> list[str] | None:
        """Take room for every pod of a job; answers the node of each, or None and takes nothing."""
        placed = self._pack(job, self._free)
        if placed is not None:
            self._placed[job.index] = placed
        return placed

    def could_ever_place(self, job: Job) -> bool:
        """Whether a job would fit if it were alone."""
        possible = self._possible.get(job.pod_sets)
        if possible is None:
            empty = {name: dict(free) for name, free in self._empty.items()}
            possible = self._possible[job.pod_sets] = self._pack(job, empty) is not None
        return possible

    def give(self, job: Job) -> None:
        """Give back the room of a job."""
        for pod, name in enumerate(self._placed.pop(job.index)):
            free = self._free[name]
            for resource, amount in _needs(job.pod_set_of(pod)):
                if resource in free:
                    free[resource] += amount

    @staticmethod
    def _pack(job: Job, free: dict[str, dict[str, int]]) -> list[str] | None:
        placed: list[str] = []
        for pod_set in job.pod_sets:
            needs = _needs(pod_set)
            nodes = iter(free.items())
            name, room = next(nodes)
            for _ in range(pod_set.count):
                # The next pod is alike, so nodes that were passed over stay passed over.
                while not all(room.get(resource, 0) >= amount for resource, amount in needs):
                    following = next(nodes, None)
                    if following is None:
                        for pod, taken in enumerate(placed):
                            for resource, amount in _needs(job.pod_set_of(pod)):
                                free[taken][resource] += amount
                        return None
                    name, room = following
                for resource, amount in needs:
                    room[resource] -= amount
                placed.append(name)
        return placed


def _needs(pod_set: PodSet) -> list[tuple[str, int]]:
    """What a pod takes of a node: its requests, and one of the `pods` that a node can run."""
    return [*((resource, amount) for resource, amount in pod_set.requests.items() if amount), ("pods", 1)]
