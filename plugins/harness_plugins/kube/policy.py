"""The policy on top of the scheduler: jobs of a trace become pods, and every pod is scheduled by itself.

A gang is no unit to kube-scheduler: what is bound of it waits, holding its node, until the rest is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol, final

from harness import Bind, Cluster, Decision, Job, Never, Option, Possible, Preempt, Reject, View, Why, boolean
from harness.cluster.scheduler_configuration import SchedulerConfiguration
from harness.errors import InputError
from harness.models.evictions import LATENCY
from harness.models.kube.evictions import PodEvictions
from harness.models.kube.kinds import Kinds, Nodes
from harness.models.kube.pod import PodInfo
from harness.models.kube.scheduler import Scheduler

PERCENTAGE = Option(
    "percentageOfNodesToScore",
    0,
    "stop looking for nodes when this share of them fits; 0: 100 nodes, or 5 to 50 % of large clusters",
    type=int,
)
TOGETHER = "all-or-nothing"
ALONE = "pods"
GANG = Option(
    "gang",
    ALONE,
    "place each pod of a gang by itself, as kube-scheduler does, or all of them together or not at all",
    choices=(TOGETHER, ALONE),
)
OPTIONS = (
    PERCENTAGE,
    Option("disablePreemption", False, "wait for room instead of preempting", type=boolean),
    LATENCY,
    GANG,
)


def unheeded_groups(cluster: Cluster, how: str) -> Iterator[str]:
    """That PodGroups of the manifests do not count, because pods are placed otherwise."""
    if cluster.pod_groups:
        first = "/".join(next(iter(cluster.pod_groups)))
        more = f" and {len(cluster.pod_groups) - 1:,} more" if len(cluster.pod_groups) > 1 else ""
        yield f"PodGroup {first}{more}: spec.minMember does not count: {how}"


def pods_alone(cluster: Cluster, options: Mapping[str, Any]) -> Iterator[str]:
    """That PodGroups do not count where every pod is placed by itself."""
    if options[GANG.name] == ALONE:
        yield from unheeded_groups(cluster, f"pods are placed one by one; {GANG.name}={TOGETHER} heeds it")


def configuration_of(cluster: Cluster, options: Mapping[str, Any]) -> SchedulerConfiguration:
    """The manifests' configuration, with what the options say beyond it."""
    configuration = cluster.scheduler or SchedulerConfiguration()
    percentage = options.get("percentageOfNodesToScore", 0)
    if not 0 <= percentage <= 100:
        raise InputError(f"option percentageOfNodesToScore: {percentage} is not a percentage (0 to 100)")
    return replace(
        configuration,
        percentage_of_nodes_to_score=percentage or configuration.percentage_of_nodes_to_score,
        disable_preemption=options.get("disablePreemption", False) or configuration.disable_preemption,
    )


def fits_no_node(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    """Which jobs fit no node even when all are empty.

    Raises:
        InputError: the cluster has no nodes, or an option is out of its range.
    """
    _require_nodes(cluster)
    return Kinds(Scheduler(cluster, configuration_of(cluster, options)), cluster).never


class PodScheduler(Nodes, Protocol):
    """What schedules the pods: kube-scheduler, or another one on its model."""

    @property
    def attempts(self) -> int:
        """How many scheduling attempts there were."""

    def hear(self, now: int) -> None:
        """It is `now`."""

    def add(self, pod: PodInfo) -> None:
        """A pod arrives."""

    def add_running(self, pod: PodInfo, node: str, start: int | None) -> None:
        """A pod that runs already is there."""

    def delete(self, pod: PodInfo) -> None:
        """A pod is gone."""

    def run(self) -> Iterator[Decision]:
        """Try pods until all that are left wait for an event."""


@final
class DefaultPreemption:
    """Replays jobs through kube-scheduler; see the module.

    Args:
        cluster: must have nodes.
        view: not used: the scheduler keeps its own books, as it does in reality.
        options: values of `OPTIONS`.
        gives_up: whether jobs that fit no node even when all are empty are rejected. In reality they are
            tried again and again.
        latency: how long it takes until the scheduler knows that an evicted pod is gone, microseconds; None
            where it knows at once however often that happens, see `Evictions`.
        scheduler: what schedules the pods; by default kube-scheduler, as the options say.

    Raises:
        InputError: the cluster has no nodes.
    """

    def __init__(
        self,
        cluster: Cluster,
        view: View,
        options: Mapping[str, Any],
        *,
        gives_up: bool = True,
        latency: int | None = None,
        scheduler: PodScheduler | None = None,
    ) -> None:
        _require_nodes(cluster)
        self.scheduler: PodScheduler = scheduler or Scheduler(cluster, configuration_of(cluster, options))
        self._kinds = Kinds(self.scheduler, cluster)
        self._gives_up = gives_up
        self._rejected: list[tuple[Job, Never]] = []
        self._pods: dict[tuple[int, int], PodInfo] = {}
        self._successors: dict[tuple[int, int], int] = {}
        self._evictions = PodEvictions(latency)

    def submit(self, job: Job, pods: range, now: int) -> None:
        """Pods wait; evicted ones do once the scheduler knows that they are gone."""
        self.scheduler.hear(now)
        never = self._kinds.never(job) if self._gives_up else None
        if never is not None:
            self._rejected.append((job, never))
            return
        for pod in pods:
            if (job.index, pod) not in self._pods:
                self._add(job, pod)

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Pods are gone from their nodes; of evicted ones the scheduler may know later."""
        self.scheduler.hear(now)
        if why is Why.ENDED:
            self._evictions.end(job, pods)
            for pod in pods:
                self.scheduler.delete(self._pods.pop((job.index, pod)))
                self._successors.pop((job.index, pod), None)
            return
        for pod in pods:
            key = (job.index, pod)
            self._successors[key] = self._successors.get(key, 0) + 1
            if self._evictions.leave(job, pod, now):
                self.scheduler.delete(self._pods.pop(key))

    def cycle(self, now: int) -> Iterator[Decision]:
        """Schedule pods until those that are left wait for something to happen."""
        self.scheduler.hear(now)
        evictions = self._evictions
        for job, pod in evictions.left.due(now):
            self.scheduler.delete(self._pods.pop((job.index, pod)))
            self._add(job, pod)
        if self._rejected:
            yield from [Reject(job, never.why) for job, never in self._rejected]
            self._rejected.clear()
        for decision in self.scheduler.run():
            if type(decision) is Bind:
                evictions.bound(decision, now)
            elif type(decision) is Preempt:
                evictions.preempted(decision, now)
            yield decision
        yield from evictions.left.wakes()

    def _add(self, job: Job, pod: int) -> None:
        """A pod waits, or runs already; one that was evicted comes back as a new pod, behind its equals.

        One of another scheduler does not come back to this one.
        """
        key = (job.index, pod)
        successor, kind = self._successors.get(key, 0), self._kinds.of(job, job.pod_set_of(pod))
        if successor and not kind.ours:
            return
        name = job.pod_name(pod, successor)
        info = PodInfo(name, kind.template, job.priority, preempts=job.preempts, job=job, pod=pod)
        self._pods[key] = info
        if not successor:
            self._evictions.arrive()
        if kind.node and not successor:
            self.scheduler.add_running(info, kind.node, kind.start)
        else:
            self.scheduler.add(info)


def _require_nodes(cluster: Cluster) -> None:
    if not cluster.nodes:
        raise InputError(
            "default-preemption schedules pods onto nodes, and the cluster has none",
            hint="give manifests with nodes (kubectl get nodes -o yaml) or a NodePool: --cluster FILE",
        )
