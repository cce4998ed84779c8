"""The plugin `none`, which never preempts a job.

On a cluster with nodes, it is kube-scheduler without preemption and uses the same code as
`default-preemption`. On a cluster without nodes, it is a queue of whole jobs within quotas.

Without nodes, jobs wait in sub-queues. The first job of a sub-queue blocks the jobs behind it, but no
sub-queue blocks another sub-queue. With `blocking=strict`, every queue is one sub-queue. With
`blocking=skip`, jobs of one queue that have exactly the same request share a sub-queue, because either all or
none of these jobs fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from harness import (
    Admit,
    Cluster,
    Decision,
    Job,
    Never,
    Option,
    Policy,
    PolicySpec,
    Possible,
    Refuse,
    Register,
    Reject,
    View,
    Why,
    hookimpl,
)
from harness.base.errors import InputError
from harness.base.options import refuse_set
from harness.models.ignored import ignored_groups, ignored_scheduling_groups, stopped_queues
from harness.models.job_quotas import BORROW, NO_QUOTA, Assignment, Quotas, Request
from harness.models.kube.running import running_jobs
from harness.models.never import OverTime
from harness.models.waiting_requests import WaitingRequests
from harness.policy import Change
from harness_plugins.kube.policy import DEVICES, GANG, PERCENTAGE, fits_no_node, pods_alone
from harness_plugins.kube_scheduler import kube_scheduler

QUEUE_OPTIONS = (
    Option(
        "order",
        "priority",
        "priority: the job with the highest priority comes first, then the oldest; fifo: the oldest job "
        "comes first",
        choices=("priority", "fifo"),
    ),
    Option(
        "blocking",
        "skip",
        "strict: the first job of a queue blocks the jobs behind it; skip: every job that fits starts",
        choices=("strict", "skip"),
    ),
    BORROW,
)
"""The options for the queue of whole jobs on clusters without nodes."""

NODE_OPTIONS = (PERCENTAGE, GANG, *DEVICES)
"""The options for kube-scheduler on nodes. The queue without nodes always starts whole jobs."""

OPTIONS = (*QUEUE_OPTIONS, *NODE_OPTIONS)


@hookimpl
def harness_register_policies(register: Register[PolicySpec]) -> None:
    """Register `none`."""
    register(
        PolicySpec(
            "none",
            without_preemption,
            help="nothing is preempted: kube-scheduler on nodes, else a queue of whole jobs within quotas",
            options=OPTIONS,
            running=running_jobs,
            ignored_fields=_ignored_fields,
            never=_never,
            by_queues=lambda cluster: not cluster.nodes,  # queues have no effect beside nodes
        )
    )


def without_preemption(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """Returns the scheduler for a cluster.

    Raises:
        InputError: the cluster has neither nodes nor queues.
        OptionError: an option is set that has no effect on this cluster.
    """
    if not cluster.nodes:
        if not cluster.cluster_queues:
            raise InputError("the cluster has neither nodes nor ClusterQueues, so there is nothing to run on")
        refuse_set("none", NODE_OPTIONS, options, "the cluster has no nodes")
        return JobQueue(cluster, view, options)
    refuse_set("none", QUEUE_OPTIONS, options, "the cluster has nodes, so kube-scheduler orders the pods")
    settings = {option.name: options[option.name] for option in NODE_OPTIONS}
    return kube_scheduler(cluster, view, {**settings, "disablePreemption": True})


def _never(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    if cluster.nodes:
        return fits_no_node(cluster, options)
    return never_by_quotas(cluster, options)


def never_by_quotas(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    """Finds the jobs that quotas admit neither now nor after any later change of the cluster."""

    def judge(state: Cluster) -> Possible:
        quotas = Quotas(state, borrow=options["borrow"])
        return lambda job: quotas.request(job).never

    return OverTime(cluster, judge).first


def _ignored_fields(cluster: Cluster, options: Mapping[str, Any]) -> Iterator[str]:
    """Yields notes on pod groups and stopped queues that have no effect on this cluster."""
    yield from ignored_scheduling_groups(cluster)
    if cluster.nodes:
        yield from pods_alone(cluster, options)
        return
    yield from ignored_groups(cluster, "without nodes, jobs start as a whole")
    yield from stopped_queues(cluster)


Entry = tuple[int, int, Job, Request]
"""A waiting job with its sort key. Jobs are never compared, because their index decides ties."""


class SubQueue:
    """The jobs of one sub-queue in order. Also remembers the jobs whose refusal was already recorded."""

    __slots__ = ("jobs", "told")

    def __init__(self) -> None:
        self.jobs: list[Entry] = []
        self.told: set[int] = set()


Head = tuple[int, int, Job, Request, SubQueue]
"""The first job of a sub-queue."""


class JobQueue:
    """A queue of whole jobs, which wait in sub-queues. The top of this module describes its rules."""

    def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
        self._by_priority = options["order"] == "priority"
        self._strict = options["blocking"] == "strict"
        self._quotas = Quotas(cluster, borrow=options["borrow"])
        self._never = never_by_quotas(cluster, options) if cluster.changes else None
        self._subqueues: dict[object, SubQueue] = {}
        self._open: list[SubQueue] = []  # sub-queues that may be able to start a job now
        # For each home, the first jobs that did not fit.
        self._blocked: dict[int, WaitingRequests[Head]] = defaultdict(lambda: WaitingRequests(self._quotas))
        self._freed: dict[int, None] = {}  # the homes in which quota was released
        self._assignments: dict[int, Assignment] = {}
        self._rejected: list[tuple[Job, Never]] = []

    def submit(self, job: Job, pods: range, now: int) -> None:
        """Adds a job to its sub-queue, or rejects it if no change of the cluster allows it to run."""
        request = self._quotas.request(job)
        if request.never is not None and (self._never is None or self._never(job) is not None):
            self._rejected.append((job, request.never))
            return
        self._queue_up(job, request)

    def _queue_up(self, job: Job, request: Request) -> None:
        key: object = request.queue if self._strict else (request.queue, job.pod_sets)
        subqueue = self._subqueues.get(key)
        if subqueue is None:
            subqueue = self._subqueues[key] = SubQueue()
        first = subqueue.jobs[0] if subqueue.jobs else None
        heappush(subqueue.jobs, (-job.priority if self._by_priority else 0, job.index, job, request))
        if subqueue.jobs[0] is not first:  # a new first job may fit where the old one did not
            self._open.append(subqueue)
            if first is not None:
                self._blocked[request.home].remove(first[3])

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Releases the quota of a job. Jobs that lacked it may be able to start now."""
        assignment = self._assignments.pop(job.index)
        self._quotas.refund(assignment)
        self._freed[assignment.home] = None

    def changed(self, change: Change, now: int) -> Iterable[Decision]:
        """Applies a change of the cluster. See `Policy`.

        Jobs that hold quota keep it, and all waiting jobs are checked again.
        """
        self._assignments = self._quotas.follow(change.cluster, self._assignments)
        before, self._subqueues = self._subqueues, {}
        self._open, self._freed = [], {}
        self._blocked.clear()
        for subqueue in before.values():
            for _, _, job, _ in subqueue.jobs:
                self._queue_up(job, self._quotas.request(job))
        return ()

    def within_quota(self, job: Job, pods: Sequence[int]) -> bool:
        """Returns True if the quotas have room for a job now, without preemption. See `Policy`."""
        return self._quotas.has_room(self._quotas.request(job))

    def cycle(self, now: int) -> Iterator[Decision]:
        """Starts jobs that fit, in order, until each sub-queue is empty or its first job does not fit."""
        if self._rejected:
            for job, never in self._rejected:
                yield Reject(job, never.why)
            self._rejected.clear()
        opened, freed = self._open, self._freed
        self._open, self._freed = [], {}
        heads = [(*subqueue.jobs[0], subqueue) for subqueue in opened if subqueue.jobs]
        heads += [head for home in freed if (head := self._blocked[home].first()) is not None]
        heapify(heads)
        while heads:
            priority, index, job, request, subqueue = head = heappop(heads)
            if not subqueue.jobs or subqueue.jobs[0][1] != index:
                continue  # the job was there twice, and has started
            assignment = self._quotas.assign(request, job)
            if assignment is None:
                self._blocked[request.home].put(request, (priority, index), head)
                if index not in subqueue.told:
                    subqueue.told.add(index)
                    yield Refuse(job, NO_QUOTA, self._quotas.shortage(request))
                continue
            heappop(subqueue.jobs)
            self._blocked[request.home].remove(request)
            subqueue.told.discard(index)
            self._quotas.charge(assignment)
            self._assignments[index] = assignment
            yield Admit(job, assignment.flavors)
            if request.home in freed and (first := self._blocked[request.home].first()) is not None:
                heappush(heads, first)
            if subqueue.jobs:
                heappush(heads, (*subqueue.jobs[0], subqueue))
            else:
                del self._subqueues[request.queue if self._strict else (request.queue, job.pod_sets)]
