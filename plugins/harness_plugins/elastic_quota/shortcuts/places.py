"""Counts how many pods of one shape (equal pods) fit on the nodes. Only changed nodes are counted again."""

from __future__ import annotations

from typing import final

from harness.base.memo import Memo
from harness.models.elastic.quota import Quota
from harness.models.kube.devices import places
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.pod import PodInfo, Shape
from harness_plugins.elastic_quota.quota_usage import QuotaUsage

_MOST_SHAPES = 2048
"""The maximum number of shapes to cache. More shapes would use too much memory on large clusters."""


@final
class Places:
    """The number of pods of each shape that fit on the nodes.

    Attributes:
        valid: whether the nodes are the same as when this object was created.
    """

    def __init__(self, scheduling: Scheduling, usage: QuotaUsage) -> None:
        self.valid = True
        self._scheduling = scheduling
        self._usage = usage
        self._kept: Memo[tuple[Shape, Quota | None, int], PlacesOfShape] = Memo(_MOST_SHAPES)

    def of(self, shape: Shape, quota: Quota | None = None, priority: int = 0) -> PlacesOfShape:
        """Returns the number of places for pods of a shape.

        If a quota is given, this is the largest number that preemption within the quota could make possible.
        All terminating pods and all pods of the quota with a lower priority count as gone. This includes pods
        that must not be preempted.
        """
        key = shape, quota, 0 if quota is None else priority
        places = self._kept.get(key)
        if places is None:
            places = self._kept[key] = PlacesOfShape(*key, self._scheduling, self._usage)
        return places


@final
class PlacesOfShape:
    """The number of equal pods that fit on the nodes. The pods have no host ports or rules about other pods.

    Equal pods that are placed one after another get all of these places, in any order of nodes. They get
    fewer places if resources are reserved for nominated pods.
    """

    __slots__ = ("_cache", "_on", "_priority", "_quota", "_ruled_out", "_seen", "_shape", "_total", "_usage")

    def __init__(
        self, shape: Shape, quota: Quota | None, priority: int, scheduling: Scheduling, usage: QuotaUsage
    ) -> None:
        self._shape = shape
        self._quota = quota
        self._priority = priority
        self._usage = usage
        self._cache = cache = scheduling.cache
        nodes = scheduling.shape_nodes(shape)
        self._ruled_out = [nodes.ruled_out(node.position) is not None for node in cache.nodes]
        self._on = [self._count(node) for node in cache.nodes]
        self._total = sum(self._on)
        self._seen = cache.version

    def now(self) -> int:
        """Returns the current number of places."""
        cache = self._cache
        if self._seen != cache.version:
            for position in cache.changed_since(self._seen):
                count = self._count(cache.nodes[position])
                self._total += count - self._on[position]
                self._on[position] = count
            self._seen = cache.version
        return self._total

    def _count(self, node: NodeInfo) -> int:
        shape, free, least = self._shape, node.free, node.slots
        if self._ruled_out[node.position] or shape.missing:
            return 0
        gone = [] if self._quota is None else [pod for pod in node.pods if self._may_be_gone(pod)]
        if gone:
            free, least = free.copy(), least + len(gone)
            for pod in gone:
                for resource, amount in pod.template.shape.requests:
                    free[resource] += amount
        requests = shape.requests
        if shape.device is not None and node.devices:
            requests, least = shape.amounts, min(least, places(node.devices_without(gone), shape.device))
        for resource, amount in requests:
            fit = free[resource] // amount
            if fit < least:
                least = fit
        return max(0, least)

    def _may_be_gone(self, pod: PodInfo) -> bool:
        if pod.terminating:
            return True
        return pod.priority < self._priority and self._usage.quota_of(pod) is self._quota
