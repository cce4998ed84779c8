"""Gangs: pods that are placed, and make room for themselves, together: all of them, or at least so many."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TypeAlias, final

from harness.cluster.model import Cluster
from harness.cluster.pod_groups import Membership, membership_of
from harness.models.kube.pod import PodInfo, Template
from harness.policy import Job, PodSet

_Key: TypeAlias = tuple[str, str] | int
"""Namespace and name of a pod group, or the index of a job."""


@final
class Gang:
    """The pods of a pod group, or of one gang job.

    Attributes:
        key: what tells it apart.
        least: how many of its pods have to be placed together; None for all that wait.
        priority: what all of them count as: the highest of any.
        pending: the pods that wait; those of one job by number.
        leader: the one of them that stands for all in the scheduling queue; None when none waits.
        alive: how many of its pods exist, waiting or bound.
        ended: how many pods of a group have ended while others were there; they had their place.
        waits: whether it was tried and not placed, and no pod has joined since.
    """

    __slots__ = ("alive", "ended", "key", "leader", "least", "pending", "priority", "waits")

    def __init__(self, key: _Key, priority: int, least: int | None = None) -> None:
        self.key = key
        self.least = least
        self.priority = priority
        self.pending: dict[tuple[int, int], PodInfo] = {}
        self.leader: PodInfo | None = None
        self.alive = 0
        self.ended = 0
        self.waits = False

    def join(self, pod: PodInfo, priority: int) -> bool:
        """A pod of the gang waits; answers whether it is now the leader.

        Args:
            pod: the pod.
            priority: what its job counts as; a higher one than before raises the whole gang.
        """
        if priority > self.priority:
            self.priority = priority
            for mate in self.pending.values():
                mate.priority, mate.keeps = priority, max(mate.keeps, priority)
        pod.priority = pod.keeps = self.priority
        self.pending[_place(pod)] = pod
        self.alive += 1
        if self.leader is not None:
            return False
        self.leader = pod
        return True

    def leave(self, pod: PodInfo, *, ended: bool) -> PodInfo | None:
        """A pod of the gang is gone; answers the new leader if it was the leader and others wait."""
        self.alive -= 1
        self.ended += ended
        self.pending.pop(_place(pod), None)
        if self.leader is not pod:
            return None
        self.leader = next(iter(self.pending.values()), None)
        return self.leader

    @property
    def is_whole(self) -> bool:
        """Whether none of its pods is bound."""
        return self.alive == len(self.pending)

    @property
    def missing(self) -> int:
        """How many of the pods that wait have to be placed together; the others are as they fit."""
        if self.least is None:
            return len(self.pending)
        bound = self.alive - len(self.pending)
        return max(0, self.least - self.ended - bound)

    def bound(self, pods: Collection[PodInfo]) -> PodInfo | None:
        """Pods that waited are bound; answers the leader of those that still wait."""
        for pod in pods:
            del self.pending[_place(pod)]
        self.leader = next(iter(self.in_order()), None)
        return self.leader

    def in_order(self) -> list[PodInfo]:
        """The pods that wait, by job and number."""
        return [self.pending[place] for place in sorted(self.pending)]


def are_mates(pod: PodInfo, other: PodInfo) -> bool:
    """Whether two pods belong to one gang, or one job: neither makes room for the other."""
    if pod.gang is not None and pod.gang is other.gang:
        return True
    return pod.job is not None and pod.job is other.job


def _place(pod: PodInfo) -> tuple[int, int]:
    assert pod.job is not None, "a pod of a gang belongs to a job"
    return pod.job.index, pod.pod


@final
class Gangs:
    """The gangs of a replay.

    Args:
        cluster: its PodGroups and priority classes count.
        together: whether gangs are gangs at all; else every pod is on its own.
    """

    def __init__(self, cluster: Cluster, *, together: bool) -> None:
        self._cluster = cluster
        self._together = together
        self._gangs: dict[_Key, Gang] = {}
        self._memberships: dict[Template, Membership | None] = {}
        self._priorities: dict[PodSet, int | None] = {}

    def of(self, pod: PodInfo) -> Gang | None:
        """The gang that a pod belongs to: its pod group, else its gang job; None when it is on its own."""
        job = pod.job
        if not self._together or job is None:
            return None
        group = self._group(pod.template)
        if group is None and not job.gang:
            return None
        key: _Key = job.index if group is None else (group.namespace, group.name)
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = Gang(key, self.priority(job), None if group is None else group.least)
        return gang

    def forget(self, gang: Gang) -> None:
        """No pod of a gang is left."""
        self._gangs.pop(gang.key, None)

    def _group(self, template: Template) -> Membership | None:
        if template not in self._memberships:
            groups = self._cluster.pod_groups
            self._memberships[template] = membership_of(template.namespace, template.labels, groups)
        return self._memberships[template]

    def priority(self, job: Job) -> int:
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
