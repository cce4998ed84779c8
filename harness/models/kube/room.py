"""Determines whether pods would fit on the nodes by kube-scheduler's filters, while other pods come and go.

The module has its own nodes, so it works with any scheduler. It tries pods one after another, starting with
the largest pod, as if the earlier pods were placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import final

from harness.cluster.kinds.scheduler_configuration import SchedulerConfiguration
from harness.cluster.model import Cluster, Node
from harness.models.kube.cache import Cache
from harness.models.kube.flavored import template_in
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import scheduling_of
from harness.models.kube.pod import PodInfo, Template, Templates
from harness.policy import Job, PodSet

Flavors = Mapping[str, Mapping[str, str]]
"""The flavor of each resource, for each pod set. See `harness.policy.Admit`."""

_FINE = 1 << 20  # requests are compared in units of this fraction of a node's quantity

_NONE: Mapping[str, str] = {}


@final
class Ask:
    """Pods that must be placed together, and the result of the last attempt.

    Attributes:
        counts: the number of pods of each template.
        fits: whether the pods fitted.
        crowded: True if one of the pods fits on no node even without the others.
        tried: the number of changes before the last attempt, or -1 before the first attempt.
    """

    __slots__ = ("counts", "crowded", "fits", "tried")

    def __init__(self, counts: Mapping[Template, int]) -> None:
        self.counts = counts
        self.fits = self.crowded = False
        self.tried = -1


@final
class Room:
    """The nodes of a cluster and the pods on them.

    Args:
        cluster: the cluster with the nodes.
    """

    def __init__(self, cluster: Cluster) -> None:
        configuration = cluster.scheduler or SchedulerConfiguration()
        self._cluster = cluster
        self._cache = Cache(cluster)
        self._known = Templates(self._cache.resources, lambda namespace, labels: ())  # no pod is evicted
        self._scheduling = scheduling_of(self._cache, self._known, configuration, 100)
        self._most = self._largest()
        self._templates: dict[tuple[PodSet, str, tuple[str, ...]], Template] = {}
        self._asks: dict[tuple[tuple[Template, int], ...], Ask] = {}
        self._bound: dict[tuple[int, int], PodInfo] = {}
        self._changes = 0  # the number of changes of pods and nodes
        self._roomier = 0  # the last change after which a node may fit more than before

    def follow(self, name: str, node: Node | None) -> None:
        """Adds, changes or removes a node. The caller must then free its pods."""
        if node is None:
            self._cache.drop(name)
        elif self._cache.put(node):
            self._known.count_by_resources()
        self._scheduling.renew()
        self._most = self._largest()
        self._changes += 1
        self._roomier = self._changes

    def bind(self, job: Job, pods: Iterable[int], node: str, flavors: Flavors) -> None:
        """Adds pods of a job that use resources on a node from now on."""
        there = self._cache.by_name[node]
        for pod in pods:
            template = self._template(job, job.pod_set_of(pod), flavors)
            info = PodInfo(job.id, template, job.priority, job.preempts, job, pod)
            self._bound[job.index, pod] = info
            self._cache.add_pod(info, there)
        self._changes += 1

    def free(self, job: Job, pods: Iterable[int]) -> None:
        """Removes pods of a job from their nodes. Pods that were not bound are ignored."""
        for pod in pods:
            info = self._bound.pop((job.index, pod), None)
            if info is not None:
                self._cache.remove_pod(info)
                self._changes += 1
                self._roomier = self._changes

    def asked(self, job: Job, pods: Sequence[int], flavors: Flavors) -> Ask:
        """Returns the `Ask` for these pods of a job. Equal requests share one object."""
        (first, *others), counts = job.pod_sets, Counter[Template]()
        for pod_set, count in (Counter(map(job.pod_set_of, pods)) if others else {first: len(pods)}).items():
            counts[self._template(job, pod_set, flavors)] += count
        return self._asks.setdefault(tuple(counts.items()), Ask(counts))

    def takes(self, ask: Ask, job: Job) -> bool:
        """Returns True if the pods, which are not bound, fit on the nodes together.

        Args:
            ask: the pods.
            job: a job with such pods.
        """
        # If pods were only added, a node that was too full is still too full.
        if ask.tried < (self._roomier if ask.crowded else self._changes):
            if self._cache.unsettled and self._cache.settle():
                self._scheduling.renew()
            shapes = [self._scheduling.shape_nodes(template.shape) for template in ask.counts]
            ask.crowded = not all(nodes.any_fits() for nodes in shapes)
            ask.fits = not ask.crowded and (self._is_simple(ask) or self._places(ask, job))
            ask.tried = self._changes
        return ask.fits

    def _is_simple(self, ask: Ask) -> bool:
        """Returns True for a single pod, if no rule of any pod depends on other pods on the node."""
        (template, count), *others = ask.counts.items()
        return count == 1 and not others and template.alone and not self._cache.repelling

    def _places(self, ask: Ask, job: Job) -> bool:
        """Returns True if the scheduler finds a node for each pod, starting with the largest."""
        placed: list[PodInfo] = []
        ranked = sorted(ask.counts, key=lambda each: -self._size(each))
        for template in (each for each in ranked for _ in range(ask.counts[each])):
            info = PodInfo(job.id, template, job.priority, job.preempts, job, len(placed))
            node = self._scheduling.schedule(info)
            if not isinstance(node, NodeInfo):
                break
            self._cache.add_pod(info, node)
            placed.append(info)
        for info in reversed(placed):
            self._cache.remove_pod(info)
        return len(placed) == sum(ask.counts.values())

    def _largest(self) -> list[int]:
        amounts = [node.allocatable for node in self._cache.by_name.values()]
        return [max(each, default=0) for each in zip(*amounts, strict=True)] or [0] * len(self._cache.names)

    def _template(self, job: Job, pod_set: PodSet, flavors: Flavors) -> Template:
        chosen = tuple(flavors.get(pod_set.name, _NONE).values())
        key = (pod_set, job.namespace, chosen)
        template = self._templates.get(key)
        if template is None:
            template = template_in(self._known, self._cluster, job, pod_set, chosen, _NONE)
            self._templates[key] = template
        return template

    def _size(self, template: Template) -> int:
        """Returns the size of a pod: its largest request, as a fraction of the largest node's quantity."""
        asked = template.shape.requests
        return max((amount * _FINE // max(1, self._most[resource]) for resource, amount in asked), default=0)
