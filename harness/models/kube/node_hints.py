"""Implements queueing hints for nodes, which say whether a node change may help a pod that filters rejected.

Upstream: the functions `isSchedulableAfterNode...` and similar functions of the plugins in
pkg/scheduler/framework/plugins, and `nodeSchedulingPropertiesChange` in pkg/scheduler/framework/events.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TypeAlias, final

from harness.cluster.kinds.pods import PodSpec
from harness.cluster.model import Cluster, Node
from harness.models.kube.cache import Cache
from harness.models.kube.placement.filters import fits_empty, tolerated
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.placement.status import (
    INTER_POD_AFFINITY,
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    NODE_UNSCHEDULABLE,
    POD_TOPOLOGY_SPREAD,
    TAINT_TOLERATION,
)
from harness.models.kube.pod import Template, Templates
from harness.models.kube.preemption.evaluator import Preemption
from harness.models.kube.queue import SchedulingQueue


class Event(Enum):
    """The events that a change of a node can cause. One update can cause several events."""

    ADDED = "added"
    DELETED = "deleted"
    TAINTS = "taints"
    ALLOCATABLE = "allocatable"
    LABELS = "labels"


Plugins: TypeAlias = frozenset[str]

_ALWAYS_BY_TAINTS = frozenset({NODE_AFFINITY, NODE_PORTS, NODE_RESOURCES_FIT, INTER_POD_AFFINITY})
"""The plugins that register for added nodes but not for taints.

Upstream also asks these plugins about changed taints. They always answer that the node may help.
"""


def reports(old: Node, new: Node) -> Iterator[Event]:
    """Yields the events that an update of a node causes.

    An uncordon causes the event `TAINTS`. A cordon causes no event.
    """
    if old.unschedulable and not new.unschedulable:
        yield Event.TAINTS
    if old.allocatable != new.allocatable:
        yield Event.ALLOCATABLE
    if old.labels != new.labels:
        yield Event.LABELS
    if old.taints != new.taints:
        yield Event.TAINTS


@final
class NodeHint:
    """Finds out whether an event, which changed a node from `old` to `new`, may help rejected pods."""

    def __init__(self, event: Event, old: Node | None, new: Node | None) -> None:
        self._event = event
        self._old = old
        self._new = new
        self._known: dict[tuple[Template, Plugins], bool] = {}

    def helps(self, template: Template, rejected_by: Plugins) -> bool:
        """Returns True if the event may help pods of a template that these plugins rejected."""
        found = self._known.get((template, rejected_by))
        if found is None:
            found = self._known[template, rejected_by] = self._asked(template, rejected_by)
        return found

    def _asked(self, template: Template, rejected_by: Plugins) -> bool:
        old, new, spec = self._old, self._new, template.spec
        if new is None:
            return old is not None and POD_TOPOLOGY_SPREAD in rejected_by and _has_keys(template, old)
        if old is None:
            return any(_after_addition(plugin, template, new) for plugin in rejected_by)
        if self._event is Event.ALLOCATABLE:
            return NODE_RESOURCES_FIT in rejected_by and _grows(spec, old, new)
        spread = POD_TOPOLOGY_SPREAD in rejected_by and _spreads_otherwise(template, old, new)
        if self._event is Event.LABELS:
            near = INTER_POD_AFFINITY in rejected_by and _domains_change(spec, old, new)
            return spread or near or (NODE_AFFINITY in rejected_by and _now_selects(spec, old, new))
        return (
            spread
            or not _ALWAYS_BY_TAINTS.isdisjoint(rejected_by)
            or (NODE_UNSCHEDULABLE in rejected_by and old.unschedulable and not new.unschedulable)
            or (TAINT_TOLERATION in rejected_by and _tolerates(spec, new) and not _tolerates(spec, old))
        )


def _after_addition(plugin: str, template: Template, new: Node) -> bool:
    spec = template.spec
    if plugin == NODE_UNSCHEDULABLE:
        return not new.unschedulable
    if plugin == TAINT_TOLERATION:
        return _tolerates(spec, new)
    if plugin == NODE_AFFINITY:
        return spec.allows(new.name, new.labels)
    if plugin == NODE_RESOURCES_FIT:
        return fits_empty(spec, new)
    if plugin == POD_TOPOLOGY_SPREAD:
        return _has_keys(template, new)
    if plugin == INTER_POD_AFFINITY:
        return bool(spec.anti_affinity) or any(term.topology_key in new.labels for term in spec.affinity)
    return plugin == NODE_PORTS


def _tolerates(spec: PodSpec, node: Node) -> bool:
    return all(
        taint.effect == "PreferNoSchedule" or tolerated(taint, spec.tolerations) for taint in node.taints
    )


def _grows(spec: PodSpec, old: Node, new: Node) -> bool:
    """Returns True if a node got more of a resource that the pod needs, and the pod fits on it when empty."""
    had, has = old.allocatable, new.allocatable
    more_pods = "pods" in had and has.get("pods", had["pods"] + 1) > had["pods"]
    more = more_pods or any(
        has.get(name, 0) > had.get(name, 0)
        for name, amount in spec.requests.items()
        if amount > 0 and name != "pods"
    )
    return more and fits_empty(spec, new)


def _has_keys(template: Template, node: Node) -> bool:
    return all(constraint.topology_key in node.labels for constraint in template.spread)


def _spreads_otherwise(template: Template, old: Node, new: Node) -> bool:
    """Returns True if the node's taints or spread domain change, or if it joins or leaves the domains."""
    had, has = _has_keys(template, old), _has_keys(template, new)
    if had != has:
        return True
    return has and (
        old.taints != new.taints
        or any(old.labels[each.topology_key] != new.labels[each.topology_key] for each in template.spread)
    )


def _domains_change(spec: PodSpec, old: Node, new: Node) -> bool:
    """Returns True if the node joins a domain of an affinity term, or leaves an anti-affinity domain."""
    joins = any(
        term.topology_key in new.labels and old.labels.get(term.topology_key) != new.labels[term.topology_key]
        for term in spec.affinity
    )
    return joins or any(
        term.topology_key in old.labels and old.labels[term.topology_key] != new.labels.get(term.topology_key)
        for term in spec.anti_affinity
    )


def _now_selects(spec: PodSpec, old: Node, new: Node) -> bool:
    return spec.allows(new.name, new.labels) and not spec.allows(old.name, old.labels)


@final
class ChangingNodes:
    """The nodes of a scheduler. Changes of nodes reach its parts and its pending pods.

    Upstream: `addNodeToCache`, `updateNodeInCache` and `deleteNodeFromCache` in
    pkg/scheduler/eventhandlers.go.

    Args:
        cluster: the initial nodes.
        cache: the nodes and the pods on them.
        templates: the templates of pods.
        scheduling: finds nodes for pods.
        preemption: finds victims, or None if there is no preemption.
        queue: the pending pods.
    """

    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        templates: Templates,
        scheduling: Scheduling,
        preemption: Preemption | None,
        queue: SchedulingQueue,
    ) -> None:
        self._nodes = dict(cluster.nodes)
        self._cache = cache
        self._templates = templates
        self._scheduling = scheduling
        self._preemption = preemption
        self._queue = queue

    def put(self, node: Node) -> None:
        """Adds, restores or changes a node. If the manifest is equal to the current one, nothing happens."""
        old = self._nodes.get(node.name)
        events = [Event.ADDED] if old is None else list(reports(old, node))
        if old is not None and not events and old.unschedulable == node.unschedulable:
            return
        self._nodes[node.name] = node
        if self._cache.put(node):
            self._templates.count_by_resources()
        for event in events:
            self._queue.changed(NodeHint(event, old, node).helps)

    def drop(self, name: str) -> None:
        """Removes a node. The caller must then delete the node's pods, sorted by name."""
        old = self._nodes.pop(name)
        self._queue.changed(NodeHint(Event.DELETED, old, None).helps)
        self._cache.drop(name)

    def settle(self) -> bool:
        """Updates the order of nodes and drops results about former nodes, before an attempt.

        Returns:
            True if the order has changed.
        """
        cache = self._cache
        if not (cache.unsettled and self._queue.tries_some):
            return False
        differs = cache.settle()
        self._queue.forget_refusals()
        self._scheduling.renew()
        if self._preemption is not None:
            self._preemption.renew()
        return differs
