"""Models nodes that run the pods of whole jobs, either now or at a future time.

kube-scheduler's filters and scores choose the node of each pod (`harness.models.kube`). A job gets either
nodes for all of its pods, or no nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, TypeAlias, final

from harness import Cluster, Job, Never, PodSet
from harness.models.cluster import SchedulerConfiguration, Taint
from harness.models.kube.cache import Cache
from harness.models.kube.kinds import Kinds
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Diagnosis, scheduling_of
from harness.models.kube.pod import PodInfo, Shape, Templates
from harness.models.kube.refusal import node_detail
from harness.models.kube.taint_evictions import tolerated_for
from harness_plugins.backfill.outlook import Less, Outlook

Devices: TypeAlias = Sequence[tuple[int, ...]]
"""The devices of each pod of a job."""

_NO_LIMIT = nullcontext()

_FINE = 1 << 20  # the number of parts into which a node's capacity is divided to compare requests


@final
class Places:
    """The nodes of a job's pods.

    Attributes:
        home: always 0, because all nodes belong to one cluster.
        nodes: the position of each pod's node, or -1 for a removed node. A plan can change them until the job
            starts.
        devices: the GPUs that the pods have on their nodes. It is empty until the job starts.
    """

    __slots__ = ("devices", "job", "nodes")
    home = 0

    def __init__(self, job: Job, nodes: Sequence[int], devices: Devices = ()) -> None:
        self.job = job
        self.nodes = nodes
        self.devices = devices


class Failure(NamedTuple):
    """The reason why a job finds no nodes.

    Attributes:
        pod: the first pod of the job that finds no node.
        detail: the reasons why nodes reject this pod, after the earlier pods of the job have been placed.
        by_nodes: whether only nodes and their free resources are the reason, and not rules about other pods.
    """

    pod: PodInfo
    detail: Mapping[str, Any]
    by_nodes: bool


@final
class Snapshot:
    """The nodes and the jobs on them at one time, which can be in the future.

    All nodes are examined for each pod, because `percentageOfNodesToScore` has no effect. The largest pods of
    a job are placed first.

    Attributes:
        between_pods: whether there has been a job whose pods have rules about other pods.
    """

    def __init__(self, cluster: Cluster) -> None:
        configuration = cluster.scheduler or SchedulerConfiguration()
        self.cache = Cache(cluster)
        self.templates = Templates(self.cache.resources, lambda namespace, labels: ())  # no pod is evicted
        self.scheduling = scheduling_of(self.cache, self.templates, configuration, 100)
        self.between_pods = False
        self._kinds = Kinds(self, cluster)
        allocatable = [node.allocatable for node in self.cache.nodes] or [[0] * len(self.cache.names)]
        self._most = [max(amounts) for amounts in zip(*allocatable, strict=True)]
        self._pods: dict[int, list[PodInfo]] = {}
        self._turns: dict[tuple[PodSet, ...], Sequence[int]] = {}
        self._there: dict[int, tuple[Sequence[int], Devices]] = {}

    # --- placement ----------------------------------------------------------------------------------------

    def put(self, places: Places) -> None:
        """Puts the pods of a job on their nodes. Pods that have no devices yet get devices one by one."""
        self._there[places.job.index] = places.nodes, places.devices
        pods = self._of(places.job)
        for pod, devices in zip(pods, places.devices, strict=False):
            pod.devices = devices
        nodes = dict(zip(pods, places.nodes, strict=True))
        for pod in self._in_turn(places.job, pods):
            if nodes[pod] >= 0:
                self.cache.add_pod(pod, self.cache.nodes[nodes[pod]])

    def devices_of(self, job: Job) -> Devices:
        """Returns the devices of a job's pods on their nodes. The result is empty if no pod has devices."""
        found = [pod.devices for pod in self._of(job)]
        return found if any(found) else ()

    def take(self, job: Job) -> None:
        """Removes the pods of a job from their nodes."""
        del self._there[job.index]
        self._undo(self._of(job))

    def forget(self, job: Job) -> None:
        """Removes a job that has ended, and all data about the job."""
        if job.index in self._there:
            self.take(job)
        self._pods.pop(job.index, None)

    def show(self, there: Mapping[int, Places]) -> None:
        """Changes the snapshot so that exactly the given jobs, keyed by their index, are on the nodes."""
        gone = [
            index
            for index, seats in self._there.items()
            if index not in there or (there[index].nodes, there[index].devices) != seats
        ]
        for index in gone:
            self._undo(self._pods[index])
            del self._there[index]
        for index, places in there.items():
            if index not in self._there:
                self.put(places)

    # --- searches -----------------------------------------------------------------------------------------

    def never(self, job: Job) -> Never | None:
        """Returns the reason why some pod of a job fits on no empty node, or None if each pod fits on one."""
        return self._kinds.never(job)

    def held(self, job: Job) -> Places | None:
        """Returns the node of a Pod that is already running, or None for other jobs."""
        node = self._kinds.of(job, job.pod_sets[0]).node
        return Places(job, (self.cache.by_name[node].position,)) if node else None

    def find(self, job: Job) -> Places | None:
        """Returns nodes for all pods of a job beside the other jobs, or None if some pod finds no node."""
        pods = self._of(job)
        placed, failed = self._place(job, pods)
        nodes = None if failed is not None else tuple([pod.node for pod in pods])
        if placed:  # most searches end at the first pod
            self._undo(placed)
        return None if nodes is None else Places(job, nodes)

    def find_during(self, job: Job, outlook: Outlook, start: int, end: int) -> Places | None:
        """Returns nodes for all pods of a job that are available from `start` until just before `end`."""
        if not outlook.ahead:
            return self.find(job)
        with self.during(outlook, start, end):
            return self.find(job)

    def failure(self, job: Job) -> Failure | None:
        """Returns the reason why a job finds no nodes now, or None if it finds nodes."""
        placed, failed = self._place(job, self._of(job))
        why = None
        if failed is not None:
            pod, diagnosis = failed
            why = Failure(pod, node_detail(diagnosis), diagnosis.by_nodes_alone)
        self._undo(placed)
        return why

    def fits(self, places: Places) -> bool:
        """Returns True if all pods of a job pass the filters of the given nodes."""
        pods, placed = self._of(places.job), []
        nodes_of = dict(zip(pods, places.nodes, strict=True))
        for pod in self._in_turn(places.job, pods):
            node = self.cache.nodes[nodes_of[pod]]
            state, nodes = self.scheduling.pre_filter(pod), self.scheduling.shape_nodes(pod.template.shape)
            if self.scheduling.filter(pod, node, state, nodes) is not None:
                break
            self.cache.add_pod(pod, node)
            placed.append(pod)
        self._undo(placed)
        return len(placed) == len(pods)

    def stays(self, places: Places, tainted: Mapping[str, Sequence[Taint]]) -> int | None:
        """Returns for how many seconds all pods of a job tolerate their nodes' taints. None means forever."""
        found = [
            tolerated_for(pod.template.spec.tolerations, tainted.get(self.cache.nodes[node].name, ()))
            for pod, node in zip(self._of(places.job), places.nodes, strict=True)
            if node >= 0
        ]
        return min((seconds for seconds in found if seconds is not None), default=None)

    def shapes(self, job: Job) -> list[Shape]:
        """Returns the shape of the pods in each pod set of a job."""
        return [self._kinds.of(job, pod_set).template.shape for pod_set in job.pod_sets]

    def most_free(self) -> list[int]:
        """Returns the largest free quantity of each resource on any node."""
        cache = self.cache
        return [max((0, *cache.free_of(resource))) for resource in range(len(cache.names))]

    @contextmanager
    def limited(self, other: Snapshot, nodes: Sequence[int]) -> Iterator[None]:
        """Limits the free capacity of some nodes to their free capacity in another snapshot."""
        lost: list[Less] = []
        for position in dict.fromkeys(nodes):
            here, there = self.cache.nodes[position], other.cache.nodes[position]
            less = [max(0, mine - its) for mine, its in zip(here.free, there.free, strict=True)]
            devices = [max(0, mine - its) for mine, its in zip(here.devices, there.devices, strict=False)]
            lost.append(Less(here, less, max(0, here.slots - there.slots), devices))
        with self._without(lost):
            yield

    def during(self, outlook: Outlook, start: int, end: int) -> AbstractContextManager[None]:
        """Limits node capacity to the part that is available from `start` until just before `end`."""
        lost = list(outlook.less(self.cache, start, end)) if outlook.ahead else []
        return self._without(lost) if lost else _NO_LIMIT

    @contextmanager
    def _without(self, lost: Sequence[Less]) -> Iterator[None]:
        for less in lost:
            self._lessen(less, 1)
        yield
        for less in lost:
            self._lessen(less, -1)

    def _lessen(self, less: Less, sign: int) -> None:
        node = less.node
        for resource, amount in enumerate(less.amounts):
            node.free[resource] -= sign * amount
        for device, amount in enumerate(less.devices):
            node.devices[device] -= sign * amount
        if node.devices:
            node.count_devices(node.devices, node.free)
        node.slots -= sign * less.pods
        self.cache.touch(node)

    def _place(self, job: Job, pods: list[PodInfo]) -> tuple[list[PodInfo], tuple[PodInfo, Diagnosis] | None]:
        """Puts pods on nodes one by one. Returns the placed pods, and the first pod that found no node."""
        placed: list[PodInfo] = []
        for pod in self._in_turn(job, pods):
            found = self.scheduling.schedule(pod)
            if not isinstance(found, NodeInfo):
                return placed, (pod, found)
            self.cache.add_pod(pod, found)
            placed.append(pod)
        return placed, None

    def _undo(self, placed: Sequence[PodInfo]) -> None:
        for pod in reversed(placed):
            if pod.node >= 0:
                self.cache.remove_pod(pod)

    # --- pods ---------------------------------------------------------------------------------------------

    def _of(self, job: Job) -> list[PodInfo]:
        pods = self._pods.get(job.index)
        if pods is None:
            pods = self._pods[job.index] = []
            for number in range(job.pods):
                template = self._kinds.of(job, job.pod_set_of(number)).template
                self.between_pods = self.between_pods or not template.alone
                pods.append(
                    PodInfo(
                        job.pod_name(number, 0), template, job.priority, preempts=False, job=job, pod=number
                    )
                )
        return pods

    def _in_turn(self, job: Job, pods: list[PodInfo]) -> list[PodInfo]:
        """Returns the pods of a job, starting with the largest.

        The size of a pod is its largest share of any resource, relative to the node that has the most of the
        resource.
        """
        if len(job.pod_sets) == 1:
            return pods
        turns = self._turns.get(job.pod_sets)
        if turns is None:
            turns = self._turns[job.pod_sets] = sorted(
                range(len(pods)), key=lambda each: -self._size(pods[each])
            )
        return [pods[each] for each in turns]

    def _size(self, pod: PodInfo) -> int:
        asked = pod.template.shape.requests
        return max((amount * _FINE // max(1, self._most[resource]) for resource, amount in asked), default=0)
