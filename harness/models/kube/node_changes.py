"""Applies added, removed and changed nodes to the parts of the scheduler.

Upstream: `addNodeToCache`, `updateNodeInCache` and `deleteNodeFromCache` in pkg/scheduler/eventhandlers.go.
"""

from __future__ import annotations

from typing import final

from harness.cluster.model import Cluster, Node
from harness.models.kube.cache import Cache
from harness.models.kube.node_hints import Event, NodeHint, reports
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.pod import Templates
from harness.models.kube.preemption.evaluator import Preemption
from harness.models.kube.queue import SchedulingQueue


@final
class ChangingNodes:
    """The nodes of a scheduler.

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
