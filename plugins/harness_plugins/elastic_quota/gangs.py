"""Gangs: the pods of a job that are placed, and make room for themselves, all together or not at all."""

from __future__ import annotations

import json
from typing import final

from harness import Cluster, Job, PodSet
from harness_plugins.kube.pod import PodInfo


@final
class Gang:
    """The pods of one gang job.

    Attributes:
        priority: what all of them count as: the highest of any.
        pending: the pods that wait, by number.
        leader: the one of them that stands for all in the scheduling queue; None when none waits.
        alive: how many of its pods exist, waiting or bound.
    """

    __slots__ = ("alive", "leader", "pending", "priority")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.pending: dict[int, PodInfo] = {}
        self.leader: PodInfo | None = None
        self.alive = 0

    def join(self, pod: PodInfo) -> bool:
        """A pod of the gang waits; answers whether it is now the leader."""
        pod.priority = pod.keeps = self.priority
        self.pending[pod.pod] = pod
        self.alive += 1
        if self.leader is not None:
            return False
        self.leader = pod
        return True

    def leave(self, pod: PodInfo) -> PodInfo | None:
        """A pod of the gang is gone; answers the new leader if it was the leader and others wait."""
        self.alive -= 1
        self.pending.pop(pod.pod, None)
        if self.leader is not pod:
            return None
        self.leader = next(iter(self.pending.values()), None)
        return self.leader

    @property
    def is_whole(self) -> bool:
        """Whether none of its pods is bound."""
        return self.alive == len(self.pending)

    def bound(self) -> None:
        """All pods that waited are bound."""
        self.pending.clear()
        self.leader = None

    def in_order(self) -> list[PodInfo]:
        """The pods that wait, by number."""
        return [self.pending[number] for number in sorted(self.pending)]


@final
class Gangs:
    """The gangs of a replay.

    Args:
        cluster: its priority classes count.
        together: whether gang jobs are gangs at all; else every pod is on its own.
    """

    def __init__(self, cluster: Cluster, *, together: bool) -> None:
        self._cluster = cluster
        self._together = together
        self._gangs: dict[int, Gang] = {}
        self._priorities: dict[PodSet, int | None] = {}

    def of(self, pod: PodInfo) -> Gang | None:
        """The gang that a pod belongs to; None when it is on its own."""
        job = pod.job
        if not self._together or job is None or not job.gang:
            return None
        gang = self._gangs.get(job.index)
        if gang is None:
            gang = self._gangs[job.index] = Gang(self._priority(job))
        return gang

    def forget(self, job: Job) -> None:
        """No pod of a gang is left."""
        self._gangs.pop(job.index, None)

    def _priority(self, job: Job) -> int:
        """The highest priority of any pod: the job's, or one that a pod set's template names."""
        own = [self._of_template(pod_set) for pod_set in job.pod_sets]
        return max([job.priority, *(priority for priority in own if priority is not None)])

    def _of_template(self, pod_set: PodSet) -> int | None:
        if pod_set not in self._priorities:
            self._priorities[pod_set] = self._read(pod_set.pod_template)
        return self._priorities[pod_set]

    def _read(self, template: str | None) -> int | None:
        content = json.loads(template) if template else None
        if not isinstance(content, dict):
            return None
        spec = content["spec"] if isinstance(content.get("spec"), dict) else content
        priority = spec.get("priority")
        if isinstance(priority, int):
            return priority
        known = self._cluster.priority_of(str(spec.get("priorityClassName", "")))
        return known.value if known else None
