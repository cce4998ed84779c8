"""Models gangs. The scheduler places all pods of a gang, or a minimum number of them, at the same time.

If other pods must be preempted for a gang, they are preempted for all of its pods together.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TypeAlias, final

from harness.cluster.changes.edits import at_arrival, by_arrival
from harness.cluster.kinds.pod_groups import Membership, membership_of
from harness.cluster.model import Cluster
from harness.models.kube.pod import PodInfo, Template
from harness.policy import PodSet

_Key: TypeAlias = tuple[str, str] | int  # the namespace and name of a pod group, or the index of a job

_Place: TypeAlias = tuple[int, int]
"""The index of a job and the number of a pod in the job. A pod and its replacements have the same values."""


@final
class Gang:
    """The pods of a pod group, or of one gang job.

    Attributes:
        key: the pod group or the job, which identifies the gang.
        least: how many pods must be placed together, or None for all pending pods.
        priority: the priority that applies to all pods (see `highest`). The scheduler keeps it up to date.
        pending: the pods that are pending, by job and number.
        bound: the pods that have a node, by job and number.
        leader: the pod that represents the pending pods in the scheduling queue, or None if no pod is
            pending.
        ended: how many pods of a group finished while other pods existed. These pods count as placed.
        waits: True if the gang was tried without success, and no pod has joined since then.
    """

    __slots__ = (
        "_counts", "_own", "bound", "ended", "key", "leader", "least", "pending", "priority", "waits",
    )  # fmt: skip

    def __init__(self, key: _Key, priority: int, least: int | None = None) -> None:
        self.key = key
        self.least = least
        self.priority = priority
        self.pending: dict[_Place, PodInfo] = {}
        self.bound: dict[_Place, PodInfo] = {}
        self.leader: PodInfo | None = None
        self.ended = 0
        self.waits = False
        self._own: dict[_Place, int] = {}  # the own priority of each pod
        self._counts: dict[int, int] = {}  # the number of pods of each priority

    def join(self, pod: PodInfo, own: int) -> bool:
        """Adds a pending pod to the gang, and returns whether the pod is now the leader.

        Args:
            pod: the pod.
            own: the pod's own priority.
        """
        self._note(pod, own)
        self.pending[_place(pod)] = pod
        if self.leader is not None:
            return False
        self.leader = pod
        return True

    def join_bound(self, pod: PodInfo, own: int) -> None:
        """Adds a pod of the gang that already has a node."""
        self._note(pod, own)
        self.bound[_place(pod)] = pod

    def _note(self, pod: PodInfo, own: int) -> None:
        pod.priority = pod.keeps = self.priority
        place = _place(pod)
        self._forget(place)  # the pod that this pod replaces
        self._own[place] = own
        self._counts[own] = self._counts.get(own, 0) + 1

    def leave(self, pod: PodInfo, *, ended: bool, returns: bool) -> PodInfo | None:
        """Removes a pod. Returns the new leader if the pod was the leader and other pods are pending.

        Args:
            pod: the pod.
            ended: whether the pod kept its place until it finished.
            returns: whether the next pod that joins is a replacement with the same priority.
        """
        place = _place(pod)
        self.ended += ended
        self.pending.pop(place, None)
        self.bound.pop(place, None)
        if not returns:
            self._forget(place)
        if self.leader is not pod:
            return None
        self.leader = next(iter(self.pending.values()), None)
        return self.leader

    def _forget(self, place: _Place) -> None:
        own = self._own.pop(place, None)
        if own is not None:
            self._counts[own] -= 1
            if not self._counts[own]:
                del self._counts[own]

    @property
    def highest(self) -> int:
        """The highest priority of any pod of the gang, before the gang's priority applied to all pods.

        Pods that are gone count if their replacements will join.
        """
        return max(self._counts, default=self.priority)

    @property
    def alive(self) -> int:
        """The number of pods that exist, whether they are pending or bound."""
        return len(self.pending) + len(self.bound)

    @property
    def is_whole(self) -> bool:
        """True if no pod of the gang is bound."""
        return not self.bound

    @property
    def missing(self) -> int:
        """The number of pending pods that must be placed together. More pods can be placed if they fit."""
        if self.least is None:
            return len(self.pending)
        return max(0, self.least - self.ended - len(self.bound))

    def place(self, pods: Collection[PodInfo]) -> PodInfo | None:
        """Records that pending pods were bound, and returns the leader of the pods that are still pending."""
        for pod in pods:
            place = _place(pod)
            self.bound[place] = self.pending.pop(place)
        self.leader = next(iter(self.in_order()), None)
        return self.leader

    def in_order(self) -> list[PodInfo]:
        """Returns the pending pods, sorted by job and number."""
        return [self.pending[place] for place in sorted(self.pending)]


def are_mates(pod: PodInfo, other: PodInfo) -> bool:
    """Returns True if two pods belong to the same gang or job. Neither of them preempts the other."""
    if pod.gang is not None and pod.gang is other.gang:
        return True
    return pod.job is not None and pod.job is other.job


def _place(pod: PodInfo) -> _Place:
    assert pod.job is not None, "a pod of a gang belongs to a job"
    return pod.job.index, pod.pod


@final
class Gangs:
    """The gangs of a replay.

    Args:
        cluster: the cluster with the PodGroups and priority classes.
        together: whether gangs exist. If not, every pod is independent.
    """

    def __init__(self, cluster: Cluster, *, together: bool) -> None:
        self._cluster = cluster
        self._together = together
        self._gangs: dict[_Key, Gang] = {}
        self._memberships: dict[Template, Membership | None] = {}
        self._classes = by_arrival(cluster)
        self._priorities: dict[tuple[PodSet, int], int | None] = {}

    def of(self, pod: PodInfo) -> Gang | None:
        """Returns the gang of a pod, or None. A gang represents a pod group, or a job that is a gang."""
        job = pod.job
        if not self._together or job is None:
            return None
        group = self._group(pod.template)
        if group is None and not job.gang:
            return None
        key: _Key = job.index if group is None else (group.namespace, group.name)
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = Gang(
                key, self.own_priority(pod), None if group is None else group.least
            )
        return gang

    def forget(self, gang: Gang) -> None:
        """Removes a gang that has no pods left."""
        self._gangs.pop(gang.key, None)

    def _group(self, template: Template) -> Membership | None:
        if template not in self._memberships:
            groups = self._cluster.pod_groups
            self._memberships[template] = membership_of(template.namespace, template.labels, groups)
        return self._memberships[template]

    def own_priority(self, pod: PodInfo) -> int:
        """Returns a pod's own priority: that of its job or of its pod set's template, whichever is higher."""
        job = pod.job
        assert job is not None, "a pod of a gang belongs to a job"
        own = self._of_template(job.pod_set_of(pod.pod), job.submit)
        return job.priority if own is None else max(job.priority, own)

    def _of_template(self, pod_set: PodSet, submit: int) -> int | None:
        classes = at_arrival(self._classes, submit)
        key = pod_set, id(classes)
        if key not in self._priorities:
            self._priorities[key] = _read(pod_set.pod_template, classes)
        return self._priorities[key]


def _read(template: str | None, classes: Cluster) -> int | None:
    """Returns the priority in a template, which is a number or a priority class."""
    content = json.loads(template) if template else None
    if not isinstance(content, dict):
        return None
    spec = content["spec"] if isinstance(content.get("spec"), dict) else content
    priority = spec.get("priority")
    if isinstance(priority, int):
        return priority
    known = classes.priority_of(str(spec.get("priorityClassName", "")))
    return known.value if known else None
